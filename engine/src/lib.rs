//! The Spoonbill engine: a library and the `spoonbill` binary. The rooms, in the order in which a run
//! walks through them:

/// Binds a store and a clock, for one machine or for a cluster.
mod bootstrap;
/// The commands: one file for each, and nothing else prints.
pub mod cli;
/// The store of several nodes, on openraft.
mod cluster;
/// The settings: every one is a row of one table.
pub mod config;
/// What is to be done, who does it and what came of it: a pure state machine.
pub mod ledger;
/// The saved pages, and the parsed data beside them.
mod pages;
/// From the files of a definitions folder to what a node works with.
mod plan;
/// One run: join, agree, seed, work, write and end.
mod run;
/// One page on its way through the steps of its tasks.
mod steps;
/// The contract of a store, and the store of one machine.
pub mod store;
/// Queues and pools that feed threads.
mod threads;
/// Encrypted requests and answers between processes.
mod wire;

/// Why a run could not be done, and the exit code for it.
mod error;
/// The named points where tests kill the process.
#[doc(hidden)]
pub mod failpoint;
