//! Loads pages by HTTP and HTTPS.
//!
//! A call makes one attempt under three timeouts: to connect, between two bytes and in total. No
//! cookie is kept, a body has a size limit, and redirects lead to `http` and `https` alone.

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
    BODY_MAX, FetchedPage, LoadError, RetryAdvice, in_seconds, retry_after, target, too_large,
    trouble,
};

/// Headers, timeouts and limits of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// `User-Agent` of every request.
    pub user_agent: String,
    /// Further headers of every request. They replace our own headers of the same name.
    pub headers: Vec<(String, String)>,
    /// Timeout for a connection.
    pub connect_timeout: Duration,
    /// Timeout for the next byte.
    pub idle_timeout: Duration,
    /// Timeout for a page with its redirects. It starts again when a redirect changes the lane.
    pub total_timeout: Duration,
    /// Most redirects for one page.
    pub redirects_max: usize,
    /// Largest body, decompressed, in bytes.
    pub body_max: u64,
    /// Longest pause that a host can request with `Retry-After`.
    pub retry_after_max: Duration,
    /// Whether to use the proxies in the environment variables.
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

/// The redirects followed for one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectChain {
    /// The original address.
    pub asked: Url,
    /// The address to load next.
    pub here: Url,
    /// Number of redirects followed.
    pub redirects: usize,
    /// Statuses of the redirects in the last call.
    pub statuses: Vec<u16>,
}

impl RedirectChain {
    /// Starts at an address.
    pub fn to(url: &Url) -> Self {
        Self { asked: url.clone(), here: url.clone(), redirects: 0, statuses: Vec::new() }
    }

    fn error(&self, cause: impl Display, retry: RetryAdvice) -> LoadError {
        if self.asked == self.here {
            return LoadError::new(&shown(&self.asked), cause, retry);
        }
        let cause = format!("redirected to `{}`: {cause}", shown(&self.here));
        LoadError::new(&shown(&self.asked), cause, retry)
    }
}

/// The result of a load within one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaneOutcome {
    /// The page.
    Page(FetchedPage),
    /// A redirect to another lane. The caller must load from there when that lane is free.
    Moved,
}

/// Loads pages. Share one loader, because it keeps connections open.
#[derive(Debug)]
pub struct HttpLoader {
    settings: HttpSettings,
    headers: HeaderMap,
    // Two clients: reading the certificates of the machine takes milliseconds, and a machine without
    // certificates can still load plain HTTP.
    plain: OnceLock<Client>,
    secure: OnceCell<Client>,
}

impl HttpLoader {
    /// Checks the settings. Clients and certificates are created for the first page.
    pub fn new(settings: &HttpSettings) -> Result<Self, LoadError> {
        Ok(Self {
            headers: request_headers(settings)?,
            settings: settings.clone(),
            plain: OnceLock::new(),
            secure: OnceCell::new(),
        })
    }

    /// Loads one page and follows its redirects to all hosts without a pause. For commands that
    /// load a single page.
    pub async fn load(&self, url: &Url) -> Result<FetchedPage, LoadError> {
        let mut way = RedirectChain::to(url);
        loop {
            if let LaneOutcome::Page(page) = self.load_in_lane(&mut way).await? {
                return Ok(page);
            }
        }
    }

    /// Loads one page and follows redirects within one lane, because another host has pauses of its
    /// own. Updates `way`, also if it fails.
    pub async fn load_in_lane(&self, way: &mut RedirectChain) -> Result<LaneOutcome, LoadError> {
        let total = self.settings.total_timeout;
        way.statuses.clear();
        timeout(total, self.follow(way)).await.unwrap_or_else(|_| {
            let cause = format!("timed out, not complete after {}", in_seconds(total));
            Err(way.error(cause, RetryAdvice::Soon))
        })
    }

    async fn follow(&self, way: &mut RedirectChain) -> Result<LaneOutcome, LoadError> {
        loop {
            let request = PageRequest { loader: self, way };
            let response = request.ask().await?;
            let Some(next) = request.redirect(&response)? else {
                return request.receive(response).await.map(LaneOutcome::Page);
            };
            way.statuses.push(response.status().as_u16());
            if way.redirects >= self.settings.redirects_max {
                let cause = format!("more than {} redirects", self.settings.redirects_max);
                return Err(LoadError::never(&shown(&way.asked), cause));
            }
            let left = std::mem::replace(&mut way.here, next);
            way.redirects += 1;
            if target::lane(&left) != target::lane(&way.here) {
                return Ok(LaneOutcome::Moved);
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

/// One request for a page.
struct PageRequest<'a> {
    loader: &'a HttpLoader,
    way: &'a RedirectChain,
}

impl PageRequest<'_> {
    fn error(&self, cause: impl Display, retry: RetryAdvice) -> LoadError {
        self.way.error(cause, retry)
    }

    fn never(&self, cause: impl Display) -> LoadError {
        self.error(cause, RetryAdvice::Never)
    }

    async fn ask(&self) -> Result<Response, LoadError> {
        let client = self.loader.client(self.way.here.scheme()).await;
        let client = client.map_err(|cause| self.never(cause))?;
        self.within_idle_timeout(client.get(self.way.here.clone()).send()).await
    }

    /// Waits for the network, at most `idle_timeout`.
    async fn within_idle_timeout<T>(
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
                Err(self.error(
                    format_args!("timed out after {silence} without data"),
                    RetryAdvice::Soon,
                ))
            }
        }
    }

    /// The address of a redirect. `None` if the response is not one.
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
        let mut next =
            self.way.here.join(&location).map_err(|e| {
                refuse(format!("redirect to the invalid address `{location}`, {e}"))
            })?;
        if !matches!(next.scheme(), "http" | "https") {
            return Err(refuse(format!(
                "redirect to `{location}` refused, only `http` and `https` are followed"
            )));
        }
        target::escape(&mut next);
        Ok(Some(next))
    }

    async fn receive(&self, response: Response) -> Result<FetchedPage, LoadError> {
        let status = response.status();
        self.check(status, response.headers())
            .map_err(|error| LoadError { status: Some(status.as_u16()), ..error })?;
        let content_type = text_of(response.headers(), &header::CONTENT_TYPE);
        let headers = lines_of(response.headers());
        let body = self
            .body(response)
            .await
            .map_err(|error| LoadError { status: Some(status.as_u16()), ..error })?;
        Ok(FetchedPage {
            status: status.as_u16(),
            final_url: self.way.here.to_string(),
            content_type,
            headers,
            wire_bytes: body.len() as u64,
            body,
        })
    }

    /// Refuses a response without a page, by its status and headers.
    fn check(&self, status: StatusCode, headers: &HeaderMap) -> Result<(), LoadError> {
        let words = status.canonical_reason().map_or_else(
            || status.as_str().to_owned(),
            |reason| format!("{} {reason}", status.as_str()),
        );
        match status.as_u16() {
            204 | 205 => Err(self.never(format_args!("status {words}, so there is no page"))),
            200..=299 => self.check_encoding(headers),
            429 | 500..=599 => Err(self.busy(&words, headers)),
            // The server closed this connection; the page may still load.
            408 | 425 => Err(self.error(format_args!("status {words}"), RetryAdvice::Soon)),
            _ => Err(self.never(format_args!("status {words}"))),
        }
    }

    fn busy(&self, words: &str, headers: &HeaderMap) -> LoadError {
        let date = text_of(headers, &header::DATE);
        let longest = self.loader.settings.retry_after_max;
        let asked = text_of(headers, &header::RETRY_AFTER)
            .and_then(|text| retry_after::wait(&text, date.as_deref(), SystemTime::now()));
        // A pause of zero must not replace our own backoff.
        let Some(asked) = asked.filter(|asked| !asked.min(&longest).is_zero()) else {
            return self.error(format_args!("status {words}"), RetryAdvice::Soon);
        };
        let cause = format!("status {words}, the host asks for a pause of {}", in_seconds(asked));
        if asked <= longest {
            return self.error(cause, RetryAdvice::HostAfter(asked));
        }
        let limit = in_seconds(longest);
        self.error(
            format_args!("{cause}, and the limit is {limit}"),
            RetryAdvice::HostAfter(longest),
        )
    }

    /// The client removes the header when it decompresses, so what is left is not supported.
    fn check_encoding(&self, headers: &HeaderMap) -> Result<(), LoadError> {
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

    /// Reads the decompressed body up to its limit. If a gzip body has several members, the client
    /// silently drops all but the first.
    async fn body(&self, mut response: Response) -> Result<Bytes, LoadError> {
        let body_max = self.loader.settings.body_max;
        let announced = response.content_length().unwrap_or(0);
        if announced > body_max {
            return Err(self.never(too_large(body_max)));
        }
        // Most bodies arrive as one chunk, which is not copied.
        let (mut first, mut body) = (Bytes::new(), BytesMut::new());
        while let Some(chunk) = self.within_idle_timeout(response.chunk()).await? {
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
        retry: RetryAdvice::Never,
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

/// Creates a client. A secure one reads the root certificates of the machine.
fn client(settings: &HttpSettings, headers: HeaderMap, secure: bool) -> Result<Client, String> {
    // An error means that a provider is installed already, which is as good.
    rustls::crypto::ring::default_provider().install_default().ok();
    let mut builder = Client::builder()
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(settings.connect_timeout);
    if !settings.proxies {
        builder = builder.no_proxy();
    }
    if !secure {
        // Automatic retries serve HTTP/2 alone, and cost a copy of each request.
        let never = reqwest::retry::never().max_retries_per_request(0);
        builder = builder.tls_certs_only([]).retry(never);
    }
    builder.build().map_err(|error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        format!("cannot create the HTTP client, {cause}")
    })
}

/// The address without password, for messages.
fn shown(url: &Url) -> String {
    if url.password().is_none() {
        return url.to_string();
    }
    let mut url = url.clone();
    // Fails only for addresses that cannot have a password.
    url.set_password(None).ok();
    url.to_string()
}

/// Formats headers, one per line.
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
