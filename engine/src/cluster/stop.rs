//! How a node ends: it waits for those who need it, hands the lead over, and ends its threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::interval;

use crate::cluster::node::Hub;
use crate::cluster::raft_log::LogThread;
use crate::cluster::replica::thread::{MachineThread, Request};
use crate::cluster::start::{FAREWELL, HEARTBEAT};
use crate::cluster::status::Roster;
use crate::cluster::{election, operator};
use crate::store::lock::DirLock;

/// Without a leader nobody can be told of anything any more.
const FAREWELL_ALONE: Duration = Duration::from_secs(3);
/// The same with a run that was cancelled.
const FAREWELL_DRAINING: Duration = Duration::from_secs(20);
/// How often is looked whether they have gone.
const LOOK: Duration = Duration::from_millis(50);

/// Everything behind a [`ClusterHandle`] that has to be ended.
pub(crate) struct ClusterThread {
    pub(super) hub: Arc<Hub>,
    pub(super) runtime: Handle,
    /// Dropped to end the runtime, and its thread.
    pub(super) end: oneshot::Sender<()>,
    pub(super) thread: JoinHandle<()>,
    pub(super) stop: watch::Sender<bool>,
    pub(super) voter: Option<(LogThread, MachineThread)>,
    pub(super) lock: DirLock,
}

impl ClusterThread {
    /// Ends the node: raft first, then what it has written is brought to an end.
    pub(crate) fn close(self) {
        self.runtime.block_on(async {
            see_others_off(&self.hub).await;
            let standing = self.hub.voter.as_ref().map(|voter| *voter.machine.standing.borrow());
            // From a run that is over all go, and nobody needs a leader.
            if standing.is_some_and(|standing| !standing.closed && !standing.cancelled) {
                election::step_aside(&self.hub).await;
            }
        });
        self.stop.send_replace(true);
        if let Some(raft) = self.hub.raft().cloned() {
            self.runtime.block_on(async {
                drop(tokio::time::timeout(Duration::from_secs(5), raft.shutdown()).await);
            });
        }
        drop(self.end);
        drop(self.thread.join());
        operator::withdraw(&self.hub.options.dir);
        if let Some((log, machine)) = self.voter {
            machine.close();
            log.close();
        }
        drop(self.lock);
    }
}

/// Nodes leave an ended run together: whoever has not heard of its end, or was killed just then and
/// comes back, needs the others to agree on it.
async fn see_others_off(hub: &Hub) {
    let Some(voter) = &hub.voter else { return };
    let standing = *voter.machine.standing.borrow();
    let ends = standing.closed || standing.cancelled;
    let patience = match (standing.closed, standing.cancelled) {
        (true, _) => hub.options.end_wait.max(FAREWELL),
        // The others may have to end what they have in hand.
        (_, true) => FAREWELL_DRAINING,
        _ if hub.leaving.load(Ordering::Acquire) => FAREWELL,
        _ => return,
    };
    // Too few to agree on anything without this node: they may be leaving, too.
    let strands = |roster: &Roster| {
        let voters = roster.sessions.values().filter(|session| session.votes).count();
        (1..hub.options.majority()).contains(&voters)
    };
    let gone = async {
        let (mut tick, mut led) = (interval(LOOK), Instant::now());
        let mut changes = voter.machine.standing.clone();
        // Another run may have begun since.
        let is_over = || {
            let now = *voter.machine.standing.borrow();
            ends && (now.closed || now.cancelled)
        };
        while let Ok(roster) = voter.machine.ask(Request::Roster).await
            && if is_over() { !roster.sessions.is_empty() || roster.owed } else { strands(&roster) }
            && led.elapsed() < FAREWELL_ALONE
        {
            tokio::select! {
                _ = tick.tick() => {}
                Ok(()) = changes.changed() => {}
            }
            if hub.metrics().is_some_and(|metrics| metrics.current_leader.is_some()) {
                led = Instant::now();
            }
        }
    };
    drop(tokio::time::timeout(patience, gone).await);
    if hub.leads().is_some() {
        // That the last one has left is heard with the next heartbeat, and who has heard it goes.
        let parted = async {
            for link in hub.others().filter_map(|(seat, _)| hub.link(seat)) {
                drop(link.peer().wait_for(Option::is_none).await);
            }
        };
        drop(tokio::time::timeout(2 * HEARTBEAT, parted).await);
    }
}
