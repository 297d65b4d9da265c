//! A bounded queue to threads that sleep until there is something for them. It wakes nobody without
//! need: who waits for company is woken once for many items, and nobody spins.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The end that gives. The queue ends with the last of them.
pub(crate) struct Sender<T>(Arc<Shared<T>>);

/// Somebody who will send something soon, or knows by now that there is nothing to send.
pub(crate) struct SendAnnouncement<T>(Arc<Shared<T>>);

/// An end that takes.
pub(crate) struct Receiver<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    /// There is something to take, or never will be.
    filled: Condvar,
    /// There is room, or nobody who takes.
    drained: Condvar,
    bound: usize,
}

struct State<T> {
    items: VecDeque<T>,
    senders: usize,
    receivers: usize,
    /// Receivers asleep whom nobody has notified yet, and how many items one of them wants to find.
    asleep: usize,
    wanted: usize,
    /// Receivers notified that are not awake yet: to call them again would cost as much and do nothing.
    notified: usize,
    /// Those who will send soon, if anybody ever said so.
    announced: Option<usize>,
    /// Senders asleep.
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
    /// Whether a receiver is to be notified now; it counts as notified from here on.
    fn notifies(&mut self, due: bool) -> bool {
        let notifies = due && self.asleep > 0;
        if notifies {
            (self.asleep, self.notified) = (self.asleep - 1, self.notified + 1);
        }
        notifies
    }

    /// A receiver goes to sleep until there are so many items.
    fn sleep(&mut self, wanted: usize) {
        (self.asleep, self.wanted) = (self.asleep + 1, wanted);
    }

    /// A receiver is awake again, notified or not.
    fn wake(&mut self) {
        match self.notified.checked_sub(1) {
            Some(left) => self.notified = left,
            None => self.asleep -= 1,
        }
    }
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        // Nothing that can panic happens under the lock.
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
    /// Gives an item, after waiting for room; hands it back if nobody takes any more.
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
        // Who is notified finds the lock free.
        drop(state);
        if notifies {
            self.0.filled.notify_one();
        }
        Ok(())
    }

    /// Announces an item: who waits for company waits for it until the guest is dropped.
    pub(crate) fn announce(&self) -> SendAnnouncement<T> {
        *self.0.state().announced.get_or_insert(0) += 1;
        SendAnnouncement(Arc::clone(&self.0))
    }
}

impl<T> Receiver<T> {
    /// The next item, once there is one; none when the queue has ended.
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

    /// Whether nothing will ever come again.
    pub(crate) fn has_ended(&self) -> bool {
        let state = self.0.state();
        state.senders == 0 && state.items.is_empty()
    }

    /// The next item, if there is one once so many have gathered, no guest is awaited any more, or
    /// the time has come. For a queue with one receiver.
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
            // Whoever waits for an answer to one of them learns that there is none.
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
    fn nobody_waits_for_a_receiver_that_is_gone() {
        let (sender, receiver) = queue(1);
        sender.send(1).unwrap();
        let other = sender.clone();
        let giver = std::thread::spawn(move || other.send(2));
        drop(receiver);
        assert_eq!(giver.join().unwrap(), Err(2));
        assert_eq!(sender.send(3), Err(3));
    }

    #[test]
    fn company_is_waited_for_until_the_time_has_come() {
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
    fn a_sleeper_is_called_once() {
        let (sender, _receiver) = queue::<i32>(8);
        let mut state = sender.0.state();
        state.sleep(1);
        state.sleep(1);
        assert!(!state.notifies(false));
        assert_eq!([(); 3].map(|()| state.notifies(true)), [true, true, false]);
        state.wake();
        assert!(!state.notifies(true));
        state.wake();
        // One that wakes by itself is not notified any more.
        state.sleep(5);
        state.wake();
        assert!(!state.notifies(true));
    }

    #[test]
    fn who_is_announced_is_waited_for_and_nobody_else() {
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
