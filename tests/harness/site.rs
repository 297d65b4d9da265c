//! A web server for tests, with every fault that a site can have.
//!
//! It uses plain threads and nothing but std, so that any test crate can include it. The system
//! chooses its port. Several hosts are several loopback addresses: `TestSite::start_on("127.0.0.2")`.

#![allow(dead_code, unused_imports, missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::must_use_candidate, clippy::return_self_not_must_use)]
#![allow(clippy::missing_panics_doc)]

#[path = "site/response.rs"]
mod response;
#[path = "site/wire.rs"]
mod wire;

use std::collections::HashMap;
use std::io::Read as _;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use response::{PageGate, SiteRequest, SiteResponse, gzip};

/// One request in the log of the site.
#[derive(Debug, Clone)]
pub struct LoggedRequest {
    pub path: String,
    /// When the head of the request was read.
    pub at: Instant,
    /// When the last byte of the answer was about to be sent. While the answer is not complete: now.
    pub end: Instant,
    /// Requests that had no complete answer at that time, this one included.
    pub in_flight: usize,
    /// The address of the client.
    pub from: Option<IpAddr>,
}

type Behaviour = Arc<dyn Fn(&SiteRequest, usize) -> SiteResponse + Send + Sync>;

/// By how many pauses requests came too early, at worst. A request that was delayed on its way makes
/// the ones behind it look early once. Pauses that are not kept add up instead, so this number grows
/// with the log, however busy the machine is.
pub fn pauses_missed(starts: &[Instant], pause: Duration) -> f64 {
    let mut worst = Duration::ZERO;
    let Some(mut due) = starts.first().copied() else { return 0.0 };
    for start in starts {
        worst = worst.max(due.saturating_duration_since(*start));
        due = due.max(*start) + pause;
    }
    worst.as_secs_f64() / pause.as_secs_f64()
}

/// How many pauses may look missed because of a busy machine, in a log of `requests` requests.
pub fn pauses_missed_max(requests: usize) -> f64 {
    (requests as f64 / 8.0).max(2.0)
}

/// The entry of a request in the log while its answer may be incomplete. See [`LoggedRequest`].
struct RequestEntry {
    path: String,
    at: Instant,
    end: Option<Instant>,
    in_flight: usize,
    from: Option<IpAddr>,
}

#[derive(Default)]
struct SiteState {
    behaviours: HashMap<String, Behaviour>,
    otherwise: Option<Behaviour>,
    counts: HashMap<String, usize>,
    hits: Vec<RequestEntry>,
    in_flight: usize,
    connections: usize,
    open: HashMap<usize, TcpStream>,
    stopped: bool,
}

#[derive(Default)]
struct SiteShared {
    state: Mutex<SiteState>,
    /// Notified when the site stops, which ends all pauses.
    stop: Condvar,
}

impl SiteShared {
    fn state(&self) -> MutexGuard<'_, SiteState> {
        // A behaviour that panics fails its own test and must not stop the site.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sleeps. Returns false if the site stops meanwhile.
    fn pause(&self, time: Duration) -> bool {
        let state = self.state();
        let (state, _) = self.stop.wait_timeout_while(state, time, |s| !s.stopped).unwrap();
        !state.stopped
    }
}

/// A running site. It stops when dropped.
pub struct TestSite {
    shared: Arc<SiteShared>,
    address: SocketAddr,
    listener: Option<JoinHandle<()>>,
}

impl TestSite {
    pub fn start() -> Self {
        Self::start_on("127.0.0.1")
    }

    /// Starts on another loopback address, which is another host for a client.
    pub fn start_on(host: &str) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(SiteShared::default());
        let theirs = Arc::clone(&shared);
        let listener = std::thread::spawn(move || listen(&listener, &theirs));
        Self { shared, address, listener: Some(listener) }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// `host:port`.
    pub fn lane(&self) -> String {
        self.address.to_string()
    }

    /// Serves an HTML page in UTF-8.
    pub fn page(&self, path: &str, body: impl Into<Vec<u8>>) {
        self.answer(path, SiteResponse::html(body));
    }

    /// Sends the same answer each time.
    pub fn answer(&self, path: &str, response: SiteResponse) {
        self.on(path, move |_, _| response.clone());
    }

    /// Sends the first answer `times` times, and then the second one.
    pub fn recovers(&self, path: &str, times: usize, first: SiteResponse, then: SiteResponse) {
        self.on(path, move |_, nth| if nth <= times { first.clone() } else { then.clone() });
    }

    /// Answers requests for a path with a function of the request and its number, counted from 1 for
    /// each path. A path with a query is looked up whole, then without the query.
    pub fn on<F>(&self, path: &str, behaviour: F)
    where
        F: Fn(&SiteRequest, usize) -> SiteResponse + Send + Sync + 'static,
    {
        self.shared.state().behaviours.insert(path.to_owned(), Arc::new(behaviour));
    }

    /// Answers requests for all other paths with a function, instead of status 404.
    pub fn otherwise<F>(&self, behaviour: F)
    where
        F: Fn(&SiteRequest, usize) -> SiteResponse + Send + Sync + 'static,
    {
        self.shared.state().otherwise = Some(Arc::new(behaviour));
    }

    /// All requests in the order of their arrival.
    pub fn log(&self) -> Vec<LoggedRequest> {
        let now = Instant::now();
        let state = self.shared.state();
        let hit = |seen: &RequestEntry| LoggedRequest {
            path: seen.path.clone(),
            at: seen.at,
            end: seen.end.unwrap_or(now),
            in_flight: seen.in_flight,
            from: seen.from,
        };
        state.hits.iter().map(hit).collect()
    }

    /// The number of requests for one path with its query.
    pub fn hits(&self, path: &str) -> usize {
        self.shared.state().counts.get(path).copied().unwrap_or(0)
    }

    /// The largest number of requests that waited for their answers at the same time.
    pub fn max_parallel(&self) -> usize {
        let state = self.shared.state();
        state.hits.iter().map(|hit| hit.in_flight).max().unwrap_or(0)
    }

    /// Waits until everything that ended clients had sent is in the log: until the site has accepted
    /// all their connections and seen them closed.
    pub fn settle(&self) {
        // Connections are accepted in order: when this one is closed, those of the clients are open
        // or have been closed.
        let mut probe = TcpStream::connect(self.address).unwrap();
        probe.shutdown(Shutdown::Write).unwrap();
        probe.read_to_end(&mut Vec::new()).ok();
        while !self.shared.state().open.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The number of accepted connections, which shows whether clients reuse them.
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// Fails unless the requests kept a pause from start to start.
    pub fn assert_paused(&self, pause: Duration) {
        let starts: Vec<Instant> = self.log().iter().map(|hit| hit.at).collect();
        let missed = pauses_missed(&starts, pause);
        let gaps: Vec<Duration> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(missed <= pauses_missed_max(starts.len()), "{missed:.1} pauses missed: {gaps:?}");
    }

    /// Shortest time from the start of one request to the start of the next.
    pub fn shortest_gap(&self) -> Option<Duration> {
        let log = self.log();
        log.windows(2).map(|pair| pair[1].at - pair[0].at).min()
    }

    /// An address where nobody listens: the system never chooses port 1.
    pub fn dead_url(path: &str) -> String {
        format!("http://127.0.0.1:1{path}")
    }
}

impl Drop for TestSite {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.stopped = true;
            for stream in state.open.values() {
                // The client may have closed it before.
                stream.shutdown(Shutdown::Both).ok();
            }
        }
        self.shared.stop.notify_all();
        // Wakes the listener, which checks `stopped` after every connection.
        TcpStream::connect(self.address).ok();
        if let Some(listener) = self.listener.take() {
            listener.join().ok();
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<SiteShared>) {
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
            // An error means that the client has closed the connection.
            wire::serve(stream, &theirs).ok();
            if let Some(twin) = theirs.state().open.remove(&id) {
                twin.shutdown(Shutdown::Both).ok();
            }
        }));
    }
    for worker in workers {
        worker.join().ok();
    }
}
