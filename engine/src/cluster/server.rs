//! What a node answers to others: raft's messages, commands for the leader, questions, orders.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::cluster::leader::placement::put_forward;
use crate::cluster::messages::{
    NodeDescription, OperatorOrder, PeerRequest, PeerResponse, RaftMessage, encode, raft_id,
    seat_of,
};
use crate::cluster::node::{DISK, FOUNDERS, Hub, Refusal};
use crate::cluster::permissions::{Caller, Permissions};
use crate::cluster::replica::thread::ReplicaRequest;
use crate::cluster::{client, election, peers, status};
use crate::ledger::{Command, Reply, Seat, Standing};
use crate::store::{Answer, Question, StoreError};
use crate::wire::{Hello, PeerRole, RequestHandler};

/// How long a watcher is kept waiting for news.
const WATCH: Duration = Duration::from_secs(2);
/// Patience with the leader for another node.
const RELAY: Duration = Duration::from_secs(4);
/// Bytes of output that are read for another node.
const OUTPUT_MAX: usize = 4 << 20;

/// Answers calls.
pub(crate) struct ClusterServer {
    pub hub: Arc<Hub>,
    pub rights: Arc<Permissions>,
}

impl RequestHandler for ClusterServer {
    fn call(&self, from: &Hello, request: Vec<u8>) -> BoxFuture<'static, Vec<u8>> {
        let relayed = unknown_leader(&self.hub, from);
        let (hub, from) = (Arc::clone(&self.hub), Caller::of(from));
        let rights = Arc::clone(&self.rights);
        async move {
            let response = match postcard::from_bytes::<PeerRequest>(&request) {
                Ok(call) => match (rights.refuse(&hub, from, &call).await, relayed) {
                    (Some(refusal), _) => refusal,
                    (None, Some(leader))
                        if matches!(call, PeerRequest::Submit(_) | PeerRequest::Renew(_)) =>
                    {
                        let told = client::ask(&hub, leader, &call, RELAY).await;
                        told.unwrap_or_else(|| not_leader(&hub))
                    }
                    (None, _) => answer(&hub, from, call).await,
                },
                Err(_) => PeerResponse::Busy("the request cannot be read".to_owned()),
            };
            encode(&response)
        }
        .boxed()
    }

    fn admit(&self, hello: &Hello) -> Result<(), String> {
        let own = self.hub.hello();
        if hello.version != own.version {
            return Err(format!(
                "it speaks version {} between nodes, this cluster {}",
                hello.version, own.version
            ));
        }
        if let (Some(theirs), Some(ours)) = (hello.cluster_id, own.cluster_id)
            && theirs != ours
        {
            return Err("its data directory belongs to another cluster".to_owned());
        }
        if hello.role == PeerRole::Voter && !self.hub.peers().contains_key(&Seat(hello.seat)) {
            return Err(format!("node {} is not among the peers", hello.seat));
        }
        peers::compare(hello, self.hub.peers())?;
        if let Some(voter) = &self.hub.voter {
            voter.guests.came(hello);
        }
        Ok(())
    }

    fn gone(&self, hello: &Hello) {
        if let Some(voter) = &self.hub.voter {
            voter.guests.went(hello);
        }
    }
}

/// The leader, if another node leads that is not on the list of one without a vote: what that one has
/// to say is said to the leader by this node.
fn unknown_leader(hub: &Hub, hello: &Hello) -> Option<Seat> {
    if hello.role != PeerRole::Worker || hub.leads().is_some() {
        return None;
    }
    hub.leader().filter(|leader| !peers::knows(hello, *leader))
}

/// Whether raft may hear this disk: the present one of its seat, and no other.
fn is_voter(hub: &Hub, caller: Caller, from: u64) -> bool {
    let Some(voter) = hub.voter.as_ref().filter(|_| caller.role == PeerRole::Voter) else {
        return false;
    };
    let seat = caller.seat;
    let incarnation = voter.machine.incarnations.borrow().get(&seat).copied().unwrap_or(0);
    // A seat may have a newer number than this node has heard of, never an older one.
    seat_of(from) == seat && from >= raft_id(seat, incarnation)
}

async fn answer(hub: &Arc<Hub>, from: Caller, call: PeerRequest) -> PeerResponse {
    match call {
        PeerRequest::Describe => PeerResponse::Description(who(hub)),
        PeerRequest::Raft { to, .. } if to != hub.raft_id() => PeerResponse::Gone,
        PeerRequest::Raft { from: disk, .. } if !is_voter(hub, from, disk) => {
            PeerResponse::Busy("this seat has a newer disk".to_owned())
        }
        PeerRequest::Raft { message, .. } => raft(hub, message).await,
        PeerRequest::MayLead(last) => {
            PeerResponse::MayLead(election::would_vote(hub, last).then(|| hub.raft_id()))
        }
        PeerRequest::Stand => {
            let stands = election::stand(hub, from.seat).await;
            PeerResponse::MayLead(stands.then(|| hub.raft_id()))
        }
        PeerRequest::Submit(items) => submit(hub, from, items).await,
        PeerRequest::Renew(session) => match client::renew_here(hub, session).await {
            Some(lives) if hub.leads().is_some() => PeerResponse::Renewed(lives),
            _ => not_leader(hub),
        },
        PeerRequest::Ask { question, index } => question_of(hub, question, index).await,
        PeerRequest::Watch(known) => watch(hub, known).await,
        PeerRequest::Status => PeerResponse::Status(Box::new(status::of(hub).await)),
        PeerRequest::Order(order) => PeerResponse::Ordered(obey(hub, order).await),
    }
}

fn not_leader(hub: &Hub) -> PeerResponse {
    PeerResponse::NotLeader(hub.leader().map(|seat| seat.0))
}

/// A node that founds a cluster is fresh until there is a leader: till then nothing was agreed on.
fn who(hub: &Hub) -> NodeDescription {
    let named = hub.voter.as_ref().is_some_and(|voter| voter.machine.cluster.borrow().is_some());
    let led = hub.metrics().is_some_and(|metrics| metrics.current_leader.is_some());
    let genesis = hub.raft_id() <= raft_id(hub.options.seat, 0);
    let established = named || led;
    let log = hub.voter.as_ref().map(|voter| &voter.log);
    let disk = log.and_then(|log| log.local(DISK)).unwrap_or(0);
    let founders = log.and_then(|log| log.local(FOUNDERS)).unwrap_or_default();
    let fresh = genesis && !established && disk != 0;
    let agreed = hub.metrics().and_then(|metrics| metrics.last_applied).map_or(0, |at| at.index);
    NodeDescription { fresh, established, raft_id: hub.raft_id(), disk, founders, agreed }
}

async fn raft(hub: &Hub, message: RaftMessage) -> PeerResponse {
    let (Some(raft), Some(voter)) = (hub.raft(), &hub.voter) else {
        return PeerResponse::Busy("the node is starting".to_owned());
    };
    match message {
        RaftMessage::Append(request) => {
            // A slow disk is no silent leader.
            if request.vote >= raft.metrics().borrow().vote {
                voter.hear_leader();
            }
            let answer = raft.append_entries(request).await;
            if !matches!(answer, Ok(openraft::raft::AppendEntriesResponse::HigherVote(_))) {
                voter.hear_leader();
            }
            PeerResponse::Append(answer)
        }
        RaftMessage::Vote(request) => {
            let answer = raft.vote(request).await;
            if answer.as_ref().is_ok_and(|answer| answer.vote_granted) {
                voter.heard.send_replace(Instant::now());
            }
            PeerResponse::Vote(answer)
        }
        RaftMessage::Install(request) => {
            voter.hear_leader();
            let answer = raft.install_snapshot(request).await;
            voter.hear_leader();
            PeerResponse::Install(answer)
        }
    }
}

async fn submit(
    hub: &Hub,
    from: Caller,
    items: Vec<crate::cluster::messages::BatchItem>,
) -> PeerResponse {
    if hub.leads().is_none() {
        return not_leader(hub);
    }
    if let Some(voter) = &hub.voter {
        voter.guests.speaks(from.seat);
    }
    match put_forward(hub, items).await {
        Ok((replies, index)) => PeerResponse::Submitted { replies, index },
        Err(Refusal::NotLeader(leader)) => PeerResponse::NotLeader(leader.map(|seat| seat.0)),
        Err(Refusal::Closing) => PeerResponse::Busy("the node is ending".to_owned()),
    }
}

async fn question_of(hub: &Hub, question: Question, index: u64) -> PeerResponse {
    let Some(voter) = &hub.voter else { return not_leader(hub) };
    let question = match question {
        Question::Output { appender, after, bytes_max } => {
            Question::Output { appender, after, bytes_max: bytes_max.min(OUTPUT_MAX) }
        }
        Question::CanonicalOutput { appender, after, last, bytes_max } => {
            let bytes_max = bytes_max.min(OUTPUT_MAX);
            Question::CanonicalOutput { appender, after, last, bytes_max }
        }
        other => other,
    };
    let (tell, told) = oneshot::channel::<Result<Answer, StoreError>>();
    let respond = Box::new(move |answer| drop(tell.send(answer)));
    drop(voter.machine.requests.send(ReplicaRequest::Ask { question, index, respond }));
    match tokio::time::timeout(WATCH, told).await {
        Ok(Ok(Ok(answer))) => PeerResponse::Answer(answer),
        _ => PeerResponse::Busy("not known yet".to_owned()),
    }
}

async fn watch(hub: &Hub, known: Standing) -> PeerResponse {
    let Some(voter) = &hub.voter else { return not_leader(hub) };
    let mut standing = voter.machine.standing.clone();
    let news = standing.wait_for(|now| *now != known);
    drop(tokio::time::timeout(WATCH, news).await);
    let now = *voter.machine.standing.borrow();
    PeerResponse::Standing(now)
}

/// Carries an order out; any node with a vote brings it to the leader.
pub(crate) async fn obey(hub: &Arc<Hub>, order: OperatorOrder) -> Result<(), String> {
    if let OperatorOrder::Fence(seat) | OperatorOrder::Admit(seat) = order
        && !is_known(hub, seat).await
    {
        return Err(format!("there is no node {}", seat.0));
    }
    let command = match order {
        OperatorOrder::Cancel => Command::Cancel,
        OperatorOrder::Fence(seat) => Command::Fence { seat },
        OperatorOrder::Admit(seat) => Command::Admit { seat },
    };
    let submitted = crate::cluster::submit_once(hub, &command);
    match tokio::time::timeout(Duration::from_secs(10), submitted).await {
        Ok(Ok(Reply::Ok)) => Ok(()),
        Ok(Ok(_)) => Err(match order {
            OperatorOrder::Cancel => "there is no run to be cancelled".to_owned(),
            OperatorOrder::Fence(seat) | OperatorOrder::Admit(seat) => {
                format!("there is no node {}", seat.0)
            }
        }),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("too few nodes are there to agree on it".to_owned()),
    }
}

/// Whether a seat is among the peers or has worked here.
async fn is_known(hub: &Hub, seat: Seat) -> bool {
    let Some(voter) = &hub.voter else { return false };
    if hub.peers().contains_key(&seat) {
        return true;
    }
    let roster = voter.machine.ask(ReplicaRequest::Roster).await;
    roster.is_ok_and(|roster| roster.seats.contains_key(&seat))
}
