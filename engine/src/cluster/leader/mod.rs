//! What the leader does for all nodes.

pub(in crate::cluster) mod batch;
pub(in crate::cluster) mod connections;
pub(in crate::cluster) mod placement;
