//! The definitions that the node which sets a run up publishes, and their bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spoonbill_defs::Defs;

/// The definitions as every node reads them from the store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PublishedPlan {
    /// The effective definitions.
    pub defs: Defs,
    /// Texts of script files, by the names in the definitions.
    pub files: BTreeMap<String, String>,
    /// Values of secret variables, by name. No output shows them.
    pub secrets: BTreeMap<String, String>,
    /// Hashes of address lists, by the names in the definitions.
    pub lists: BTreeMap<String, [u8; 32]>,
}

/// The bytes of a value for the store.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    // Plain data with string keys always encodes.
    postcard::to_stdvec(value).unwrap_or_default()
}
