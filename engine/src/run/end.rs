//! The end of a run on one node, in four states:
//!
//! | state | what is done | a process that is killed now |
//! | --- | --- | --- |
//! | written | all files hold their rows | the next process writes what is missing |
//! | reported ([`Reported`]) | the report is printed and written, the exit code is chosen | the next process reports again |
//! | closed | the ledger knows that this node has written everything; with the last node the run is closed | the next process ends with the exit code of the mark (`exit_mark.rs`) |
//! | left | the session has ended | nothing is left to do |
//!
//! A run that was stopped or has failed on this node skips "closed": the next process continues it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::RunError;
use crate::failpoint;
use crate::ledger::{Command, Reply};
use crate::run::current::current_run;
use crate::run::exit_mark;
use crate::run::folder::OwnFolder;
use crate::run::report::Report;
use crate::run::session::NodeSession;
use crate::run::shutdown::Stop;
use crate::store::Store;
use crate::threads::pause::pause;

/// How long a node that has completed a closed run tries to report its end.
const END_REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// A node that waits for other nodes at the end reports it after this time.
const WAIT_REPORT_DELAY: Duration = Duration::from_secs(1);

/// A run whose files are written and whose report is made.
pub(crate) struct Reported {
    /// The report.
    pub report: Report,
    pub(super) run_number: u64,
    pub(super) session: NodeSession,
    /// Whether all work is over and this node has written all of it.
    pub(super) is_complete: bool,
    /// The claim on this node's folder, given up when the node has left.
    pub(super) folder: Option<OwnFolder>,
    /// Where a node among others leaves its exit mark.
    pub(super) exit_mark_dir: Option<PathBuf>,
}

impl Reported {
    /// Closes the run if it is complete, waits until every node has closed it, and leaves. The report is
    /// written before, so nothing is left undone afterwards. A signal ends the wait.
    pub(crate) async fn close(
        mut self,
        store: &Arc<dyn Store>,
        mut stop: watch::Receiver<Stop>,
        code: u8,
    ) -> Result<(), RunError> {
        failpoint::pass("run.close.before");
        stop.mark_unchanged();
        let mut signal = stop.clone();
        let left = async {
            if self.is_complete {
                if let Some(dir) = &self.exit_mark_dir {
                    exit_mark::write(dir, code);
                }
                let mut standing = store.standing();
                let mut session = self.session.clone();
                let was_closed = standing.borrow().closed;
                tokio::select! {
                    biased;
                    closed = close_everywhere(store, &mut session, self.run_number) => closed?,
                    // The run is known to be closed, even if no node answers any more.
                    _ = standing.wait_for(|now| now.closed), if !was_closed => {}
                    // A node that completes a closed run reports its end, if a node is left to hear it.
                    () = pause(END_REPORT_TIMEOUT), if was_closed => {}
                    // Everything is written here, and the ledger knows it.
                    Ok(()) = stop.changed() => {}
                }
            }
            self.session.leave(store).await
        };
        let left = tokio::select! {
            left = left => left,
            // The session of a node that does not leave expires.
            Ok(()) = signal.changed(), if !self.is_complete => Ok(()),
        };
        self.session.stop_renewal();
        drop(self.folder);
        left
    }
}

/// The step that follows the answer to a close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CloseStep {
    /// The run is closed, or another one has begun, which comes after that.
    Done,
    /// Wait until all other nodes have written everything.
    WaitForNodes,
    /// The session has ended: join again, then repeat.
    Repeat,
}

impl CloseStep {
    /// `is_current` tells whether the run is still the last one.
    fn after(reply: &Reply, is_closed: bool, is_current: bool) -> Self {
        match reply {
            _ if is_closed || !is_current => Self::Done,
            Reply::Ok => Self::WaitForNodes,
            _ => Self::Repeat,
        }
    }
}

/// Reports to the ledger that everything is written here, and waits until the run is closed everywhere.
async fn close_everywhere(
    store: &Arc<dyn Store>,
    session: &mut NodeSession,
    run_number: u64,
) -> Result<(), RunError> {
    let mut id = session.lease().await?.session;
    let mut standing = store.standing();
    if current_run(store).await?.number != run_number {
        return Ok(());
    }
    loop {
        let reply = store.submit(Command::Close { session: id }).await?;
        let is_current = current_run(store).await?.number == run_number;
        match CloseStep::after(&reply, standing.borrow().closed, is_current) {
            CloseStep::Done => return Ok(()),
            CloseStep::WaitForNodes => break,
            CloseStep::Repeat => id = session.replace(id).await?.session,
        }
    }
    if timeout(WAIT_REPORT_DELAY, standing.wait_for(|now| now.closed)).await.is_err() {
        report_missing_nodes(store).await?;
    }
    if standing.wait_for(|now| now.closed).await.is_err() {
        tracing::debug!("the store has ended, so no other node waits for this one");
    }
    Ok(())
}

/// Reports the nodes that a node waits for which has nothing left to do.
async fn report_missing_nodes(store: &Arc<dyn Store>) -> Result<(), RunError> {
    let run = current_run(store).await?;
    let missing = run.plan.seats.iter().filter(|seat| !run.written.contains(seat));
    let missing: Vec<String> = missing.map(|seat| seat.0.to_string()).collect();
    if !run.closed && !missing.is_empty() {
        tracing::warn!(
            "everything is written here; waiting for node {} to come back and write its files, up to {} s \
             (`cluster.end.wait`)",
            missing.join(", "),
            run.plan.policy.end_wait_ms / 1000
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_to_a_close_has_its_step() {
        for (reply, is_closed, is_current, step) in [
            (Reply::Ok, false, true, CloseStep::WaitForNodes),
            (Reply::Ok, true, true, CloseStep::Done),
            (Reply::Stale, false, true, CloseStep::Repeat),
            // Other nodes have closed it while this one had no session.
            (Reply::Stale, true, true, CloseStep::Done),
            // The next run has begun, and with it the numbers of this one are gone.
            (Reply::Stale, false, false, CloseStep::Done),
            (Reply::Ok, false, false, CloseStep::Done),
        ] {
            let is = CloseStep::after(&reply, is_closed, is_current);
            assert_eq!(is, step, "{reply:?}, closed: {is_closed}, current: {is_current}");
        }
    }
}
