//! The replicated ledger as the rest of the engine sees it: commands go to the client, questions to
//! the replica on this node. A node without a vote has no replica and asks another node.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use shaku::Component;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::cluster::client::{ClusterClient, Submission};
use crate::cluster::election::{self, Leadership};
use crate::cluster::messages::{BatchItem, PeerRequest, PeerResponse, encode};
use crate::cluster::peers::PeerClients;
use crate::cluster::replica::chunks;
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaRequest};
use crate::cluster::{COMMAND_BYTES_MAX, Failure, random_between};
use crate::ledger::{Command, Position, Reply, Run, SessionId, Standing};
use crate::store::{Answer, Question, Store, StoreError};
use crate::threads::ignore::ignore_closed;
use crate::threads::pause::pause;

/// How often a thread that waits for an answer checks whether this node has failed.
const FAILURE_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Pause between two tries to renew a session, drawn at random.
const RENEWAL_PAUSE: (Duration, Duration) = (Duration::from_millis(30), Duration::from_millis(120));

/// An answer that is not known yet.
type PendingReply = BoxFuture<'static, Result<Reply, StoreError>>;

/// A node's access to the ledger; cheap to clone.
#[derive(Clone)]
pub(crate) struct ClusterHandle {
    pub(super) client: ClusterClient,
    pub(super) submissions: mpsc::Sender<Vec<Submission>>,
    pub(super) peers: Arc<PeerClients>,
    pub(super) leadership: Arc<Leadership>,
    /// `None` for a node without a vote.
    pub(super) replica: Option<ReplicaHandle>,
    pub(super) standing: watch::Receiver<Standing>,
    /// The last run on this node's disk when it started; `None` for a node without a vote.
    pub(super) run_at_start: Arc<Option<Run>>,
    pub(super) failure: Failure,
    pub(super) runtime: Handle,
    /// Permits for commands that are sent in chunks.
    pub(super) chunk_permits: Arc<Semaphore>,
    /// Random number of this process.
    pub(super) life: u64,
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
    /// Queues the commands in this order, before anybody awaits their answers.
    fn submit_all(&self, commands: Vec<Command>) -> Vec<PendingReply> {
        let mut submissions = Vec::with_capacity(commands.len());
        let answers = commands.into_iter().map(|command| self.prepare(command, &mut submissions));
        let answers = answers.collect();
        self.queue(submissions);
        answers
    }

    fn submit(&self, command: Command) -> PendingReply {
        let mut submissions = Vec::with_capacity(1);
        let answer = self.prepare(command, &mut submissions);
        self.queue(submissions);
        answer
    }

    fn prepare(&self, command: Command, submissions: &mut Vec<Submission>) -> PendingReply {
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
                if bytes.len() > COMMAND_BYTES_MAX {
                    let handle = self.clone();
                    return async move { handle.send_in_chunks(bytes, by).await }.boxed();
                }
                BatchItem::Command(bytes)
            }
        };
        let (submission, answer) = self.submission(item);
        submissions.push(submission);
        answer
    }

    fn submission(&self, item: BatchItem) -> (Submission, PendingReply) {
        let (respond, answer) = oneshot::channel();
        let failure = self.failure.clone();
        let answer = async move { answer.await.unwrap_or_else(|_| Err(failure.or_closed())) };
        (Submission { item, respond }, answer.boxed())
    }

    /// A client that has ended drops the submissions, and their callers get an error. When the queue is
    /// full they wait outside of it. That may change their order, on which only speed depends.
    fn queue(&self, submissions: Vec<Submission>) {
        if submissions.is_empty() {
            return;
        }
        if let Err(TrySendError::Full(submissions)) = self.submissions.try_send(submissions) {
            let queue = self.submissions.clone();
            self.runtime.spawn(async move { ignore_closed(queue.send(submissions).await) });
        }
    }

    async fn send(&self, item: BatchItem) -> Result<Reply, StoreError> {
        let (submission, answer) = self.submission(item);
        self.queue(vec![submission]);
        answer.await
    }

    async fn send_in_chunks(
        &self,
        bytes: Bytes,
        by: Option<SessionId>,
    ) -> Result<Reply, StoreError> {
        let permit = self.chunk_permits.acquire().await.map_err(|_| self.failure.or_closed())?;
        let reply = chunks::send_in_chunks(bytes, by, |item| self.send(item)).await;
        drop(permit);
        reply
    }

    /// Records how much this node has written of its files. Other nodes do not need to know.
    async fn ack(&self, appender: u32, position: Position) -> Result<Reply, StoreError> {
        let Some(replica) = &self.replica else { return Ok(Reply::Stale) };
        let (sender, answer) = oneshot::channel();
        let respond = Box::new(move |reply| ignore_closed(sender.send(reply)));
        ignore_closed(replica.requests.send(ReplicaRequest::Ack { appender, position, respond }));
        answer.await.unwrap_or_else(|_| Err(self.failure.or_closed()))
    }

    async fn ask(self, question: Question) -> Result<Answer, StoreError> {
        let index = self.client.last_index();
        let Some(replica) = &self.replica else {
            let request = PeerRequest::Ask { question, index };
            return match self.client.ask_any_voter(&request).await? {
                PeerResponse::Answer(answer) => Ok(answer),
                other => Err(StoreError::Failed(format!("a question was answered with {other:?}"))),
            };
        };
        let (sender, answer) = oneshot::channel();
        let respond = Box::new(move |answer| ignore_closed(sender.send(answer)));
        ignore_closed(replica.requests.send(ReplicaRequest::Ask { question, index, respond }));
        tokio::select! {
            answer = answer => answer.unwrap_or_else(|_| Err(self.failure.or_closed())),
            () = self.failure.happened() => Err(self.failure.or_closed()),
        }
    }

    /// Renews a session; retries until the cluster has agreed or this node fails.
    async fn renew(self, session: SessionId) -> Result<bool, StoreError> {
        loop {
            if let Some(error) = self.failure.get() {
                return Err(error);
            }
            if let Some(lives) = self.client.renew(session).await {
                return Ok(lives);
            }
            pause(random_between(RENEWAL_PAUSE)).await;
        }
    }

    /// Names the peers that do not answer.
    pub(crate) fn absent(&self) -> String {
        self.peers.describe_absent(self.peers.disconnected())
    }

    /// Whether another node with a vote is connected.
    pub(crate) fn hears_others(&self) -> bool {
        self.peers.others().any(|(seat, _)| self.peers.is_connected(seat))
    }

    /// Whether the cluster agreed on something in the last seconds, to the knowledge of this node.
    pub(crate) fn is_led(&self) -> bool {
        if self.replica.is_some() { self.leadership.is_led() } else { self.hears_others() }
    }

    /// Whether this node leads.
    #[cfg(test)]
    pub(crate) fn leads(&self) -> bool {
        self.leadership.leads().is_some()
    }

    /// The last run that this node knew when it started.
    pub(crate) fn run_at_start(&self) -> Option<Run> {
        Option::clone(&self.run_at_start)
    }

    /// Tells this process from others that ran on the same node.
    pub(crate) fn life(&self) -> u64 {
        self.life
    }

    /// Runs a future on the runtime of the cluster, where the connections live.
    fn on_runtime<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let task = self.runtime.spawn(work);
        async move { task.await.unwrap_or(Err(StoreError::Closed)) }.boxed()
    }

    /// Blocks a thread until the replica on this node has answered; wakes no thread of the runtime.
    fn wait_for_replica<T: Send + 'static>(
        &self,
        ask: impl FnOnce(Box<dyn FnOnce(Result<T, StoreError>) + Send>),
    ) -> Result<T, StoreError> {
        let (sender, answer) = bounded(1);
        ask(Box::new(move |reply| ignore_closed(sender.send(reply))));
        loop {
            match answer.recv_timeout(FAILURE_POLL_INTERVAL) {
                Ok(reply) => return reply,
                Err(RecvTimeoutError::Disconnected) => return Err(self.failure.or_closed()),
                // The entry that the question waits for may never be committed.
                Err(RecvTimeoutError::Timeout) => self.failure.get().map_or(Ok(()), Err)?,
            }
        }
    }

    fn block_on_runtime<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, answer) = bounded(1);
        self.runtime.spawn(async move { ignore_closed(sender.send(work.await)) });
        answer.recv().unwrap_or_else(|_| Err(self.failure.or_closed()))
    }
}

impl Store for ClusterStore {
    fn submit(&self, command: Command) -> BoxFuture<'static, Result<Reply, StoreError>> {
        self.handle.submit(command)
    }

    fn submit_all(&self, commands: Vec<Command>) -> Vec<PendingReply> {
        self.handle.submit_all(commands)
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Answer, StoreError>> {
        if self.handle.replica.is_some() {
            return self.handle.clone().ask(question).boxed();
        }
        self.handle.on_runtime(self.handle.clone().ask(question))
    }

    fn submit_blocking(&self, command: Command) -> Result<Reply, StoreError> {
        if let (Command::Ack { appender, position }, Some(replica)) =
            (&command, &self.handle.replica)
        {
            let (appender, position) = (*appender, position.clone());
            return self.handle.wait_for_replica(|respond| {
                ignore_closed(replica.requests.send(ReplicaRequest::Ack {
                    appender,
                    position,
                    respond,
                }));
            });
        }
        self.handle.block_on_runtime(self.handle.submit(command))
    }

    fn ask_blocking(&self, question: Question) -> Result<Answer, StoreError> {
        if let Some(replica) = &self.handle.replica {
            let index = self.handle.client.last_index();
            return self.handle.wait_for_replica(|respond| {
                ignore_closed(replica.requests.send(ReplicaRequest::Ask {
                    question,
                    index,
                    respond,
                }));
            });
        }
        self.handle.block_on_runtime(self.handle.clone().ask(question))
    }

    fn renew(&self, session: SessionId) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.handle.on_runtime(self.handle.clone().renew(session))
    }

    fn make_do(&self) {
        // A node without a vote keeps its index: the next node that answers may have just started.
        if let Some(replica) = &self.handle.replica {
            self.handle.client.forget_index();
            ignore_closed(replica.requests.send(ReplicaRequest::AnswerAtOnce));
        }
    }

    fn step_aside(&self) {
        self.handle.leadership.set_stopping();
        let (leadership, peers) =
            (Arc::clone(&self.handle.leadership), Arc::clone(&self.handle.peers));
        self.handle.runtime.spawn(async move { election::step_aside(&leadership, &peers).await });
    }

    fn standing(&self) -> watch::Receiver<Standing> {
        self.handle.standing.clone()
    }

    fn output_bell(&self) -> Receiver<()> {
        let (ring, bell) = bounded(1);
        if let Some(replica) = &self.handle.replica
            && let Ok(mut bells) = replica.bells.lock()
        {
            bells.push(ring);
        }
        bell
    }
}
