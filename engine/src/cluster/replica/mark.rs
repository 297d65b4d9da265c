//! The mark of a replica: how far its tables are, written in the same transaction as the tables.

use serde::{Deserialize, Serialize};

use crate::cluster::messages::{LogId, Membership};

/// File of the tables in the data directory.
pub(in crate::cluster) const STATE: &str = "state.db";
/// Record of the mark.
pub(in crate::cluster) const MARK: &str = "mark";

/// How far a replica is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::cluster) struct ReplicaMark {
    /// The last applied entry.
    pub applied: Option<LogId>,
    /// The voters after that entry.
    pub membership: Membership,
    /// A digest of everything applied, the same on every node.
    pub digest: u64,
}
