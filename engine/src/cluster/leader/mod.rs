//! The work of the leader. Commands arrive in `placement`, which decides in which order
//! nodes get jobs. `batch` puts them into entries of the log. `beat` renews sessions with a command of
//! its own, and reports the processes that `connections` has seen disconnect. `members` gives each
//! node's present disk its vote.

pub(in crate::cluster) mod batch;
pub(in crate::cluster) mod beat;
pub(in crate::cluster) mod connections;
pub(in crate::cluster) mod members;
pub(in crate::cluster) mod placement;
