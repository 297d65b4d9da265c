//! A loaded page.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Zoned;

/// The bytes of a page and where they came from.
#[derive(Debug, Clone)]
pub struct Page {
    /// Name of the locator.
    pub name: Arc<str>,
    /// Group of the locator.
    pub group: Arc<str>,
    /// Requested address.
    pub url: Arc<str>,
    /// Address after redirects. Links are resolved against it.
    pub base: Arc<str>,
    /// Date-time of the run that fetched it, to the second.
    pub from_date: Zoned,
    /// The body, decompressed.
    pub body: Bytes,
    /// `Content-Type` as the server sent it.
    pub content_type: Option<String>,
}
