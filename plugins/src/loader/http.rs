//! Pages by HTTP and HTTPS.
//!
//! One attempt per call, under three clocks: for connecting, for silence and for the whole. No cookie
//! is kept, no body is taken beyond the cap, and nothing but `http` and `https` is followed.

use std::fmt::Display;
use std::future::Future;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use url::Url;

use super::{
    BODY_MAX, Fetched, LoadError, Retry, in_seconds, retry_after, target, too_large, trouble,
};

/// How pages are asked for, and how much patience there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// `User-Agent` of every request.
    pub user_agent: String,
    /// Further headers of every request; one of ours of the same name gives way.
    pub headers: Vec<(String, String)>,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest wait for the next byte.
    pub idle_timeout: Duration,
    /// Longest time for one page, redirects included; on a way over several hosts, for each.
    pub total_timeout: Duration,
    /// Redirects followed before giving up.
    pub redirects_max: usize,
    /// Largest body, decompressed, in bytes.
    pub body_max: u64,
    /// Longest pause that a host can ask for.
    pub retry_after_max: Duration,
    /// Whether the proxies named in the environment are used.
    pub proxies: bool,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            user_agent: concat!("Spoonbill/", env!("CARGO_PKG_VERSION"), " (+web-scraping engine)")
                .to_owned(),
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_mins(2),
            redirects_max: 10,
            body_max: BODY_MAX,
            retry_after_max: Duration::from_hours(1),
            proxies: true,
        }
    }
}

/// A page's way: the address asked for, and how far redirects have led from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The address asked for.
    pub asked: Url,
    /// The address to load next.
    pub here: Url,
    /// Redirects followed from the one to the other.
    pub redirects: usize,
    /// Statuses of those that the latest call has seen.
    pub statuses: Vec<u16>,
}

impl Way {
    /// A way at its beginning.
    pub fn to(url: &Url) -> Self {
        Self { asked: url.clone(), here: url.clone(), redirects: 0, statuses: Vec::new() }
    }

    fn error(&self, cause: impl Display, retry: Retry) -> LoadError {
        if self.asked == self.here {
            return LoadError::new(&shown(&self.asked), cause, retry);
        }
        let cause = format!("redirected to `{}`: {cause}", shown(&self.here));
        LoadError::new(&shown(&self.asked), cause, retry)
    }
}

/// What a lane gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loaded {
    /// The page.
    Page(Fetched),
    /// A redirect to another lane, which is for the caller to enter: nothing was asked there yet.
    Moved,
}

/// Loads pages; share one, it keeps the connections.
#[derive(Debug)]
pub struct HttpLoader {
    settings: HttpSettings,
    headers: HeaderMap,
    // Two clients, since reading the machine's certificates takes milliseconds that a run of files or
    // plain HTTP need not pay, and a machine without certificates can still load plain HTTP.
    plain: OnceLock<Client>,
    secure: OnceCell<Client>,
}

impl HttpLoader {
    /// Checks the settings; clients and certificates wait for the first page.
    pub fn new(settings: &HttpSettings) -> Result<Self, LoadError> {
        Ok(Self {
            headers: request_headers(settings)?,
            settings: settings.clone(),
            plain: OnceLock::new(),
            secure: OnceCell::new(),
        })
    }

    /// Loads one page, wherever redirects lead. One attempt; the error says whether another may
    /// help. No host on the way is spared: for a single page of a person who waits for it.
    pub async fn load(&self, url: &Url) -> Result<Fetched, LoadError> {
        let mut way = Way::to(url);
        loop {
            if let Loaded::Page(page) = self.load_in_lane(&mut way).await? {
                return Ok(page);
            }
        }
    }

    /// Goes on a page's way as far as it stays in one lane, since another host has its own pauses.
    /// One attempt; `way` tells how far it led, also after an error.
    pub async fn load_in_lane(&self, way: &mut Way) -> Result<Loaded, LoadError> {
        let total = self.settings.total_timeout;
        way.statuses.clear();
        timeout(total, self.follow(way)).await.unwrap_or_else(|_| {
            let cause = format!("timed out, not complete after {}", in_seconds(total));
            Err(way.error(cause, Retry::Soon))
        })
    }

    async fn follow(&self, way: &mut Way) -> Result<Loaded, LoadError> {
        loop {
            let hop = Hop { loader: self, way };
            let response = hop.ask().await?;
            let Some(next) = hop.redirect(&response)? else {
                return hop.receive(response).await.map(Loaded::Page);
            };
            way.statuses.push(response.status().as_u16());
            if way.redirects >= self.settings.redirects_max {
                let cause = format!("more than {} redirects", self.settings.redirects_max);
                return Err(LoadError::never(&shown(&way.asked), cause));
            }
            let left = std::mem::replace(&mut way.here, next);
            way.redirects += 1;
            if target::lane(&left) != target::lane(&way.here) {
                return Ok(Loaded::Moved);
            }
        }
    }

    async fn client(&self, scheme: &str) -> Result<&Client, String> {
        if scheme == "https" {
            let build = || async {
                let (settings, headers) = (self.settings.clone(), self.headers.clone());
                tokio::task::spawn_blocking(move || client(&settings, headers, true))
                    .await
                    .map_err(|e| e.to_string())?
            };
            return self.secure.get_or_try_init(build).await;
        }
        if let Some(client) = self.plain.get() {
            return Ok(client);
        }
        let built = client(&self.settings, self.headers.clone(), false)?;
        Ok(self.plain.get_or_init(|| built))
    }
}

/// One request of a page's way.
struct Hop<'a> {
    loader: &'a HttpLoader,
    way: &'a Way,
}

impl Hop<'_> {
    fn error(&self, cause: impl Display, retry: Retry) -> LoadError {
        self.way.error(cause, retry)
    }

    fn never(&self, cause: impl Display) -> LoadError {
        self.error(cause, Retry::Never)
    }

    async fn ask(&self) -> Result<Response, LoadError> {
        let client = self.loader.client(self.way.here.scheme()).await;
        let client = client.map_err(|cause| self.never(cause))?;
        self.patiently(client.get(self.way.here.clone()).send()).await
    }

    /// Waits for the network, but not through a long silence.
    async fn patiently<T>(
        &self,
        step: impl Future<Output = reqwest::Result<T>>,
    ) -> Result<T, LoadError> {
        let settings = &self.loader.settings;
        match timeout(settings.idle_timeout, step).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                let host = self.way.here.host_str().unwrap_or_default();
                let (cause, retry) = trouble::explain(&error, host, settings);
                Err(self.error(cause, retry))
            }
            Err(_) => {
                let silence = in_seconds(settings.idle_timeout);
                Err(self.error(format_args!("timed out after {silence} of silence"), Retry::Soon))
            }
        }
    }

    /// Where the answer sends us, if it does.
    fn redirect(&self, response: &Response) -> Result<Option<Url>, LoadError> {
        let status = response.status();
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let Some(location) = response.headers().get(header::LOCATION) else {
            return Ok(None);
        };
        let location = String::from_utf8_lossy(location.as_bytes());
        let refuse =
            |cause: String| LoadError { status: Some(status.as_u16()), ..self.never(cause) };
        let mut next = self
            .way
            .here
            .join(&location)
            .map_err(|e| refuse(format!("redirect to `{location}` is not valid, {e}")))?;
        if !matches!(next.scheme(), "http" | "https") {
            return Err(refuse(format!("redirect to `{location}` refused, it leaves the web")));
        }
        target::escape(&mut next);
        Ok(Some(next))
    }

    async fn receive(&self, response: Response) -> Result<Fetched, LoadError> {
        let status = response.status();
        self.judge(status, response.headers())
            .map_err(|error| LoadError { status: Some(status.as_u16()), ..error })?;
        let content_type = text_of(response.headers(), &header::CONTENT_TYPE);
        let headers = lines_of(response.headers());
        let body = self
            .body(response)
            .await
            .map_err(|error| LoadError { status: Some(status.as_u16()), ..error })?;
        Ok(Fetched {
            status: status.as_u16(),
            final_url: self.way.here.to_string(),
            content_type,
            headers,
            wire_bytes: body.len() as u64,
            body,
        })
    }

    /// Refuses an answer that holds no page, from its head alone.
    fn judge(&self, status: StatusCode, headers: &HeaderMap) -> Result<(), LoadError> {
        let words = status.canonical_reason().map_or_else(
            || status.as_str().to_owned(),
            |reason| format!("{} {reason}", status.as_str()),
        );
        match status.as_u16() {
            204 | 205 => Err(self.never(format_args!("status {words}, so there is no page"))),
            200..=299 => self.judge_encoding(headers),
            429 | 500..=599 => Err(self.busy(&words, headers)),
            // The server gave up on this connection, not on the page.
            408 | 425 => Err(self.error(format_args!("status {words}"), Retry::Soon)),
            _ => Err(self.never(format_args!("status {words}"))),
        }
    }

    fn busy(&self, words: &str, headers: &HeaderMap) -> LoadError {
        let date = text_of(headers, &header::DATE);
        let longest = self.loader.settings.retry_after_max;
        let asked = text_of(headers, &header::RETRY_AFTER)
            .and_then(|text| retry_after::wait(&text, date.as_deref(), SystemTime::now()));
        // A wish for no pause at all must not beat our own backoff.
        let Some(asked) = asked.filter(|asked| !asked.min(&longest).is_zero()) else {
            return self.error(format_args!("status {words}"), Retry::Soon);
        };
        let cause = format!("status {words}, the host asks to wait {}", in_seconds(asked));
        if asked <= longest {
            return self.error(cause, Retry::HostAfter(asked));
        }
        let longest_said = in_seconds(longest);
        self.error(
            format_args!("{cause}, more than the {longest_said} that are allowed"),
            Retry::HostAfter(longest),
        )
    }

    /// The client removes the header when it decompresses; one that is left was not understood.
    fn judge_encoding(&self, headers: &HeaderMap) -> Result<(), LoadError> {
        let left: Vec<String> = headers
            .get_all(header::CONTENT_ENCODING)
            .iter()
            .map(lossy)
            .filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"))
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        Err(self.never(format_args!("unsupported content-encoding `{}`", left.join(", "))))
    }

    /// Reads the decoded body and stops at the cap, however small the compressed one was. Of a gzip
    /// body of several members the client decodes the first alone, and tells nothing of the others.
    async fn body(&self, mut response: Response) -> Result<Bytes, LoadError> {
        let body_max = self.loader.settings.body_max;
        let announced = response.content_length().unwrap_or(0);
        if announced > body_max {
            return Err(self.never(too_large(body_max)));
        }
        // Most bodies come in one piece, and that is kept as it is.
        let (mut first, mut body) = (Bytes::new(), BytesMut::new());
        while let Some(chunk) = self.patiently(response.chunk()).await? {
            if (first.len() + body.len() + chunk.len()) as u64 > body_max {
                return Err(self.never(too_large(body_max)));
            }
            if first.is_empty() && body.is_empty() {
                first = chunk;
                continue;
            }
            if body.is_empty() {
                body.reserve(announced as usize);
                body.extend_from_slice(&std::mem::take(&mut first));
            }
            body.extend_from_slice(&chunk);
        }
        let body = if body.is_empty() { first } else { body.freeze() };
        if body.is_empty() {
            return Err(self.never("the body is empty"));
        }
        Ok(body)
    }
}

fn request_headers(settings: &HttpSettings) -> Result<HeaderMap, LoadError> {
    let refuse = |name: &str| LoadError {
        message: format!("header `{name}` of the settings is not valid"),
        retry: Retry::Never,
        status: None,
    };
    let mut headers = HeaderMap::new();
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    );
    let agent = ("user-agent".to_owned(), settings.user_agent.clone());
    for (name, value) in std::iter::once(&agent).chain(&settings.headers) {
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse(name))?;
        let value = HeaderValue::from_str(value).map_err(|_| refuse(name))?;
        headers.insert(key, value);
    }
    Ok(headers)
}

/// Builds a client. A secure one reads the root certificates of the machine.
fn client(settings: &HttpSettings, headers: HeaderMap, secure: bool) -> Result<Client, String> {
    // An error means that someone installed a provider before us, which serves as well.
    rustls::crypto::ring::default_provider().install_default().ok();
    let mut builder = Client::builder()
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(settings.connect_timeout);
    if !settings.proxies {
        builder = builder.no_proxy();
    }
    if !secure {
        // What the client would ask again by itself is of HTTP/2, and every request would be copied.
        let never = reqwest::retry::never().max_retries_per_request(0);
        builder = builder.tls_certs_only([]).retry(never);
    }
    builder.build().map_err(|error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        format!("the HTTP client cannot be made, {cause}")
    })
}

/// The address without its password, for messages.
fn shown(url: &Url) -> String {
    if url.password().is_none() {
        return url.to_string();
    }
    let mut url = url.clone();
    // Fails only for addresses that cannot hold a password in the first place.
    url.set_password(None).ok();
    url.to_string()
}

/// Headers as text, one a line.
fn lines_of(headers: &HeaderMap) -> String {
    let mut lines = String::with_capacity(headers.len() * 40);
    for (name, value) in headers {
        if !lines.is_empty() {
            lines.push('\n');
        }
        lines.push_str(name.as_str());
        lines.push_str(": ");
        lines.push_str(String::from_utf8_lossy(value.as_bytes()).trim());
    }
    lines
}

fn lossy(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).trim().to_owned()
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(lossy)
}
