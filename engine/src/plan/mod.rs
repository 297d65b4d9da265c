//! From the files of a definitions folder to what a node works with.

pub(crate) mod address_lists;
pub(crate) mod changes;
pub(crate) mod identity;
pub(crate) mod prepare;
pub(crate) mod publish;
