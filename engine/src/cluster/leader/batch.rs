//! Gathers what the leader is asked into entries of the log. An entry costs every node one message and
//! one sync, whatever it holds. So one entry is written at a time, and what arrives in the meantime goes
//! into the next one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use openraft::error::{ClientWriteError, RaftError};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::cluster::election::Leadership;
use crate::cluster::messages::{
    Batch, BatchItem, DigestCheck, EncodedBatch, encode, encode_with_room, seat_of,
};
use crate::cluster::random;
use crate::cluster::replica::thread::ReplicaHandle;
use crate::ledger::{Command, Reply, Seat, Stamp};
use crate::threads::ignore::ignore_closed;
use crate::threads::pause::pause;

/// Entries in flight.
const ENTRIES_MAX: usize = 1;
/// Items of one entry.
const ITEMS_MAX: usize = 512;
/// Bytes of one entry, unless a single proposal is larger.
const BYTES_MAX: usize = 256 << 10;
/// All nodes come to the end of a run at about the same time. The first waits this long for more.
const SESSION_END_DELAY: Duration = Duration::from_millis(5);
/// How often the nodes compare their ledgers.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Why a proposal was not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cluster) enum Refusal {
    /// Another node leads, if any.
    NotLeader(Option<Seat>),
    /// This node is ending.
    Closing,
}

/// The replies, and the index of their entry.
pub(in crate::cluster) type Proposed = Result<(Vec<Reply>, u64), Refusal>;

/// Items that the leader is asked to write.
pub(in crate::cluster) struct Proposal {
    pub items: Vec<BatchItem>,
    pub respond: oneshot::Sender<Proposed>,
}

/// A term that this node leads, and since when.
#[derive(Debug, Clone, Copy)]
struct Term {
    number: u64,
    since: Instant,
}

/// Writes proposals until their senders are gone.
pub(in crate::cluster) async fn run(
    mut inbox: mpsc::Receiver<Proposal>,
    leadership: Arc<Leadership>,
    replica: ReplicaHandle,
) {
    let permits = Arc::new(Semaphore::new(ENTRIES_MAX));
    let mut term: Option<Term> = None;
    let mut checks = Checks { checked_at: Instant::now(), last: None };
    while let Some(first) = inbox.recv().await {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        if waits_for_others(&first.items) {
            pause(SESSION_END_DELAY).await;
        }
        let proposals = gather(first, || inbox.try_recv().ok());
        let Some(number) = leadership.leads() else {
            answer_all(proposals.into_iter().map(|one| one.respond), || {
                Err(Refusal::NotLeader(leadership.leader()))
            });
            continue;
        };
        let known = term.filter(|known| known.number == number);
        let Term { since, .. } =
            *term.insert(known.unwrap_or(Term { number, since: Instant::now() }));
        let stamp = Stamp { leadership: number, ms: since.elapsed().as_millis() as u64 };
        let counts: Vec<usize> = proposals.iter().map(|one| one.items.len()).collect();
        let (items, responders): (Vec<_>, Vec<_>) =
            proposals.into_iter().map(|one| (one.items, one.respond)).unzip();
        let mut items: Vec<BatchItem> = items.into_iter().flatten().collect();
        if replica.cluster.borrow().is_none() {
            // The first entry of a new cluster gives it its name.
            let cluster = u128::from(random()) << 64 | u128::from(random());
            items.push(BatchItem::Command(encode(&Command::Found { cluster }).into()));
        }
        let bytes = items.iter().map(BatchItem::size).sum::<usize>() + 64;
        let batch = Batch { stamp, check: checks.next(&replica), items };
        let entry = EncodedBatch(encode_with_room(&batch, bytes).into());
        let leadership = Arc::clone(&leadership);
        tokio::spawn(async move {
            let written = write(&leadership, entry).await;
            drop(permit);
            answer(written, counts, responders);
        });
    }
}

/// Whether these items only end sessions, so that other nodes are about to send the same.
fn waits_for_others(items: &[BatchItem]) -> bool {
    items.iter().all(|item| matches!(item, BatchItem::SessionEnd { .. }))
}

/// Adds the proposals that are waiting, in their order, until the entry is full.
fn gather(first: Proposal, mut next: impl FnMut() -> Option<Proposal>) -> Vec<Proposal> {
    let size = |one: &Proposal| one.items.iter().map(BatchItem::size).sum::<usize>();
    let (mut bytes, mut items) = (size(&first), first.items.len());
    let mut proposals = vec![first];
    while bytes < BYTES_MAX && items < ITEMS_MAX {
        let Some(next) = next() else { break };
        (bytes, items) = (bytes + size(&next), items + next.items.len());
        proposals.push(next);
    }
    proposals
}

/// When the nodes last compared their ledgers, and what was compared.
struct Checks {
    checked_at: Instant,
    last: Option<DigestCheck>,
}

impl Checks {
    /// The check that goes into the next entry: none if it is too early, or nothing has changed.
    fn next(&mut self, replica: &ReplicaHandle) -> Option<DigestCheck> {
        if self.checked_at.elapsed() < CHECK_INTERVAL {
            return None;
        }
        let check = (*replica.summed.borrow()).filter(|check| Some(*check) != self.last)?;
        *self = Self { checked_at: Instant::now(), last: Some(check) };
        Some(check)
    }
}

async fn write(leadership: &Leadership, entry: EncodedBatch) -> Proposed {
    let Some(raft) = leadership.raft() else { return Err(Refusal::Closing) };
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

/// Gives each proposal its own replies. A node that lost the lead while it wrote has no replies, and
/// its clients ask the next leader.
fn answer(written: Proposed, counts: Vec<usize>, responders: Vec<oneshot::Sender<Proposed>>) {
    let expected = counts.iter().sum();
    match written {
        Ok((replies, index)) if replies.len() >= expected => {
            let mut replies = replies.into_iter();
            for (count, respond) in counts.into_iter().zip(responders) {
                let own = replies.by_ref().take(count).collect();
                ignore_closed(respond.send(Ok((own, index))));
            }
        }
        Ok(_) => answer_all(responders, || Err(Refusal::NotLeader(None))),
        Err(refusal) => answer_all(responders, || Err(refusal.clone())),
    }
}

fn answer_all(
    responders: impl IntoIterator<Item = oneshot::Sender<Proposed>>,
    answer: impl Fn() -> Proposed,
) {
    for respond in responders {
        ignore_closed(respond.send(answer()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::SessionId;

    type Answer = oneshot::Receiver<Proposed>;

    fn commands(count: usize, bytes: usize) -> (Proposal, Answer) {
        let (respond, answer) = oneshot::channel();
        let items = vec![BatchItem::Command(vec![0; bytes].into()); count];
        (Proposal { items, respond }, answer)
    }

    /// How many of the waiting proposals, given as items and bytes per item, go into one entry.
    fn gathered(proposals: &[(usize, usize)]) -> usize {
        let mut waiting = proposals.iter().map(|(count, bytes)| commands(*count, *bytes).0);
        let first = waiting.next().unwrap();
        gather(first, || waiting.next()).len()
    }

    #[test]
    fn an_entry_takes_proposals_until_it_is_full() {
        let kib = 1 << 10;
        for (name, proposals, taken) in [
            ("nothing else waits", vec![(1, 10)], 1),
            ("all fit", vec![(1, 10); 100], 100),
            ("items are counted, not proposals", vec![(256, 1); 4], 2),
            ("the last proposal is never split", vec![(500, 1), (500, 1), (1, 1)], 2),
            ("bytes are counted", vec![(1, 100 * kib); 5], 3),
            ("a large proposal goes alone", vec![(1, 300 * kib), (1, 1)], 1),
        ] {
            assert_eq!(gathered(&proposals), taken, "{name}");
        }
    }

    #[test]
    fn each_proposal_gets_its_own_replies() {
        let (first, mut first_answer) = commands(1, 1);
        let (second, mut second_answer) = commands(2, 1);
        let written = Ok((vec![Reply::Ok, Reply::Stale, Reply::Wait], 7));
        answer(written, vec![1, 2], vec![first.respond, second.respond]);
        assert_eq!(first_answer.try_recv().unwrap(), Ok((vec![Reply::Ok], 7)));
        assert_eq!(second_answer.try_recv().unwrap(), Ok((vec![Reply::Stale, Reply::Wait], 7)));
    }

    #[test]
    fn a_leader_without_replies_sends_its_clients_to_the_next_one() {
        let (proposal, mut answered) = commands(2, 1);
        answer(Ok((Vec::new(), 7)), vec![2], vec![proposal.respond]);
        assert_eq!(answered.try_recv().unwrap(), Err(Refusal::NotLeader(None)));
    }

    #[test]
    fn only_the_ends_of_sessions_wait_for_each_other() {
        let end = |leaves| BatchItem::SessionEnd { session: SessionId(1), leaves };
        let command = BatchItem::Command(vec![0].into());
        for (items, waits) in [
            (vec![end(false)], true),
            (vec![end(false), end(true)], true),
            (vec![end(true), command.clone()], false),
            (vec![command], false),
        ] {
            assert_eq!(waits_for_others(&items), waits, "{items:?}");
        }
    }
}
