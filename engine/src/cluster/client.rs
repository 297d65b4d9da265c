//! Sends commands to the leader and returns its replies. Every command may be applied twice without
//! harm, so the client retries whenever it does not know the outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::cluster::election::Leadership;
use crate::cluster::leader::batch::{Proposed, Refusal};
use crate::cluster::leader::beat::LocalLeader;
use crate::cluster::messages::{BatchItem, PeerRequest, PeerResponse, encode};
use crate::cluster::peers::PeerClients;
use crate::cluster::{Failure, random_between};
use crate::ledger::{Command, Reply, Seat, SessionId};
use crate::store::StoreError;
use crate::threads::ignore::ignore_closed;
use crate::threads::pause::pause;

/// Requests in flight. Later submissions go into the next request.
const REQUESTS_MAX: usize = 2;
/// Items of one request.
const ITEMS_MAX: usize = 256;
/// Bytes of one request, unless a single submission is larger.
const BYTES_MAX: usize = 512 << 10;
/// How long one request to the leader may take.
const LEADER_SUBMIT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one renewal may take. A leader that beats answers within 250 ms.
const RENEWAL_TIMEOUT: Duration = Duration::from_millis(400);
/// Pause between two tries, drawn at random.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(80));

/// One item for the leader, and the caller that waits for its reply.
pub(crate) struct Submission {
    pub item: BatchItem,
    pub respond: oneshot::Sender<Result<Reply, StoreError>>,
}

/// Finds the leader and talks to it; cheap to clone.
#[derive(Clone)]
pub(crate) struct ClusterClient {
    peers: Arc<PeerClients>,
    leadership: Arc<Leadership>,
    /// `None` for a node without a vote.
    local: Option<LocalLeader>,
    failure: Failure,
    /// Index of the newest entry that a reply came from. Later questions read nothing older.
    index: Arc<AtomicU64>,
}

impl ClusterClient {
    pub(crate) fn new(
        peers: Arc<PeerClients>,
        leadership: Arc<Leadership>,
        local: Option<LocalLeader>,
        failure: Failure,
    ) -> Self {
        Self { peers, leadership, local, failure, index: Arc::default() }
    }

    pub(crate) fn last_index(&self) -> u64 {
        self.index.load(Ordering::Acquire)
    }

    /// From now on questions are answered from what the replica holds.
    pub(crate) fn forget_index(&self) {
        self.index.store(0, Ordering::Release);
    }

    /// Delivers submissions until their senders are gone.
    pub(crate) async fn run(self, mut inbox: mpsc::Receiver<Vec<Submission>>) {
        let permits = Arc::new(Semaphore::new(REQUESTS_MAX));
        let size = |batch: &[Submission]| batch.iter().map(|one| one.item.size()).sum::<usize>();
        while let Some(mut batch) = inbox.recv().await {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let mut bytes = size(&batch);
            while bytes < BYTES_MAX && batch.len() < ITEMS_MAX {
                let Ok(next) = inbox.try_recv() else { break };
                bytes += size(&next);
                batch.extend(next);
            }
            let client = self.clone();
            tokio::spawn(async move {
                client.deliver(batch).await;
                drop(permit);
            });
        }
    }

    async fn deliver(&self, batch: Vec<Submission>) {
        let (items, responders): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|one| (one.item, one.respond)).unzip();
        let is_abandoned = || responders.iter().all(oneshot::Sender::is_closed);
        match self.submit(&items, is_abandoned).await {
            Ok(replies) => {
                // A caller of several commands awaits the first reply. It is sent last, so that the
                // caller is woken once.
                for (respond, reply) in responders.into_iter().zip(replies).rev() {
                    ignore_closed(respond.send(Ok(reply)));
                }
            }
            Err(error) => {
                for respond in responders {
                    ignore_closed(respond.send(Err(error.clone())));
                }
            }
        }
    }

    /// Retries until the leader has answered, the node has failed, or all callers have given up.
    async fn submit(
        &self,
        items: &[BatchItem],
        is_abandoned: impl Fn() -> bool,
    ) -> Result<Vec<Reply>, StoreError> {
        let mut search = LeaderSearch::default();
        loop {
            if let Some(error) = self.failure.get() {
                return Err(error);
            }
            if is_abandoned() {
                return Err(StoreError::Closed);
            }
            match self.try_submit(items, &mut search).await {
                Ok((replies, index)) => {
                    self.index.fetch_max(index, Ordering::AcqRel);
                    return Ok(replies);
                }
                Err(leader) => self.wait_before_retry(leader).await,
            }
        }
    }

    /// Submits a command of the cluster itself.
    pub(crate) async fn submit_command(&self, command: &Command) -> Result<Reply, StoreError> {
        let items = [BatchItem::Command(encode(command).into())];
        let mut replies = self.submit(&items, || false).await?;
        replies.pop().ok_or_else(|| StoreError::Failed("the leader sent no reply".to_owned()))
    }

    /// One try; the error is the leader, if the asked node named one.
    async fn try_submit(
        &self,
        items: &[BatchItem],
        search: &mut LeaderSearch,
    ) -> Result<(Vec<Reply>, u64), Option<Seat>> {
        if self.leadership.leads().is_some() {
            return match timeout(LEADER_SUBMIT_TIMEOUT, self.propose_here(items.to_vec())).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(Refusal::NotLeader(leader))) => Err(leader),
                Ok(Err(Refusal::Closing)) | Err(_) => Err(None),
            };
        }
        let Some(seat) = self.next_candidate(search) else { return Err(None) };
        let request = PeerRequest::Submit(items.to_vec());
        match self.peers.ask(seat, &request, LEADER_SUBMIT_TIMEOUT).await {
            Some(PeerResponse::Submitted { replies, index }) => {
                self.leadership.set_hint(Some(seat));
                Ok((replies, index))
            }
            Some(PeerResponse::NotLeader(leader)) => Err(other_than(seat, leader)),
            _ => Err(None),
        }
    }

    /// Proposes items on this node, which leads.
    pub(crate) async fn propose_here(&self, items: Vec<BatchItem>) -> Proposed {
        match &self.local {
            Some(local) => local.queue.propose(items).await,
            None => Err(Refusal::Closing),
        }
    }

    /// Renews a session; `None` if this one try had no answer.
    pub(crate) async fn renew(&self, session: SessionId) -> Option<bool> {
        if self.leadership.leads().is_some() {
            return timeout(RENEWAL_TIMEOUT, self.renew_here(session)).await.ok().flatten();
        }
        let seat = self.next_candidate(&mut LeaderSearch::default())?;
        let (leader, lives) =
            match self.peers.ask(seat, &PeerRequest::Renew(session), RENEWAL_TIMEOUT).await {
                Some(PeerResponse::Renewed(lives)) => (Some(seat), Some(lives)),
                Some(PeerResponse::NotLeader(leader)) => (other_than(seat, leader), None),
                _ => (None, None),
            };
        self.leadership.set_hint(leader);
        lives
    }

    /// Renews a session on this node, which leads.
    pub(crate) async fn renew_here(&self, session: SessionId) -> Option<bool> {
        self.local.as_ref()?.renewals.add(session).await.ok()
    }

    /// Asks the nodes with a vote in turn until one answers.
    pub(crate) async fn ask_any_voter(
        &self,
        request: &PeerRequest,
    ) -> Result<PeerResponse, StoreError> {
        let mut search = LeaderSearch::default();
        loop {
            if let Some(error) = self.failure.get() {
                return Err(error);
            }
            if let Some(seat) = self.next_candidate(&mut search) {
                match self.peers.ask(seat, request, LEADER_SUBMIT_TIMEOUT).await {
                    Some(PeerResponse::Busy(_) | PeerResponse::NotLeader(_)) | None => {}
                    Some(response) => return Ok(response),
                }
            }
            self.wait_before_retry(None).await;
        }
    }

    /// The leader if it is known and is another node, else each peer in turn.
    fn next_candidate(&self, search: &mut LeaderSearch) -> Option<Seat> {
        let known = self.leadership.leader().filter(|seat| self.peers.client(*seat).is_some());
        known.or_else(|| {
            let others: Vec<Seat> = self.peers.others().map(|(seat, _)| seat).collect();
            search.asked += 1;
            others.get(search.asked % others.len().max(1)).copied()
        })
    }

    async fn wait_before_retry(&self, leader: Option<Seat>) {
        self.leadership.set_hint(leader);
        pause(random_between(RETRY_PAUSE)).await;
    }
}

/// How many nodes were asked because the leader was unknown.
#[derive(Debug, Default)]
struct LeaderSearch {
    asked: usize,
}

/// The leader that a node named, unless it named itself while it refused to lead.
fn other_than(asked: Seat, leader: Option<u32>) -> Option<Seat> {
    leader.map(Seat).filter(|leader| *leader != asked)
}
