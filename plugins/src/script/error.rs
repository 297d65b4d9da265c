//! The errors of scripts, worded for their authors.

use std::time::Duration;

/// Why a script gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The text is not JavaScript.
    #[error("`{script}` line {line}, column {column}: {message}")]
    Syntax {
        /// Name of the script.
        script: String,
        /// Line, from 1.
        line: u32,
        /// Column, from 1.
        column: u32,
        /// The message of the engine.
        message: String,
    },
    /// The script threw an error and did not catch it.
    #[error("{}: {message}", place(.script, *.at))]
    Thrown {
        /// Name of the script.
        script: String,
        /// Line and column, from 1, if known.
        at: Option<(u32, u32)>,
        /// The error's name and message.
        message: String,
    },
    /// The script ran too long.
    #[error("`{script}` ran longer than {} ms (setting `script.time.max`)", .limit.as_millis())]
    TimeLimit {
        /// Name of the script.
        script: String,
        /// The limit that was hit.
        limit: Duration,
    },
    /// The script used too much memory.
    #[error("`{script}` used more than {limit} bytes of memory (setting `script.memory.max`)")]
    MemoryLimit {
        /// Name of the script.
        script: String,
        /// The limit that was hit.
        limit: usize,
    },
    /// The calls of the script nest too deeply.
    #[error("{}: calls nest too deeply and used all {limit} bytes of the stack", place(.script, *.at))]
    StackLimit {
        /// Name of the script.
        script: String,
        /// Line and column, from 1, if known.
        at: Option<(u32, u32)>,
        /// The limit that was hit.
        limit: usize,
    },
    /// The files of a plugin do not define its entry function.
    #[error("`{script}` defines no function `{entry_point}` (property `entryPoint`)")]
    NoEntryPoint {
        /// Name of the script.
        script: String,
        /// The name of the function.
        entry_point: String,
    },
    /// The entry function returned null or undefined.
    #[error("`{script}`: script returned nothing, `{entry_point}` must return the data")]
    Nothing {
        /// Name of the script.
        script: String,
        /// The function called.
        entry_point: String,
    },
    /// The last entry function returned a value that is not data.
    #[error("`{script}`: script returned {got}, the last script must return the data")]
    NotData {
        /// Name of the script.
        script: String,
        /// A description of the value.
        got: String,
    },
    /// The engine failed. A new one is started before the next call.
    #[error("`{script}`: the script engine failed: {message}")]
    Engine {
        /// Name of the script.
        script: String,
        /// The message of the engine.
        message: String,
    },
}

fn place(script: &str, at: Option<(u32, u32)>) -> String {
    match at {
        Some((line, column)) => format!("`{script}` line {line}, column {column}"),
        None => format!("`{script}`"),
    }
}
