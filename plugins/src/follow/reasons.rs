//! Reasons why a link is not followed. The report counts links under these names.

pub(crate) const OUT_OF_HOST: &str = "links out of scope (host)";
pub(crate) const OUT_OF_DOMAIN: &str = "links out of scope (domain)";
pub(crate) const OUT_OF_PREFIX: &str = "links out of scope (prefix)";
pub(crate) const DENIED: &str = "links that match a deny pattern";
pub(crate) const NOT_ALLOWED: &str = "links that match no allow pattern";
pub(crate) const PATTERN_GAVE_UP: &str = "links on which a pattern took too long";
pub(crate) const TOO_DEEP: &str = "links beyond maxDepth";
pub(crate) const NOT_WEB: &str = "links to other schemes (mailto:, javascript:, ...)";
pub(crate) const FILE_OF_WEB_PAGE: &str = "links from web pages to files";
pub(crate) const UNREADABLE: &str = "links with an invalid address";
pub(crate) const NO_ADDRESS: &str = "links without an address";
pub(crate) const KNOWN: &str = "already known";
