//! Bounded queues and pools that feed threads.

pub(crate) mod pool;
pub(crate) mod queue;
