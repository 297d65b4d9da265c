//! The linearizability check of Wing and Gong: whether the operations of several clients can be put into one
//! order that respects their times and that a single machine could have executed.

use std::collections::HashSet;
use std::hash::Hash;

/// An operation of a client, and its times.
#[derive(Debug, Clone)]
pub(super) struct Asked<O> {
    pub(super) what: O,
    pub(super) from: u64,
    /// When the answer arrived. Without an answer, the operation may have happened at any time since, or never.
    pub(super) to: Option<u64>,
}

/// The operations that have a place in the order, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Placed([u128; 8]);

impl Placed {
    const MOST: usize = 8 * 128;

    fn has(&self, place: usize) -> bool {
        self.0[place / 128] & 1 << (place % 128) != 0
    }

    fn with(mut self, place: usize) -> Self {
        self.0[place / 128] |= 1 << (place % 128);
        self
    }
}

/// Whether there is such an order. `step` returns the states that an operation may lead to, and none if it
/// cannot have happened in this state.
pub(super) fn is_linearizable<S: Clone + Eq + Hash, O>(
    history: &[Asked<O>],
    begin: S,
    step: impl Fn(&S, &O) -> Vec<S>,
) -> bool {
    assert!(history.len() <= Placed::MOST, "too many operations for one key");
    let mut tried = HashSet::new();
    let mut open = vec![(Placed::default(), begin)];
    while let Some((done, state)) = open.pop() {
        if !tried.insert((done, state.clone())) {
            continue;
        }
        let left = || history.iter().enumerate().filter(|(place, _)| !done.has(*place));
        // An operation that began after another was answered comes after it.
        let Some(first) = left().filter_map(|(_, asked)| asked.to).min() else { return true };
        for (place, asked) in left().filter(|(_, asked)| asked.from <= first) {
            let next = step(&state, &asked.what);
            open.extend(next.into_iter().map(|state| (done.with(place), state)));
        }
    }
    false
}

/// An operation on a barricade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    Claim { who: u64, told: Option<Claimed> },
    Release { who: u64, epoch: u64, told: Option<bool> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claimed {
    Cross(u64),
    Wait,
    Crossed,
}

/// The state of a barricade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stands {
    Free,
    Crossing { who: u64, epoch: Option<u64> },
    Crossed,
}

/// The states of a barricade after an operation. The store repeats a command without an answer, so a command
/// that was applied may be answered with `Stale`.
#[expect(clippy::match_same_arms, reason = "each arm is a separate case")]
pub(super) fn pass(stands: &Stands, gate: &Gate) -> Vec<Stands> {
    match (*stands, *gate) {
        (Stands::Free, Gate::Claim { who, told: Some(Claimed::Cross(epoch)) }) => {
            vec![Stands::Crossing { who, epoch: Some(epoch) }]
        }
        (Stands::Free, Gate::Claim { who, told: None }) => {
            vec![Stands::Crossing { who, epoch: None }]
        }
        (
            Stands::Crossing { who: owner, epoch: known },
            Gate::Claim { who, told: Some(Claimed::Cross(epoch)) },
        ) if owner == who && known.is_none_or(|known| known == epoch) => {
            vec![Stands::Crossing { who, epoch: Some(epoch) }]
        }
        (Stands::Crossing { who: owner, .. }, Gate::Claim { who, told: Some(Claimed::Wait) })
            if owner != who =>
        {
            vec![*stands]
        }
        // A late node waits until a session that knows the result is renewed.
        (Stands::Crossed, Gate::Claim { told: Some(Claimed::Crossed | Claimed::Wait), .. })
        | (_, Gate::Claim { told: None, .. }) => vec![*stands],
        (Stands::Crossing { who: owner, epoch: known }, Gate::Release { who, epoch, .. })
            if owner == who && known.is_none_or(|known| known == epoch) =>
        {
            vec![Stands::Crossed]
        }
        (_, Gate::Release { told: Some(false) | None, .. }) => vec![*stands],
        _ => Vec::new(),
    }
}

/// An operation on a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Grant { token: u64 },
    Finish { token: u64, retry: bool, told: Option<bool> },
}

/// The state of a job: its newest token, whether the token is granted, and whether the job has ended.
pub(super) type Job = (u64, bool, bool);

/// The states of a job after an operation.
#[expect(clippy::match_same_arms, reason = "each arm is a separate case")]
pub(super) fn work(job: &Job, deed: &Deed) -> Vec<Job> {
    let (newest, out, ended) = *job;
    match *deed {
        Deed::Grant { token } if !out && !ended && token > newest => vec![(token, true, false)],
        Deed::Grant { .. } => Vec::new(),
        Deed::Finish { token, retry, .. } if out && token == newest => {
            vec![(newest, false, !retry)]
        }
        Deed::Finish { told: Some(true), .. } => Vec::new(),
        Deed::Finish { .. } => vec![*job],
    }
}

fn asked<O>(what: O, from: u64, to: u64) -> Asked<O> {
    Asked { what, from, to: Some(to) }
}

fn job_holds(history: &[Asked<Deed>]) -> bool {
    is_linearizable(history, (0, false, false), work)
}

fn gate_holds(history: &[Asked<Gate>]) -> bool {
    is_linearizable(history, Stands::Free, pass)
}

#[test]
fn a_job_that_ends_twice_or_is_granted_after_its_end_is_found() {
    let grant = |token| Deed::Grant { token };
    let done = |token, told| Deed::Finish { token, retry: false, told };
    let good = vec![
        asked(grant(1), 0, 2),
        asked(done(1, Some(true)), 3, 9),
        // At the same time with the same token: one of them is applied.
        asked(done(1, Some(false)), 4, 8),
    ];
    assert!(job_holds(&good));
    let twice = [good.clone(), vec![asked(done(1, Some(true)), 5, 7)]].concat();
    assert!(!job_holds(&twice));
    let again = [good.clone(), vec![asked(grant(2), 10, 11)]].concat();
    assert!(!job_holds(&again));
    let before = [good, vec![asked(done(1, Some(true)), 0, 1)]].concat();
    assert!(!job_holds(&before), "a token was used before it was granted");
    let older = [asked(grant(2), 0, 1), asked(done(1, Some(true)), 2, 3)];
    assert!(!job_holds(&older));
}

#[test]
fn an_unanswered_operation_may_have_happened_or_not() {
    let lost =
        Asked { what: Deed::Finish { token: 1, retry: true, told: None }, from: 2, to: None };
    let first = asked(Deed::Grant { token: 1 }, 0, 1);
    let second = asked(Deed::Grant { token: 2 }, 5, 6);
    let done = asked(Deed::Finish { token: 1, retry: false, told: Some(true) }, 3, 4);
    assert!(job_holds(&[first.clone(), lost.clone(), second.clone()]));
    assert!(job_holds(&[first.clone(), lost.clone(), done.clone()]));
    assert!(!job_holds(&[first.clone(), lost, done, second.clone()]));
    assert!(!job_holds(&[first, second]));
}

#[test]
fn two_nodes_that_cross_at_the_same_time_are_found() {
    let claim = |who, told| Gate::Claim { who, told: Some(told) };
    let release = |who, epoch| Gate::Release { who, epoch, told: Some(true) };
    let good = vec![
        asked(claim(1, Claimed::Cross(7)), 0, 5),
        asked(claim(2, Claimed::Wait), 1, 6),
        asked(claim(1, Claimed::Cross(7)), 6, 7),
        asked(release(1, 7), 8, 9),
        asked(claim(2, Claimed::Crossed), 8, 12),
    ];
    assert!(gate_holds(&good));
    let both = [good.clone(), vec![asked(claim(2, Claimed::Cross(8)), 2, 7)]].concat();
    assert!(!gate_holds(&both));
    let late = [good, vec![asked(claim(3, Claimed::Cross(8)), 13, 14)]].concat();
    assert!(!gate_holds(&late));
    let unseen =
        [asked(claim(1, Claimed::Crossed), 0, 1), asked(claim(2, Claimed::Cross(1)), 2, 3)];
    assert!(!gate_holds(&unseen));
}
