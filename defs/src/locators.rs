//! The key `locatorGroups`: the pages to load.

use serde::{Deserialize, Serialize};

use crate::follow::UrlSource;
use crate::text::Text;

/// A named list of locators. The task group of the same name processes their pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LocatorGroup {
    /// Name of the group.
    pub name: Text,
    /// The pages, in document order.
    pub locators: Vec<Locator>,
    /// Sources of further locators, read when the run is seeded.
    pub sources: Vec<UrlSource>,
    /// Its pages wait until the pages of all groups with a smaller number are done.
    pub start_sequence: u32,
}

/// One page to load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Locator {
    /// First column of every row of the page.
    pub name: Text,
    /// Address: `http(s)://...`, `file:...`, or a path.
    pub url: Text,
}
