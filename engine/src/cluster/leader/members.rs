//! Gives the vote of each node to its present disk. A disk that was emptied or replaced has a new raft
//! number. It first catches up as a learner, then takes the place of the old one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use openraft::BasicNode;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::cluster::election::Leadership;
use crate::cluster::messages::{PeerRequest, PeerResponse, raft_id, seat_of};
use crate::cluster::peers::PeerClients;
use crate::cluster::replica::thread::ReplicaHandle;
use crate::ledger::Seat;

/// How often the leader looks for new disks, and how long a node may take to name its disk.
const DISK_POLL_INTERVAL: Duration = Duration::from_millis(300);
/// How long a new disk may take to catch up.
const CATCH_UP_TIMEOUT: Duration = Duration::from_mins(10);

/// The next change of the voters.
#[derive(Debug, PartialEq, Eq)]
enum MemberChange {
    None,
    /// A leader before this one has begun a change. Asking for the same voters completes it.
    Complete(BTreeSet<u64>),
    /// A node has a new disk.
    Replace {
        seat: Seat,
        disk: u64,
        voters: BTreeSet<u64>,
    },
}

/// Changes one node at a time, so that the remaining votes still form a majority.
fn next_change(
    voters: BTreeSet<u64>,
    is_changing: bool,
    incarnations: &BTreeMap<Seat, u32>,
) -> MemberChange {
    let mut disks = incarnations.iter().map(|(seat, count)| (*seat, raft_id(*seat, *count)));
    match disks.find(|(_, disk)| !voters.contains(disk)) {
        Some((seat, disk)) => {
            let kept = voters.into_iter().filter(|id| seat_of(*id) != seat);
            MemberChange::Replace { seat, disk, voters: kept.chain([disk]).collect() }
        }
        None if is_changing => MemberChange::Complete(voters),
        None => MemberChange::None,
    }
}

/// Changes the voters while this node leads.
pub(in crate::cluster) async fn run(
    leadership: Arc<Leadership>,
    replica: ReplicaHandle,
    peers: Arc<PeerClients>,
) {
    let mut tick = interval(DISK_POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let (Some(_), Some(raft), Some(metrics)) =
            (leadership.leads(), leadership.raft(), leadership.metrics())
        else {
            continue;
        };
        let membership = metrics.membership_config.membership();
        let is_changing = membership.get_joint_config().len() > 1;
        let incarnations = replica.incarnations.borrow().clone();
        let changed = match next_change(
            membership.voter_ids().collect(),
            is_changing,
            &incarnations,
        ) {
            MemberChange::None => continue,
            MemberChange::Complete(voters) => raft.change_membership(voters, false).await,
            MemberChange::Replace { seat, disk, voters } => {
                let answer = peers.ask(seat, &PeerRequest::Describe, DISK_POLL_INTERVAL).await;
                if !matches!(answer, Some(PeerResponse::Description(node)) if node.raft_id == disk)
                {
                    continue;
                }
                tracing::debug!(seat = seat.0, "a new disk catches up");
                let address = peers.peers.get(&seat).cloned().unwrap_or_default();
                let learner = raft.add_learner(disk, BasicNode::new(address), true);
                if !matches!(timeout(CATCH_UP_TIMEOUT, learner).await, Ok(Ok(_))) {
                    continue;
                }
                raft.change_membership(voters, false).await
            }
        };
        if let Err(error) = changed {
            tracing::debug!(%error, "the voters were not changed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_disk_at_a_time_gets_the_vote_of_its_node() {
        let voters = |of: [(u32, u32); 3]| -> BTreeSet<u64> {
            of.iter().map(|(seat, count)| raft_id(Seat(*seat), *count)).collect()
        };
        let first = voters([(1, 0), (2, 0), (3, 0)]);
        let no_new: BTreeMap<Seat, u32> = BTreeMap::new();
        let new: BTreeMap<Seat, u32> = [(Seat(2), 1), (Seat(3), 4)].into();
        let replace = |seat, count, voters| MemberChange::Replace {
            seat: Seat(seat),
            disk: raft_id(Seat(seat), count),
            voters,
        };
        assert_eq!(next_change(first.clone(), false, &no_new), MemberChange::None);
        assert_eq!(
            next_change(first.clone(), true, &no_new),
            MemberChange::Complete(first.clone())
        );
        let second = voters([(1, 0), (2, 1), (3, 0)]);
        assert_eq!(next_change(first, true, &new), replace(2, 1, second.clone()));
        let third = voters([(1, 0), (2, 1), (3, 4)]);
        assert_eq!(next_change(second, false, &new), replace(3, 4, third.clone()));
        assert_eq!(next_change(third, false, &new), MemberChange::None);
    }
}
