//! Runs that go level by level: a job starts once all jobs of smaller levels have ended. A level is
//! the place of a job's group in the order of groups, then the job's depth, as far as either counts.
//!
//! What is found on pages of one depth is known before the first page of the next depth is asked for,
//! so a page is reached by a shortest way, whatever the timing. A queue is ordered by level first, for
//! a job that waits for its retry must not hide behind later ones. A link may lead back to a group that
//! comes earlier: its level opens again, and what is in hand of later ones ends.

use super::command::RunPlan;
use super::tables::Job;
use super::{Core, Ledger, Tables};

/// Bits of a place in a queue that tell when the job is ready; the level stands above them.
const READY_BITS: u32 = 40;
/// The latest time that a job can wait for: 34 years of ledger time.
pub(super) const READY_MAX: u64 = (1 << READY_BITS) - 1;
/// Bits of a level: a place has to fit a signed number.
const LEVEL_BITS: u32 = 22;

/// A place in a lane's queue as it is stored.
pub(super) fn place(level: u32, ready_at: u64) -> u64 {
    u64::from(level) << READY_BITS | ready_at.min(READY_MAX)
}

/// The level and the time of a stored place.
pub(super) fn parts(place: u64) -> (u32, u64) {
    ((place >> READY_BITS) as u32, place & READY_MAX)
}

impl RunPlan {
    /// Whether some jobs have to wait for others.
    pub(super) fn has_levels(&self) -> bool {
        self.by_level || !self.sequence.is_empty()
    }

    /// The level of a job of that group and depth. Where there is no room, deeper jobs count as deep
    /// as there is.
    fn level_of(&self, group: &str, depth: u32) -> u32 {
        // Numbers have no gaps, so none is larger than their count.
        let depth_bits =
            LEVEL_BITS - u32::BITS.saturating_sub((self.sequence.len() as u32).leading_zeros());
        let depth = if self.by_level { depth.min((1 << depth_bits) - 1) } else { 0 };
        let place = self.sequence.get(group).copied().unwrap_or(0);
        place.min(self.sequence.len() as u32) << depth_bits | depth
    }
}

impl Core {
    /// The only level that may start, in a run that has levels.
    pub(super) fn level(&self) -> Option<u32> {
        let run = self.run.as_ref().filter(|run| run.plan.has_levels())?;
        run.open.first_key_value().map(|(level, _)| *level)
    }

    /// The level of a job; all are on one level where none has to wait.
    pub(super) fn level_of(&self, job: &Job) -> u32 {
        match &self.run {
            Some(run) if run.plan.has_levels() => run.plan.level_of(&job.new.group, job.new.depth),
            _ => 0,
        }
    }

    /// Where a job stands in its lane's queue.
    pub(super) fn place_of(&self, job: &Job) -> u64 {
        place(self.level_of(job), job.ready_at)
    }
}

impl<T: Tables> Ledger<T> {
    /// A job begins to count for its level.
    pub(super) fn enter_level(&mut self, job: &Job) {
        let level = self.core.level_of(job);
        if let Some(run) = self.core.run.as_mut().filter(|run| run.plan.has_levels()) {
            *run.open.entry(level).or_default() += 1;
        }
        self.settle_level();
    }

    /// A job has ended; with the last of a level, the next one opens.
    pub(super) fn leave_level(&mut self, job: &Job) {
        let level = self.core.level_of(job);
        if let Some(run) = self.core.run.as_mut().filter(|run| run.plan.has_levels())
            && let Some(count) = run.open.get_mut(&level)
        {
            *count -= 1;
            if *count == 0 {
                run.open.remove(&level);
            }
        }
        self.settle_level();
    }

    fn settle_level(&mut self) {
        if self.lanes.open_level(self.core.level()) {
            let policy = self.policy();
            self.lanes.arrange_all(&policy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Policy;

    #[test]
    fn places_go_by_level_then_by_time_and_fit_a_signed_number() {
        assert!(place(0, READY_MAX) < place(1, 0));
        assert!(place(1, 5) < place(1, 6));
        assert_eq!(parts(place(7, 123)), (7, 123));
        assert_eq!(parts(place(7, u64::MAX)), (7, READY_MAX));
        assert!(i64::try_from(place((1 << LEVEL_BITS) - 1, u64::MAX)).is_ok());
    }

    fn plan(by_level: bool, groups: u32) -> RunPlan {
        RunPlan {
            identity: [0; 32],
            defs: [0; 32],
            config: [0; 32],
            date: String::new(),
            folder: String::new(),
            groups: Vec::new(),
            appenders: 0,
            seats: Vec::new(),
            by_level,
            sequence: (1..=groups).map(|number| (number.to_string(), number)).collect(),
            policy: Policy::default(),
        }
    }

    #[test]
    fn a_level_is_the_place_of_the_group_and_then_the_depth() {
        let (depth_alone, order_alone, both) = (plan(true, 0), plan(false, 3), plan(true, 3));
        assert_eq!(depth_alone.level_of("1", 7), 7);
        assert_eq!(order_alone.level_of("2", 7), order_alone.level_of("2", 0));
        assert!(order_alone.level_of("other", 7) < order_alone.level_of("1", 0));
        assert!(both.level_of("1", u32::MAX) < both.level_of("2", 0));
        assert!(both.level_of("2", 3) < both.level_of("2", 4));
        for groups in [0, 1, 2, 255, 256, 100_000] {
            let last = plan(true, groups).level_of(&groups.to_string(), u32::MAX);
            assert!(last < 1 << LEVEL_BITS, "{groups}");
        }
    }
}
