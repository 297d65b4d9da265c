//! The keys `follow`, `urls` and `sitemap`: links to follow, and other sources of addresses.

use serde::{Deserialize, Serialize};

use crate::records::Query;
use crate::text::Text;

/// Links of a page that become pages of a group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Follow {
    /// Query for the links. The address of an element is its `href`, or else its `src`.
    pub query: Query,
    /// Group of the linked pages.
    pub group: Text,
    /// Limit for the target of a link.
    pub scope: FollowScope,
    /// Regular expressions. An address must match one of them, if there are any.
    pub allow: Vec<Text>,
    /// Regular expressions. An address that matches one of them is not followed.
    pub deny: Vec<Text>,
    /// Maximum number of links between a start page and the linked page. `None` means no limit.
    pub max_depth: Option<u32>,
    /// Maximum number of pages that this rule adds to a run. `None` means no limit.
    pub max_pages: Option<u64>,
}

/// Limit for the target of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FollowScope {
    /// The same host and port.
    #[default]
    Host,
    /// The same registrable domain: `shop.example.co.uk` and `www.example.co.uk`.
    Domain,
    /// Addresses that begin like the start page's, up to its last slash.
    Prefix,
    /// Anywhere.
    Any,
}

impl FollowScope {
    /// All scopes and their keywords.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Host, "host"),
        (Self::Domain, "domain"),
        (Self::Prefix, "prefix"),
        (Self::Any, "any"),
    ];
}

/// A source of further locators of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum UrlSource {
    /// An address with ranges: `https://example.org/page/[1-100]`, `[001-100]`, `[0-100:20]`.
    Pattern(Text),
    /// A file with one address per line, or a CSV file with a column of addresses.
    File {
        /// Path, relative to the current directory or to the definitions.
        file: Text,
        /// Column with the address. `None` means one address per line.
        column: Option<Text>,
        /// Column with the name of the locator. `None` means the address.
        name: Option<Text>,
    },
}
