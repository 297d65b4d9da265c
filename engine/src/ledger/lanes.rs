//! Lanes: one queue a host, with its pause and its slots, served in turn.
//!
//! A lane is *due* when it has a job that may start now, *waiting* when its next start lies in
//! the future, and in neither set when it is empty or full.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::command::{NewJob, Policy};
use super::tables::LaneId;

/// The lane of jobs that keep killing their workers; served last, one job at a time.
pub(super) const ISOLATION: LaneId = LaneId(0);

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
    /// When the first job of the queue may start.
    pub head_at: u64,
    /// Its level, in a run that goes level by level.
    pub head_level: u32,
    /// Number of the latest grant: lanes are served in turn by it.
    pub last_grant: u64,
}

impl Lane {
    fn slots(&self, policy: &Policy) -> u32 {
        let own = if self.polite { policy.slots.max(1) } else { u32::MAX };
        own.min(policy.lane_share_max.max(1))
    }
}

/// All lanes and which of them may be served.
#[derive(Debug, Clone, Default)]
pub(super) struct Lanes {
    all: BTreeMap<LaneId, Lane>,
    by_name: BTreeMap<String, LaneId>,
    due: BTreeSet<(u64, LaneId)>,
    waiting: BTreeSet<(u64, LaneId)>,
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
        gap_from: Option<u64>,
    ) -> Self {
        let mut lanes = Self { gap_from, ..Self::default() };
        for (id, lane) in stored {
            lanes.by_name.insert(lane.name.clone(), id);
            lanes.all.insert(id, lane);
        }
        lanes
    }

    /// Puts every lane into the set where it belongs, as after a restart or a change of policy.
    pub(super) fn arrange_all(&mut self, policy: &Policy) {
        self.due.clear();
        self.waiting.clear();
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
    pub(super) fn leave_gaps(&mut self, now: u64, policy: &Policy) {
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

    /// When a job that is ready at `ready_at` may start on a lane; `None` while the lane is full.
    pub(super) fn start_at(&self, id: LaneId, ready_at: u64, policy: &Policy) -> Option<u64> {
        let lane = self.all.get(&id).filter(|lane| lane.held < lane.slots(policy))?;
        Some(self.open_at(lane, policy).max(ready_at))
    }

    fn withdraw(&mut self, id: LaneId, policy: &Policy) {
        if let Some(lane) = self.all.get(&id) {
            let at = self.open_at(lane, policy).max(lane.head_at);
            self.due.remove(&(lane.last_grant, id));
            self.waiting.remove(&(at, id));
        }
    }

    /// Whether a lane may be served at all, its slots and pauses aside.
    fn is_servable(&self, id: LaneId, lane: &Lane) -> bool {
        id != ISOLATION && lane.pending > 0 && self.is_open(lane.head_level)
    }

    fn arrange(&mut self, id: LaneId, policy: &Policy) {
        let Some(lane) = self.all.get(&id).filter(|lane| self.is_servable(id, lane)) else {
            return;
        };
        if let Some(at) = self.start_at(id, lane.head_at, policy) {
            self.waiting.insert((at, id));
        }
    }

    /// Whether every lane stands exactly where it belongs.
    pub(super) fn in_order(&self, policy: &Policy) -> bool {
        let placed = self.all.iter().filter(|(id, lane)| {
            let at = self.start_at(**id, lane.head_at, policy);
            let wanted = self.is_servable(**id, lane) && at.is_some();
            let due = self.due.contains(&(lane.last_grant, **id));
            let waiting = at.is_some_and(|at| self.waiting.contains(&(at, **id)));
            wanted == (due ^ waiting) && !(due && waiting)
        });
        let wanted = self.due.len() + self.waiting.len();
        placed.count() == self.all.len() && wanted <= self.all.len()
    }

    /// The lane whose turn it is at `now`, if any.
    pub(super) fn next_due(&mut self, now: u64) -> Option<LaneId> {
        while let Some((at, id)) = self.waiting.first().copied().filter(|(at, _)| *at <= now) {
            self.waiting.remove(&(at, id));
            self.due.insert((self.all[&id].last_grant, id));
        }
        self.due.first().map(|(_, id)| *id)
    }

    /// When the next waiting lane will be due.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.waiting.first().map(|(at, _)| *at)
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
            head_at: 0,
            head_level: 0,
            last_grant: 0,
        }
    }
}
