//! Crossing barricades: one elected node works, the others wait for its result.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::bootstrap::Node;
use crate::error::RunError;
use crate::failpoint;
use crate::ledger::{Command, Epoch, Reply, SessionId, Standing};
use crate::run::session::Tenancy;
use crate::store::{Answer, Question, Store};
use crate::threads::pause::{pause, wait_at_most};

/// Pause of a waiting node between two looks when nothing wakes it before.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Pause of a node that is told to wait though nobody is crossing: it has not heard of all that the
/// ledger knows, or those who have crossed are to give a sign of life first.
const MOMENT: Duration = Duration::from_millis(20);

/// How long a node leaves the way to each one with a smaller number: to ask costs an agreement, to see
/// another cross costs nothing.
const COURTESY: Duration = Duration::from_millis(10);

/// The barricades on the way into a run, from where one node stands.
pub(crate) struct Barricades<'n> {
    store: &'n Arc<dyn Store>,
    tenancy: &'n mut Tenancy,
    standing: watch::Receiver<Standing>,
    /// Whether there can be no other node.
    alone: bool,
    /// How long the way is left to others.
    courtesy: Duration,
    /// That the last one is free: told along with what is asked next.
    untold: Option<Command>,
}

impl<'n> Barricades<'n> {
    /// Those before a node that has a session.
    pub(crate) fn before(node: &'n Node, tenancy: &'n mut Tenancy) -> Self {
        let ahead = node.place.seats.iter().filter(|seat| **seat < node.place.seat).count();
        Self {
            store: &node.store,
            tenancy,
            standing: node.store.standing(),
            alone: node.place.alone,
            courtesy: COURTESY * ahead as u32,
            untold: None,
        }
    }

    /// Runs `work` on exactly one node and gives every node its result. What it returns is submitted
    /// as its end, in one stroke. In solo the barricade opens at once. A node that loses its session on
    /// the way begins again with its next one.
    pub(crate) async fn cross(
        &mut self,
        name: &str,
        mut work: impl AsyncFnMut(SessionId, Epoch) -> Result<Vec<Command>, RunError>,
    ) -> Result<(), RunError> {
        let mut session = self.tenancy.lease().await?.session;
        if self.untold.is_none() && self.heard(session, name).await?.is_none() {
            let began = self.standing.wait_for(|now| now.crossings > 0);
            wait_at_most(self.courtesy, began).await;
            self.others_cross().await;
        }
        loop {
            if let Some(result) = self.heard(session, name).await? {
                return result.map_err(RunError::elsewhere);
            }
            match self.claim(session, name).await? {
                Reply::Cross(epoch) => match self.work(session, epoch, name, &mut work).await {
                    Err(RunError::Stale) => session = self.tenancy.replace(session).await?.session,
                    worked => return worked,
                },
                Reply::Crossed(result) => return result.map_err(RunError::elsewhere),
                Reply::Wait if self.standing.borrow().crossings == 0 => {
                    pause(MOMENT).await;
                }
                Reply::Wait => self.others_cross().await,
                Reply::Stale => session = self.tenancy.replace(session).await?.session,
                other => return Err(RunError::unexpected("claim", &other)),
            }
        }
    }

    /// Whether it is known here what came of a crossing.
    pub(crate) async fn is_crossed(&mut self, name: &str) -> Result<bool, RunError> {
        let session = self.tenancy.lease().await?.session;
        Ok(self.heard(session, name).await?.is_some())
    }

    /// Tells what is untold.
    pub(crate) async fn leave(mut self) -> Result<(), RunError> {
        match self.untold.take() {
            Some(release) => Ok(self.store.submit(release).await.map(drop)?),
            None => Ok(()),
        }
    }

    async fn claim(&mut self, session: SessionId, name: &str) -> Result<Reply, RunError> {
        let claim = Command::Claim { session, name: name.to_owned() };
        let answers =
            self.store.submit_all(self.untold.take().into_iter().chain([claim]).collect());
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
            self.untold = Some(release(Ok(())));
            return Ok(());
        }
        // They hold for this crossing alone, as the release does: if one is stale, all of them are.
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

    /// What came of another one's crossing, if it is known here: to read costs less than to claim.
    async fn heard(
        &self,
        session: SessionId,
        name: &str,
    ) -> Result<Option<Result<(), String>>, RunError> {
        if self.alone {
            return Ok(None);
        }
        let question = Question::Crossed { session, name: name.to_owned() };
        match self.store.ask(question).await? {
            Answer::Crossed(result) => Ok(result),
            _ => Ok(None),
        }
    }

    /// Waits until nobody is crossing, as far as this node has heard, or for as long as it has
    /// patience: either way the ledger is asked.
    async fn others_cross(&mut self) {
        wait_at_most(LOOK_AGAIN, self.standing.wait_for(|now| now.crossings == 0)).await;
    }
}
