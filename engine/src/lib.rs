//! The engine: seeds jobs, loads pages, walks them through their steps and writes rows, until the
//! work is over or somebody stops it.

pub mod config;
pub mod ledger;
pub mod store;
