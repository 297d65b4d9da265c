//! Runs that go level by level: a job starts once all jobs of a smaller depth have ended.
//!
//! What is found on pages of one depth is then known before the first page of the next depth is
//! asked for, so a page is reached by a shortest way, whatever the timing. A queue is ordered by
//! depth first, for a job that waits for its retry must not hide behind deeper ones.

use super::tables::Job;
use super::{Core, Ledger, Tables};

/// Bits of a place in a queue that tell when the job is ready; the depth stands above them.
const READY_BITS: u32 = 40;
/// The latest time that a job can wait for: 34 years of ledger time.
pub(super) const READY_MAX: u64 = (1 << READY_BITS) - 1;
/// Deeper jobs count as that deep.
const DEPTH_MAX: u32 = (1 << 22) - 1;

/// A place in a lane's queue as it is stored.
pub(super) fn place(level: u32, ready_at: u64) -> u64 {
    u64::from(level) << READY_BITS | ready_at.min(READY_MAX)
}

/// The level and the time of a stored place.
pub(super) fn parts(place: u64) -> (u32, u64) {
    ((place >> READY_BITS) as u32, place & READY_MAX)
}

impl Core {
    /// The only depth that may start, in a run that goes level by level.
    pub(super) fn level(&self) -> Option<u32> {
        let run = self.run.as_ref().filter(|run| run.plan.by_level)?;
        run.open.first_key_value().map(|(depth, _)| *depth)
    }

    /// The level of a job; all are on one level where depth does not matter.
    pub(super) fn level_of(&self, job: &Job) -> u32 {
        let by_level = self.run.as_ref().is_some_and(|run| run.plan.by_level);
        if by_level { job.new.depth.min(DEPTH_MAX) } else { 0 }
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
        if let Some(run) = self.core.run.as_mut().filter(|run| run.plan.by_level) {
            *run.open.entry(level).or_default() += 1;
        }
        self.settle_level();
    }

    /// A job has ended; with the last of a level, the next one opens.
    pub(super) fn leave_level(&mut self, job: &Job) {
        let level = self.core.level_of(job);
        if let Some(run) = self.core.run.as_mut().filter(|run| run.plan.by_level)
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
    fn places_go_by_level_then_by_time_and_fit_a_signed_number() {
        assert!(place(0, READY_MAX) < place(1, 0));
        assert!(place(1, 5) < place(1, 6));
        assert_eq!(parts(place(7, 123)), (7, 123));
        assert_eq!(parts(place(7, u64::MAX)), (7, READY_MAX));
        assert!(i64::try_from(place(DEPTH_MAX, u64::MAX)).is_ok());
    }
}
