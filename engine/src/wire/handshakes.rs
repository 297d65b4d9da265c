//! Handshakes in progress. Their number is limited. When it is reached, the host with the most handshakes
//! loses its oldest one, so a flood from one host hurts only that host.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::{debug, warn};

use crate::wire::WireError;

/// Shortest time between two warnings about refused connections.
const WARN_INTERVAL: Duration = Duration::from_mins(1);

struct PendingPeer {
    number: u64,
    host: IpAddr,
    /// Dropped to end the handshake.
    _stay: oneshot::Sender<()>,
}

/// The handshakes in progress, oldest first.
#[derive(Default)]
pub(super) struct PendingHandshakes {
    waiting: Mutex<Vec<PendingPeer>>,
}

impl PendingHandshakes {
    /// Adds a handshake. The receiver ends when the handshake has to make room.
    pub(super) fn begin(&self, number: u64, host: IpAddr, max: usize) -> oneshot::Receiver<()> {
        let (stay, leave) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= max
            && let Some(place) = oldest_of_largest_host(&waiting)
        {
            waiting.remove(place);
        }
        waiting.push(PendingPeer { number, host, _stay: stay });
        leave
    }

    pub(super) fn end(&self, number: u64) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|pending| pending.number != number);
    }
}

/// The oldest handshake of the host that has the most.
fn oldest_of_largest_host(waiting: &[PendingPeer]) -> Option<usize> {
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    for pending in waiting {
        *counts.entry(pending.host).or_default() += 1;
    }
    let largest = counts.values().max()?;
    waiting.iter().position(|pending| counts.get(&pending.host) == Some(largest))
}

/// Counts the refused connections, and warns about them once a minute at most.
#[derive(Debug, Default)]
pub(crate) struct RefusedConnections {
    count: AtomicU64,
    /// When the last warning was logged, and the count at that time.
    warned: Mutex<Option<(Instant, u64)>>,
}

impl RefusedConnections {
    /// Refused connections since the start.
    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn note(&self, peer: &str, error: &WireError) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        debug!(peer, %error, "connection refused");
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match *warned {
            Some((at, _)) if at.elapsed() < WARN_INTERVAL => return,
            Some((_, known)) => known,
            None => 0,
        };
        *warned = Some((Instant::now(), count));
        warn!(peer, %error, count = count - known, "connections refused");
    }
}
