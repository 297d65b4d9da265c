//! Barricades: one node does a piece of work, such as the set-up of a run, and all others wait for its
//! result. The ledger decides which node crosses.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::bootstrap::Node;
use crate::error::RunError;
use crate::failpoint;
use crate::ledger::{Command, Epoch, Reply, SessionId, Standing};
use crate::run::session::NodeSession;
use crate::store::{Answer, Question, Store};
use crate::threads::pause::{pause, wait_at_most};

/// A waiting node claims again after this time, even if it has not learned that the crossing ended.
const CLAIM_RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Pause before the next claim of a node that has to wait although no crossing is known here. Its numbers
/// may be old, or the ledger waits for the node that crossed to renew its session.
const CLAIM_PAUSE: Duration = Duration::from_millis(20);

/// A node waits this long for each node with a smaller number to cross first. A claim costs an agreement
/// of the nodes, and to learn of another's crossing costs nothing.
const HEAD_START_PER_SEAT: Duration = Duration::from_millis(10);

/// The barricades before a run, as one node crosses them.
pub(crate) struct Barricades<'n> {
    store: &'n Arc<dyn Store>,
    session: NodeSession,
    standing: watch::Receiver<Standing>,
    /// How long nodes with smaller numbers may cross first.
    head_start: Duration,
    /// The end of the last crossing, sent together with the next claim.
    unsent_release: Option<Command>,
}

impl<'n> Barricades<'n> {
    /// Those before a node that has a session.
    pub(crate) fn before(node: &'n Node, session: NodeSession) -> Self {
        let ahead = node.member.seats.iter().filter(|seat| **seat < node.member.seat).count();
        Self {
            store: &node.store,
            session,
            standing: node.store.standing(),
            head_start: HEAD_START_PER_SEAT * ahead as u32,
            unsent_release: None,
        }
    }

    /// Runs `work` on exactly one node and returns its result on every node. The commands that `work`
    /// returns are submitted in one batch with the end of the crossing. A node that loses its session
    /// starts again with its next one.
    pub(crate) async fn cross(
        &mut self,
        name: &str,
        mut work: impl AsyncFnMut(SessionId, Epoch) -> Result<Vec<Command>, RunError>,
    ) -> Result<(), RunError> {
        let mut session = self.session.lease().await?.session;
        if self.unsent_release.is_none() && self.known_result(session, name).await?.is_none() {
            let began = self.standing.wait_for(|now| now.crossings > 0);
            wait_at_most(self.head_start, began).await;
            self.crossing_ends().await;
        }
        loop {
            if let Some(result) = self.known_result(session, name).await? {
                return result.map_err(RunError::elsewhere);
            }
            match self.claim(session, name).await? {
                Reply::Cross(epoch) => match self.work(session, epoch, name, &mut work).await {
                    Err(RunError::Stale) => session = self.session.replace(session).await?.session,
                    worked => return worked,
                },
                Reply::Crossed(result) => return result.map_err(RunError::elsewhere),
                Reply::Wait if self.standing.borrow().crossings == 0 => {
                    pause(CLAIM_PAUSE).await;
                }
                Reply::Wait => self.crossing_ends().await,
                Reply::Stale => session = self.session.replace(session).await?.session,
                other => return Err(RunError::unexpected("claim", &other)),
            }
        }
    }

    /// Whether this node knows the result of a crossing.
    pub(crate) async fn is_crossed(&mut self, name: &str) -> Result<bool, RunError> {
        let session = self.session.lease().await?.session;
        Ok(self.known_result(session, name).await?.is_some())
    }

    /// Sends the end of the last crossing.
    pub(crate) async fn leave(mut self) -> Result<(), RunError> {
        match self.unsent_release.take() {
            Some(release) => Ok(self.store.submit(release).await.map(drop)?),
            None => Ok(()),
        }
    }

    async fn claim(&mut self, session: SessionId, name: &str) -> Result<Reply, RunError> {
        let claim = Command::Claim { session, name: name.to_owned() };
        let answers =
            self.store.submit_all(self.unsent_release.take().into_iter().chain([claim]).collect());
        let mut reply = Reply::Stale;
        for answer in answers {
            reply = answer.await?;
        }
        Ok(reply)
    }

    async fn work(
        &mut self,
        session: SessionId,
        epoch: Epoch,
        name: &str,
        work: &mut impl AsyncFnMut(SessionId, Epoch) -> Result<Vec<Command>, RunError>,
    ) -> Result<(), RunError> {
        let release = |result| Command::Release { session, name: name.to_owned(), epoch, result };
        let mut commands = match work(session, epoch).await {
            Ok(commands) => commands,
            Err(RunError::Stale) => return Err(RunError::Stale),
            Err(error) => {
                self.store.submit(release(Err(error.words()))).await?;
                return Err(error);
            }
        };
        if commands.is_empty() {
            self.unsent_release = Some(release(Ok(())));
            return Ok(());
        }
        // They are valid in this crossing only, as the release is: if one is stale, all of them are.
        commands.push(release(Ok(())));
        failpoint::pass("crossing.end.before");
        for answer in self.store.submit_all(commands) {
            match answer.await? {
                Reply::Ok => {}
                Reply::Stale => return Err(RunError::Stale),
                other => return Err(RunError::unexpected(name, &other)),
            }
        }
        failpoint::pass("crossing.end.after");
        Ok(())
    }

    /// The result of another node's crossing, if this node knows it. Reading it costs less than a claim.
    async fn known_result(
        &self,
        session: SessionId,
        name: &str,
    ) -> Result<Option<Result<(), String>>, RunError> {
        let question = Question::Crossed { session, name: name.to_owned() };
        match self.store.ask(question).await? {
            Answer::Crossed(result) => Ok(result),
            _ => Ok(None),
        }
    }

    /// Waits until this node knows of no crossing, or it is time to claim again.
    async fn crossing_ends(&mut self) {
        wait_at_most(CLAIM_RETRY_INTERVAL, self.standing.wait_for(|now| now.crossings == 0)).await;
    }
}
