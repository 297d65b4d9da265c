//! One node's copy of the ledger. `thread` owns it. `raft` passes committed entries to the thread, which
//! applies them with `apply`; commands that were sent in `chunks` are put together there. `mark`
//! records how far the tables are. `snapshot`
//! copies the tables, and `restore` opens them at the start. `roster` is what the
//! other parts of the cluster read of it. `read_only` reads the tables while the node is down.

pub(in crate::cluster) mod apply;
pub(in crate::cluster) mod chunks;
pub(in crate::cluster) mod mark;
pub(in crate::cluster) mod raft;
pub(in crate::cluster) mod read_only;
pub(in crate::cluster) mod restore;
pub(in crate::cluster) mod roster;
pub(in crate::cluster) mod snapshot;
pub(in crate::cluster) mod thread;
