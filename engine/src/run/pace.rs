//! How a host is asked by this node: a pause between two starts, and so many requests at a time.
//!
//! The ledger grants jobs of a host a delay apart, but an answer may be long on its way and the next
//! one quick: what counts for the host is when it is asked. And where agreeing with other nodes takes
//! time, jobs are granted ahead of their turn: they wait here for a place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

/// Hosts remembered before those whose pause is over are forgotten.
const HOSTS_MAX: usize = 1000;

/// Lets requests to one lane start no closer than the delay.
#[derive(Debug)]
pub(crate) struct Pace {
    delay: Duration,
    /// Who has waited for its turn for so long does not start any more.
    patience: Duration,
    /// When each lane may start next. Held for a look, never across a wait.
    next: Mutex<HashMap<String, Instant>>,
    /// Requests to one lane at a time, where jobs are granted ahead.
    places: Option<usize>,
    /// The places of each lane. Held for a look, never across a wait.
    rooms: Mutex<HashMap<String, Arc<Semaphore>>>,
    closed: watch::Sender<bool>,
}

/// A lane's turn, taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// When it came.
    pub at: Instant,
    /// Whether it is the first one: a connection has to be made before the host is asked.
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

    /// The same with so many requests to one lane at a time.
    pub(crate) fn with_places(self, places: usize) -> Self {
        Self { places: Some(places.max(1)), ..self }
    }

    /// The same where a job may be somebody else's after so long.
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
            // There is no turn any more, either.
            _ = closed.wait_for(|closed| *closed) => None,
        }
    }

    /// Waits for a lane's turn and takes it; `None` if nothing is to be started any more.
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
                // Who wakes late starts late, and the next one counts from then.
                Err(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    changed = closed.changed() => if changed.is_err() { return None },
                },
            }
        }
    }

    /// A lane was asked later than its turn came, as late as now perhaps; tells that time.
    pub(crate) fn asked_late(&self, lane: &str) -> Instant {
        let now = Instant::now();
        if !self.delay.is_zero() {
            self.lock().insert(lane.to_owned(), now + self.delay);
        }
        now
    }

    /// Nothing is started from now on; whoever waits is told.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Starts now, and tells whether it is the first time; or tells when to ask again.
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
        // Nothing can be half done in there.
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
    async fn a_start_that_came_late_is_what_the_next_one_counts_from() {
        let pace = Pace::new(DELAY);
        assert!(pace.turn("a").await.unwrap().is_first);
        let late = pace.asked_late("a");
        let next = pace.turn("a").await.unwrap();
        assert!(next.at - late >= DELAY && !next.is_first);
    }

    #[tokio::test]
    async fn without_a_delay_nobody_waits() {
        let pace = Pace::new(Duration::ZERO);
        for _ in 0..100 {
            assert!(pace.turn("a").await.is_some());
        }
        assert!(pace.lock().is_empty());
    }

    #[tokio::test]
    async fn whoever_waits_is_told_of_the_end() {
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
    async fn who_has_waited_for_too_long_does_not_start() {
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
