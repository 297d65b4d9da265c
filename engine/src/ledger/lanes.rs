//! Lanes: one queue per host, with its delay and slots, served in turn.
//!
//! A lane is *due* if its first job may start now, and *waiting* if that start lies in the future. An
//! empty lane is in neither set.
//!
//! A polite lane with a delay is *exclusive*: while one session holds a job of it, no other session gets
//! one, because only one clock can keep the delay between two starts. A full exclusive lane is in
//! neither set. Every other lane is *shared*: each session has its own slots. A session whose slots are
//! full skips the lane.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::Excluded;

use serde::{Deserialize, Serialize};

use super::command::{JobId, NewJob, Policy, SessionId};
use super::jobs::OpenGrant;
use super::tables::{ISOLATION, LaneId};

/// One lane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Host, or `local`.
    pub name: String,
    /// Whether the policy's delay and slots apply.
    pub polite: bool,
    /// Jobs in flight.
    pub held: u32,
    /// Jobs queued.
    pub pending: u64,
    /// Ledger time before which no job may start.
    pub next_at: u64,
    /// The part of `next_at` that a page from the store does not undo: real starts and held lanes.
    pub floor: u64,
    /// When the first job of the queue may start.
    pub head_at: u64,
    /// Level of that job, in a run with levels.
    pub head_level: u32,
    /// Number of the latest grant; lanes are served in this order.
    pub last_grant: u64,
    /// Why it is quarantined, if it is.
    pub closed: Option<String>,
    /// Number of its jobs that each session holds; derived from the jobs in flight.
    #[serde(skip)]
    holders: Vec<(SessionId, u32)>,
}

impl Lane {
    /// Most jobs in flight: of all sessions if the lane is exclusive, of each session if it is shared.
    fn slots(&self, policy: &Policy) -> u32 {
        let ahead = if self.is_exclusive(policy) { 0 } else { policy.ahead };
        let own = if self.polite { policy.slots.max(1).saturating_add(ahead) } else { u32::MAX };
        own.min(policy.lane_share_max.max(1))
    }

    /// Whether only one session at a time may hold its jobs.
    pub(super) fn is_exclusive(&self, policy: &Policy) -> bool {
        self.polite && policy.delay_ms > 0
    }

    /// Counts one more job of a session.
    fn hold(&mut self, session: SessionId) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == session) {
            Some((_, held)) => *held += 1,
            None => self.holders.push((session, 1)),
        }
    }

    /// Counts one job less of a session.
    fn drop_holder(&mut self, session: SessionId) {
        if let Some(place) = self.holders.iter().position(|(holder, _)| *holder == session) {
            self.holders[place].1 -= 1;
            if self.holders[place].1 == 0 {
                self.holders.swap_remove(place);
            }
        }
    }

    /// Whether a session has no free slot.
    fn is_full_for(&self, session: SessionId, policy: &Policy) -> bool {
        let slots = self.slots(policy);
        self.held >= slots
            && self.holders.iter().any(|(holder, held)| *holder == session && *held >= slots)
    }

    /// Which sessions may get its jobs, regardless of pauses.
    fn access(&self, policy: &Policy) -> LaneAccess {
        if self.held == 0 || !self.is_exclusive(policy) {
            return LaneAccess::Any;
        }
        match self.holders[..] {
            [(holder, held)] if held < self.slots(policy) => LaneAccess::Only(holder),
            // Several sessions hold it if the delay was set after their grants.
            _ => LaneAccess::None,
        }
    }

    fn needs_sweep(&self) -> bool {
        self.closed.is_some() && self.pending > 0
    }

    /// Allows no start before `at`, even if a grant turns out to need no request.
    pub(super) fn hold_until(&mut self, at: u64) {
        self.floor = self.floor.max(at);
        self.next_at = self.next_at.max(at);
    }
}

/// Which sessions may get jobs of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LaneAccess {
    Any,
    Only(SessionId),
    None,
}

/// Lanes by access, then by turn or by time. Lanes without access are in no set.
type LaneSet = BTreeSet<(LaneAccess, u64, LaneId)>;

/// All lanes, indexed by what may be served next.
#[derive(Debug, Clone, Default)]
pub(super) struct Lanes {
    all: BTreeMap<LaneId, Lane>,
    by_name: BTreeMap<String, LaneId>,
    /// Due lanes by their turn, and waiting lanes by their time.
    due: LaneSet,
    waiting: LaneSet,
    /// Quarantined lanes with queued jobs.
    closed: BTreeSet<LaneId>,
    dirty: BTreeSet<LaneId>,
    /// Ledger time at which all earlier workers were found dead. Their last starts are unknown.
    gap_from: Option<u64>,
    /// The highest level that may start, if there are levels.
    level: Option<u32>,
}

impl Lanes {
    /// Rebuilds the lanes from stored ones and the jobs in flight.
    pub(super) fn restore(
        stored: impl IntoIterator<Item = (LaneId, Lane)>,
        taken: &BTreeMap<JobId, OpenGrant>,
        gap_from: Option<u64>,
    ) -> Self {
        let mut lanes = Self { gap_from, ..Self::default() };
        for (id, mut lane) in stored {
            lanes.by_name.insert(lane.name.clone(), id);
            lane.holders.clear();
            lanes.all.insert(id, lane);
        }
        for taken in taken.values() {
            if let Some(lane) = lanes.all.get_mut(&taken.lane) {
                lane.hold(taken.session);
            }
        }
        lanes
    }

    /// Puts every lane into its set again, after a restart or a change of policy.
    pub(super) fn arrange_all(&mut self, policy: &Policy) {
        self.due.clear();
        self.waiting.clear();
        self.closed.clear();
        for id in self.all.keys().copied().collect::<Vec<_>>() {
            self.arrange(id, policy);
        }
    }

    /// The lane of a job; added if the job is the first of its host.
    pub(super) fn lane_of(&mut self, job: &NewJob) -> LaneId {
        if let Some(id) = self.by_name.get(&job.lane) {
            return *id;
        }
        let last = self.all.keys().next_back().map_or(0, |id| id.0);
        let id = LaneId(last + 1);
        self.all.insert(id, Lane::new(job.lane.clone(), job.polite));
        self.by_name.insert(job.lane.clone(), id);
        self.dirty.insert(id);
        id
    }

    /// Changes a lane and moves it to the set where it now belongs.
    pub(super) fn change(&mut self, id: LaneId, policy: &Policy, change: impl FnOnce(&mut Lane)) {
        self.withdraw(id, policy);
        let lane =
            self.all.entry(id).or_insert_with(|| Lane::new(String::from("(isolation)"), false));
        change(lane);
        self.dirty.insert(id);
        self.arrange(id, policy);
    }

    /// Allows no start on a polite lane before its delay has passed since `now`.
    pub(super) fn pause_all_from(&mut self, now: u64, policy: &Policy) {
        self.gap_from = Some(now);
        self.arrange_all(policy);
    }

    /// Sets the level that may start. Returns whether it has changed.
    pub(super) fn open_level(&mut self, level: Option<u32>) -> bool {
        std::mem::replace(&mut self.level, level) != level
    }

    /// Whether a job of that level may start.
    pub(super) fn is_open(&self, level: u32) -> bool {
        self.level.is_none_or(|open| level <= open)
    }

    /// Ledger time from which the first job of a lane may start.
    fn start_of(&self, lane: &Lane, policy: &Policy) -> u64 {
        self.open_at(lane, policy).max(lane.head_at)
    }

    /// Ledger time from which the pauses of a lane allow a start.
    fn open_at(&self, lane: &Lane, policy: &Policy) -> u64 {
        let gap = self.gap_from.filter(|_| lane.polite).map_or(0, |from| from + policy.delay_ms);
        lane.next_at.max(gap)
    }

    /// Counts a grant on a lane.
    pub(super) fn grant(
        &mut self,
        id: LaneId,
        session: SessionId,
        policy: &Policy,
        change: impl FnOnce(&mut Lane),
    ) {
        self.change(id, policy, |lane| {
            lane.held += 1;
            lane.hold(session);
            change(lane);
        });
    }

    /// Counts the end of a grant on a lane.
    pub(super) fn free_slot(&mut self, id: LaneId, session: SessionId, policy: &Policy) {
        self.change(id, policy, |lane| {
            lane.held -= 1;
            lane.drop_holder(session);
        });
    }

    /// Whether holders are counted correctly, and no exclusive lane has two of them.
    pub(super) fn holders_are_consistent(&self, policy: &Policy) -> bool {
        self.all.values().all(|lane| {
            let held: u32 = lane.holders.iter().map(|(_, held)| *held).sum();
            held == lane.held && (!lane.is_exclusive(policy) || lane.holders.len() <= 1)
        })
    }

    /// Whether several sessions may hold jobs of a lane.
    pub(super) fn is_shared(&self, id: LaneId, policy: &Policy) -> bool {
        self.all.get(&id).is_some_and(|lane| !lane.is_exclusive(policy))
    }

    /// When a session may start a job on a lane that is ready at `ready_at`. `None` while the lane is
    /// full or another session has it.
    pub(super) fn start_at(
        &self,
        session: SessionId,
        id: LaneId,
        ready_at: u64,
        policy: &Policy,
    ) -> Option<u64> {
        let lane = self.all.get(&id)?;
        let access = lane.access(policy);
        let may = (access == LaneAccess::Any || access == LaneAccess::Only(session))
            && !lane.is_full_for(session, policy);
        may.then(|| self.open_at(lane, policy).max(ready_at))
    }

    fn withdraw(&mut self, id: LaneId, policy: &Policy) {
        let Some(lane) = self.all.get(&id) else { return };
        if lane.needs_sweep() {
            self.closed.remove(&id);
        }
        let (access, at) = (self.access(id, lane, policy), self.start_of(lane, policy));
        if !self.waiting.remove(&(access, at, id)) {
            self.due.remove(&(access, lane.last_grant, id));
        }
    }

    /// Which sessions may get the first job of a lane, regardless of pauses.
    fn access(&self, id: LaneId, lane: &Lane, policy: &Policy) -> LaneAccess {
        let is_servable = id != ISOLATION
            && lane.pending > 0
            && lane.closed.is_none()
            && self.is_open(lane.head_level);
        if is_servable { lane.access(policy) } else { LaneAccess::None }
    }

    fn arrange(&mut self, id: LaneId, policy: &Policy) {
        let Some(lane) = self.all.get(&id) else { return };
        if lane.needs_sweep() {
            self.closed.insert(id);
        }
        let (access, at) = (self.access(id, lane, policy), self.start_of(lane, policy));
        if access != LaneAccess::None {
            self.waiting.insert((access, at, id));
        }
    }

    /// Whether every lane is in exactly the set where it belongs.
    pub(super) fn are_indexed(&self, policy: &Policy) -> bool {
        let mut wanted = 0;
        let placed = self.all.iter().all(|(id, lane)| {
            let access = self.access(*id, lane, policy);
            if access == LaneAccess::None {
                return true;
            }
            wanted += 1;
            let at = self.start_of(lane, policy);
            self.due.contains(&(access, lane.last_grant, *id))
                != self.waiting.contains(&(access, at, *id))
        });
        let swept = self.all.iter().filter(|(_, lane)| lane.needs_sweep()).map(|(id, _)| id);
        placed && self.due.len() + self.waiting.len() == wanted && swept.eq(self.closed.iter())
    }

    /// The lane that is next for a session at `now`. `passed` is the last lane that earlier calls of the
    /// same `Take` skipped because the session is full there: no slot becomes free between two of these
    /// calls, and a lane that gives a job moves to the end.
    pub(super) fn next_due(
        &mut self,
        session: SessionId,
        now: u64,
        policy: &Policy,
        passed: &mut (u64, LaneId),
    ) -> Option<LaneId> {
        let own = LaneAccess::Only(session);
        for access in [LaneAccess::Any, own] {
            while let Some((at, id)) = first_of(&self.waiting, access).filter(|(at, _)| *at <= now)
            {
                self.waiting.remove(&(access, at, id));
                self.due.insert((access, self.all[&id].last_grant, id));
            }
        }
        let mut shared = None;
        let end = (LaneAccess::Only(SessionId(0)), 0, LaneId(0));
        let rest = (Excluded((LaneAccess::Any, passed.0, passed.1)), Excluded(end));
        for (_, turn, id) in self.due.range(rest) {
            if !self.all[id].is_full_for(session, policy) {
                shared = Some((*turn, *id));
                break;
            }
            *passed = (*turn, *id);
        }
        first_of(&self.due, own).into_iter().chain(shared).min().map(|(_, id)| id)
    }

    /// When the next waiting lane will be due for a session.
    pub(super) fn next_at(&self, session: SessionId, policy: &Policy) -> Option<u64> {
        let own = first_of(&self.waiting, LaneAccess::Only(session));
        let mut shared = self.waiting.iter().take_while(|(access, ..)| *access == LaneAccess::Any);
        let shared = shared.find(|(_, _, id)| !self.all[id].is_full_for(session, policy));
        own.into_iter().chain(shared.map(|(_, at, id)| (*at, *id))).min().map(|(at, _)| at)
    }

    /// A quarantined lane with queued jobs, and the reason.
    pub(super) fn first_closed(&self) -> Option<(LaneId, String)> {
        let id = self.closed.first()?;
        Some((*id, self.why_closed(*id)?))
    }

    /// Why a lane is quarantined, if it is.
    pub(super) fn why_closed(&self, id: LaneId) -> Option<String> {
        self.all.get(&id)?.closed.clone()
    }

    /// Ends the quarantine of every lane.
    pub(super) fn reopen(&mut self) {
        for (id, lane) in self.all.iter_mut().filter(|(_, lane)| lane.closed.is_some()) {
            lane.closed = None;
            self.dirty.insert(*id);
        }
    }

    /// Number of isolated jobs that are queued.
    pub(super) fn isolated(&self) -> u64 {
        self.all.get(&ISOLATION).map_or(0, |lane| lane.pending)
    }

    /// Lanes that have changed since the last call.
    pub(super) fn take_dirty(&mut self) -> Vec<(LaneId, &Lane)> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().filter_map(|id| self.all.get(&id).map(|lane| (id, lane))).collect()
    }

    /// All lanes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.all.iter().map(|(id, lane)| (*id, lane))
    }
}

impl Lane {
    fn new(name: String, polite: bool) -> Self {
        Self { name, polite, ..Self::default() }
    }
}

/// The first lane of a set with this access.
fn first_of(set: &LaneSet, access: LaneAccess) -> Option<(u64, LaneId)> {
    let first = set.range((access, 0, LaneId(0))..).next().filter(|(own, ..)| *own == access);
    first.map(|(_, at, id)| (*at, *id))
}
