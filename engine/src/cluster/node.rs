//! What all parts of a node share: who it is, its links, its raft, its machine.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use openraft::{RaftMetrics, ServerState};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};

use crate::cluster::ClusterOptions;
use crate::cluster::leader::connections::Connections;
use crate::cluster::messages::{BatchItem, Raft, VERSION, seat_of};
use crate::cluster::peers::{self, Peers};
use crate::cluster::raft_log::RaftLog;
use crate::cluster::replica::thread::ReplicaHandle;
use crate::ledger::{Reply, Seat, SessionId};
use crate::store::StoreError;
use crate::wire::{CallError, Hello, HelloSource, PeerRole, WireClient, WireLimits};

/// Name of the identity among this node's records.
pub(crate) const IDENTITY: &str = "identity";
/// What a disk drew when it was new: it tells the disk from another in the same place.
pub(crate) const DISK: &str = "disk";
/// Name of the disks that this one founded its cluster with.
pub(crate) const FOUNDERS: &str = "founders";
/// Name of the mark that this disk has asked for a number of its own.
pub(crate) const MINTING: &str = "minting";

/// What was longer ago may not be any more.
const MOMENT: Duration = Duration::from_secs(5);

/// NodeDescription a node's disk is; kept from its first start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub seat: Seat,
    pub raft_id: u64,
}

/// Why something was not proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Another seat leads, if one does.
    NotLeader(Option<Seat>),
    /// The node is ending.
    Closing,
}

/// Answers and the entry they came with.
pub(crate) type Proposed = Result<(Vec<Reply>, u64), Refusal>;

/// Something the leader is to put before the others.
pub(crate) struct Proposal {
    pub items: Vec<BatchItem>,
    pub respond: oneshot::Sender<Proposed>,
}

/// The parts of a node that has a vote.
pub(crate) struct Voter {
    pub log: RaftLog,
    pub machine: ReplicaHandle,
    pub proposals: mpsc::Sender<Proposal>,
    /// Those who ask for jobs, where there is an order among them.
    pub asking: mpsc::Sender<Proposal>,
    pub raft: OnceLock<Raft>,
    /// Sessions that have given a sign of life since the last beat, and who waits for the next.
    pub renewals: Mutex<BTreeMap<SessionId, Vec<oneshot::Sender<bool>>>>,
    /// Whose connections are there, and whose are gone.
    pub guests: Connections,
    /// When the leader was last heard, or a vote given: patience counts from there.
    pub heard: watch::Sender<Instant>,
    /// Since when this node was seen to lead, if it does.
    pub led_since: Mutex<Option<Instant>>,
    /// When a leader last spoke to this node, if one did.
    pub spoke: Mutex<Option<Instant>>,
}

impl Voter {
    /// A leader speaks.
    pub(crate) fn hear_leader(&self) {
        let now = Instant::now();
        *locked(&self.spoke) = Some(now);
        self.heard.send_replace(now);
    }
}

/// What all parts of a node share.
pub(crate) struct Hub {
    pub options: ClusterOptions,
    /// Drawn anew at every start.
    pub life: u64,
    pub identity: Mutex<Option<Identity>>,
    links: BTreeMap<Seat, WireClient>,
    /// Set for a node with a vote.
    pub voter: Option<Voter>,
    /// The newest entry that an answer came with: nothing older is read afterwards.
    pub index: AtomicU64,
    /// The process was asked to stop.
    pub leaving: AtomicBool,
    /// The node has left the ledger for good and ends as soon as nobody needs it.
    pub ending: AtomicBool,
    /// Another node is about to lead in the place of this one, which proposes nothing meanwhile.
    pub aside: AtomicBool,
    /// Why this node cannot go on.
    pub fatal: watch::Sender<Option<StoreError>>,
    /// NodeDescription led last, as far as this node was told.
    hint: Mutex<Option<Seat>>,
    /// NodeDescription refuses this node, and with which words.
    refusals: Mutex<BTreeMap<Seat, CallError>>,
}

impl Hub {
    pub(crate) fn new(options: ClusterOptions, voter: Option<Voter>) -> Arc<Self> {
        let identity = voter.as_ref().and_then(|voter| voter.log.local(IDENTITY));
        let fatal = watch::Sender::new(None);
        Arc::new_cyclic(|hub: &std::sync::Weak<Self>| {
            let hub = hub.clone();
            let life = random();
            let role = if options.votes { PeerRole::Voter } else { PeerRole::Worker };
            let seat = options.seat;
            let introduce: HelloSource = Arc::new(move || match hub.upgrade() {
                Some(hub) => hub.hello(),
                None => nobody(role, seat, life, String::new()),
            });
            let credentials = Arc::new(options.credentials());
            let links = options.peers.iter().filter(|(peer, _)| voter.is_none() || **peer != seat);
            let links = links.map(|(peer, address)| {
                let (credentials, introduce) = (Arc::clone(&credentials), Arc::clone(&introduce));
                (
                    *peer,
                    WireClient::new(address.clone(), credentials, introduce, WireLimits::default()),
                )
            });
            Self {
                life,
                identity: Mutex::new(identity),
                links: links.collect(),
                voter,
                index: AtomicU64::new(0),
                leaving: AtomicBool::new(false),
                ending: AtomicBool::new(false),
                aside: AtomicBool::new(false),
                fatal,
                hint: Mutex::new(None),
                refusals: Mutex::default(),
                options,
            }
        })
    }

    /// How this node introduces itself.
    pub(crate) fn hello(&self) -> Hello {
        let role = if self.options.votes { PeerRole::Voter } else { PeerRole::Worker };
        Hello {
            raft_id: self.raft_id(),
            cluster_id: self.voter.as_ref().and_then(|voter| *voter.machine.cluster.borrow()),
            ..nobody(role, self.options.seat, self.life, peers::written(self.peers()))
        }
    }

    /// The raft number of this node's disk, if it has one.
    pub(crate) fn raft_id(&self) -> u64 {
        locked(&self.identity).map_or(0, |identity| identity.raft_id)
    }

    pub(crate) fn link(&self, seat: Seat) -> Option<WireClient> {
        self.links.get(&seat).cloned()
    }

    pub(crate) fn peers(&self) -> &Peers {
        &self.options.peers
    }

    /// The other seats with a vote.
    pub(crate) fn others(&self) -> impl Iterator<Item = (Seat, &WireClient)> {
        self.links.iter().map(|(seat, link)| (*seat, link))
    }

    pub(crate) fn raft(&self) -> Option<&Raft> {
        self.voter.as_ref().and_then(|voter| voter.raft.get())
    }

    pub(crate) fn metrics(&self) -> Option<RaftMetrics<u64, openraft::BasicNode>> {
        self.raft().map(|raft| raft.metrics().borrow().clone())
    }

    /// The term this node leads, if it leads and goes on to.
    pub(crate) fn leads(&self) -> Option<u64> {
        if self.aside.load(Ordering::Acquire) {
            return None;
        }
        let metrics = self.raft()?.metrics();
        let metrics = metrics.borrow();
        (metrics.state == ServerState::Leader).then_some(metrics.current_term)
    }

    /// NodeDescription leads, as far as this node knows.
    pub(crate) fn leader(&self) -> Option<Seat> {
        let known = self.raft().and_then(|raft| raft.metrics().borrow().current_leader);
        let known = known.map(seat_of);
        known.or(*locked(&self.hint))
    }

    /// Whether a leader was heard a moment ago, or this node leads and was confirmed.
    pub(crate) fn is_led(&self) -> bool {
        let (Some(voter), Some(metrics)) = (&self.voter, self.metrics()) else { return false };
        let confirmed =
            metrics.millis_since_quorum_ack.is_some_and(|ms| u128::from(ms) < MOMENT.as_millis());
        let leads = metrics.state == ServerState::Leader;
        confirmed || !leads && voter.heard.borrow().elapsed() < MOMENT
    }

    pub(crate) fn believe(&self, leader: Option<Seat>) {
        *locked(&self.hint) = leader;
    }

    /// What came of the last word to a node; whoever refuses this one is named once, at once.
    pub(crate) fn note(&self, seat: Seat, error: Option<&CallError>) {
        let mut refusals = locked(&self.refusals);
        match error {
            Some(error @ CallError::Refused { .. }) => {
                if refusals.insert(seat, error.clone()).as_ref() != Some(error) {
                    tracing::warn!("node {} at {error}", seat.0);
                }
            }
            // Whether it still would, nobody knows.
            Some(_) => {}
            None => drop(refusals.remove(&seat)),
        }
    }

    /// Why a node does not speak with this one, if it refuses to.
    pub(crate) fn refusal(&self, seat: Seat) -> Option<CallError> {
        locked(&self.refusals).get(&seat).cloned()
    }

    /// Whatever is read from now on is at least as new as that entry.
    pub(crate) fn saw(&self, index: u64) {
        self.index.fetch_max(index, Ordering::AcqRel);
    }

    /// Ends this node for a reason; the first one counts.
    pub(crate) fn fail(&self, error: StoreError) {
        self.fatal.send_if_modified(|known| {
            let news = known.is_none();
            if news {
                *known = Some(error);
            }
            news
        });
    }

    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.fatal.borrow().clone()
    }
}

fn nobody(role: PeerRole, seat: Seat, life: u64, peers: String) -> Hello {
    Hello { version: VERSION, role, seat: seat.0, raft_id: 0, cluster_id: None, life, peers }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number that nobody can foresee.
pub(crate) fn random() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u128(std::time::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos()));
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// A duration between two others, drawn anew each time.
pub(crate) fn random_between(least: Duration, most: Duration) -> Duration {
    let span = most.saturating_sub(least).as_micros().max(1) as u64;
    least + Duration::from_micros(random() % span)
}
