//! Appenders: where encoded rows go. They read committed output only, from a stored position, so
//! that a crash at any instant loses and doubles nothing.

mod file;

pub use file::{FileAppender, FileOptions, is_file_appender};

/// How far an appender has come: enough to find the place again and to know it is the same file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// Bytes written.
    pub length: u64,
    /// Hash of the last of them.
    pub tail: u64,
}
