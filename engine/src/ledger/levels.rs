//! Levels: in a run that has them, a job starts once all jobs of smaller levels have ended. The level of
//! a job is the number of its group in the order of groups, then its depth. Either part is 0 if the run
//! does not use it.
//!
//! All links of one depth are known before the first page of the next depth is loaded, so each page is
//! reached by a shortest path, independent of timing. Queues are ordered by level first, because a job
//! that waits for its retry must come before jobs of later levels. A link may lead back to an earlier
//! group: its level then opens again, and jobs of later levels that are in flight finish.

use super::command::RunPlan;
use super::tables::Job;
use super::{Core, Ledger, Tables};

/// Bits of a queue position that hold the time at which the job is ready. The level is above them.
const READY_BITS: u32 = 40;
/// The latest time for which a job can wait: 34 years of ledger time.
pub(super) const READY_MAX: u64 = (1 << READY_BITS) - 1;
/// Bits of a level. With the time they fit a positive `i64`, the integer of SQLite.
const LEVEL_BITS: u32 = 22;

/// The position in a lane's queue as it is stored.
pub(super) fn place(level: u32, ready_at: u64) -> u64 {
    u64::from(level) << READY_BITS | ready_at.min(READY_MAX)
}

/// The level and the time of a queue position.
pub(super) fn parts(place: u64) -> (u32, u64) {
    ((place >> READY_BITS) as u32, place & READY_MAX)
}

impl RunPlan {
    /// Whether the run has levels.
    pub(super) fn has_levels(&self) -> bool {
        self.by_level || !self.sequence.is_empty()
    }

    /// The level of a job of that group and depth. Depths beyond the available bits count as the largest
    /// one.
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
    /// The highest level that may start, in a run with levels.
    pub(super) fn level(&self) -> Option<u32> {
        let run = self.run.as_ref().filter(|run| run.plan.has_levels())?;
        run.open.first_key_value().map(|(level, _)| *level)
    }

    /// The level of a job; 0 in a run without levels.
    pub(super) fn level_of(&self, job: &Job) -> u32 {
        match &self.run {
            Some(run) if run.plan.has_levels() => run.plan.level_of(&job.new.group, job.new.depth),
            _ => 0,
        }
    }

    /// The position of a job in its lane's queue.
    pub(super) fn place_of(&self, job: &Job) -> u64 {
        place(self.level_of(job), job.ready_at)
    }
}

impl<T: Tables> Ledger<T> {
    /// Counts a job in its level.
    pub(super) fn enter_level(&mut self, job: &Job) {
        let level = self.core.level_of(job);
        if let Some(run) = self.core.run.as_mut().filter(|run| run.plan.has_levels()) {
            *run.open.entry(level).or_default() += 1;
        }
        self.settle_level();
    }

    /// Counts the end of a job. The last one of a level opens the next level.
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

    #[test]
    fn queue_positions_sort_by_level_then_time_and_fit_an_i64() {
        assert!(place(0, READY_MAX) < place(1, 0));
        assert!(place(1, 5) < place(1, 6));
        assert_eq!(parts(place(7, 123)), (7, 123));
        assert_eq!(parts(place(7, u64::MAX)), (7, READY_MAX));
        assert!(i64::try_from(place((1 << LEVEL_BITS) - 1, u64::MAX)).is_ok());
    }

    fn plan(by_level: bool, groups: u32) -> RunPlan {
        RunPlan {
            by_level,
            sequence: (1..=groups).map(|number| (number.to_string(), number)).collect(),
            ..RunPlan::default()
        }
    }

    #[test]
    fn a_level_sorts_by_group_then_by_depth() {
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
