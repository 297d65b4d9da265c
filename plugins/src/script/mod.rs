//! Runs JavaScript in a sandbox, for single items and for whole data.
//!
//! [`ItemScripts`] evaluates the `script` of an item. [`Scripter`] runs the files of a script step.
//! A script sees only the objects given to it: no files, no network, no timers, no modules.
//! The time limit is soft: a few built-in functions of the engine check the clock only when they
//! return. A caller with a hard deadline must supervise the thread.

mod chain;
mod configs;
mod engine;
mod error;
mod facts;
mod item;
mod log;
mod model;
mod scripter;
mod syntax;
mod values;

pub use chain::ScriptChain;
pub use engine::Limits;
pub use error::ScriptError;
pub use facts::{ConfigLookup, DateText, RunFacts, ScriptFacts};
pub use item::ItemScripts;
pub use scripter::Scripter;
pub use syntax::check_expression;

#[cfg(test)]
pub(crate) mod testing;
