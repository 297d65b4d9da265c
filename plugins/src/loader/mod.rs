//! Loads pages from files and by HTTP, and decodes their bytes.
//!
//! A loader makes one attempt. It never waits, retries or counts. The engine schedules requests and
//! retries, and [`RetryAdvice`] tells it whether another attempt makes sense.

pub mod charset;
pub mod file;
pub mod http;
mod prescan;
mod retry_after;
mod target;
mod trouble;

use std::time::Duration;

use bytes::Bytes;

pub use target::PageTarget;
pub(crate) use target::{escape, unescaped};

/// Default limit on a decompressed body, in bytes.
pub(crate) const BODY_MAX: u64 = 16 * 1024 * 1024;

/// A complete page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedPage {
    /// The body, decompressed.
    pub body: Bytes,
    /// HTTP status, 0 for a file.
    pub status: u16,
    /// Address after redirects, or the path of the file that was read.
    pub final_url: String,
    /// The header `Content-Type`.
    pub content_type: Option<String>,
    /// All headers in the order of the response, one per line, names in lower case.
    pub headers: String,
    /// Decompressed bytes, because the HTTP client does not count the compressed ones.
    pub wire_bytes: u64,
}

/// Whether the engine should retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAdvice {
    /// Another attempt would fail the same way.
    Never,
    /// Retry after a backoff.
    Soon,
    /// The host asked for a pause: fetch nothing from its lane for this duration.
    HostAfter(Duration),
}

/// Why a page did not load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LoadError {
    /// The message for users, with the address and the cause.
    pub message: String,
    /// Whether the engine should retry.
    pub retry: RetryAdvice,
    /// HTTP status, if there was a response.
    pub status: Option<u16>,
}

impl LoadError {
    fn new(address: &str, cause: impl std::fmt::Display, retry: RetryAdvice) -> Self {
        Self { message: format!("cannot load `{address}`: {cause}"), retry, status: None }
    }

    fn never(address: &str, cause: impl std::fmt::Display) -> Self {
        Self::new(address, cause, RetryAdvice::Never)
    }
}

/// Formats a duration for messages.
fn in_seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        format!("{} s", time.as_secs())
    } else if time.as_secs() == 0 {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

/// Formats a size in the largest unit that divides it.
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
    fn durations_and_sizes_have_readable_units() {
        assert_eq!(in_seconds(Duration::from_secs(30)), "30 s");
        assert_eq!(in_seconds(Duration::from_millis(250)), "250 ms");
        assert_eq!(in_seconds(Duration::from_millis(1500)), "1.5 s");
        assert_eq!(in_bytes(BODY_MAX), "16 MiB");
        assert_eq!(in_bytes(2048), "2 KiB");
        assert_eq!(in_bytes(1000), "1000 bytes");
        assert_eq!(in_bytes(0), "0 bytes");
    }
}
