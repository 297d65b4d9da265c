//! The engine: seeds jobs, loads pages, walks them through their steps and writes rows, until the
//! work is over or somebody stops it. `run.rs` tells the story, `ledger` keeps the facts.

pub mod cli;
pub mod config;
pub mod ledger;
pub mod store;

mod append;
mod barricade;
mod bench;
mod bootstrap;
mod compose;
mod differ;
mod documents;
mod error;
mod job;
mod monitor;
mod pool;
mod prepare;
mod query;
mod report;
mod run;
mod seed;
mod shutdown;
mod steps;
mod task;
