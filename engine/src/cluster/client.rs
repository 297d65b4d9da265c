//! Brings commands to whoever leads, and their answers back: again and again until there is one.
//! Every command may be sent twice, so an unknown outcome is no reason to stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::cluster::leader::placement::put_forward;
use crate::cluster::messages::{BatchItem, PeerRequest, PeerResponse};
use crate::cluster::node::{Hub, Refusal, random_between};
use crate::ledger::{Reply, Seat, SessionId};
use crate::store::StoreError;

/// Deliveries under way at a time: what comes meanwhile goes together with the next.
const DELIVERIES_MAX: usize = 2;
/// Things in one delivery.
const ITEMS_MAX: usize = 256;
const BYTES_MAX: usize = 512 << 10;
/// Patience with one try.
const PATIENCE: Duration = Duration::from_secs(5);
/// Patience with one sign of life: a leader that beats answers within a quarter of a second, and one
/// that is about to go may never do.
const RENEWAL: Duration = Duration::from_millis(400);
/// Pause between two tries, drawn anew each time.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(80));

/// One thing to be done, and who waits for its answer.
pub(crate) struct Submission {
    pub item: BatchItem,
    pub respond: oneshot::Sender<Result<Reply, StoreError>>,
}

/// Serves errands until their senders are gone.
pub(crate) async fn carry(hub: Arc<Hub>, mut inbox: mpsc::Receiver<Vec<Submission>>) {
    let places = Arc::new(Semaphore::new(DELIVERIES_MAX));
    let size = |errands: &[Submission]| errands.iter().map(|one| one.item.size()).sum::<usize>();
    while let Some(mut errands) = inbox.recv().await {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let mut bytes = size(&errands);
        while bytes < BYTES_MAX && errands.len() < ITEMS_MAX {
            let Ok(next) = inbox.try_recv() else { break };
            bytes += size(&next);
            errands.extend(next);
        }
        let hub = Arc::clone(&hub);
        tokio::spawn(async move {
            deliver(&hub, errands).await;
            drop(place);
        });
    }
}

async fn deliver(hub: &Arc<Hub>, errands: Vec<Submission>) {
    let (items, responders): (Vec<_>, Vec<_>) =
        errands.into_iter().map(|errand| (errand.item, errand.respond)).unzip();
    let result = submit(hub, &items, || responders.iter().all(oneshot::Sender::is_closed)).await;
    match result {
        Ok(replies) => {
            // Whoever waits for several waits for the first of them: the last to be given, so that it is
            // woken once. NodeDescription no longer waits needs no answer.
            for (respond, reply) in responders.into_iter().zip(replies).rev() {
                drop(respond.send(Ok(reply)));
            }
        }
        Err(error) => {
            for respond in responders {
                drop(respond.send(Err(error.clone())));
            }
        }
    }
}

/// LeaderSearch until the leader has answered, the node has failed, or nobody waits any more.
pub(crate) async fn submit(
    hub: &Arc<Hub>,
    items: &[BatchItem],
    in_vain: impl Fn() -> bool,
) -> Result<Vec<Reply>, StoreError> {
    let mut tries = LeaderSearch::default();
    loop {
        if let Some(error) = hub.failure() {
            return Err(error);
        }
        if in_vain() {
            return Err(StoreError::Closed);
        }
        match attempt(hub, items, &mut tries).await {
            Ok((replies, index)) => {
                hub.saw(index);
                return Ok(replies);
            }
            Err(leader) => tries.pause(hub, leader).await,
        }
    }
}

/// Whom to ask next when nobody knows.
#[derive(Debug, Default)]
struct LeaderSearch {
    next: usize,
}

impl LeaderSearch {
    /// The leader if it is known, else one after the other.
    fn whom(&mut self, hub: &Hub) -> Option<Seat> {
        hub.leader().filter(|seat| hub.link(*seat).is_some()).or_else(|| {
            let others: Vec<Seat> = hub.others().map(|(seat, _)| seat).collect();
            self.next += 1;
            others.get(self.next % others.len().max(1)).copied()
        })
    }

    async fn pause(&mut self, hub: &Hub, leader: Option<Seat>) {
        hub.believe(leader);
        let until = Instant::now() + random_between(PAUSE.0, PAUSE.1);
        sleep_until(until).await;
    }
}

/// One try; an error names the leader if the other node knew it.
async fn attempt(
    hub: &Arc<Hub>,
    items: &[BatchItem],
    tries: &mut LeaderSearch,
) -> Result<(Vec<Reply>, u64), Option<Seat>> {
    if hub.leads().is_some() {
        return match tokio::time::timeout(PATIENCE, put_forward(hub, items.to_vec())).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Refusal::NotLeader(leader))) => Err(leader),
            Ok(Err(Refusal::Closing)) | Err(_) => Err(None),
        };
    }
    let Some(seat) = tries.whom(hub) else { return Err(None) };
    match ask(hub, seat, &PeerRequest::Submit(items.to_vec()), PATIENCE).await {
        Some(PeerResponse::Submitted { replies, index }) => {
            hub.believe(Some(seat));
            Ok((replies, index))
        }
        Some(PeerResponse::NotLeader(leader)) => {
            Err(leader.map(Seat).filter(|other| *other != seat))
        }
        _ => Err(None),
    }
}

/// One exchange with another node.
pub(crate) async fn ask(
    hub: &Hub,
    seat: Seat,
    call: &PeerRequest,
    patience: Duration,
) -> Option<PeerResponse> {
    let link = hub.link(seat)?;
    match link.call(call.encode(), patience).await {
        Ok(bytes) => {
            hub.note(seat, None);
            postcard::from_bytes(&bytes).ok()
        }
        Err(error) => {
            hub.note(seat, Some(&error));
            tracing::debug!(seat = seat.0, %error, "no answer");
            None
        }
    }
}

/// Tells the leader that a session lives; answers once that is agreed on. One try.
pub(crate) async fn renew(hub: &Arc<Hub>, session: SessionId) -> Option<bool> {
    if hub.leads().is_some() {
        return tokio::time::timeout(RENEWAL, renew_here(hub, session)).await.ok().flatten();
    }
    let mut tries = LeaderSearch::default();
    let seat = tries.whom(hub)?;
    match ask(hub, seat, &PeerRequest::Renew(session), RENEWAL).await {
        Some(PeerResponse::Renewed(lives)) => {
            hub.believe(Some(seat));
            Some(lives)
        }
        Some(PeerResponse::NotLeader(leader)) => {
            hub.believe(leader.map(Seat).filter(|other| *other != seat));
            None
        }
        _ => {
            hub.believe(None);
            None
        }
    }
}

/// The same on the node that leads.
pub(crate) async fn renew_here(hub: &Hub, session: SessionId) -> Option<bool> {
    let voter = hub.voter.as_ref()?;
    let (respond, answer) = oneshot::channel();
    crate::cluster::node::locked(&voter.renewals).entry(session).or_default().push(respond);
    answer.await.ok()
}

/// Asks nodes with a vote, one after the other, until one answers.
pub(crate) async fn ask_anyone(
    hub: &Arc<Hub>,
    call: &PeerRequest,
) -> Result<PeerResponse, StoreError> {
    let mut tries = LeaderSearch::default();
    loop {
        if let Some(error) = hub.failure() {
            return Err(error);
        }
        if let Some(seat) = tries.whom(hub) {
            match ask(hub, seat, call, PATIENCE).await {
                Some(PeerResponse::Busy(_) | PeerResponse::NotLeader(_)) | None => {}
                Some(response) => return Ok(response),
            }
        }
        tries.pause(hub, None).await;
    }
}
