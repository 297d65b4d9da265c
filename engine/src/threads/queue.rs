//! A bounded queue to threads. Its wake-ups are expensive, so it avoids needless ones:
//!
//! | event | wakes |
//! | --- | --- |
//! | an item is sent and a receiver sleeps in [`Receiver::recv`] | that receiver |
//! | an item is sent and a receiver sleeps in [`Receiver::recv_batched`] | it, once enough items wait |
//! | the last [`SendAnnouncement`] is dropped | a receiver that waits for a batch |
//! | an item is taken and a sender waits for room | that sender |
//! | the last sender is dropped | all receivers |
//! | the last receiver is dropped | all senders |
//!
//! A receiver counts as *notified* from the wake-up until it runs. It gets no second wake-up in that
//! time. All wake-ups for items happen after the lock is released, so the receiver can take it at once.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The sending end. The queue ends with the last sender.
pub(crate) struct Sender<T>(Arc<Shared<T>>);

/// Announces that an item may be sent soon. Dropping it means that the item was sent or will not come.
pub(crate) struct SendAnnouncement<T>(Arc<Shared<T>>);

/// A receiving end.
pub(crate) struct Receiver<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    /// An item can be taken, or the queue has ended.
    filled: Condvar,
    /// There is room, or no receiver is left.
    drained: Condvar,
    bound: usize,
}

struct State<T> {
    items: VecDeque<T>,
    senders: usize,
    receivers: usize,
    /// Sleeping receivers that are not notified, and the number of items for which the last one waits.
    asleep: usize,
    wanted: usize,
    /// Notified receivers that do not run yet.
    notified: usize,
    /// Number of open announcements; `None` before the first one.
    announced: Option<usize>,
    /// Senders that wait for room.
    blocked_senders: usize,
}

/// A queue of at most `bound` items.
pub(crate) fn queue<T>(bound: usize) -> (Sender<T>, Receiver<T>) {
    let state = State {
        items: VecDeque::new(),
        senders: 1,
        receivers: 1,
        asleep: 0,
        wanted: 1,
        notified: 0,
        announced: None,
        blocked_senders: 0,
    };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        filled: Condvar::new(),
        drained: Condvar::new(),
        bound: bound.max(1),
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> State<T> {
    /// Whether to wake a receiver now. If so, it counts as notified.
    fn notifies(&mut self, due: bool) -> bool {
        let notifies = due && self.asleep > 0;
        if notifies {
            (self.asleep, self.notified) = (self.asleep - 1, self.notified + 1);
        }
        notifies
    }

    /// Counts a receiver that goes to sleep until there are `wanted` items.
    fn sleep(&mut self, wanted: usize) {
        (self.asleep, self.wanted) = (self.asleep + 1, wanted);
    }

    /// Counts a receiver that is awake again, notified or not.
    fn wake(&mut self) {
        match self.notified.checked_sub(1) {
            Some(left) => self.notified = left,
            None => self.asleep -= 1,
        }
    }
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        // No code that holds the lock can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, state: &mut State<T>) -> Option<T> {
        let item = state.items.pop_front()?;
        if state.blocked_senders > 0 {
            self.drained.notify_one();
        }
        Some(item)
    }
}

impl<T> Sender<T> {
    /// Sends an item after waiting for room. Returns it if no receiver is left.
    pub(crate) fn send(&self, item: T) -> Result<(), T> {
        let mut state = self.0.state();
        while state.items.len() >= self.0.bound && state.receivers > 0 {
            state.blocked_senders += 1;
            state = self.0.drained.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.blocked_senders -= 1;
        }
        if state.receivers == 0 {
            return Err(item);
        }
        state.items.push_back(item);
        let due = state.items.len() >= state.wanted.min(self.0.bound);
        let notifies = state.notifies(due);
        // Unlock first, so that the receiver can take the lock at once.
        drop(state);
        if notifies {
            self.0.filled.notify_one();
        }
        Ok(())
    }

    /// Announces an item. A receiver of a batch waits for it until the announcement is dropped.
    pub(crate) fn announce(&self) -> SendAnnouncement<T> {
        *self.0.state().announced.get_or_insert(0) += 1;
        SendAnnouncement(Arc::clone(&self.0))
    }
}

impl<T> Receiver<T> {
    /// Waits for the next item; `None` once the queue has ended.
    pub(crate) fn recv(&self) -> Option<T> {
        let mut state = self.0.state();
        loop {
            if let Some(item) = self.0.take(&mut state) {
                return Some(item);
            }
            if state.senders == 0 {
                return None;
            }
            state.sleep(1);
            state = self.0.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.wake();
        }
    }

    /// The next item, if there is one.
    pub(crate) fn try_recv(&self) -> Option<T> {
        self.0.take(&mut self.0.state())
    }

    /// Whether the queue is empty and has no sender.
    pub(crate) fn has_ended(&self) -> bool {
        let state = self.0.state();
        state.senders == 0 && state.items.is_empty()
    }

    /// Waits until there are `wanted` items, no announcement is open, or the time `until` has come. Then
    /// returns the next item, if there is one. The queue must have only one receiver.
    pub(crate) fn recv_batched(&self, wanted: usize, until: Instant) -> Option<T> {
        let mut state = self.0.state();
        let is_awaited = |state: &State<T>| state.senders > 0 && state.announced != Some(0);
        while state.items.len() < wanted.min(self.0.bound) && is_awaited(&state) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.sleep(wanted);
            let woken = self.0.filled.wait_timeout(state, left);
            state = woken.map_or_else(|broken| broken.into_inner().0, |woken| woken.0);
            state.wake();
        }
        self.0.take(&mut state)
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Sender")
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.state().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.0.state().receivers += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.senders -= 1;
        if state.senders == 0 {
            self.0.filled.notify_all();
        }
    }
}

impl<T> Drop for SendAnnouncement<T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        let left = state.announced.map_or(0, |announced| announced - 1);
        state.announced = Some(left);
        let due = left == 0 && state.wanted > 1;
        let notifies = state.notifies(due);
        drop(state);
        if notifies {
            self.0.filled.notify_one();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.receivers -= 1;
        if state.receivers == 0 {
            // Dropping the items tells their senders that no reply will come.
            let unheard = std::mem::take(&mut state.items);
            self.0.drained.notify_all();
            drop(state);
            drop(unheard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn items_come_in_order_and_the_queue_ends_with_its_last_sender() {
        let (sender, receiver) = queue(2);
        let second = sender.clone();
        let giver = std::thread::spawn(move || (0..100).all(|item| second.send(item).is_ok()));
        let all: Vec<i32> = (0..100).filter_map(|_| receiver.recv()).collect();
        assert!(giver.join().unwrap());
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        assert_eq!(receiver.try_recv(), None);
        drop(sender);
        assert_eq!(receiver.recv(), None);
    }

    #[test]
    fn senders_do_not_wait_after_the_last_receiver_is_dropped() {
        let (sender, receiver) = queue(1);
        sender.send(1).unwrap();
        let other = sender.clone();
        let giver = std::thread::spawn(move || other.send(2));
        drop(receiver);
        assert_eq!(giver.join().unwrap(), Err(2));
        assert_eq!(sender.send(3), Err(3));
    }

    #[test]
    fn a_batch_is_awaited_until_its_deadline() {
        let (sender, receiver) = queue(8);
        sender.send(1).unwrap();
        let now = Instant::now();
        assert_eq!(receiver.recv_batched(2, now), Some(1));
        assert_eq!(receiver.recv_batched(2, now), None);
        let giver = std::thread::spawn(move || (0..4).all(|item| sender.send(item).is_ok()));
        let much_later = now + Duration::from_hours(1);
        assert_eq!(receiver.recv_batched(3, much_later), Some(0));
        assert!(giver.join().unwrap());
        let rest = (0..3).filter_map(|_| receiver.recv_batched(3, much_later));
        assert_eq!(rest.count(), 3);
    }

    #[test]
    fn a_sleeping_receiver_is_notified_once() {
        let (sender, _receiver) = queue::<i32>(8);
        let mut state = sender.0.state();
        state.sleep(1);
        state.sleep(1);
        assert!(!state.notifies(false));
        assert_eq!([(); 3].map(|()| state.notifies(true)), [true, true, false]);
        state.wake();
        assert!(!state.notifies(true));
        state.wake();
        // A receiver that wakes after its deadline is not notified any more.
        state.sleep(5);
        state.wake();
        assert!(!state.notifies(true));
    }

    #[test]
    fn a_batch_waits_for_announced_items_only() {
        let (sender, receiver) = queue(8);
        let much_later = Instant::now() + Duration::from_hours(1);
        let (first, second) = (sender.announce(), sender.announce());
        sender.send(1).unwrap();
        drop(first);
        let other = sender.clone();
        let giver = std::thread::spawn(move || {
            other.send(2).unwrap();
            drop(second);
        });
        assert_eq!(receiver.recv_batched(5, much_later), Some(1));
        giver.join().unwrap();
        assert_eq!(receiver.recv_batched(5, much_later), Some(2));
        assert_eq!(receiver.recv_batched(5, much_later), None);
    }
}
