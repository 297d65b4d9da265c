//! Joining: a node gets a session, and finds out what is left to do in the last run.
//!
//! Usually it gathers with other nodes and works. But the last run may have ended without it. Then it
//! completes its files first ([`FirstStep::CompleteRun`]), or stays until other nodes have completed
//! theirs, which needs more than half of the nodes ([`FirstStep::AwaitCompletion`]).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::bootstrap::Node;
use crate::error::{RunError, Signal};
use crate::ledger::{Command, OpenMode, Reply, Run, Seat, completion};
use crate::run::current::{current_run, last_run};
use crate::run::exit_mark;
use crate::run::request::RunRequest;
use crate::run::session::NodeSession;
use crate::run::shutdown::Stop;
use crate::store::{Answer, Question, Store, StoreError};
use crate::threads::pause::{pause, wait_at_most};

/// A node that still has no session reports after this time what it waits for.
const WAIT_REPORT_DELAY: Duration = Duration::from_secs(3);
/// A node whose run had ended everywhere looks this often whether other nodes are connected.
const PEER_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Pause between two looks at a run whose files are being completed.
const COMPLETION_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long a node whose set-up failed stays connected, so that other nodes learn why.
const FAILURE_NOTICE_TIME: Duration = Duration::from_secs(5);

/// A node that has a session.
#[derive(Debug)]
pub(crate) struct Joined {
    /// The session.
    pub session: NodeSession,
    /// The first step of this node.
    pub step: FirstStep,
    /// The last run this node knew of before it joined, if it had not written all of its files.
    left_behind: Option<Run>,
}

/// The first step of a node that has a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstStep {
    /// The last run has ended, and its files or its end are missing here: write and report them.
    CompleteRun,
    /// The files of the last run are complete here. Stay until all other nodes have theirs.
    AwaitCompletion,
    /// There is nothing to complete, and nothing else was asked for.
    NothingToComplete,
    /// The last run has ended on this node too, with this exit code.
    HasEnded(u8),
    /// Wait until enough nodes are connected, then open a run or continue the unfinished one.
    Gather {
        /// Whether a run is unfinished: then this node and one other are enough.
        is_under_way: bool,
        /// Whether this node gives up when the nodes leave that have ended the last run.
        leaves_with_voters: bool,
    },
}

/// The facts that decide the first step.
#[derive(Debug, Clone, Copy)]
struct Known {
    mode: OpenMode,
    /// Whether it has a vote.
    votes: bool,
    last: LastRun,
    /// The exit code of the process before this one, if that was killed when its run had ended.
    exit_mark: Option<u8>,
}

/// The last run, seen from one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastRun {
    /// There was none.
    Never,
    Unfinished,
    /// It has ended, and this node has not reported its end.
    MissedHere,
    /// It has ended, and another node has not reported its end.
    MissedElsewhere,
    /// It has ended everywhere.
    Ended,
}

impl FirstStep {
    fn of(known: Known) -> Self {
        let Known { mode, votes, last, exit_mark } = known;
        let completes = matches!(mode, OpenMode::Continue | OpenMode::Complete);
        match (last, exit_mark) {
            (LastRun::MissedHere, _) if completes => Self::CompleteRun,
            (LastRun::Ended | LastRun::MissedElsewhere, Some(code)) => Self::HasEnded(code),
            (LastRun::MissedElsewhere, _) if mode == OpenMode::Complete && votes => {
                Self::AwaitCompletion
            }
            (LastRun::Unfinished, _) => {
                Self::Gather { is_under_way: true, leaves_with_voters: false }
            }
            _ if mode == OpenMode::Complete => Self::NothingToComplete,
            _ => Self::Gather {
                is_under_way: false,
                leaves_with_voters: !votes && last != LastRun::Never,
            },
        }
    }

    /// The step of a node that was to complete its files when another run began.
    pub(crate) fn after_another_run(mode: OpenMode) -> Self {
        match mode {
            OpenMode::Complete => Self::NothingToComplete,
            _ => Self::Gather { is_under_way: false, leaves_with_voters: false },
        }
    }
}

impl LastRun {
    /// `came_for` is the run that was unfinished when a node without a vote came.
    fn of(run: Option<&Run>, seat: Seat, came_for: Option<u64>) -> Self {
        let Some(run) = run else { return Self::Never };
        if !run.closed {
            Self::Unfinished
        } else if run.lacks_end_report(seat) || came_for == Some(run.number) {
            Self::MissedHere
        } else if run.plan.seats.iter().any(|seat| run.lacks_end_report(*seat)) {
            Self::MissedElsewhere
        } else {
            Self::Ended
        }
    }
}

/// Joins the ledger and decides what to do first.
pub(crate) async fn join(
    node: &Node,
    request: &RunRequest,
    stop: &watch::Receiver<Stop>,
) -> Result<Joined, RunError> {
    let exit_mark = node.member.exit_mark_dir.as_deref().and_then(exit_mark::code);
    let left_behind = left_behind(node, request, exit_mark);
    let opening = async { tokio::join!(NodeSession::open(node), unfinished_run(node)) };
    let (session, came_for) = tokio::select! {
        opened = opening => opened,
        signal = asked_to_stop(node, stop.clone()) => return Err(RunError::Stopped(signal)),
        code = peers_are_gone(node, exit_mark) => return Err(StoreError::Ended(code).into()),
        code = run_has_ended(node) => return Err(StoreError::Ended(code).into()),
        never = report_waiting(node, left_behind.as_ref(), exit_mark) => match never {},
    };
    let session = session?;
    let last = last_run(&node.store).await?;
    let known = Known {
        mode: request.mode,
        votes: node.member.votes,
        last: LastRun::of(last.as_ref(), node.member.seat, came_for),
        exit_mark,
    };
    let step = FirstStep::of(known);
    tracing::debug!(?known, ?step, "joined");
    Ok(Joined { session, step, left_behind })
}

/// Waits for a signal, if this node may have to wait for other nodes. Otherwise it works soon, and the
/// monitor sees the signal.
pub(crate) async fn asked_to_stop(node: &Node, mut stop: watch::Receiver<Stop>) -> Signal {
    if node.member.join_timeout.is_some()
        && let Ok(asked) = stop.wait_for(|stop| *stop != Stop::No).await
        && let Some(signal) = asked.signal()
    {
        return signal;
    }
    std::future::pending().await
}

/// The last run that this node knew when it started, if it writes files and has not written all of them.
fn left_behind(node: &Node, request: &RunRequest, exit_mark: Option<u8>) -> Option<Run> {
    let member = &node.member;
    if !member.votes
        || !member.has_peers()
        || request.mode == OpenMode::Fresh
        || exit_mark.is_some()
    {
        return None;
    }
    node.run_at_start().filter(|run| !run.written.contains(&member.seat))
}

/// The unfinished run that a node without a vote comes to. It may end before the node has a session.
async fn unfinished_run(node: &Node) -> Option<u64> {
    let limit = node.member.join_timeout.filter(|_| !node.member.votes)?;
    match timeout(limit, node.store.ask(Question::Run)).await {
        Ok(Ok(Answer::Run(Some(run)))) if !run.closed => Some(run.number),
        _ => None,
    }
}

/// Waits until the nodes have left that have ended the run which a node without a vote comes to.
async fn run_has_ended(node: &Node) -> u8 {
    let last = if node.member.votes { None } else { node.store.ask(Question::Run).await.ok() };
    match last {
        Some(Answer::Run(Some(run))) if run.closed => peers_are_gone(node, Some(0)).await,
        _ => std::future::pending().await,
    }
}

/// Returns the exit code of a run that had ended everywhere, once no other node is connected. A node
/// that is connected may need this one.
async fn peers_are_gone(node: &Node, exit_mark: Option<u8>) -> u8 {
    let Some(code) = exit_mark else { return std::future::pending().await };
    loop {
        pause(PEER_CHECK_INTERVAL).await;
        if !node.hears_others() {
            return code;
        }
    }
}

/// Reports once what a node needs that waits for other nodes, and never ends.
async fn report_waiting(
    node: &Node,
    left_behind: Option<&Run>,
    exit_mark: Option<u8>,
) -> std::convert::Infallible {
    if let (Some(limit), None) = (node.member.join_timeout, exit_mark) {
        pause(WAIT_REPORT_DELAY.min(limit / 2)).await;
        tracing::warn!(
            "waiting up to {} s for other nodes, {} of {} are needed: {}",
            limit.as_secs(),
            node.member.quorum,
            node.member.seats.len(),
            node.absent()
        );
        if let Some(run) = left_behind {
            tracing::warn!(
                "the run in `{}` is not finished on this node: start the other nodes with `spoonbill run` \
                 to continue it; if they have finished it, start all nodes with `spoonbill run \
                 --complete`, which completes the files of this node and begins no other run",
                run.plan.folder
            );
        }
    }
    std::future::pending().await
}

impl Joined {
    /// Keeps other nodes from opening a run while this one completes its files of the last run. False
    /// if another run has begun.
    pub(crate) async fn holds_last_run(&mut self, node: &Node) -> Result<bool, RunError> {
        if !node.member.votes || !node.member.has_peers() {
            return Ok(true);
        }
        let last = current_run(&node.store).await?;
        let name = completion(node.member.seat);
        let mut session = self.session.lease().await?.session;
        loop {
            let claim = Command::Claim { session, name: name.clone() };
            match node.store.submit(claim).await? {
                Reply::Cross(_) => break,
                Reply::Stale => session = self.session.replace(session).await?.session,
                // The session of an earlier process holds it until that session expires.
                Reply::Wait => pause(COMPLETION_POLL_INTERVAL).await,
                other => return Err(RunError::unexpected("claim", &other)),
            }
        }
        Ok(last.closed && current_run(&node.store).await?.number == last.number)
    }

    /// Stays until all nodes have completed their files of the last run, or another run has begun.
    pub(crate) async fn await_completion(&self, node: &Node) -> Result<(), RunError> {
        let (store, began) = (&node.store, Instant::now());
        let mut standing = store.standing();
        let number = current_run(store).await?.number;
        let limit = node.member.join_timeout.unwrap_or_default();
        let mut has_reported = false;
        loop {
            let run = current_run(store).await?;
            let missing = Missing::of(&run, number);
            let is_completing = standing.borrow_and_update().crossings > 0;
            match Completion::of(missing.0.is_empty(), is_completing, began.elapsed(), limit) {
                Completion::Done => return Ok(()),
                Completion::Wait => {}
                Completion::GiveUp => {
                    return Err(StoreError::NoQuorum(format!(
                        "{missing} did not come within {} s, and its files of the last run are not \
                         complete: start it with `spoonbill run --complete`, too",
                        limit.as_secs()
                    ))
                    .into());
                }
            }
            if began.elapsed() > WAIT_REPORT_DELAY && !std::mem::replace(&mut has_reported, true) {
                tracing::warn!("waiting for {missing} to complete its files of the last run");
            }
            wait_at_most(COMPLETION_POLL_INTERVAL, standing.changed()).await;
        }
    }

    /// Reports if the last run ended without this node and another has begun: then its files of that run
    /// stay incomplete here.
    pub(crate) async fn report_missed_run(&self, store: &Arc<dyn Store>) -> Result<(), RunError> {
        if let Some(left) = &self.left_behind
            && current_run(store).await?.number != left.number
        {
            tracing::warn!(
                "the run in `{}` ended without this node, and another has begun since: the files of \
                 that run are not complete here, the other nodes have them",
                left.plan.folder
            );
        }
        Ok(())
    }

    /// Leaves after a failure. If it concerns all nodes, this one stays until they have learned of it.
    pub(crate) async fn withdraw(&mut self, node: &Node, error: &RunError) {
        let mut standing = node.store.standing();
        let concerns_all = !matches!(
            error,
            RunError::Store(_) | RunError::Stopped(_) | RunError::NothingToComplete
        );
        if concerns_all {
            // Nodes on their way need enough others to learn of it. If one leaves, all have come.
            let (seats, mut most) = (node.member.seats.len() as u32, node.member.quorum);
            let have_come = standing.wait_for(|now| {
                most = most.max(now.voters);
                now.voters >= seats || now.voters < most
            });
            wait_at_most(FAILURE_NOTICE_TIME / 2, have_come).await;
        }
        if let Err(error) = self.session.leave(&node.store).await {
            tracing::debug!(%error, "the session will expire");
        }
        if concerns_all {
            // Other nodes may need this node's vote to leave.
            let have_left = standing.wait_for(|now| now.voters + now.workers == 0);
            wait_at_most(FAILURE_NOTICE_TIME, have_left).await;
        }
    }
}

/// Nodes whose files of a run are not complete, for messages.
struct Missing(Vec<Seat>);

impl Missing {
    /// Those of the run `number`; none if another run has begun.
    fn of(run: &Run, number: u64) -> Self {
        let seats = run.plan.seats.iter().copied();
        Self(seats.filter(|seat| run.number == number && run.lacks_end_report(*seat)).collect())
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seats: Vec<String> = self.0.iter().map(|seat| seat.0.to_string()).collect();
        write!(out, "node {}", seats.join(", "))
    }
}

/// How it stands with nodes that complete their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Completion {
    Done,
    Wait,
    GiveUp,
}

impl Completion {
    fn of(is_complete: bool, is_completing: bool, waited: Duration, limit: Duration) -> Self {
        if is_complete {
            Self::Done
        } else if is_completing || waited < limit {
            Self::Wait
        } else {
            Self::GiveUp
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_follows_the_table() {
        use FirstStep::{AwaitCompletion, CompleteRun, HasEnded, NothingToComplete};
        use LastRun::{Ended, MissedElsewhere, MissedHere, Never, Unfinished};
        use OpenMode::{Complete, Continue, Fresh, Retry};
        let gather = |is_under_way, leaves_with_voters| FirstStep::Gather {
            is_under_way,
            leaves_with_voters,
        };
        for (mode, votes, last, exit_mark, step) in [
            // A node with a vote.
            (Continue, true, Never, None, gather(false, false)),
            (Continue, true, Unfinished, None, gather(true, false)),
            (Continue, true, MissedHere, None, CompleteRun),
            (Continue, true, MissedElsewhere, None, gather(false, false)),
            (Continue, true, Ended, None, gather(false, false)),
            (Fresh, true, Unfinished, None, gather(true, false)),
            (Fresh, true, MissedHere, None, gather(false, false)),
            (Retry, true, MissedHere, None, gather(false, false)),
            (Retry, true, Ended, None, gather(false, false)),
            // `--complete` begins no other run.
            (Complete, true, Never, None, NothingToComplete),
            (Complete, true, Unfinished, None, gather(true, false)),
            (Complete, true, MissedHere, None, CompleteRun),
            (Complete, true, MissedElsewhere, None, AwaitCompletion),
            (Complete, true, Ended, None, NothingToComplete),
            // A process that was killed when its run had ended.
            (Continue, true, Ended, Some(4), HasEnded(4)),
            (Continue, true, MissedElsewhere, Some(4), HasEnded(4)),
            (Continue, true, MissedHere, Some(4), CompleteRun),
            (Continue, true, Unfinished, Some(4), gather(true, false)),
            // A node without a vote.
            (Continue, false, Never, None, gather(false, false)),
            (Continue, false, Unfinished, None, gather(true, false)),
            (Continue, false, MissedHere, None, CompleteRun),
            (Continue, false, Ended, None, gather(false, true)),
            (Complete, false, MissedElsewhere, None, NothingToComplete),
        ] {
            let known = Known { mode, votes, last, exit_mark };
            assert_eq!(FirstStep::of(known), step, "{known:?}");
        }
    }

    #[test]
    fn a_node_that_is_completing_its_files_is_waited_for_without_a_limit() {
        let (soon, limit) = (Duration::from_secs(9), Duration::from_secs(10));
        for (is_complete, is_completing, waited, step) in [
            (true, false, limit, Completion::Done),
            (false, false, soon, Completion::Wait),
            (false, false, limit, Completion::GiveUp),
            (false, true, limit, Completion::Wait),
        ] {
            assert_eq!(Completion::of(is_complete, is_completing, waited, limit), step);
        }
    }
}
