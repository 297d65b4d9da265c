//! Answers of a site: pages, statuses and faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Holds answers back until a test lets them through. Pages are numbered in the order in which a run
/// asks for them, and the gate is open for all numbers below its limit. So a test can act in the
/// middle of a run, however fast or slow the machine is.
#[derive(Debug, Clone)]
pub struct PageGate(Arc<AtomicUsize>);

impl PageGate {
    /// Open for the first `limit` pages.
    pub fn at(limit: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(limit)))
    }

    /// Moves the limit.
    pub fn let_through(&self, limit: usize) {
        self.0.store(limit, Ordering::SeqCst);
    }

    /// Lets all pages through.
    pub fn open(&self) {
        self.let_through(usize::MAX);
    }

    pub(super) fn holds(&self, number: usize) -> bool {
        number >= self.0.load(Ordering::SeqCst)
    }
}

/// A request of a client.
#[derive(Debug, Clone)]
pub struct SiteRequest {
    pub method: String,
    /// The path with its query, as sent.
    pub path: String,
    pub headers: Vec<(String, String)>,
}

impl SiteRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Clone)]
pub(super) enum Body {
    Bytes(Vec<u8>),
    /// This many bytes, generated while they are sent.
    Generated(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length,
    /// A `Content-Length` that may be wrong.
    LengthOf(u64),
    Chunked,
    /// No length: the body ends with the connection.
    UntilClose,
    /// The bytes are the whole answer, status line and headers included.
    Raw,
}

/// An answer. Build one with `html`, `status`, `redirect` and so on, then add faults.
#[derive(Debug, Clone)]
pub struct SiteResponse {
    status: u16,
    headers: Vec<(String, String)>,
    body: Body,
    pub(super) framing: Framing,
    pub(super) delay: Duration,
    pub(super) held: Option<(PageGate, usize)>,
    pub(super) drip: Option<(usize, Duration)>,
    pub(super) cut_after: Option<u64>,
    pub(super) silent: bool,
}

impl SiteResponse {
    /// Status 200 with these headers and bytes.
    pub fn raw(headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            body: Body::Bytes(body.into()),
            framing: Framing::Length,
            delay: Duration::ZERO,
            held: None,
            drip: None,
            cut_after: None,
            silent: false,
        }
    }

    /// A page in UTF-8, with the charset in its header.
    pub fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::raw(&[("Content-Type", "text/html; charset=utf-8")], body)
    }

    /// A page in UTF-8, compressed with gzip.
    pub fn gzip(body: &[u8]) -> Self {
        Self::raw(
            &[("Content-Type", "text/html; charset=utf-8"), ("Content-Encoding", "gzip")],
            gzip(body),
        )
    }

    /// A status with a short page.
    pub fn status(status: u16) -> Self {
        let page = format!("<title>{status}</title>");
        let mut response = Self::raw(&[("Content-Type", "text/html")], page);
        if matches!(status, 204 | 304) {
            response.body = Body::Bytes(Vec::new());
        }
        response.with_status(status)
    }

    /// A status such as 429 or 503 with `Retry-After`.
    pub fn busy(status: u16, retry_after: &str) -> Self {
        Self::status(status).header("Retry-After", retry_after)
    }

    pub fn redirect(to: &str) -> Self {
        Self::status(302).header("Location", to)
    }

    /// A page of this size, which is never in memory as a whole.
    pub fn huge(bytes: u64) -> Self {
        let mut response = Self::html("");
        response.body = Body::Generated(bytes);
        response
    }

    /// Bytes that may be no HTTP at all. The connection closes after them.
    pub fn raw_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        let mut response = Self::raw(&[], bytes);
        response.framing = Framing::Raw;
        response
    }

    /// No answer: the connection closes.
    pub fn hang_up() -> Self {
        Self::raw_bytes("")
    }

    /// Accepts the request and never answers.
    pub fn silence() -> Self {
        let mut response = Self::raw_bytes("");
        response.silent = true;
        response
    }

    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits before the first byte of the answer.
    pub fn delay(mut self, time: Duration) -> Self {
        self.delay = time;
        self
    }

    /// Waits before the first byte of the answer until the gate lets this number through.
    pub fn held_by(mut self, gate: &PageGate, number: usize) -> Self {
        self.held = Some((gate.clone(), number));
        self
    }

    /// Sends the body in pieces of `piece` bytes, with a pause before each.
    pub fn drip(mut self, piece: usize, pause: Duration) -> Self {
        self.drip = Some((piece.max(1), pause));
        self
    }

    /// Closes the connection after this many bytes of the body.
    pub fn cut_after(mut self, bytes: u64) -> Self {
        self.cut_after = Some(bytes);
        self
    }

    /// Sends this `Content-Length`, right or wrong. The connection closes after the body.
    pub fn claim_length(mut self, bytes: u64) -> Self {
        self.framing = Framing::LengthOf(bytes);
        self
    }

    pub fn chunked(mut self) -> Self {
        self.framing = Framing::Chunked;
        self
    }

    pub fn until_close(mut self) -> Self {
        self.framing = Framing::UntilClose;
        self
    }

    pub(super) fn length(&self) -> u64 {
        match &self.body {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::Generated(bytes) => *bytes,
        }
    }

    pub(super) fn keeps_alive(&self) -> bool {
        self.cut_after.is_none() && matches!(self.framing, Framing::Length | Framing::Chunked)
    }

    pub(super) fn head(&self) -> Vec<u8> {
        if self.framing == Framing::Raw {
            return Vec::new();
        }
        let mut lines = vec![format!("HTTP/1.1 {} {}", self.status, reason(self.status))];
        lines.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        match self.framing {
            Framing::Length if matches!(self.status, 204 | 304) => {}
            Framing::Length => lines.push(format!("Content-Length: {}", self.length())),
            Framing::LengthOf(bytes) => lines.push(format!("Content-Length: {bytes}")),
            Framing::Chunked => lines.push("Transfer-Encoding: chunked".to_owned()),
            Framing::UntilClose => lines.push("Connection: close".to_owned()),
            Framing::Raw => {}
        }
        (lines.join("\r\n") + "\r\n\r\n").into_bytes()
    }

    pub(super) fn piece(&self, from: u64, length: usize) -> Vec<u8> {
        match &self.body {
            Body::Bytes(bytes) => bytes[from as usize..from as usize + length].to_vec(),
            Body::Generated(_) => vec![b'x'; length],
        }
    }
}

/// The bytes in the gzip format. They are stored, not compressed, which needs no crate.
pub fn gzip(body: &[u8]) -> Vec<u8> {
    const BLOCK_MAX: usize = 0xFFFF;
    let mut out = vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF];
    let blocks = body.len().div_ceil(BLOCK_MAX).max(1);
    for nth in 0..blocks {
        let from = nth * BLOCK_MAX;
        let block = &body[from..body.len().min(from + BLOCK_MAX)];
        let size = block.len() as u16;
        out.push(u8::from(nth + 1 == blocks));
        out.extend(size.to_le_bytes());
        out.extend((!size).to_le_bytes());
        out.extend(block);
    }
    out.extend(crc32(body).to_le_bytes());
    out.extend((body.len() as u32).to_le_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xEDB8_8320 & 0_u32.wrapping_sub(crc & 1));
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        302 => "Found",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Whatever",
    }
}
