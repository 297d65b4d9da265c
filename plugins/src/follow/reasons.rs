//! Why a link is not followed: names under which the report counts them.

/// It leads to another host.
pub(crate) const OUT_OF_HOST: &str = "links out of scope (host)";
/// It leads to another registrable domain.
pub(crate) const OUT_OF_DOMAIN: &str = "links out of scope (domain)";
/// It leads beside the start page.
pub(crate) const OUT_OF_PREFIX: &str = "links out of scope (prefix)";
/// Something that must not be there is.
pub(crate) const DENIED: &str = "links that a deny pattern holds";
/// Nothing that must be there is.
pub(crate) const NOT_ALLOWED: &str = "links that no allow pattern holds";
/// A pattern takes too long on it.
pub(crate) const PATTERN_GAVE_UP: &str = "links on which a pattern gives up";
/// It is too far from a start page.
pub(crate) const TOO_DEEP: &str = "links beyond maxDepth";
/// Another scheme.
pub(crate) const NOT_WEB: &str = "links that are no web address (mailto:, javascript:, ...)";
/// A page on the web names a file.
pub(crate) const FILE_OF_WEB_PAGE: &str = "links of web pages that name a file";
/// No address at all.
pub(crate) const UNREADABLE: &str = "links that cannot be read";
/// An element without an address.
pub(crate) const NO_ADDRESS: &str = "links without an address";
/// The page is known.
pub(crate) const KNOWN: &str = "already known";
