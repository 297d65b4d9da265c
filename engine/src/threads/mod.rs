//! Bounded queues and pools that feed threads, pauses, and results that are ignored on purpose.

pub(crate) mod ignore;
pub(crate) mod pause;
pub(crate) mod pool;
pub(crate) mod queue;
