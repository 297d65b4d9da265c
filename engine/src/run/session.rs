//! A node's tenancy in the ledger: joins, gives signs of life, and counts its own time. A session
//! that may have expired is given up for good, whoever is right; then the node joins anew.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::bootstrap::{Node, Place};
use crate::error::RunError;
use crate::ledger::{Command, JoinRequest, Policy, Reply, SessionId};
use crate::store::{Answer, Question, Store, StoreError};

/// Pause before a fenced node asks again.
const FENCED_PAUSE: Duration = Duration::from_secs(1);
/// How often a fenced node says that it is.
const FENCED_REMINDER: Duration = Duration::from_mins(1);
/// A join that took longer than this is followed by a sign of life before the session is used.
const LONG: Duration = Duration::from_millis(500);
/// Patience with the last word to the others.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);

/// A session, and until when it is surely good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    /// Which.
    pub session: SessionId,
    /// Good until then, by this node's own clock; without an end for a node that is alone.
    until: Option<Instant>,
}

impl Lease {
    /// Whether work may still be started under it.
    pub(crate) fn is_good(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }
}

/// What the tenancy of a node is at the moment.
#[derive(Debug, Clone)]
enum Tenure {
    /// It has a session.
    Held(Lease),
    /// It has lost one and asks for another.
    Lost,
    /// It will not get another.
    Over(Ending),
}

#[derive(Debug, Clone)]
enum Ending {
    Store(StoreError),
    Replaced,
}

/// A node's tenancy; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Tenancy {
    tenure: watch::Receiver<Tenure>,
    doubt: Arc<Notify>,
}

/// The task behind a [`Tenancy`].
pub(crate) struct Tenant {
    store: Arc<dyn Store>,
    place: Place,
    joins: u64,
    /// Whether it has had a session: then its files are written to the end, whatever comes.
    has_been_in: bool,
    tenure: watch::Sender<Tenure>,
    doubt: Arc<Notify>,
}

impl Tenancy {
    /// Joins the ledger; the task renews the session until it is aborted.
    pub(crate) async fn enter(node: &Node) -> Result<(Self, JoinHandle<()>), RunError> {
        let (tenure, seen) = watch::channel(Tenure::Lost);
        let doubt = Arc::new(Notify::new());
        let mut tenant = Tenant {
            store: Arc::clone(&node.store),
            place: node.place.clone(),
            joins: 0,
            has_been_in: false,
            tenure,
            doubt: Arc::clone(&doubt),
        };
        let joined = tenant.join();
        let lease = if node.place.alone {
            joined.await
        } else {
            match timeout(node.place.patience, joined).await {
                Ok(lease) => lease,
                Err(_) => Err(Ending::Store(node.not_formed())),
            }
        };
        let lease = lease.map_err(Ending::into_error)?;
        tenant.has_been_in = true;
        tenant.tenure.send_replace(Tenure::Held(lease));
        let task = tokio::spawn(tenant.renew(lease));
        Ok((Self { tenure: seen, doubt }, task))
    }

    /// The session of now; waits for one while there is none.
    pub(crate) async fn lease(&mut self) -> Result<Lease, RunError> {
        loop {
            match self.tenure.borrow_and_update().clone() {
                Tenure::Held(lease) => return Ok(lease),
                Tenure::Lost => {}
                Tenure::Over(ending) => return Err(ending.into_error()),
            }
            if self.tenure.changed().await.is_err() {
                return Err(StoreError::Closed.into());
            }
        }
    }

    /// Waits until `session` is not the one of now.
    pub(crate) async fn lost(&mut self, session: SessionId) {
        let other =
            |tenure: &Tenure| !matches!(tenure, Tenure::Held(one) if one.session == session);
        // Nobody left to take it away.
        if self.tenure.wait_for(other).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether work may be started in `session`: it is the one of now, and has not run out.
    pub(crate) fn holds(&self, session: SessionId) -> bool {
        matches!(&*self.tenure.borrow(), Tenure::Held(lease)
            if lease.session == session && lease.is_good())
    }

    /// The ledger does not know `session` any more: have another one, and wait for it.
    pub(crate) async fn replace(&mut self, session: SessionId) -> Result<Lease, RunError> {
        self.doubt.notify_one();
        self.lost(session).await;
        self.lease().await
    }

    /// Leaves the ledger, if there is a session to be left and somebody to be told in time.
    pub(crate) async fn leave(&mut self, store: &Arc<dyn Store>) -> Result<(), RunError> {
        let leave = async {
            let session = self.lease().await?.session;
            Ok(store.submit(Command::Leave { session }).await.map(drop)?)
        };
        // Else the session will expire.
        timeout(LEAVE_PATIENCE, leave).await.unwrap_or(Ok(()))
    }
}

impl Ending {
    fn into_error(self) -> RunError {
        match self {
            Self::Store(error) => error.into(),
            Self::Replaced => StoreError::Excluded(
                "another process has taken this node's place in the cluster".to_owned(),
            )
            .into(),
        }
    }
}

impl Tenant {
    async fn join(&mut self) -> Result<Lease, Ending> {
        let (mut said, mut under_way) = (None::<Instant>, false);
        loop {
            self.joins += 1;
            let Place { seat, votes, alone, life, .. } = self.place;
            let nonce = life.wrapping_add(self.joins.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let arrival = JoinRequest { nonce, life, seat, votes, alone };
            let sent = Instant::now();
            match self.store.submit(Command::Join(arrival)).await.map_err(Ending::Store)? {
                Reply::Joined(session) => {
                    let lease = Lease { session, until: self.until(sent).await? };
                    match lease.until {
                        // What is started in a session that is almost over would have to be dropped.
                        Some(_) if sent.elapsed() > LONG => {
                            let patience = Instant::now() + self.ttl().await?;
                            if let Some(until) = self.renew_once(lease, patience).await? {
                                return Ok(Lease { session, until: Some(until) });
                            }
                        }
                        _ => return Ok(lease),
                    }
                }
                Reply::Fenced => {
                    if said.is_none_or(|at| at.elapsed() >= FENCED_REMINDER) {
                        tracing::warn!(
                            "node {} is fenced: it stays out until `spoonbill admit {}`",
                            seat.0,
                            seat.0
                        );
                        said = Some(Instant::now());
                    }
                    self.stay_out(&mut under_way).await?;
                }
                // Another process has asked for the place: it is alive, or it will be forgotten. Or the
                // run has ended, and nobody with a vote is there for the next one.
                Reply::Wait => sleep_until(Instant::now() + FENCED_PAUSE).await,
                Reply::Replaced => return Err(Ending::Replaced),
                other => {
                    let words = format!("the ledger answered a join with {other:?}");
                    return Err(Ending::Store(StoreError::Failed(words)));
                }
            }
        }
    }

    /// Pauses before the next question of a fenced node, unless the run it came for ends meanwhile.
    async fn stay_out(&self, under_way: &mut bool) -> Result<(), Ending> {
        let mut standing = self.store.standing();
        *under_way |= !self.has_been_in && !standing.borrow().closed;
        let ended = standing.wait_for(|now| *under_way && now.closed);
        match timeout(FENCED_PAUSE, ended).await {
            Ok(Ok(_)) => Err(Ending::Store(StoreError::NoQuorum(format!(
                "the run ended while this node was fenced, and its files are not complete; start it \
                 again after `spoonbill admit {}` to have them",
                self.place.seat.0
            )))),
            // A store that has ended tells why when it is asked.
            _ => Ok(()),
        }
    }

    /// How long a sign of life of `sent` is good: nine tenths of what the ledger grants.
    async fn until(&self, sent: Instant) -> Result<Option<Instant>, Ending> {
        if self.place.alone {
            return Ok(None);
        }
        Ok(Some(sent + self.ttl().await? / 10 * 9))
    }

    /// How long the ledger lets a session live without a sign of life.
    async fn ttl(&self) -> Result<Duration, Ending> {
        let ttl = match self.store.ask(Question::Run).await.map_err(Ending::Store)? {
            Answer::Run(Some(run)) => run.plan.policy.session_ttl_ms,
            _ => Policy::default().session_ttl_ms,
        };
        Ok(Duration::from_millis(ttl))
    }

    /// Renews the session for as long as it can, and joins anew when it cannot.
    async fn renew(mut self, mut lease: Lease) {
        let ending = loop {
            let Some(until) = lease.until else { return };
            match self.renew_once(lease, until).await {
                Ok(Some(longer)) => {
                    lease.until = Some(longer);
                    self.tenure.send_replace(Tenure::Held(lease));
                    let pause = Instant::now() + longer.duration_since(Instant::now()) / 5;
                    // Whoever doubts the session wants it looked at now.
                    drop(timeout_at(pause, self.doubt.notified()).await);
                }
                Ok(None) => {
                    tracing::warn!("the session of this node has ended; it joins anew");
                    self.tenure.send_replace(Tenure::Lost);
                    match self.join().await {
                        Ok(fresh) => {
                            lease = fresh;
                            self.tenure.send_replace(Tenure::Held(lease));
                        }
                        Err(ending) => break ending,
                    }
                }
                Err(ending) => break ending,
            }
        };
        self.tenure.send_replace(Tenure::Over(ending));
    }

    /// Until when the session is good now; none if it has ended, or may have.
    async fn renew_once(&self, lease: Lease, until: Instant) -> Result<Option<Instant>, Ending> {
        let sent = Instant::now();
        let renewed = async {
            let lives = self.store.renew(lease.session).await.map_err(Ending::Store)?;
            // A node without a vote asks others for how long, too.
            if lives { self.until(sent).await } else { Ok(None) }
        };
        timeout_at(until, renewed).await.unwrap_or(Ok(None))
    }
}
