//! Tasks that watch this node while it runs: each warns, or ends the node with an error that says what
//! to do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::cluster::client::ClusterClient;
use crate::cluster::election::Leadership;
use crate::cluster::messages::{PeerRequest, PeerResponse};
use crate::cluster::peers::PeerClients;
use crate::cluster::raft_log::RaftLog;
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaRequest};
use crate::cluster::stop::DEPARTURE_TIMEOUT;
use crate::cluster::{ClusterOptions, Failure};
use crate::ledger::{Seat, Standing};
use crate::store::StoreError;
use crate::threads::pause::pause;

/// A node that waits for others warns after this time.
const WARN_AFTER: Duration = Duration::from_secs(5);
/// How often the log and the leader are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Names the nodes that a starting node waits for. Nodes that refuse it were named before.
pub(crate) async fn warn_while_forming(
    options: ClusterOptions,
    peers: Arc<PeerClients>,
    leadership: Arc<Leadership>,
    client: ClusterClient,
) {
    pause(WARN_AFTER).await;
    let silent: Vec<Seat> = peers.disconnected().filter(|seat| !peers.refuses(*seat)).collect();
    let has_joined = client.last_index() > 0;
    if leadership.leader().is_none() && !has_joined && !silent.is_empty() {
        tracing::warn!(
            "waiting for enough nodes, {} s at most (`cluster.quorum.timeout`): {}",
            options.quorum_timeout.as_secs(),
            peers.describe_absent(silent.into_iter())
        );
    }
}

/// Has a snapshot made when the log has grown larger than the setting and than the tables.
pub(crate) async fn limit_log(
    snapshot_bytes: u64,
    log: RaftLog,
    replica: ReplicaHandle,
    leadership: Arc<Leadership>,
) {
    let Some(raft) = leadership.raft() else { return };
    let mut tick = interval(CHECK_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let bytes = log.bytes_since_snapshot();
        if bytes < snapshot_bytes {
            continue;
        }
        let Ok(Ok(size)) = replica.ask(ReplicaRequest::Settle).await else { return };
        if bytes >= size {
            log.reset_bytes_since_snapshot();
            if raft.trigger().snapshot().await.is_err() {
                return;
            }
        }
    }
}

/// The next step of a node without a leader.
#[derive(Debug, PartialEq, Eq)]
enum QuorumStep {
    Wait,
    Warn,
    GiveUp,
}

/// A node that never had a leader does not warn: [`warn_while_forming`] does.
fn quorum_step(
    alone_for: Duration,
    had_leader: bool,
    has_warned: bool,
    limit: Duration,
) -> QuorumStep {
    if alone_for >= limit {
        QuorumStep::GiveUp
    } else if had_leader && !has_warned && alone_for >= WARN_AFTER {
        QuorumStep::Warn
    } else {
        QuorumStep::Wait
    }
}

/// Ends a node that has been without a leader for too long (`cluster.quorum.lossExit`), or whose raft has
/// ended.
pub(crate) async fn watch_quorum(
    loss_exit: Duration,
    peers: Arc<PeerClients>,
    leadership: Arc<Leadership>,
    client: ClusterClient,
    failure: Failure,
) {
    let Some(raft) = leadership.raft() else { return };
    let mut tick = interval(CHECK_INTERVAL);
    let (mut led_at, mut has_warned, mut had_leader) = (Instant::now(), false, false);
    loop {
        tick.tick().await;
        let state = raft.metrics().borrow().running_state.clone();
        if let Err(error) = state {
            failure.set(StoreError::Failed(format!("the replicated log has ended: {error}")));
            return;
        }
        if leadership.is_led() {
            (led_at, has_warned) = (Instant::now(), false);
        }
        had_leader |= client.last_index() > 0;
        match quorum_step(led_at.elapsed(), had_leader, has_warned, loss_exit) {
            QuorumStep::Wait => {}
            QuorumStep::Warn => {
                has_warned = true;
                tracing::warn!(
                    "too few nodes are connected to agree on anything; waiting for them, {} s at most \
                     (`cluster.quorum.lossExit`): {}",
                    loss_exit.as_secs(),
                    peers.describe_absent(peers.disconnected())
                );
            }
            QuorumStep::GiveUp => {
                failure.set(StoreError::NoQuorum(format!(
                    "too few nodes were connected for {} s; nothing is lost: start this node again when \
                     the others are back",
                    loss_exit.as_secs()
                )));
                return;
            }
        }
    }
}

/// Follows the progress of the run on a node without a vote, from any node that has one.
pub(crate) fn follow_standing(
    options: &ClusterOptions,
    client: ClusterClient,
    failure: Failure,
) -> watch::Receiver<Standing> {
    let (publish, standing) = watch::channel(Standing::default());
    let loss_exit = options.loss_exit;
    // After the end of a run the nodes with a vote end, too.
    let after_end = loss_exit.min(options.end_wait + DEPARTURE_TIMEOUT);
    tokio::spawn(async move {
        while !publish.is_closed() {
            let known = *publish.borrow();
            let limit = if known.over { after_end } else { loss_exit };
            let request = PeerRequest::Watch(known);
            match timeout(limit, client.ask_any_voter(&request)).await {
                Ok(Ok(PeerResponse::Standing(news))) => {
                    publish.send_if_modified(|known| std::mem::replace(known, news) != news);
                }
                Ok(Ok(_)) => {}
                Ok(Err(_)) => return,
                Err(_) => {
                    failure.set(StoreError::NoQuorum(format!(
                        "no node with a vote has answered for {} s",
                        limit.as_secs()
                    )));
                    return;
                }
            }
        }
    });
    standing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_a_leader_warns_once_and_gives_up_in_the_end() {
        let limit = Duration::from_mins(1);
        for (seconds, had_leader, has_warned, step) in [
            (4, true, false, QuorumStep::Wait),
            (5, true, false, QuorumStep::Warn),
            (5, false, false, QuorumStep::Wait),
            (59, true, true, QuorumStep::Wait),
            (60, true, true, QuorumStep::GiveUp),
            (60, false, false, QuorumStep::GiveUp),
        ] {
            let alone_for = Duration::from_secs(seconds);
            assert_eq!(quorum_step(alone_for, had_leader, has_warned, limit), step, "{seconds} s");
        }
    }
}
