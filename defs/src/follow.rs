//! Links to follow, and other sources of addresses.

use serde::{Deserialize, Serialize};

use crate::records::Query;
use crate::text::Text;

/// Links of a page that become pages of a group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Follow {
    /// Where the links are; an element gives its `href`, or else its `src`.
    pub query: Query,
    /// Group of the pages they lead to.
    pub group: Text,
    /// How far from the page a link may lead.
    pub scope: FollowScope,
    /// Regular expressions; an address has to hold one of them, if there are any.
    pub allow: Vec<Text>,
    /// Regular expressions; an address that holds one of them is not followed.
    pub deny: Vec<Text>,
    /// Links followed from a start page to the page that is reached, at most.
    pub max_depth: Option<u32>,
    /// Pages this rule may add to a run.
    pub max_pages: Option<u64>,
}

/// How far a link may lead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FollowScope {
    /// To the same host and port.
    #[default]
    Host,
    /// To the same registrable domain: `shop.example.co.uk` and `www.example.co.uk`.
    Domain,
    /// To addresses that begin like the start page's, up to its last slash.
    Prefix,
    /// Anywhere.
    Any,
}

impl FollowScope {
    /// All scopes with their names.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Host, "host"),
        (Self::Domain, "domain"),
        (Self::Prefix, "prefix"),
        (Self::Any, "any"),
    ];
}

/// Where further locators of a group come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum UrlSource {
    /// An address with ranges: `https://example.org/page/[1-100]`, `[001-100]`, `[0-100:20]`.
    Pattern(Text),
    /// A file with an address on each line, or a CSV file with a column of them.
    File {
        /// Path, as files of locators are found.
        file: Text,
        /// Column with the address; `None` means a plain list.
        column: Option<Text>,
        /// Column with the locator's name; the address itself when absent.
        name: Option<Text>,
    },
}
