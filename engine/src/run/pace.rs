//! The pace of requests from this node to one host: a pause between two starts, and a limit on parallel
//! requests.
//!
//! The ledger grants the jobs of a host one delay apart, but a grant may arrive late and the next one
//! early. The host notices only the requests, so this node keeps the delay, too. In a cluster, jobs are
//! granted ahead of their turn; they wait here for a place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

/// With more hosts than this, those whose pause is over are forgotten.
const HOSTS_MAX: usize = 1000;

/// Keeps the requests to one lane a delay apart.
#[derive(Debug)]
pub(crate) struct Pace {
    delay: Duration,
    /// A job that has waited for its turn longer does not start.
    patience: Duration,
    /// When each lane may start next. The lock is never held while waiting.
    next: Mutex<HashMap<String, Instant>>,
    /// Parallel requests to one lane; `None` where the ledger grants no more than that.
    places: Option<usize>,
    /// The places of each lane. The lock is never held while waiting.
    rooms: Mutex<HashMap<String, Arc<Semaphore>>>,
    closed: watch::Sender<bool>,
}

/// A lane's turn, taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// When it began.
    pub at: Instant,
    /// Whether it is the first of its lane, so that the connection has to be made first.
    pub is_first: bool,
}

impl Pace {
    /// A pace with this delay.
    pub(crate) fn new(delay: Duration) -> Self {
        Self {
            delay,
            patience: Duration::MAX,
            next: Mutex::default(),
            places: None,
            rooms: Mutex::default(),
            closed: watch::Sender::new(false),
        }
    }

    /// The same with a limit on parallel requests to one lane.
    pub(crate) fn with_places(self, places: usize) -> Self {
        Self { places: Some(places.max(1)), ..self }
    }

    /// The same with a limit on the wait for a turn. After it the ledger may have given the job to another
    /// node.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Waits for a place among the requests to a lane; it is free again when this is dropped.
    pub(crate) async fn place(&self, lane: &str) -> Option<OwnedSemaphorePermit> {
        let places = self.places?;
        let room = {
            let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
            if rooms.len() >= HOSTS_MAX {
                rooms.retain(|_, room| room.available_permits() < places);
            }
            let room = rooms.entry(lane.to_owned());
            Arc::clone(room.or_insert_with(|| Arc::new(Semaphore::new(places))))
        };
        if let Ok(place) = Arc::clone(&room).try_acquire_owned() {
            return Some(place);
        }
        let mut closed = self.closed.subscribe();
        tokio::select! {
            place = room.acquire_owned() => place.ok(),
            // Then there is no turn either.
            _ = closed.wait_for(|closed| *closed) => None,
        }
    }

    /// Waits for a lane's turn and takes it; `None` if nothing starts any more.
    pub(crate) async fn turn(&self, lane: &str) -> Option<Turn> {
        let mut closed = self.closed.subscribe();
        let began = Instant::now();
        loop {
            if *closed.borrow_and_update() {
                return None;
            }
            let now = Instant::now();
            if now - began > self.patience {
                return None;
            }
            match self.start(lane, now) {
                Ok(is_first) => return Some(Turn { at: now, is_first }),
                // A start that wakes late is a late start, and the next pause counts from it.
                Err(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    changed = closed.changed() => if changed.is_err() { return None },
                },
            }
        }
    }

    /// Counts the pause of a lane from now, because its request began after its turn. Returns now.
    pub(crate) fn asked_late(&self, lane: &str) -> Instant {
        let now = Instant::now();
        if !self.delay.is_zero() {
            self.lock().insert(lane.to_owned(), now + self.delay);
        }
        now
    }

    /// Starts nothing from now on, and ends all waits.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Starts now and returns whether it is the first start, or returns when to try again.
    fn start(&self, lane: &str, now: Instant) -> Result<bool, Instant> {
        if self.delay.is_zero() {
            return Ok(false);
        }
        let mut next = self.lock();
        if let Some(at) = next.get(lane).filter(|at| **at > now) {
            return Err(*at);
        }
        if next.len() >= HOSTS_MAX {
            next.retain(|_, at| *at > now);
        }
        let before = next.insert(lane.to_owned(), now + self.delay);
        Ok(before.is_none())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        // No code that can panic runs under the lock.
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const DELAY: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn starts_of_one_lane_are_a_delay_apart() {
        let pace = Arc::new(Pace::new(DELAY));
        let turns = (0..12).map(|number| {
            let (lane, pace) = (number % 2, Arc::clone(&pace));
            tokio::spawn(async move { (lane, pace.turn(["a", "b"][lane]).await.unwrap().at) })
        });
        let mut starts = Vec::new();
        for turn in turns.collect::<Vec<_>>() {
            starts.push(turn.await.unwrap());
        }
        starts.sort_unstable();
        for pair in starts.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            assert!(pair[1].1 - pair[0].1 >= DELAY);
        }
    }

    #[tokio::test]
    async fn the_pause_counts_from_a_late_start() {
        let pace = Pace::new(DELAY);
        assert!(pace.turn("a").await.unwrap().is_first);
        let late = pace.asked_late("a");
        let next = pace.turn("a").await.unwrap();
        assert!(next.at - late >= DELAY && !next.is_first);
    }

    #[tokio::test]
    async fn without_a_delay_every_start_is_immediate() {
        let pace = Pace::new(Duration::ZERO);
        for _ in 0..100 {
            assert!(pace.turn("a").await.is_some());
        }
        assert!(pace.lock().is_empty());
    }

    #[tokio::test]
    async fn closing_ends_all_waits() {
        let pace = Arc::new(Pace::new(Duration::from_hours(1)));
        pace.turn("a").await.unwrap();
        let waiting = {
            let pace = Arc::clone(&pace);
            tokio::spawn(async move { pace.turn("a").await })
        };
        tokio::task::yield_now().await;
        pace.close();
        assert_eq!(waiting.await.unwrap(), None);
        assert_eq!(pace.turn("b").await, None);
    }

    #[tokio::test]
    async fn a_start_that_has_waited_too_long_is_given_up() {
        let pace = Pace::new(Duration::from_millis(40)).with_patience(Duration::from_millis(20));
        assert!(pace.turn("a").await.is_some());
        assert!(pace.turn("a").await.is_none());
        assert!(pace.turn("a").await.is_some());
    }

    #[test]
    fn lanes_whose_pause_is_over_are_forgotten() {
        let (pace, mut now) = (Pace::new(DELAY), Instant::now());
        for number in 0..5000 {
            pace.start(&number.to_string(), now).unwrap();
            now += DELAY;
        }
        assert!(pace.lock().len() <= HOSTS_MAX);
    }
}
