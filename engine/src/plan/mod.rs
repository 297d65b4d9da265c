//! From the files of a definitions folder to what a node works with. [`load::Definitions`] is what was
//! read and checked, [`publish::PublishedPlan`] is the part that all nodes share through the store, and
//! [`prepare::Plan`] is everything compiled.

pub(crate) mod address_lists;
pub(crate) mod changes;
pub(crate) mod files;
pub(crate) mod identity;
pub(crate) mod load;
pub(crate) mod prepare;
pub(crate) mod publish;
