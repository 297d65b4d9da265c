//! One node's copy of the ledger.

pub(in crate::cluster) mod apply;
pub(in crate::cluster) mod chunks;
pub(in crate::cluster) mod read_only;
pub(in crate::cluster) mod restore;
pub(in crate::cluster) mod snapshot;
pub(in crate::cluster) mod thread;
