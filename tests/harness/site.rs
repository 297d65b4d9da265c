//! A real web server for tests, with every fault that a site can have.
//!
//! Plain threads and nothing but std, so that any test crate can include it. It listens on port 0 of
//! a loopback address; several hosts are several addresses: `Site::start_on("127.0.0.2")`.

#![allow(dead_code, missing_docs, unreachable_pub)]
#![allow(
    clippy::unwrap_used,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use
)]
#![allow(clippy::missing_panics_doc)]

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What came in.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// With its query, as sent.
    pub path: String,
    pub headers: Vec<(String, String)>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// One request as the site saw it.
#[derive(Debug, Clone)]
pub struct Hit {
    pub path: String,
    /// When the head of the request was read.
    pub at: Instant,
    /// Just before the last byte of the answer left, or now if it is not complete yet.
    pub end: Instant,
    /// Requests in the works when it came, itself included.
    pub in_flight: usize,
}

#[derive(Debug, Clone)]
enum Body {
    Bytes(Vec<u8>),
    /// So many bytes, made as they are sent.
    Generated(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    /// A `Content-Length` that need not be true.
    LengthOf(u64),
    Chunked,
    /// No length: the end of the connection is the end of the body.
    UntilClose,
    /// The bytes are the whole answer, head and all.
    Naked,
}

/// What goes out. Build one with `html`, `status`, `redirect` and so on, then add faults.
#[derive(Debug, Clone)]
pub struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Body,
    framing: Framing,
    delay: Duration,
    drip: Option<(usize, Duration)>,
    cut_after: Option<u64>,
    silent: bool,
}

impl Response {
    /// Status 200 with these headers and bytes.
    pub fn raw(headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: headers
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            body: Body::Bytes(body.into()),
            framing: Framing::Length,
            delay: Duration::ZERO,
            drip: None,
            cut_after: None,
            silent: false,
        }
    }

    /// A page in UTF-8 that says so.
    pub fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::raw(&[("Content-Type", "text/html; charset=utf-8")], body)
    }

    /// A page in UTF-8, sent as gzip.
    pub fn gzip(body: &[u8]) -> Self {
        Self::raw(
            &[
                ("Content-Type", "text/html; charset=utf-8"),
                ("Content-Encoding", "gzip"),
            ],
            gzip(body),
        )
    }

    /// A status with a short page about it.
    pub fn status(status: u16) -> Self {
        let page = format!("<title>{status}</title>");
        let mut response = Self::raw(&[("Content-Type", "text/html")], page);
        if matches!(status, 204 | 304) {
            response.body = Body::Bytes(Vec::new());
        }
        response.with_status(status)
    }

    /// Status 429 or 503 and the like, with `Retry-After`.
    pub fn busy(status: u16, retry_after: &str) -> Self {
        Self::status(status).header("Retry-After", retry_after)
    }

    pub fn redirect(to: &str) -> Self {
        Self::status(302).header("Location", to)
    }

    /// So many bytes of a page, which never lie in memory at once.
    pub fn huge(bytes: u64) -> Self {
        let mut response = Self::html("");
        response.body = Body::Generated(bytes);
        response
    }

    /// Bytes that need not be HTTP at all; the connection closes after them.
    pub fn naked(bytes: impl Into<Vec<u8>>) -> Self {
        let mut response = Self::raw(&[], bytes);
        response.framing = Framing::Naked;
        response
    }

    /// Closes the connection without an answer.
    pub fn hang_up() -> Self {
        Self::naked("")
    }

    /// Takes the request and never says a word.
    pub fn silence() -> Self {
        let mut response = Self::naked("");
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

    /// Waits before the head.
    pub fn delay(mut self, time: Duration) -> Self {
        self.delay = time;
        self
    }

    /// Sends the body in pieces of so many bytes, with a pause before each.
    pub fn drip(mut self, piece: usize, pause: Duration) -> Self {
        self.drip = Some((piece.max(1), pause));
        self
    }

    /// Closes the connection after so many bytes of the body.
    pub fn cut_after(mut self, bytes: u64) -> Self {
        self.cut_after = Some(bytes);
        self
    }

    /// Claims a length that need not be true; the connection closes after the body.
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

    fn length(&self) -> u64 {
        match &self.body {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::Generated(bytes) => *bytes,
        }
    }

    fn keeps_alive(&self) -> bool {
        self.cut_after.is_none() && matches!(self.framing, Framing::Length | Framing::Chunked)
    }

    fn head(&self) -> Vec<u8> {
        if self.framing == Framing::Naked {
            return Vec::new();
        }
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        match self.framing {
            Framing::Length if matches!(self.status, 204 | 304) => {}
            Framing::Length => head += &format!("Content-Length: {}\r\n", self.length()),
            Framing::LengthOf(bytes) => head += &format!("Content-Length: {bytes}\r\n"),
            Framing::Chunked => head += "Transfer-Encoding: chunked\r\n",
            Framing::UntilClose | Framing::Naked => {}
        }
        if self.framing == Framing::UntilClose {
            head += "Connection: close\r\n";
        }
        (head + "\r\n").into_bytes()
    }

    fn piece(&self, from: u64, length: usize) -> Vec<u8> {
        match &self.body {
            Body::Bytes(bytes) => bytes[from as usize..from as usize + length].to_vec(),
            Body::Generated(_) => vec![b'x'; length],
        }
    }
}

/// Bytes in gzip's clothes: stored, not compressed, which needs no crate.
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
    !bytes
        .iter()
        .fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
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

type Behaviour = Arc<dyn Fn(&Request, usize) -> Response + Send + Sync>;

#[derive(Default)]
struct State {
    behaviours: HashMap<String, Behaviour>,
    otherwise: Option<Behaviour>,
    counts: HashMap<String, usize>,
    hits: Vec<(String, Instant, Option<Instant>, usize)>,
    in_flight: usize,
    connections: usize,
    open: HashMap<usize, TcpStream>,
    stopped: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Rung when the site stops, so that no pause outlives it.
    bell: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A behaviour that panics fails its own test; the others may go on.
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sleeps; false if the site stopped meanwhile.
    fn pause(&self, time: Duration) -> bool {
        let state = self.state();
        let (state, _) = self
            .bell
            .wait_timeout_while(state, time, |s| !s.stopped)
            .unwrap();
        !state.stopped
    }
}

/// A running site; it stops when dropped.
pub struct Site {
    shared: Arc<Shared>,
    address: SocketAddr,
    listener: Option<JoinHandle<()>>,
}

impl Site {
    pub fn start() -> Self {
        Self::start_on("127.0.0.1")
    }

    /// Starts on another loopback address, which is another host to a client.
    pub fn start_on(host: &str) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let listener = std::thread::spawn(move || listen(&listener, &theirs));
        Self {
            shared,
            address,
            listener: Some(listener),
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// `host:port`.
    pub fn lane(&self) -> String {
        self.address.to_string()
    }

    /// Serves a page in UTF-8.
    pub fn page(&self, path: &str, body: impl Into<Vec<u8>>) {
        self.answer(path, Response::html(body));
    }

    /// Gives the same answer each time.
    pub fn answer(&self, path: &str, response: Response) {
        self.on(path, move |_, _| response.clone());
    }

    /// Gives one answer so many times, and then another.
    pub fn recovers(&self, path: &str, times: usize, first: Response, then: Response) {
        self.on(path, move |_, nth| {
            if nth <= times {
                first.clone()
            } else {
                then.clone()
            }
        });
    }

    /// Behaves as told; `nth` counts the requests for this path from 1. A path with a query is
    /// looked up whole, then without the query.
    pub fn on<F>(&self, path: &str, behaviour: F)
    where
        F: Fn(&Request, usize) -> Response + Send + Sync + 'static,
    {
        self.shared
            .state()
            .behaviours
            .insert(path.to_owned(), Arc::new(behaviour));
    }

    /// Behaves as told on all other paths, instead of status 404.
    pub fn otherwise<F>(&self, behaviour: F)
    where
        F: Fn(&Request, usize) -> Response + Send + Sync + 'static,
    {
        self.shared.state().otherwise = Some(Arc::new(behaviour));
    }

    /// All requests, in the order they came.
    pub fn log(&self) -> Vec<Hit> {
        let now = Instant::now();
        let state = self.shared.state();
        let hits = state.hits.iter().cloned();
        hits.map(|(path, at, end, in_flight)| Hit {
            path,
            at,
            end: end.unwrap_or(now),
            in_flight,
        })
        .collect()
    }

    /// Requests for one path, its query included.
    pub fn hits(&self, path: &str) -> usize {
        self.shared.state().counts.get(path).copied().unwrap_or(0)
    }

    /// The most requests in the works at the same time.
    pub fn max_parallel(&self) -> usize {
        let state = self.shared.state();
        state.hits.iter().map(|hit| hit.3).max().unwrap_or(0)
    }

    /// Connections taken so far, to see whether clients keep them.
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// Shortest time from the start of one request to the start of the next.
    pub fn shortest_gap(&self) -> Option<Duration> {
        let log = self.log();
        log.windows(2).map(|pair| pair[1].at - pair[0].at).min()
    }

    /// An address where nobody listens.
    pub fn dead_url(path: &str) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        format!("http://{}{path}", listener.local_addr().unwrap())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.stopped = true;
            for stream in state.open.values() {
                // Gone already is as good.
                stream.shutdown(Shutdown::Both).ok();
            }
        }
        self.shared.bell.notify_all();
        // Wakes the listener, which looks at `stopped` after every connection.
        TcpStream::connect(self.address).ok();
        if let Some(listener) = self.listener.take() {
            listener.join().ok();
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut workers: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        let mut state = shared.state();
        if state.stopped {
            break;
        }
        let Ok(stream) = stream else { continue };
        let Ok(twin) = stream.try_clone() else {
            continue;
        };
        state.connections += 1;
        let id = state.connections;
        state.open.insert(id, twin);
        drop(state);
        workers.retain(|worker| !worker.is_finished());
        let theirs = Arc::clone(shared);
        workers.push(std::thread::spawn(move || {
            // The client went away: no affair of the site's.
            serve(stream, &theirs).ok();
            if let Some(twin) = theirs.state().open.remove(&id) {
                twin.shutdown(Shutdown::Both).ok();
            }
        }));
    }
    for worker in workers {
        worker.join().ok();
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = read_request(&mut reader)? {
        let flight = Flight::start(shared, &request);
        let response = flight.decide(&request);
        if response.silent {
            // Until the client gives up or the site stops; both end the read.
            reader.read(&mut [0])?;
            return Ok(());
        }
        if !shared.pause(response.delay) {
            return Ok(());
        }
        let head_only = request.method == "HEAD";
        send(&mut stream, &response, head_only, flight)?;
        if !response.keeps_alive() || request.header("connection") == Some("close") {
            return Ok(());
        }
    }
    Ok(())
}

fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    let request = Request {
        method,
        path,
        headers,
    };
    let length = request
        .header("content-length")
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    io::copy(&mut reader.take(length), &mut io::sink())?;
    Ok(Some(request))
}

/// A request in the works. It ends before the last byte is sent: a client that has its answer may
/// ask again at once, and must not seem to ask twice at the same time.
struct Flight<'a> {
    shared: &'a Shared,
    hit: usize,
    nth: usize,
}

impl<'a> Flight<'a> {
    fn start(shared: &'a Shared, request: &Request) -> Self {
        let mut state = shared.state();
        state.in_flight += 1;
        let in_flight = state.in_flight;
        let count = state.counts.entry(request.path.clone()).or_default();
        *count += 1;
        let nth = *count;
        state
            .hits
            .push((request.path.clone(), Instant::now(), None, in_flight));
        let hit = state.hits.len() - 1;
        Self { shared, hit, nth }
    }

    /// Asks the behaviour, without the lock: it may look at the site itself.
    fn decide(&self, request: &Request) -> Response {
        let bare = request.path.split('?').next().unwrap_or_default();
        let behaviour = {
            let state = self.shared.state();
            let known = state
                .behaviours
                .get(&request.path)
                .or_else(|| state.behaviours.get(bare));
            known.or(state.otherwise.as_ref()).cloned()
        };
        behaviour.map_or_else(|| Response::status(404), |b| b(request, self.nth))
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.in_flight -= 1;
        state.hits[self.hit].2 = Some(Instant::now());
    }
}

fn send(
    stream: &mut TcpStream,
    response: &Response,
    head_only: bool,
    flight: Flight,
) -> io::Result<()> {
    const PIECE: usize = 64 * 1024;
    let length = if head_only { 0 } else { response.length() };
    let end = response.cut_after.map_or(length, |cut| cut.min(length));
    let whole = end == length;
    let chunked = response.framing == Framing::Chunked && !head_only;
    let shared = flight.shared;
    let mut flight = Some(flight);
    let (most, pause) = response.drip.unwrap_or((PIECE, Duration::ZERO));
    let mut wire = response.head();
    let mut at = 0;
    loop {
        let size = (end - at).min(most as u64) as usize;
        if size > 0 && !pause.is_zero() {
            // What is ready goes out before the pause.
            stream.write_all(&wire)?;
            wire.clear();
            if !shared.pause(pause) {
                return Ok(());
            }
        }
        let piece = response.piece(at, size);
        at += size as u64;
        if chunked && size > 0 {
            wire.extend(format!("{size:x}\r\n").into_bytes());
            wire.extend(piece);
            wire.extend(b"\r\n");
        } else {
            wire.extend(piece);
        }
        if at < end {
            stream.write_all(&wire)?;
            wire.clear();
            continue;
        }
        if chunked && whole {
            wire.extend(b"0\r\n\r\n");
        }
        drop(flight.take());
        return stream.write_all(&wire);
    }
}
