//! The Spoonbill engine: a library and the `spoonbill` binary. These are its folders, in the order in
//! which a run passes through them:

/// Chooses the store and the clock, for one machine or for a cluster.
mod bootstrap;
/// The commands, one file for each. Only this folder prints.
pub mod cli;
/// The store of several nodes, on openraft.
mod cluster;
/// The settings. Each one is a row of one table.
pub mod config;
/// The jobs of a run, the sessions that hold them and the results: a pure state machine.
pub mod ledger;
/// The saved pages, compressed in frames, and the parsed data stored with them.
mod pages;
/// Turns the files of a definitions folder into the plan of a node.
mod plan;
/// One run: join, agree, seed, work, write and end.
mod run;
/// Takes one page through the steps of its tasks.
mod steps;
/// The contract of a store, and the store of one machine.
pub mod store;
/// Queues and pools that feed threads.
mod threads;
/// Encrypted requests and answers between processes.
mod wire;

/// The errors of a run. `run/exit_code.rs` chooses the exit code for each.
mod error;
/// Named points at which tests kill the process.
#[doc(hidden)]
pub mod failpoint;
