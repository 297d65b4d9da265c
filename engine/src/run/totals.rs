//! The totals of one node in a run, for its report.

use crate::ledger::{Outcome, Tally};

/// The jobs and figures of one node in a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeTotals {
    /// Jobs that ended here, done or failed.
    pub jobs: u64,
    /// Their figures.
    pub tally: Tally,
}

impl NodeTotals {
    /// Counts a job that has ended here.
    pub(crate) fn count(&mut self, outcome: &Outcome) {
        self.jobs += u64::from(!matches!(outcome, Outcome::Retry { .. } | Outcome::Moved { .. }));
        match outcome {
            Outcome::Done(harvest) => {
                self.tally.add(&harvest.tally);
                for block in &harvest.blocks {
                    let rows = self.tally.rows.entry(block.data_def.clone()).or_default();
                    *rows += u64::from(block.rows);
                }
            }
            Outcome::Retry { tally, .. } => {
                self.tally.add(tally);
                self.tally.retries += 1;
            }
            Outcome::Failed { tally, .. } | Outcome::Moved { tally, .. } => self.tally.add(tally),
        }
    }
}
