//! The leader's work: gathers what it is asked into entries, beats for the sessions, and sees that
//! every seat's present disk has its vote.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openraft::BasicNode;
use openraft::error::{ClientWriteError, RaftError};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use crate::cluster::messages::{
    Batch, BatchItem, DigestCheck, EncodedBatch, PeerRequest, PeerResponse, encode,
    encode_with_room, raft_id, seat_of,
};
use crate::cluster::node::{Hub, Proposal, Proposed, Refusal, Voter, locked, random};
use crate::ledger::{Command, SessionId, Stamp};

/// Entries under way at a time: while one is written, the next gathers. An entry costs every node a
/// sync and a message, whatever it holds.
const ENTRIES_MAX: usize = 1;
/// Things to be done in one entry.
const ITEMS_MAX: usize = 512;
/// Bytes of one entry, but for a single large thing.
const BYTES_MAX: usize = 256 << 10;
/// Nodes come to the end of a run together: who says so first waits this long for the others.
const COMPANY: Duration = Duration::from_millis(5);
/// The nodes compare their ledgers so often.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// How often the leader looks whether a seat has a new disk.
const LOOK: Duration = Duration::from_millis(300);
/// Patience with a new disk that has to catch up.
const CATCH_UP: Duration = Duration::from_mins(10);

/// A term this node leads, and since when.
#[derive(Debug, Clone, Copy)]
struct Leadership {
    term: u64,
    since: Instant,
}

/// Serves proposals until their senders are gone.
pub(in crate::cluster) async fn propose(hub: Arc<Hub>, mut inbox: mpsc::Receiver<Proposal>) {
    let Some(voter) = &hub.voter else { return };
    let places = Arc::new(Semaphore::new(ENTRIES_MAX));
    let mut leadership: Option<Leadership> = None;
    let mut checked = (Instant::now(), None);
    while let Some(first) = inbox.recv().await {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        if first.items.iter().all(|item| matches!(item, BatchItem::SessionEnd { .. })) {
            sleep_until(tokio::time::Instant::now() + COMPANY).await;
        }
        let proposals = gather(first, &mut inbox);
        let Some(term) = hub.leads() else {
            let refusal = Refusal::NotLeader(hub.leader());
            refuse(proposals, &refusal);
            continue;
        };
        if leadership.is_none_or(|known| known.term != term) {
            leadership = Some(Leadership { term, since: Instant::now() });
        }
        let since = leadership.map_or_else(Instant::now, |known| known.since);
        let stamp = Stamp { leadership: term, ms: since.elapsed().as_millis() as u64 };
        let check = check(voter, &mut checked);
        let counts: Vec<usize> = proposals.iter().map(|one| one.items.len()).collect();
        let (items, responders): (Vec<_>, Vec<_>) =
            proposals.into_iter().map(|one| (one.items, one.respond)).unzip();
        let mut items: Vec<BatchItem> = items.into_iter().flatten().collect();
        if voter.machine.cluster.borrow().is_none() {
            // A new cluster gets its name along with the first thing it is asked.
            let cluster = u128::from(random()) << 64 | u128::from(random());
            items.push(BatchItem::Command(encode(&Command::Found { cluster }).into()));
        }
        let bytes = items.iter().map(BatchItem::size).sum::<usize>() + 64;
        let entry = EncodedBatch(encode_with_room(&Batch { stamp, check, items }, bytes).into());
        let hub = Arc::clone(&hub);
        tokio::spawn(async move {
            let written = write(&hub, entry).await;
            drop(place);
            answer(written, counts, responders);
        });
    }
}

/// What has come meanwhile goes along, as far as it fits.
fn gather(first: Proposal, inbox: &mut mpsc::Receiver<Proposal>) -> Vec<Proposal> {
    let size = |one: &Proposal| one.items.iter().map(BatchItem::size).sum::<usize>();
    let (mut bytes, mut items) = (size(&first), first.items.len());
    let mut proposals = vec![first];
    while bytes < BYTES_MAX && items < ITEMS_MAX {
        let Ok(next) = inbox.try_recv() else { break };
        (bytes, items) = (bytes + size(&next), items + next.items.len());
        proposals.push(next);
    }
    proposals
}

fn refuse(proposals: Vec<Proposal>, refusal: &Refusal) {
    for proposal in proposals {
        // NodeDescription no longer waits needs no answer.
        drop(proposal.respond.send(Err(refusal.clone())));
    }
}

fn check(voter: &Voter, checked: &mut (Instant, Option<DigestCheck>)) -> Option<DigestCheck> {
    if checked.0.elapsed() < CHECK_EVERY {
        return None;
    }
    let news = (*voter.machine.summed.borrow()).filter(|check| Some(*check) != checked.1)?;
    *checked = (Instant::now(), Some(news));
    Some(news)
}

async fn write(hub: &Hub, entry: EncodedBatch) -> Proposed {
    let Some(raft) = hub.raft() else { return Err(Refusal::Closing) };
    match raft.client_write(entry).await {
        Ok(written) => Ok((written.data.0, written.log_id.index)),
        Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward))) => {
            Err(Refusal::NotLeader(forward.leader_id.map(seat_of)))
        }
        Err(RaftError::APIError(ClientWriteError::ChangeMembershipError(_))) => {
            Err(Refusal::NotLeader(None))
        }
        Err(RaftError::Fatal(_)) => Err(Refusal::Closing),
    }
}

fn answer(written: Proposed, counts: Vec<usize>, responders: Vec<oneshot::Sender<Proposed>>) {
    // A node that was replaced meanwhile has no answers: who asked asks again.
    let written = written.and_then(|(replies, index)| {
        let whole = replies.len() >= counts.iter().sum();
        if whole { Ok((replies, index)) } else { Err(Refusal::NotLeader(None)) }
    });
    match written {
        Ok((replies, index)) => {
            let mut replies = replies.into_iter();
            for (count, respond) in counts.into_iter().zip(responders) {
                let own = replies.by_ref().take(count).collect();
                drop(respond.send(Ok((own, index))));
            }
        }
        Err(refusal) => {
            for respond in responders {
                drop(respond.send(Err(refusal.clone())));
            }
        }
    }
}

/// Proposes one command of this node's own; tells whether it was agreed on.
pub(in crate::cluster) async fn propose_one(voter: &Voter, command: &Command) -> bool {
    let (respond, answer) = oneshot::channel();
    let items = vec![BatchItem::Command(encode(command).into())];
    let sent = voter.proposals.send(Proposal { items, respond }).await;
    sent.is_ok() && matches!(answer.await, Ok(Ok(_)))
}

/// Beats as long as this node leads: sessions that gave a sign of life are renewed, those that did
/// not expire. A sign of life is acknowledged only once its beat is agreed on, so a leader that has
/// been replaced without knowing it prolongs nobody's life.
pub(in crate::cluster) async fn beat(hub: Arc<Hub>) {
    let Some(voter) = &hub.voter else { return };
    let mut tick = interval(hub.options.beat);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if hub.leads().is_none() {
            // They will ask the next leader.
            locked(&voter.renewals).clear();
            continue;
        }
        let standing = *voter.machine.standing.borrow();
        // Looked at first: whoever is gone has its last sign of life among those of this beat.
        let gone = voter.guests.gone();
        let waiting = std::mem::take(&mut *locked(&voter.renewals));
        if standing.voters + standing.workers == 0 && waiting.is_empty() {
            continue;
        }
        let renewals: Vec<SessionId> = waiting.keys().copied().collect();
        let hub = Arc::clone(&hub);
        tokio::spawn(async move {
            let Some(voter) = &hub.voter else { return };
            if !propose_one(voter, &Command::Beat { renewals }).await {
                return;
            }
            let living = living(voter).await;
            for (session, waiting) in waiting {
                for respond in waiting {
                    // NodeDescription no longer waits needs no answer.
                    let _heard = respond.send(living.contains(&session)).is_ok();
                }
            }
            crate::cluster::leader::connections::doubt(voter, gone).await;
        });
    }
}

async fn living(voter: &Voter) -> BTreeSet<SessionId> {
    let roster = voter.machine.ask(crate::cluster::replica::thread::ReplicaRequest::Roster).await;
    roster.map(|roster| roster.sessions.keys().copied().collect()).unwrap_or_default()
}

/// Gives the vote of a seat to its present disk, one seat at a time.
pub(in crate::cluster) async fn tend_members(hub: Arc<Hub>) {
    let Some(voter) = &hub.voter else { return };
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let (Some(_), Some(raft), Some(metrics)) = (hub.leads(), hub.raft(), hub.metrics()) else {
            continue;
        };
        let voters: BTreeSet<u64> = metrics.membership_config.membership().voter_ids().collect();
        let incarnations = voter.machine.incarnations.borrow().clone();
        let wanted = incarnations.into_iter().map(|(seat, count)| (seat, raft_id(seat, count)));
        let Some((seat, fresh)) = wanted.into_iter().find(|(_, id)| !voters.contains(id)) else {
            // A change that a leader before us began is ended by asking for the same again.
            if metrics.membership_config.membership().get_joint_config().len() > 1 {
                drop(raft.change_membership(voters, false).await);
            }
            continue;
        };
        let there = crate::cluster::client::ask(&hub, seat, &PeerRequest::Describe, LOOK).await;
        if !matches!(there, Some(PeerResponse::Description(who)) if who.raft_id == fresh) {
            continue;
        }
        let address = hub.peers().get(&seat).cloned().unwrap_or_default();
        tracing::debug!(seat = seat.0, "a new disk takes its seat");
        let caught_up =
            tokio::time::timeout(CATCH_UP, raft.add_learner(fresh, BasicNode::new(address), true));
        if !matches!(caught_up.await, Ok(Ok(_))) {
            continue;
        }
        let kept = voters.into_iter().filter(|id| seat_of(*id) != seat);
        let voters: BTreeSet<u64> = kept.chain([fresh]).collect();
        if let Err(error) = raft.change_membership(voters, false).await {
            tracing::debug!(%error, "the vote was not given");
        }
    }
}
