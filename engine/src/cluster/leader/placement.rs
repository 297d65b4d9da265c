//! Which node gets jobs first (`cluster.placement`). When several nodes ask for jobs at about the same
//! time, the leader grants them in this order:
//!
//! | `cluster.placement` | first |
//! | --- | --- |
//! | `any` | the request that arrived first |
//! | `listed` | the node that is listed first in `cluster.peers` |
//! | `leastLoaded` | the node that holds the fewest jobs |
//! | `mostLoaded` | the node that holds the most jobs |
//!
//! Equal nodes are granted jobs in the order of their numbers. Only requests for jobs wait for each
//! other, for `COLLECTION_WINDOW`. The order decides which node is first, not how many jobs it gets.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::cluster::leader::batch::{Proposal, Proposed, Refusal};
use crate::cluster::messages::{BatchItem, encode};
use crate::cluster::replica::roster::Roster;
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaRequest};
use crate::config::Placement;
use crate::ledger::{Command, Seat, SessionId};
use crate::threads::pause::pause;

/// Requests for jobs that arrive within this time of the first are ordered.
const COLLECTION_WINDOW: Duration = Duration::from_millis(5);

/// The entrance to the leader; cheap to clone.
#[derive(Clone)]
pub(in crate::cluster) struct LeaderQueue {
    pub proposals: mpsc::Sender<Proposal>,
    /// Requests for jobs, if the placement orders them.
    pub takes: mpsc::Sender<Proposal>,
    pub placement: Placement,
}

impl LeaderQueue {
    /// Has items written to the log, in the order in which they were given. Requests for jobs may be
    /// written later than the rest.
    pub(in crate::cluster) async fn propose(&self, items: Vec<BatchItem>) -> Proposed {
        let is_ordered = self.placement != Placement::Any;
        let is_take = |item: &BatchItem| is_ordered && matches!(item, BatchItem::Take { .. });
        if !items.iter().any(is_take) {
            return send(&self.proposals, items).await;
        }
        let (takes, others): (Vec<_>, Vec<_>) =
            items.into_iter().enumerate().partition(|(_, item)| is_take(item));
        let (places, others): (Vec<usize>, Vec<BatchItem>) = others.into_iter().unzip();
        let granted = takes.into_iter().map(|(place, item)| async move {
            send(&self.takes, vec![item]).await.map(|(replies, index)| (place, replies, index))
        });
        let granted = futures_util::future::try_join_all(granted);
        let rest = async {
            if others.is_empty() {
                Ok((Vec::new(), 0))
            } else {
                send(&self.proposals, others).await
            }
        };
        let (granted, (replies, mut newest)) =
            futures_util::future::try_join(granted, rest).await?;
        let mut all: Vec<_> = places.into_iter().zip(replies).collect();
        for (place, replies, index) in granted {
            newest = newest.max(index);
            all.extend(replies.into_iter().map(|reply| (place, reply)));
        }
        all.sort_by_key(|(place, _)| *place);
        Ok((all.into_iter().map(|(_, reply)| reply).collect(), newest))
    }

    /// Has one command of the leader itself written; whether it was committed.
    pub(in crate::cluster) async fn propose_command(&self, command: &Command) -> bool {
        let items = vec![BatchItem::Command(encode(command).into())];
        send(&self.proposals, items).await.is_ok()
    }
}

async fn send(queue: &mpsc::Sender<Proposal>, items: Vec<BatchItem>) -> Proposed {
    let (respond, answer) = oneshot::channel();
    queue.send(Proposal { items, respond }).await.map_err(|_| Refusal::Closing)?;
    answer.await.unwrap_or(Err(Refusal::Closing))
}

/// Orders requests for jobs until their senders are gone.
pub(in crate::cluster) async fn run(
    mut inbox: mpsc::Receiver<Proposal>,
    replica: ReplicaHandle,
    queue: LeaderQueue,
) {
    while let Some(first) = inbox.recv().await {
        pause(COLLECTION_WINDOW).await;
        let mut takes = vec![first];
        while let Ok(next) = inbox.try_recv() {
            takes.push(next);
        }
        if takes.len() > 1
            && let Ok(roster) = replica.ask(ReplicaRequest::Roster).await
        {
            takes.sort_by_key(|take| rank(&roster, session_of(take), queue.placement));
        }
        for take in takes {
            if queue.proposals.send(take).await.is_err() {
                return;
            }
        }
    }
}

fn session_of(take: &Proposal) -> Option<SessionId> {
    take.items.iter().find_map(|item| match item {
        BatchItem::Take { session, .. } => Some(*session),
        _ => None,
    })
}

/// The smallest comes first. A session that has ended comes last.
fn rank(roster: &Roster, session: Option<SessionId>, placement: Placement) -> (u64, Seat) {
    let known = session.and_then(|session| roster.sessions.get(&session));
    let seat = known.map_or(Seat(u32::MAX), |session| session.seat);
    let held = session.and_then(|session| roster.held.get(&session)).copied().unwrap_or(0);
    let rank = match placement {
        Placement::Any | Placement::Listed => 0,
        Placement::LeastLoaded => held,
        Placement::MostLoaded => u64::MAX - held,
    };
    (rank, seat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Session;

    fn roster() -> Roster {
        let session = |seat| Session {
            nonce: 0,
            seat: Seat(seat),
            votes: true,
            joined: 0,
            seen: 0,
            deadline: 0,
            doubted: None,
            last_take: 0,
            last_grants: Vec::new(),
        };
        Roster {
            sessions: (1..=3)
                .map(|number| (SessionId(u64::from(number)), session(number)))
                .collect(),
            held: [(SessionId(1), 5), (SessionId(2), 9)].into(),
            ..Roster::default()
        }
    }

    #[test]
    fn each_placement_orders_the_nodes() {
        for (placement, wanted) in [
            (Placement::Listed, [1, 2, 3]),
            (Placement::LeastLoaded, [3, 1, 2]),
            (Placement::MostLoaded, [2, 1, 3]),
        ] {
            let mut sessions = [3, 1, 2].map(SessionId);
            sessions.sort_by_key(|session| rank(&roster(), Some(*session), placement));
            assert_eq!(sessions.map(|session| session.0), wanted, "{placement:?}");
        }
    }
}
