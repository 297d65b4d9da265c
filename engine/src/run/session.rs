//! This node's session in the ledger: it joins, renews the session, and joins again when it was lost.
//!
//! The ledger ends a session that was not renewed within `cluster.session.ttl`. The node counts that time
//! on its own clock, from the moment it sent the renewal, and stops using the session after nine tenths
//! of it. So the node stops before the ledger gives its jobs to other nodes. A session that may have
//! ended is never used again, even if the ledger still has it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::bootstrap::{Membership, Node};
use crate::error::RunError;
use crate::ledger::{Command, JoinRequest, Policy, Reply, SessionId};
use crate::store::{Answer, Question, Store, StoreError};
use crate::threads::pause::{pause, wait_at_most};

/// Pause between two joins of a node that has to wait.
const JOIN_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How often a fenced node reports that it waits.
const FENCED_REPORT_INTERVAL: Duration = Duration::from_mins(1);
/// After a join that took longer, the session is renewed before its first use: much of its time has
/// passed already.
const QUICK_JOIN_MAX: Duration = Duration::from_millis(500);
/// How long a node that leaves tries to send it. Otherwise its session expires.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// A session, and until when this node may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    /// The session.
    pub session: SessionId,
    /// End of its use by this node's clock; `None` if sessions do not expire.
    until: Option<Instant>,
}

impl Lease {
    /// Whether work may still be started under it.
    pub(crate) fn is_good(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }
}

#[derive(Debug, Clone)]
enum SessionState {
    Held(Lease),
    /// It was lost, and the node joins again.
    Lost,
    /// The node gets no other one.
    Over(SessionEnd),
}

/// Why a node gets no session any more.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SessionEnd {
    Store(StoreError),
    /// Another process with this node's number has joined.
    Replaced,
}

/// A node's session, whichever the ledger has given it last; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct NodeSession {
    state: watch::Receiver<SessionState>,
    /// Asks for a renewal now.
    doubted: Arc<Notify>,
    renewal: AbortHandle,
}

/// The task that keeps a session.
struct SessionKeeper {
    store: Arc<dyn Store>,
    member: Membership,
    joins: u64,
    /// Whether it has had a session. Then it waits without limit for the next one, because its files have
    /// to be completed.
    has_joined: bool,
    state: watch::Sender<SessionState>,
    doubted: Arc<Notify>,
}

impl NodeSession {
    /// Joins the ledger and starts to renew the session.
    pub(crate) async fn open(node: &Node) -> Result<Self, RunError> {
        let (state, seen) = watch::channel(SessionState::Lost);
        let doubted = Arc::new(Notify::new());
        let mut keeper = SessionKeeper {
            store: Arc::clone(&node.store),
            member: node.member.clone(),
            joins: 0,
            has_joined: false,
            state,
            doubted: Arc::clone(&doubted),
        };
        let joined = match node.member.join_timeout {
            None => keeper.join().await,
            Some(limit) => timeout(limit, keeper.join())
                .await
                .unwrap_or_else(|_| Err(SessionEnd::Store(node.not_formed()))),
        };
        let lease = joined.map_err(SessionEnd::into_error)?;
        keeper.has_joined = true;
        keeper.state.send_replace(SessionState::Held(lease));
        let renewal = tokio::spawn(keeper.renew(lease)).abort_handle();
        Ok(Self { state: seen, doubted, renewal })
    }

    /// The current session; waits while there is none.
    pub(crate) async fn lease(&mut self) -> Result<Lease, RunError> {
        loop {
            match self.state.borrow_and_update().clone() {
                SessionState::Held(lease) => return Ok(lease),
                SessionState::Lost => {}
                SessionState::Over(end) => return Err(end.into_error()),
            }
            if self.state.changed().await.is_err() {
                return Err(StoreError::Closed.into());
            }
        }
    }

    /// Waits until `session` is not the current one.
    pub(crate) async fn lost(&mut self, session: SessionId) {
        let other = |state: &SessionState| !matches!(state, SessionState::Held(one) if one.session == session);
        // The renewal task has ended, so the session cannot change any more.
        if self.state.wait_for(other).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether work may be started in `session`: it is the current one, and its time is not over.
    pub(crate) fn holds(&self, session: SessionId) -> bool {
        matches!(&*self.state.borrow(), SessionState::Held(lease)
            if lease.session == session && lease.is_good())
    }

    /// The session that follows `session`, which the ledger does not know any more.
    pub(crate) async fn replace(&mut self, session: SessionId) -> Result<Lease, RunError> {
        self.doubted.notify_one();
        self.lost(session).await;
        self.lease().await
    }

    /// Ends the session in the ledger, if there is one and the ledger answers in time.
    pub(crate) async fn leave(&mut self, store: &Arc<dyn Store>) -> Result<(), RunError> {
        let leave = async {
            let session = self.lease().await?.session;
            Ok(store.submit(Command::Leave { session }).await.map(drop)?)
        };
        let left = timeout(LEAVE_TIMEOUT, leave).await.unwrap_or(Ok(()));
        self.stop_renewal();
        left
    }

    /// Renews no more; the session expires.
    pub(crate) fn stop_renewal(&self) {
        self.renewal.abort();
    }
}

impl SessionEnd {
    fn into_error(self) -> RunError {
        match self {
            Self::Store(error) => error.into(),
            Self::Replaced => StoreError::Excluded(
                "another process has joined the cluster with this node's number".to_owned(),
            )
            .into(),
        }
    }
}

/// The step that follows the answer to a join.
#[derive(Debug, Clone, PartialEq, Eq)]
enum JoinStep {
    /// Uses the session.
    Use(SessionId),
    /// Renews the session, and uses it if that succeeds.
    RenewFirst(SessionId),
    /// Waits to be admitted.
    StayOut,
    /// Joins again after a pause: another process still has the node's number, or the run has ended and
    /// no node with a vote has come for the next one.
    JoinLater,
    /// Joins no more.
    End(SessionEnd),
}

impl JoinStep {
    /// `took` is the time from the join to its answer; `expires` tells whether sessions do.
    fn after(reply: &Reply, took: Duration, expires: bool) -> Self {
        match reply {
            Reply::Joined(session) if expires && took > QUICK_JOIN_MAX => {
                Self::RenewFirst(*session)
            }
            Reply::Joined(session) => Self::Use(*session),
            Reply::Fenced => Self::StayOut,
            Reply::Wait => Self::JoinLater,
            Reply::Replaced => Self::End(SessionEnd::Replaced),
            other => {
                let words = format!("the ledger answered a join with {other:?}");
                Self::End(SessionEnd::Store(StoreError::Failed(words)))
            }
        }
    }
}

impl SessionKeeper {
    async fn join(&mut self) -> Result<Lease, SessionEnd> {
        let (mut reported, mut saw_run) = (None::<Instant>, false);
        loop {
            self.joins += 1;
            let sent = Instant::now();
            let reply = self.store.submit(Command::Join(self.arrival())).await;
            let reply = reply.map_err(SessionEnd::Store)?;
            match JoinStep::after(&reply, sent.elapsed(), !self.member.is_exclusive) {
                JoinStep::Use(session) => {
                    return Ok(Lease { session, until: self.usable_until(sent).await? });
                }
                JoinStep::RenewFirst(session) => {
                    let deadline = Instant::now() + self.ttl().await?;
                    if let Some(until) = self.renew_once(session, deadline).await? {
                        return Ok(Lease { session, until: Some(until) });
                    }
                }
                JoinStep::StayOut => {
                    if reported.is_none_or(|at| at.elapsed() >= FENCED_REPORT_INTERVAL) {
                        let seat = self.member.seat.0;
                        tracing::warn!(
                            "node {seat} is fenced: it stays out until an operator runs `spoonbill admit {seat}`"
                        );
                        reported = Some(Instant::now());
                    }
                    self.wait_for_admission(&mut saw_run).await?;
                }
                JoinStep::JoinLater => pause(JOIN_RETRY_INTERVAL).await,
                JoinStep::End(end) => return Err(end),
            }
        }
    }

    fn arrival(&self) -> JoinRequest {
        let Membership { seat, votes, is_exclusive, life, .. } = self.member;
        let nonce = life.wrapping_add(self.joins.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        JoinRequest { nonce, life, seat, votes, alone: is_exclusive }
    }

    /// Pauses a fenced node before its next join. Fails if the run it came for ends meanwhile.
    async fn wait_for_admission(&self, saw_run: &mut bool) -> Result<(), SessionEnd> {
        let mut standing = self.store.standing();
        *saw_run |= !self.has_joined && !standing.borrow().closed;
        let ended = standing.wait_for(|now| *saw_run && now.closed);
        match timeout(JOIN_RETRY_INTERVAL, ended).await {
            Ok(Ok(_)) => Err(SessionEnd::Store(StoreError::NoQuorum(format!(
                "the run ended while this node was fenced, and its files are not complete: run \
                 `spoonbill admit {}`, then start all nodes with `spoonbill run --complete`",
                self.member.seat.0
            )))),
            // If the store has ended, the next join fails with the reason.
            _ => Ok(()),
        }
    }

    /// Until when a session may be used that was renewed by a request of `sent`.
    async fn usable_until(&self, sent: Instant) -> Result<Option<Instant>, SessionEnd> {
        if self.member.is_exclusive {
            return Ok(None);
        }
        Ok(Some(sent + self.ttl().await? / 10 * 9))
    }

    /// How long the ledger keeps a session without a renewal.
    async fn ttl(&self) -> Result<Duration, SessionEnd> {
        let ttl = match self.store.ask(Question::Run).await.map_err(SessionEnd::Store)? {
            Answer::Run(Some(run)) => run.plan.policy.session_ttl_ms,
            _ => Policy::default().session_ttl_ms,
        };
        Ok(Duration::from_millis(ttl))
    }

    /// Renews the session five times within its time, and joins again when it was lost.
    async fn renew(mut self, mut lease: Lease) {
        let end = loop {
            let Some(until) = lease.until else { return };
            match self.renew_once(lease.session, until).await {
                Ok(Some(until)) => {
                    lease.until = Some(until);
                    self.state.send_replace(SessionState::Held(lease));
                    let interval = until.duration_since(Instant::now()) / 5;
                    wait_at_most(interval, self.doubted.notified()).await;
                }
                Ok(None) => {
                    tracing::warn!("this node has lost its session and joins again");
                    self.state.send_replace(SessionState::Lost);
                    match self.join().await {
                        Ok(next) => {
                            lease = next;
                            self.state.send_replace(SessionState::Held(lease));
                        }
                        Err(end) => break end,
                    }
                }
                Err(end) => break end,
            }
        };
        self.state.send_replace(SessionState::Over(end));
    }

    /// Until when the session may be used after a renewal; `None` if it has ended, or may have.
    async fn renew_once(
        &self,
        session: SessionId,
        deadline: Instant,
    ) -> Result<Option<Instant>, SessionEnd> {
        let sent = Instant::now();
        let renewed = async {
            let lives = self.store.renew(session).await.map_err(SessionEnd::Store)?;
            // A node without a vote asks other nodes for the time to live, so the deadline covers it.
            if lives { self.usable_until(sent).await } else { Ok(None) }
        };
        timeout_at(deadline, renewed).await.unwrap_or(Ok(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_to_a_join_has_its_step() {
        let session = SessionId(3);
        let (quick, slow) = (Duration::from_millis(500), Duration::from_millis(501));
        let odd = "the ledger answered a join with Ok".to_owned();
        for (reply, took, expires, step) in [
            (Reply::Joined(session), quick, true, JoinStep::Use(session)),
            (Reply::Joined(session), slow, true, JoinStep::RenewFirst(session)),
            (Reply::Joined(session), slow, false, JoinStep::Use(session)),
            (Reply::Fenced, quick, true, JoinStep::StayOut),
            (Reply::Wait, quick, true, JoinStep::JoinLater),
            (Reply::Replaced, quick, true, JoinStep::End(SessionEnd::Replaced)),
            (Reply::Ok, quick, true, JoinStep::End(SessionEnd::Store(StoreError::Failed(odd)))),
        ] {
            assert_eq!(JoinStep::after(&reply, took, expires), step, "{reply:?} after {took:?}");
        }
    }
}
