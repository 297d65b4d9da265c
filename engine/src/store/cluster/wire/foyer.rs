//! Those who have connected but proven nothing yet: few, and the oldest makes room for the next.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::{debug, warn};

use super::WireError;

/// Time between two warnings about peers that were turned away.
const WARN_PAUSE: Duration = Duration::from_mins(1);

/// The peers on their way to prove themselves, oldest first.
#[derive(Default)]
pub(super) struct Foyer {
    // A lock, since a peer leaves from its own task; held for a few moves only.
    waiting: Mutex<VecDeque<(u64, oneshot::Sender<()>)>>,
}

impl Foyer {
    /// Lets a peer in. Its receiver ends when it has to make room.
    pub(super) fn enter(&self, guest: u64, max: usize) -> oneshot::Receiver<()> {
        let (stay, leave) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.len() >= max {
            waiting.pop_front();
        }
        waiting.push_back((guest, stay));
        leave
    }

    pub(super) fn leave(&self, guest: u64) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|(other, _)| *other != guest);
    }
}

/// Counts the connections that were turned away, and tells of them at a bearable rate.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    count: AtomicU64,
    /// When a warning was last given, and the count at that time.
    told: Mutex<Option<(Instant, u64)>>,
}

impl Refusals {
    /// Connections turned away so far.
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
