//! What can go wrong in a script, in words for its author.

use std::time::Duration;

/// A script that did not give a value.
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
        /// What the engine says.
        message: String,
    },
    /// The script threw and did not catch.
    #[error("{}: {message}", place(.script, *.at))]
    Thrown {
        /// Name of the script.
        script: String,
        /// Line and column, from 1, where they are known.
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
    /// The script wanted too much memory.
    #[error("`{script}` used more than {limit} bytes of memory (setting `script.memory.max`)")]
    MemoryLimit {
        /// Name of the script.
        script: String,
        /// The limit that was hit.
        limit: usize,
    },
    /// The script called itself too deeply.
    #[error("{}: calls nest too deeply, {limit} bytes of stack are used up", place(.script, *.at))]
    StackLimit {
        /// Name of the script.
        script: String,
        /// Line and column, from 1, where they are known.
        at: Option<(u32, u32)>,
        /// The limit that was hit.
        limit: usize,
    },
    /// The files of a plugin do not define its entry function.
    #[error("`{script}` defines no function `{entry_point}` (property `entryPoint`)")]
    NoEntryPoint {
        /// Name of the script.
        script: String,
        /// The function looked for.
        entry_point: String,
    },
    /// The entry function gave null or undefined.
    #[error("`{script}`: script returned nothing, `{entry_point}` must return the data")]
    Nothing {
        /// Name of the script.
        script: String,
        /// The function called.
        entry_point: String,
    },
    /// The last entry function gave something else than data.
    #[error("`{script}`: script returned {got}, the last script must return the data")]
    NotData {
        /// Name of the script.
        script: String,
        /// What it gave.
        got: String,
    },
    /// The engine itself failed; it is replaced before the next call.
    #[error("`{script}`: the script engine failed: {message}")]
    Engine {
        /// Name of the script.
        script: String,
        /// What is known of it.
        message: String,
    },
}

fn place(script: &str, at: Option<(u32, u32)>) -> String {
    match at {
        Some((line, column)) => format!("`{script}` line {line}, column {column}"),
        None => format!("`{script}`"),
    }
}
