//! Those who have connected but proven nothing yet: few, and the oldest makes room for the next,
//! first among those whose host sent the most, so that a flood from one host meets only itself.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::{debug, warn};

use crate::wire::WireError;

/// Time between two warnings about peers that were turned away.
const WARN_PAUSE: Duration = Duration::from_mins(1);

struct PendingPeer {
    number: u64,
    /// None for a socket in the file system.
    host: IpAddr,
    /// Dropped to make it leave.
    _stay: oneshot::Sender<()>,
}

/// The peers on their way to prove themselves, oldest first.
#[derive(Default)]
pub(super) struct PendingHandshakes {
    // A lock, since a peer leaves from its own task; held for a few moves only.
    waiting: Mutex<Vec<PendingPeer>>,
}

impl PendingHandshakes {
    /// Lets a peer in. Its receiver ends when it has to make room.
    pub(super) fn enter(&self, number: u64, host: IpAddr, max: usize) -> oneshot::Receiver<()> {
        let (stay, leave) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= max
            && let Some(place) = who_makes_room(&waiting)
        {
            waiting.remove(place);
        }
        waiting.push(PendingPeer { number, host, _stay: stay });
        leave
    }

    pub(super) fn leave(&self, number: u64) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|stranger| stranger.number != number);
    }
}

/// The oldest of the host that has the most here.
fn who_makes_room(waiting: &[PendingPeer]) -> Option<usize> {
    let mut crowds: HashMap<IpAddr, usize> = HashMap::new();
    for stranger in waiting {
        *crowds.entry(stranger.host).or_default() += 1;
    }
    let largest = crowds.values().max()?;
    waiting.iter().position(|stranger| crowds.get(&stranger.host) == Some(largest))
}

/// Counts the connections that were turned away, and tells of them at a bearable rate.
#[derive(Debug, Default)]
pub(crate) struct RefusedConnections {
    count: AtomicU64,
    /// When a warning was last given, and the count at that time.
    told: Mutex<Option<(Instant, u64)>>,
}

impl RefusedConnections {
    /// Connections turned away so far.
    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn note(&self, peer: &str, error: &WireError) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        debug!(peer, %error, "connection turned away");
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match *told {
            Some((at, _)) if at.elapsed() < WARN_PAUSE => return,
            Some((_, known)) => known,
            None => 0,
        };
        *told = Some((Instant::now(), count));
        warn!(peer, %error, count = count - known, "connections turned away");
    }
}
