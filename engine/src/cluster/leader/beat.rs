//! The beat of the leader. It renews the sessions that have asked for it since the last beat, and the
//! ledger ends those that have expired. A renewal is answered once its beat is committed, so a leader
//! that was replaced without knowing it extends no session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval};

use crate::cluster::election::Leadership;
use crate::cluster::leader::connections::{Connections, report_disconnected};
use crate::cluster::leader::placement::LeaderQueue;
use crate::cluster::locked;
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaRequest};
use crate::ledger::{Command, SessionId};
use crate::threads::ignore::ignore_closed;

type Waiting = BTreeMap<SessionId, Vec<oneshot::Sender<bool>>>;

/// The way to the leader on this node, used while it leads.
#[derive(Clone)]
pub(in crate::cluster) struct LocalLeader {
    pub queue: LeaderQueue,
    pub renewals: Arc<Renewals>,
}

/// Sessions that wait for the next beat.
#[derive(Default)]
pub(in crate::cluster) struct Renewals(Mutex<Waiting>);

impl Renewals {
    /// The receiver gets whether the session still lives once the beat is committed.
    pub(in crate::cluster) fn add(&self, session: SessionId) -> oneshot::Receiver<bool> {
        let (respond, answer) = oneshot::channel();
        locked(&self.0).entry(session).or_default().push(respond);
        answer
    }

    fn take(&self) -> Waiting {
        std::mem::take(&mut *locked(&self.0))
    }
}

/// Beats while this node leads.
pub(in crate::cluster) async fn run(
    interval_length: Duration,
    leadership: Arc<Leadership>,
    replica: ReplicaHandle,
    LocalLeader { queue, renewals }: LocalLeader,
    connections: Arc<Connections>,
) {
    let mut tick = interval(interval_length);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if leadership.leads().is_none() {
            // Their senders are dropped, and the clients ask the next leader.
            drop(renewals.take());
            continue;
        }
        // Read before the renewals: this beat then holds the last renewal of each process.
        let disconnected = connections.disconnected();
        let waiting = renewals.take();
        let standing = *replica.standing.borrow();
        if standing.voters + standing.workers == 0 && waiting.is_empty() {
            continue;
        }
        let (replica, queue, connections) =
            (replica.clone(), queue.clone(), Arc::clone(&connections));
        tokio::spawn(async move {
            let beat = Command::Beat { renewals: waiting.keys().copied().collect() };
            if !queue.propose_command(&beat).await {
                return;
            }
            let living = living_sessions(&replica).await;
            for (session, responders) in waiting {
                for respond in responders {
                    ignore_closed(respond.send(living.contains(&session)));
                }
            }
            report_disconnected(&replica, &queue, &connections, disconnected).await;
        });
    }
}

async fn living_sessions(replica: &ReplicaHandle) -> BTreeSet<SessionId> {
    let roster = replica.ask(ReplicaRequest::Roster).await;
    roster.map(|roster| roster.sessions.keys().copied().collect()).unwrap_or_default()
}
