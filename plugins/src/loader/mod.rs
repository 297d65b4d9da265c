//! Loading of pages: files and HTTP, and the text of their bytes.
//!
//! A loader makes one attempt and says how it ended. It never waits, retries or counts: politeness
//! and retries belong to the engine, which reads [`Retry`] to decide.

pub mod charset;
pub mod file;
pub mod http;
mod prescan;
mod retry_after;
mod target;
mod trouble;

use std::time::Duration;

use bytes::Bytes;

pub use target::Target;
pub(crate) use target::{escape, unescaped};

/// Largest body taken by default, after decompression.
pub const BODY_MAX: u64 = 16 * 1024 * 1024;

/// A page that arrived whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The body, decompressed.
    pub body: Bytes,
    /// HTTP status, 0 for a file.
    pub status: u16,
    /// Address after redirects, or the path of the file that was read.
    pub final_url: String,
    /// `Content-Type` as sent, if there was one.
    pub content_type: Option<String>,
    /// All headers in the order they came, one a line, names in lower case.
    pub headers: String,
    /// Bytes read. The client decompresses before we see them, so they are the decoded ones.
    pub wire_bytes: u64,
}

/// Whether another attempt may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It would end the same way.
    Never,
    /// After a backoff.
    Soon,
    /// The host asked for silence: nothing of its lane may be fetched for so long.
    HostAfter(Duration),
}

/// Why a page did not load, in words for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LoadError {
    /// Names the address and the cause: lower case, no full stop.
    pub message: String,
    /// Whether another attempt may help.
    pub retry: Retry,
    /// HTTP status, if an answer came.
    pub status: Option<u16>,
}

impl LoadError {
    fn new(address: &str, cause: impl std::fmt::Display, retry: Retry) -> Self {
        Self { message: format!("cannot load `{address}`: {cause}"), retry, status: None }
    }

    fn never(address: &str, cause: impl std::fmt::Display) -> Self {
        Self::new(address, cause, Retry::Never)
    }
}

/// A duration as a user would say it.
fn in_seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        format!("{} s", time.as_secs())
    } else if time.as_secs() == 0 {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

/// A size in the largest unit that divides it.
fn in_bytes(size: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    match size {
        0 => "0 bytes".to_owned(),
        _ if size.is_multiple_of(MIB) => format!("{} MiB", size / MIB),
        _ if size.is_multiple_of(KIB) => format!("{} KiB", size / KIB),
        _ => format!("{size} bytes"),
    }
}

fn too_large(body_max: u64) -> String {
    format!("body larger than {}", in_bytes(body_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_like_words() {
        assert_eq!(in_seconds(Duration::from_secs(30)), "30 s");
        assert_eq!(in_seconds(Duration::from_millis(250)), "250 ms");
        assert_eq!(in_seconds(Duration::from_millis(1500)), "1.5 s");
        assert_eq!(in_bytes(BODY_MAX), "16 MiB");
        assert_eq!(in_bytes(2048), "2 KiB");
        assert_eq!(in_bytes(1000), "1000 bytes");
        assert_eq!(in_bytes(0), "0 bytes");
    }
}
