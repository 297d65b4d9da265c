//! Lanes: one queue a host, with its pause and its slots, served in turn.
//!
//! A lane is *due* when it has a job that may start now, *waiting* when its next start lies in
//! the future, and in neither set when it is empty.
//!
//! A lane with a pause is *exclusive*: as long as a session holds a job of it, nobody else gets one,
//! for a pause between two starts can be kept by one clock alone. When it is full it is in neither
//! set. Any other lane is *shared*: each session fills slots of its own, so several nodes get further
//! than one. Who is full there passes it by.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use serde::{Deserialize, Serialize};

use super::command::{JobId, NewJob, Policy, SessionId};
use super::jobs::OpenGrant;
use super::tables::{ISOLATION, LaneId};

/// One lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Host, or `local`.
    pub name: String,
    /// Whether delay and slots of the policy hold.
    pub polite: bool,
    /// Jobs granted and not ended.
    pub held: u32,
    /// Jobs queued.
    pub pending: u64,
    /// No start before this time.
    pub next_at: u64,
    /// The part of it that no grant can give back: what was really started, and holds.
    pub floor: u64,
    /// When the first job of the queue may start.
    pub head_at: u64,
    /// Its level, in a run that goes level by level.
    pub head_level: u32,
    /// Number of the latest grant: lanes are served in turn by it.
    pub last_grant: u64,
    /// Why it gets no more jobs, if it is in quarantine.
    pub closed: Option<String>,
    /// How many of its jobs each session holds; known from what is taken.
    #[serde(skip)]
    holders: Vec<(SessionId, u32)>,
}

impl Lane {
    /// Jobs in flight: of all sessions if the lane is exclusive, of each if it is shared.
    fn slots(&self, policy: &Policy) -> u32 {
        let ahead = if self.is_exclusive(policy) { 0 } else { policy.ahead };
        let own = if self.polite { policy.slots.max(1).saturating_add(ahead) } else { u32::MAX };
        own.min(policy.lane_share_max.max(1))
    }

    /// Whether it may have one holder only.
    pub(super) fn is_exclusive(&self, policy: &Policy) -> bool {
        self.polite && policy.delay_ms > 0
    }

    /// A session holds one job more.
    fn hold(&mut self, session: SessionId) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == session) {
            Some((_, held)) => *held += 1,
            None => self.holders.push((session, 1)),
        }
    }

    /// A session holds one job less.
    fn drop_holder(&mut self, session: SessionId) {
        if let Some(place) = self.holders.iter().position(|(holder, _)| *holder == session) {
            self.holders[place].1 -= 1;
            if self.holders[place].1 == 0 {
                self.holders.swap_remove(place);
            }
        }
    }

    /// Whether a session holds as many jobs as it may.
    fn is_full_for(&self, session: SessionId, policy: &Policy) -> bool {
        let slots = self.slots(policy);
        self.held >= slots
            && self.holders.iter().any(|(holder, held)| *holder == session && *held >= slots)
    }

    /// Whom it is for, its pauses aside.
    fn access(&self, policy: &Policy) -> LaneAccess {
        if self.held == 0 || !self.is_exclusive(policy) {
            return LaneAccess::Any;
        }
        match self.holders[..] {
            [(holder, held)] if held < self.slots(policy) => LaneAccess::Only(holder),
            // Several hold it if the delay is newer than their jobs: then nobody gets more.
            _ => LaneAccess::None,
        }
    }

    fn needs_sweep(&self) -> bool {
        self.closed.is_some() && self.pending > 0
    }

    /// No start before that time, whatever becomes of what is granted.
    pub(super) fn hold_until(&mut self, at: u64) {
        self.floor = self.floor.max(at);
        self.next_at = self.next_at.max(at);
    }
}

/// Whom a lane is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaneAccess {
    Any,
    Only(SessionId),
    None,
}

/// All lanes and which of them may be served.
#[derive(Debug, Clone, Default)]
pub(super) struct Lanes {
    all: BTreeMap<LaneId, Lane>,
    by_name: BTreeMap<String, LaneId>,
    /// For anybody, by their turn and by their time.
    due: BTreeSet<(u64, LaneId)>,
    waiting: BTreeSet<(u64, LaneId)>,
    /// For their holders alone.
    own_due: BTreeSet<(SessionId, u64, LaneId)>,
    own_waiting: BTreeSet<(SessionId, u64, LaneId)>,
    /// Lanes in quarantine with jobs that wait.
    closed: BTreeSet<LaneId>,
    dirty: BTreeSet<LaneId>,
    /// When all earlier workers were found dead: what they started last is not known.
    gap_from: Option<u64>,
    /// The only level that may start, if there are levels.
    level: Option<u32>,
}

impl Lanes {
    /// Lanes as they were stored.
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

    /// Puts every lane into the set where it belongs, as after a restart or a change of policy.
    pub(super) fn arrange_all(&mut self, policy: &Policy) {
        self.due.clear();
        self.waiting.clear();
        self.own_due.clear();
        self.own_waiting.clear();
        self.closed.clear();
        for id in self.all.keys().copied().collect::<Vec<_>>() {
            self.arrange(id, policy);
        }
    }

    /// The lane of a job, made when it is the first of its host.
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

    /// Changes a lane and puts it where it now belongs.
    pub(super) fn change(&mut self, id: LaneId, policy: &Policy, change: impl FnOnce(&mut Lane)) {
        self.withdraw(id, policy);
        let lane =
            self.all.entry(id).or_insert_with(|| Lane::new(String::from("(isolation)"), false));
        change(lane);
        self.dirty.insert(id);
        self.arrange(id, policy);
    }

    /// No start on any polite lane before its delay has passed from `now`.
    pub(super) fn pause_all_from(&mut self, now: u64, policy: &Policy) {
        self.gap_from = Some(now);
        self.arrange_all(policy);
    }

    /// Sets the level that may start; tells whether that is news.
    pub(super) fn open_level(&mut self, level: Option<u32>) -> bool {
        std::mem::replace(&mut self.level, level) != level
    }

    /// Whether a job of that level may start.
    pub(super) fn is_open(&self, level: u32) -> bool {
        self.level.is_none_or(|open| level <= open)
    }

    fn open_at(&self, lane: &Lane, policy: &Policy) -> u64 {
        let gap = self.gap_from.filter(|_| lane.polite).map_or(0, |from| from + policy.delay_ms);
        lane.next_at.max(gap)
    }

    /// A session gets a job of a lane.
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

    /// A session has one job less of a lane.
    pub(super) fn free_slot(&mut self, id: LaneId, session: SessionId, policy: &Policy) {
        self.change(id, policy, |lane| {
            lane.held -= 1;
            lane.drop_holder(session);
        });
    }

    /// Whether no exclusive lane has two holders, and holders are counted as they are.
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

    /// When a session may start a job on a lane that is ready at `ready_at`; `None` while the lane
    /// is full or somebody else's.
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
        if !self.is_servable(id, lane) {
            return;
        }
        let (turn, at) = (lane.last_grant, self.open_at(lane, policy).max(lane.head_at));
        match lane.access(policy) {
            LaneAccess::Any => {
                if !self.waiting.remove(&(at, id)) {
                    self.due.remove(&(turn, id));
                }
            }
            LaneAccess::Only(holder) => {
                if !self.own_waiting.remove(&(holder, at, id)) {
                    self.own_due.remove(&(holder, turn, id));
                }
            }
            LaneAccess::None => {}
        }
    }

    /// Whether a lane may be served at all, its slots and pauses aside.
    fn is_servable(&self, id: LaneId, lane: &Lane) -> bool {
        let waits = id != ISOLATION && lane.pending > 0;
        waits && lane.closed.is_none() && self.is_open(lane.head_level)
    }

    fn arrange(&mut self, id: LaneId, policy: &Policy) {
        let Some(lane) = self.all.get(&id) else { return };
        if lane.needs_sweep() {
            self.closed.insert(id);
        }
        if !self.is_servable(id, lane) {
            return;
        }
        let at = self.open_at(lane, policy).max(lane.head_at);
        match lane.access(policy) {
            LaneAccess::Any => self.waiting.insert((at, id)),
            LaneAccess::Only(holder) => self.own_waiting.insert((holder, at, id)),
            LaneAccess::None => false,
        };
    }

    /// Whether every lane stands exactly where it belongs.
    pub(super) fn are_indexed(&self, policy: &Policy) -> bool {
        let mut wanted = 0;
        let placed = self.all.iter().filter(|(id, lane)| self.is_servable(**id, lane));
        let placed = placed.fold(true, |placed, (id, lane)| {
            let (turn, at) = (lane.last_grant, self.open_at(lane, policy).max(lane.head_at));
            let (due, waiting) = match lane.access(policy) {
                LaneAccess::Any => {
                    (self.due.contains(&(turn, *id)), self.waiting.contains(&(at, *id)))
                }
                LaneAccess::Only(holder) => (
                    self.own_due.contains(&(holder, turn, *id)),
                    self.own_waiting.contains(&(holder, at, *id)),
                ),
                LaneAccess::None => return placed,
            };
            wanted += 1;
            placed && due != waiting
        });
        let swept = self.all.iter().filter(|(_, lane)| lane.needs_sweep()).map(|(id, _)| id);
        let own = self.own_due.len() + self.own_waiting.len();
        placed
            && self.due.len() + self.waiting.len() + own == wanted
            && swept.eq(self.closed.iter())
    }

    /// The lane whose turn it is at `now` for a session, if any. `passed` is how far earlier calls
    /// of the same take have come among lanes where the session is full: it frees no slot between
    /// two of them, and a lane that gives a job goes to the end.
    pub(super) fn next_due(
        &mut self,
        session: SessionId,
        now: u64,
        policy: &Policy,
        passed: &mut (u64, LaneId),
    ) -> Option<LaneId> {
        while let Some((at, id)) = self.waiting.first().copied().filter(|(at, _)| *at <= now) {
            self.waiting.remove(&(at, id));
            self.due.insert((self.all[&id].last_grant, id));
        }
        while let Some((at, id)) = first_of(&self.own_waiting, session).filter(|(at, _)| *at <= now)
        {
            self.own_waiting.remove(&(session, at, id));
            self.own_due.insert((session, self.all[&id].last_grant, id));
        }
        let own = first_of(&self.own_due, session);
        let mut shared = None;
        for (turn, id) in self.due.range((Excluded(*passed), Unbounded)) {
            if !self.all[id].is_full_for(session, policy) {
                shared = Some((*turn, *id));
                break;
            }
            *passed = (*turn, *id);
        }
        own.into_iter().chain(shared).min().map(|(_, id)| id)
    }

    /// When the next lane that waits will be due for a session.
    pub(super) fn next_at(&self, session: SessionId, policy: &Policy) -> Option<u64> {
        let own = first_of(&self.own_waiting, session);
        let free = |(_, id): &&(u64, LaneId)| !self.all[id].is_full_for(session, policy);
        let shared = self.waiting.iter().find(free).copied();
        own.into_iter().chain(shared).min().map(|(at, _)| at)
    }

    /// A lane in quarantine with jobs that wait, and why it is closed.
    pub(super) fn first_closed(&self) -> Option<(LaneId, String)> {
        let id = self.closed.first()?;
        Some((*id, self.why_closed(*id)?))
    }

    /// Why a lane is closed, if it is.
    pub(super) fn why_closed(&self, id: LaneId) -> Option<String> {
        self.all.get(&id)?.closed.clone()
    }

    /// Opens every lane that is in quarantine.
    pub(super) fn reopen(&mut self) {
        for (id, lane) in self.all.iter_mut().filter(|(_, lane)| lane.closed.is_some()) {
            lane.closed = None;
            self.dirty.insert(*id);
        }
    }

    /// Jobs queued in isolation.
    pub(super) fn isolated(&self) -> u64 {
        self.all.get(&ISOLATION).map_or(0, |lane| lane.pending)
    }

    /// Lanes changed since the last call, to be stored.
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
        Self {
            name,
            polite,
            held: 0,
            pending: 0,
            next_at: 0,
            floor: 0,
            head_at: 0,
            head_level: 0,
            last_grant: 0,
            closed: None,
            holders: Vec::new(),
        }
    }
}

/// The first lane of a set that is for its holder alone.
fn first_of(set: &BTreeSet<(SessionId, u64, LaneId)>, session: SessionId) -> Option<(u64, LaneId)> {
    // Most sets are empty: no lane has a pause.
    let first = set.range((session, 0, LaneId(0))..).next().filter(|(own, ..)| *own == session);
    first.map(|(_, at, id)| (*at, *id))
}
