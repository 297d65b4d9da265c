//! The engine: seeds jobs, loads pages, walks them through their steps and writes rows, until the
//! work is over or somebody stops it. `run.rs` tells the story, `ledger` keeps the facts.

pub mod cli;
pub mod config;
#[doc(hidden)]
pub mod failpoint;
pub mod ledger;
mod lists;
pub mod store;

mod agree;
mod append;
mod barricade;
mod bench;
mod bootstrap;
mod checksum;
mod compose;
mod differ;
mod documents;
mod error;
mod folder;
mod init;
mod job;
mod monitor;
mod pace;
mod parting;
mod pool;
mod prepare;
mod quality;
mod query;
mod queue;
mod replay;
mod report;
mod run;
mod seed;
mod shutdown;
mod steps;
mod task;
mod tenancy;
