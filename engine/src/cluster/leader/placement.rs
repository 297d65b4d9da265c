//! NodeDescription gets jobs first. When several nodes ask at about the same time, the leader lets them in by
//! the order that the settings name.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::cluster::messages::BatchItem;
use crate::cluster::node::{Hub, Proposal, Proposed, Refusal, Voter};
use crate::cluster::replica::thread::ReplicaRequest;
use crate::cluster::status::Roster;
use crate::config::Placement;
use crate::ledger::{Seat, SessionId};

/// NodeDescription asks within this time of the first is let in by order.
const COMPANY: Duration = Duration::from_millis(5);

/// Puts things before the other nodes, in the name of one of them; askers for jobs wait their turn.
pub(in crate::cluster) async fn put_forward(hub: &Hub, items: Vec<BatchItem>) -> Proposed {
    let Some(voter) = &hub.voter else { return Err(Refusal::Closing) };
    let in_turn = hub.options.placement != Placement::Any;
    let asks = |item: &BatchItem| in_turn && matches!(item, BatchItem::Take { .. });
    if !items.iter().any(asks) {
        return send(&voter.proposals, items).await;
    }
    let (asking, others): (Vec<_>, Vec<_>) =
        items.into_iter().enumerate().partition(|(_, item)| asks(item));
    let (places, others): (Vec<usize>, Vec<BatchItem>) = others.into_iter().unzip();
    let asked = asking.into_iter().map(|(place, item)| async move {
        send(&voter.asking, vec![item]).await.map(|(replies, index)| (place, replies, index))
    });
    let asked = futures_util::future::try_join_all(asked);
    let rest = async {
        if others.is_empty() { Ok((Vec::new(), 0)) } else { send(&voter.proposals, others).await }
    };
    let (asked, (replies, mut newest)) = futures_util::future::try_join(asked, rest).await?;
    let mut all: Vec<_> = places.into_iter().zip(replies).collect();
    for (place, replies, index) in asked {
        newest = newest.max(index);
        all.extend(replies.into_iter().map(|reply| (place, reply)));
    }
    all.sort_by_key(|(place, _)| *place);
    Ok((all.into_iter().map(|(_, reply)| reply).collect(), newest))
}

async fn send(to: &mpsc::Sender<Proposal>, items: Vec<BatchItem>) -> Proposed {
    let (respond, answer) = oneshot::channel();
    to.send(Proposal { items, respond }).await.map_err(|_| Refusal::Closing)?;
    answer.await.unwrap_or(Err(Refusal::Closing))
}

/// Lets askers in, those of about the same time by order.
pub(in crate::cluster) async fn usher(hub: Arc<Hub>, mut asking: mpsc::Receiver<Proposal>) {
    let Some(voter) = &hub.voter else { return };
    while let Some(first) = asking.recv().await {
        sleep_until(Instant::now() + COMPANY).await;
        let mut askers = vec![first];
        while let Ok(next) = asking.try_recv() {
            askers.push(next);
        }
        order(&mut askers, voter, hub.options.placement).await;
        for asker in askers {
            if voter.proposals.send(asker).await.is_err() {
                return;
            }
        }
    }
}

async fn order(askers: &mut [Proposal], voter: &Voter, placement: Placement) {
    if askers.len() < 2 {
        return;
    }
    let Ok(roster) = voter.machine.ask(ReplicaRequest::Roster).await else { return };
    askers.sort_by_key(|asker| {
        let session = asker.items.iter().find_map(|item| match item {
            BatchItem::Take { session, .. } => Some(*session),
            _ => None,
        });
        rank(&roster, session, placement)
    });
}

/// Smaller comes first; among equals, the first among the peers.
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
    fn each_placement_has_its_order() {
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
