//! The ledger of several nodes: replicated by raft, so that any of them may die. Whoever uses it
//! sees a [`Store`] like any other.

mod client;
mod damaged;
mod election;
mod identity;
mod leader;
mod messages;
mod node;
mod operator;
mod peers;
mod permissions;
mod raft_log;
mod raft_network;
mod replica;
mod server;
mod start;
mod status;
mod stop;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use shaku::Component;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::config::Placement;
use crate::ledger::{Command, Reply, Seat, SessionId, Standing};
use crate::store::{Answer, LogCheck, Question, Store, StoreError};
use crate::wire;
use client::Submission;
use messages::{BatchItem, PeerRequest, PeerResponse, encode};
use node::Hub;
use peers::Peers;
use replica::chunks;
use replica::thread::ReplicaRequest;

pub(crate) use operator::{
    NodeAddress, OperatorTarget, SoloControl, serve as serve_control, withdraw as withdraw_control,
};
pub(crate) use raft_log::is_there as has_log;
pub(crate) use replica::read_only::{ReadOnlyReplica, ReadOnlyStore, ReadOnlyStoreParameters};
pub(crate) use status::{ClusterStatus, NodeState};
pub(crate) use stop::ClusterThread;

/// How `fsck` checks the log of a node.
pub(crate) const LOG_CHECK: LogCheck =
    LogCheck { exists: has_log, examine: raft_log::examine, replay: replica::apply::look };

/// Bytes of a command that travels whole.
const WHOLE_MAX: usize = 192 << 10;

/// Errands that may wait to be carried, those that were handed over together counted as one.
const ERRANDS_MAX: usize = 1024;
/// How often a thread that waits looks whether this node has failed.
const LOOK: Duration = Duration::from_millis(500);

/// An answer on its way.
type Answered = BoxFuture<'static, Result<Reply, StoreError>>;

/// How a node takes part in a cluster.
#[derive(Clone)]
pub(crate) struct ClusterOptions {
    /// Data directory; made when it is not there.
    pub dir: PathBuf,
    /// This node's place.
    pub seat: Seat,
    /// Whether it keeps the ledger and votes.
    pub votes: bool,
    /// Where it listens; a node without a vote need not.
    pub listen: String,
    /// Addresses of the seats with a vote, the same on all nodes.
    pub peers: Peers,
    /// The name that all nodes of a cluster have in common.
    pub name: String,
    /// What they prove to each other.
    pub secret: Option<Vec<u8>>,
    /// How long to wait for enough nodes.
    pub quorum_timeout: Duration,
    /// How long a node goes on trying when too few are left.
    pub loss_exit: Duration,
    /// How long the end of a run waits for nodes that are away.
    pub end_wait: Duration,
    /// Bytes of the log after which a copy of the ledger replaces it.
    pub snapshot_bytes: u64,
    /// Memory for the set of known keys, in bytes.
    pub seen_memory: u64,
    /// NodeDescription gets jobs first.
    pub placement: Placement,
    /// Time between two beats of the leader.
    pub beat: Duration,
}

impl ClusterOptions {
    fn credentials(&self) -> wire::Credentials {
        wire::Credentials::new(self.secret.as_deref(), self.name.as_bytes())
    }

    /// How many seats have to agree.
    fn majority(&self) -> usize {
        self.peers.len() / 2 + 1
    }
}

impl fmt::Debug for ClusterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterOptions(node {})", self.seat.0)
    }
}

/// A node's way to the ledger; cheap to clone.
#[derive(Clone)]
pub(crate) struct ClusterHandle {
    hub: Arc<Hub>,
    errands: mpsc::Sender<Vec<Submission>>,
    standing: watch::Receiver<Standing>,
    runtime: tokio::runtime::Handle,
    /// Places for commands on their way in parts.
    parcels: Arc<Semaphore>,
}

impl fmt::Debug for ClusterHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterHandle")
    }
}

/// The component that `ClusterModule` binds to [`Store`].
#[derive(Debug, Component)]
#[shaku(interface = Store)]
pub(crate) struct ClusterStore {
    pub(crate) handle: ClusterHandle,
}

impl ClusterHandle {
    /// Commands are on their way, in this order and together, before anybody awaits their answers.
    fn submit_all(&self, commands: Vec<Command>) -> Vec<Answered> {
        let mut errands = Vec::with_capacity(commands.len());
        let answers = commands.into_iter().map(|command| self.prepare(command, &mut errands));
        let answers = answers.collect();
        self.hand_over(errands);
        answers
    }

    fn prepare(&self, command: Command, errands: &mut Vec<Submission>) -> Answered {
        let item = match command {
            Command::Ack { appender, position } => {
                let handle = self.clone();
                return async move { handle.ack(appender, position).await }.boxed();
            }
            Command::Take { session, number, limit, ahead } => {
                BatchItem::Take { session, number, limit, ahead }
            }
            Command::Close { session } => BatchItem::SessionEnd { session, leaves: false },
            Command::Leave { session } => BatchItem::SessionEnd { session, leaves: true },
            command => {
                let (bytes, by) = (Bytes::from(encode(&command)), command.session());
                if bytes.len() > WHOLE_MAX {
                    let handle = self.clone();
                    return async move { handle.send_in_parts(bytes, by).await }.boxed();
                }
                BatchItem::Command(bytes)
            }
        };
        let (errand, answer) = self.errand(item);
        errands.push(errand);
        answer
    }

    fn errand(&self, item: BatchItem) -> (Submission, Answered) {
        let (respond, answer) = oneshot::channel();
        let handle = self.clone();
        let answer = async move { answer.await.unwrap_or_else(|_| Err(handle.closed())) };
        (Submission { item, respond }, answer.boxed())
    }

    /// A courier that is gone drops them, and whoever waits for an answer is told. With too many
    /// before them they wait outside: no order is lost that anything but speed rests on.
    fn hand_over(&self, errands: Vec<Submission>) {
        if errands.is_empty() {
            return;
        }
        if let Err(TrySendError::Full(errands)) = self.errands.try_send(errands) {
            let courier = self.errands.clone();
            self.runtime.spawn(async move { drop(courier.send(errands).await) });
        }
    }

    async fn send(&self, item: BatchItem) -> Result<Reply, StoreError> {
        let (errand, answer) = self.errand(item);
        self.hand_over(vec![errand]);
        answer.await
    }

    fn submit(&self, command: Command) -> Answered {
        let mut errands = Vec::with_capacity(1);
        let answer = self.prepare(command, &mut errands);
        self.hand_over(errands);
        answer
    }

    async fn send_in_parts(
        &self,
        bytes: Bytes,
        by: Option<SessionId>,
    ) -> Result<Reply, StoreError> {
        let place = self.parcels.acquire().await.map_err(|_| self.closed())?;
        let reply = chunks::send_in_parts(bytes, by, |item| self.send(item)).await;
        drop(place);
        reply
    }

    fn closed(&self) -> StoreError {
        self.hub.failure().unwrap_or(StoreError::Closed)
    }

    /// How far this node's own files are is nobody else's affair.
    async fn ack(
        &self,
        appender: u32,
        position: crate::ledger::Position,
    ) -> Result<Reply, StoreError> {
        let Some(voter) = &self.hub.voter else { return Ok(Reply::Stale) };
        let (tell, told) = oneshot::channel();
        let respond = Box::new(move |reply| drop(tell.send(reply)));
        drop(voter.machine.requests.send(ReplicaRequest::Ack { appender, position, respond }));
        told.await.unwrap_or_else(|_| Err(self.closed()))
    }

    async fn ask(self, question: Question) -> Result<Answer, StoreError> {
        let index = self.hub.index.load(Ordering::Acquire);
        let Some(voter) = &self.hub.voter else {
            let call = PeerRequest::Ask { question, index };
            return match client::ask_anyone(&self.hub, &call).await? {
                PeerResponse::Answer(answer) => Ok(answer),
                other => Err(StoreError::Failed(format!("a question was answered with {other:?}"))),
            };
        };
        let (tell, told) = oneshot::channel();
        let respond = Box::new(move |answer| drop(tell.send(answer)));
        drop(voter.machine.requests.send(ReplicaRequest::Ask { question, index, respond }));
        let mut fatal = self.hub.fatal.subscribe();
        tokio::select! {
            answer = told => answer.unwrap_or_else(|_| Err(self.closed())),
            _ = fatal.wait_for(Option::is_some) => Err(self.closed()),
        }
    }

    /// Gives a sign of life; tries until it is agreed on.
    async fn renew(self, session: SessionId) -> Result<bool, StoreError> {
        loop {
            if let Some(error) = self.hub.failure() {
                return Err(error);
            }
            if let Some(lives) = client::renew(&self.hub, session).await {
                return Ok(lives);
            }
            let pause = node::random_between(Duration::from_millis(30), Duration::from_millis(120));
            tokio::time::sleep_until(tokio::time::Instant::now() + pause).await;
        }
    }

    /// Which other nodes with a vote do not answer, in words.
    pub(crate) fn absent(&self) -> String {
        let silent = self.hub.others().filter(|(_, link)| link.peer().borrow().is_none());
        identity::absent(&self.hub, silent.map(|(seat, _)| seat))
    }

    /// Whether another node with a vote is there.
    pub(crate) fn hears_others(&self) -> bool {
        self.hub.others().any(|(_, link)| link.peer().borrow().is_some())
    }

    /// Whether the cluster agreed on something a moment ago, as far as this node knows.
    pub(crate) fn is_led(&self) -> bool {
        if self.hub.voter.is_some() { self.hub.is_led() } else { self.hears_others() }
    }

    /// Whether this node leads.
    #[cfg(test)]
    pub(crate) fn leads(&self) -> bool {
        self.hub.leads().is_some()
    }

    /// The life of this process, as the others know it.
    pub(crate) fn life(&self) -> u64 {
        self.hub.life
    }

    /// Runs on the threads of raft, whoever waits for it: connections live there.
    fn there<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let task = self.runtime.spawn(work);
        async move { task.await.unwrap_or(Err(StoreError::Closed)) }.boxed()
    }

    /// Has a thread ask the machine of this node and wait for its answer, past the threads of raft.
    fn wait_for<T: Send + 'static>(
        &self,
        ask: impl FnOnce(Box<dyn FnOnce(Result<T, StoreError>) + Send>),
    ) -> Result<T, StoreError> {
        let (tell, told) = bounded(1);
        ask(Box::new(move |answer| drop(tell.send(answer))));
        loop {
            match told.recv_timeout(LOOK) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Err(self.closed()),
                // What it waits for may never be agreed on.
                Err(RecvTimeoutError::Timeout) => self.hub.failure().map_or(Ok(()), Err)?,
            }
        }
    }

    fn block<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, told) = bounded(1);
        self.runtime.spawn(async move { drop(tell.send(work.await)) });
        told.recv().unwrap_or_else(|_| Err(self.closed()))
    }
}

/// What operators on a node's machine ask it.
struct Reception {
    hub: Arc<Hub>,
}

impl OperatorTarget for Reception {
    fn status(&self) -> BoxFuture<'static, ClusterStatus> {
        let hub = Arc::clone(&self.hub);
        async move { status::of(&hub).await }.boxed()
    }

    fn cancel(&self) -> BoxFuture<'static, Result<(), String>> {
        let hub = Arc::clone(&self.hub);
        async move { server::obey(&hub, messages::OperatorOrder::Cancel).await }.boxed()
    }
}

/// Submits a command on behalf of the cluster itself.
async fn submit_once(hub: &Arc<Hub>, command: &Command) -> Result<Reply, StoreError> {
    let items = [BatchItem::Command(encode(command).into())];
    client::submit(hub, &items, || false).await.and_then(|mut replies| {
        replies.pop().ok_or_else(|| StoreError::Failed("no answer came".to_owned()))
    })
}

impl Store for ClusterStore {
    fn submit(&self, command: Command) -> BoxFuture<'static, Result<Reply, StoreError>> {
        // Only handed over to the courier, so any thread will do.
        self.handle.submit(command)
    }

    fn submit_all(&self, commands: Vec<Command>) -> Vec<Answered> {
        self.handle.submit_all(commands)
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Answer, StoreError>> {
        if self.handle.hub.voter.is_some() {
            return self.handle.clone().ask(question).boxed();
        }
        self.handle.there(self.handle.clone().ask(question))
    }

    fn submit_blocking(&self, command: Command) -> Result<Reply, StoreError> {
        if let (Command::Ack { appender, position }, Some(voter)) =
            (&command, &self.handle.hub.voter)
        {
            let (appender, position) = (*appender, position.clone());
            return self.handle.wait_for(|respond| {
                drop(voter.machine.requests.send(ReplicaRequest::Ack {
                    appender,
                    position,
                    respond,
                }));
            });
        }
        self.handle.block(self.handle.submit(command))
    }

    fn ask_blocking(&self, question: Question) -> Result<Answer, StoreError> {
        if let Some(voter) = &self.handle.hub.voter {
            let index = self.handle.hub.index.load(Ordering::Acquire);
            return self.handle.wait_for(|respond| {
                drop(voter.machine.requests.send(ReplicaRequest::Ask { question, index, respond }));
            });
        }
        self.handle.block(self.handle.clone().ask(question))
    }

    fn renew(&self, session: SessionId) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.handle.there(self.handle.clone().renew(session))
    }

    fn make_do(&self) {
        // One without a vote asks whoever answers, who may have just come and know nothing yet.
        if let Some(voter) = &self.handle.hub.voter {
            self.handle.hub.index.store(0, Ordering::Release);
            drop(voter.machine.requests.send(ReplicaRequest::MakeDo));
        }
    }

    fn step_aside(&self) {
        let hub = Arc::clone(&self.handle.hub);
        hub.leaving.store(true, Ordering::Release);
        self.handle.runtime.spawn(async move { election::step_aside(&hub).await });
    }

    fn standing(&self) -> watch::Receiver<Standing> {
        self.handle.standing.clone()
    }

    fn output_bell(&self) -> Receiver<()> {
        let (ring, bell) = bounded(1);
        if let Some(voter) = &self.handle.hub.voter
            && let Ok(mut bells) = voter.machine.bells.lock()
        {
            bells.push(ring);
        }
        bell
    }
}
