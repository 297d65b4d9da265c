//! How a node gets its raft number.
//!
//! Raft must never mistake an empty disk for the one that voted before. So each disk of a node has a
//! separate number, which the node keeps in its data directory:
//!
//! | the data directory | its peers | the number |
//! | --- | --- | --- |
//! | has a number | | is kept |
//! | is new | a majority has new disks, too | the first of this node: they create a cluster |
//! | is new | created the cluster with this disk a moment ago | the first of this node |
//! | is new or damaged | have a cluster | the next of this node: the cluster agrees on it |

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::cluster::client::ClusterClient;
use crate::cluster::messages::{NodeDescription, PeerRequest, PeerResponse, VERSION, raft_id};
use crate::cluster::peers::{self, PeerClients};
use crate::cluster::raft_log::RaftLog;
use crate::cluster::replica::thread::ReplicaHandle;
use crate::cluster::{ClusterOptions, locked, random};
use crate::ledger::{Command, Reply, Seat};
use crate::store::StoreError;
use crate::threads::pause::pause;
use crate::wire::{Hello, PeerRole};

/// Record of the raft number among the records that a node keeps for itself.
const IDENTITY: &str = "identity";
/// Record of the random number that tells a disk from any other.
pub(crate) const DISK: &str = "disk";
/// Record of the disks that created the cluster together with this one.
pub(crate) const FOUNDERS: &str = "founders";
/// Record that this disk has asked the cluster for a number.
const MINTING: &str = "minting";

/// A majority can create a cluster, but waits this long for the remaining nodes.
const FOUNDING_GRACE: Duration = Duration::from_secs(3);
/// How long another node may take to describe itself.
const DESCRIBE_TIMEOUT: Duration = Duration::from_millis(500);
/// Pause before the peers are asked again.
const DESCRIBE_INTERVAL: Duration = Duration::from_millis(50);

/// The number of a disk, kept from its first start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DiskNumber {
    pub seat: Seat,
    pub raft_id: u64,
}

/// The identity of this node.
pub(crate) struct NodeIdentity {
    pub seat: Seat,
    /// Random number of this process.
    pub life: u64,
    role: PeerRole,
    peers: String,
    disk: Mutex<Option<DiskNumber>>,
    /// The name of the cluster; `None` for a node without a vote.
    cluster: Option<watch::Receiver<Option<u128>>>,
}

impl NodeIdentity {
    /// A node without a vote has no log and no replica.
    pub(crate) fn new(
        options: &ClusterOptions,
        voter: Option<(&RaftLog, &ReplicaHandle)>,
    ) -> Arc<Self> {
        Arc::new(Self {
            seat: options.seat,
            life: random(),
            role: if options.votes { PeerRole::Voter } else { PeerRole::Worker },
            peers: peers::written(&options.peers),
            disk: Mutex::new(voter.and_then(|(log, _)| log.local(IDENTITY))),
            cluster: voter.map(|(_, replica)| replica.cluster.clone()),
        })
    }

    /// How this node introduces itself on a connection.
    pub(crate) fn hello(&self) -> Hello {
        Hello {
            version: VERSION,
            role: self.role,
            seat: self.seat.0,
            raft_id: self.raft_id(),
            cluster_id: self.cluster.as_ref().and_then(|cluster| *cluster.borrow()),
            life: self.life,
            peers: self.peers.clone(),
        }
    }

    /// The raft number of this node's disk; 0 while it has none.
    pub(crate) fn raft_id(&self) -> u64 {
        self.disk_number().map_or(0, |disk| disk.raft_id)
    }

    pub(crate) fn disk_number(&self) -> Option<DiskNumber> {
        *locked(&self.disk)
    }

    /// Gives this node's disk a number and keeps it.
    async fn keep_number(&self, log: &RaftLog, incarnation: u32) -> Result<(), StoreError> {
        let seat = self.seat;
        let number = DiskNumber { seat, raft_id: raft_id(seat, incarnation) };
        log.keep(IDENTITY, &number).await?;
        *locked(&self.disk) = Some(number);
        Ok(())
    }

    /// Gives the disk that replaces a damaged one its number.
    pub(crate) async fn keep_number_of_new_disk(
        &self,
        log: &RaftLog,
        incarnation: u32,
    ) -> Result<(), StoreError> {
        log.keep(DISK, &random().max(1)).await?;
        self.keep_number(log, incarnation).await
    }
}

/// How long the nodes that create a cluster wait for the remaining ones.
pub(crate) fn founding_grace(options: &ClusterOptions) -> Duration {
    FOUNDING_GRACE.min(options.quorum_timeout / 4)
}

/// The next step of a node with a new disk.
#[derive(Debug, PartialEq, Eq)]
enum NumberChoice {
    /// Take the first number: this disk creates the cluster with its peers, or has done so.
    First {
        creates: bool,
    },
    /// Have the cluster agree on the next number.
    Next,
    /// Ask the peers again.
    Wait,
    GiveUp,
}

/// The facts that a node with a new disk knows.
struct NewDisk<'a> {
    seat: Seat,
    disk: u64,
    /// Whether it has asked a cluster for a number.
    has_asked: bool,
    /// The descriptions of its peers.
    found: &'a BTreeMap<Seat, NodeDescription>,
    waited: Duration,
}

impl NewDisk<'_> {
    fn choose(&self, options: &ClusterOptions) -> NumberChoice {
        if self.found.values().any(|other| other.established) {
            let mut founders = self.found.values().flat_map(|other| &other.founders);
            let is_founder = founders.any(|founder| *founder == (self.seat, self.disk));
            return if is_founder && !self.has_asked {
                NumberChoice::First { creates: false }
            } else {
                NumberChoice::Next
            };
        }
        let fresh = 1 + self.found.values().filter(|other| other.fresh).count();
        let is_majority = fresh >= options.majority();
        if fresh == options.peers.len() || is_majority && self.waited >= founding_grace(options) {
            NumberChoice::First { creates: true }
        } else if self.waited >= options.quorum_timeout {
            NumberChoice::GiveUp
        } else {
            NumberChoice::Wait
        }
    }
}

/// Gives this node's disk its number, as the table at the top says.
pub(crate) async fn acquire(
    options: &ClusterOptions,
    identity: &NodeIdentity,
    log: &RaftLog,
    peers: &PeerClients,
    client: &ClusterClient,
) -> Result<(), StoreError> {
    let seat = options.seat;
    match identity.disk_number() {
        Some(known) if known.seat == seat => return Ok(()),
        Some(known) => {
            return Err(StoreError::Excluded(format!(
                "`{}` belongs to node {}, not to node {}",
                options.dir.display(),
                known.seat.0,
                seat.0
            )));
        }
        None => {}
    }
    let known = log.local::<u64>(DISK);
    let disk = known.unwrap_or_else(|| random().max(1));
    if known.is_none() {
        log.keep(DISK, &disk).await?;
    }
    let began = Instant::now();
    let incarnation = loop {
        let found = describe_others(peers).await;
        let has_asked = log.local::<bool>(MINTING).is_some();
        let new = NewDisk { seat, disk, has_asked, found: &found, waited: began.elapsed() };
        match new.choose(options) {
            NumberChoice::First { creates } => {
                if creates {
                    let others = found.iter().filter(|(_, other)| other.fresh);
                    let others = others.map(|(seat, other)| (*seat, other.disk));
                    let founders: Vec<(Seat, u64)> = others.chain([(seat, disk)]).collect();
                    log.keep(FOUNDERS, &founders).await?;
                }
                break 0;
            }
            NumberChoice::Next => {
                log.keep(MINTING, &true).await?;
                break mint(options, peers, client, began).await?;
            }
            NumberChoice::Wait => pause(DESCRIBE_INTERVAL).await,
            NumberChoice::GiveUp => return Err(not_formed(options, peers, &found)),
        }
    };
    identity.keep_number(log, incarnation).await
}

/// Has the cluster agree on a number for the disk that replaces a damaged one. A cluster that does so
/// has a majority, so the node can be rebuilt. `None` if no cluster answers.
pub(crate) async fn mint_for_damaged(
    options: &ClusterOptions,
    peers: &PeerClients,
    client: &ClusterClient,
) -> Result<Option<u32>, StoreError> {
    let began = Instant::now();
    while !describe_others(peers).await.values().any(|other| other.established) {
        if began.elapsed() >= FOUNDING_GRACE {
            return Ok(None);
        }
        pause(DESCRIBE_INTERVAL).await;
    }
    match mint(options, peers, client, began).await {
        Err(error @ StoreError::Excluded(_)) => Err(error),
        minted => Ok(minted.ok()),
    }
}

/// Has the cluster agree on the next number of this node. There is none while another process runs as
/// this node, so it asks again until the timeout.
async fn mint(
    options: &ClusterOptions,
    peers: &PeerClients,
    client: &ClusterClient,
    began: Instant,
) -> Result<u32, StoreError> {
    let mint = Command::Mint { seat: options.seat, nonce: random() };
    let mut is_in_use = false;
    loop {
        let left = options.quorum_timeout.saturating_sub(began.elapsed());
        match tokio::time::timeout(left, client.submit_command(&mint)).await {
            Ok(Ok(Reply::Minted(incarnation))) => return Ok(incarnation),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(_)) => is_in_use = true,
            Err(_) if is_in_use => return Err(in_use(options)),
            Err(_) => return Err(not_formed(options, peers, &describe_others(peers).await)),
        }
        pause(options.beat.min(left)).await;
    }
}

fn in_use(options: &ClusterOptions) -> StoreError {
    let (seat, timeout) = (options.seat.0, options.quorum_timeout.as_secs());
    StoreError::Excluded(format!(
        "another process runs as node {seat}, with another data directory than `{}`, and was still \
         alive after {timeout} s: stop that process, or start this one as another node (`--node-id`)",
        options.dir.display()
    ))
}

/// Asks all other nodes to describe themselves; those that do not answer are missing.
pub(crate) async fn describe_others(peers: &PeerClients) -> BTreeMap<Seat, NodeDescription> {
    let asked = peers.others().map(|(seat, _)| async move {
        match peers.ask(seat, &PeerRequest::Describe, DESCRIBE_TIMEOUT).await {
            Some(PeerResponse::Description(description)) => Some((seat, description)),
            _ => None,
        }
    });
    futures_util::future::join_all(asked).await.into_iter().flatten().collect()
}

fn not_formed(
    options: &ClusterOptions,
    peers: &PeerClients,
    found: &BTreeMap<Seat, NodeDescription>,
) -> StoreError {
    let silent = peers.others().map(|(seat, _)| seat).filter(|seat| !found.contains_key(seat));
    StoreError::NoQuorum(format!(
        "the cluster was not formed within {} s: {}",
        options.quorum_timeout.as_secs(),
        peers.describe_absent(silent)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Placement;

    const OWN: (Seat, u64) = (Seat(1), 11);

    fn options() -> ClusterOptions {
        ClusterOptions {
            dir: "d".into(),
            seat: OWN.0,
            votes: true,
            listen: String::new(),
            peers: (1..=3).map(|seat| (Seat(seat), String::new())).collect(),
            name: String::new(),
            secret: None,
            quorum_timeout: Duration::from_secs(30),
            loss_exit: Duration::from_secs(30),
            end_wait: Duration::ZERO,
            snapshot_bytes: 0,
            seen_memory: 0,
            placement: Placement::Any,
            beat: Duration::ZERO,
        }
    }

    fn other(fresh: bool, established: bool, founders: &[(Seat, u64)]) -> NodeDescription {
        let founders = founders.to_vec();
        NodeDescription { fresh, established, raft_id: 0, disk: 1, founders, agreed: 0 }
    }

    #[test]
    fn a_new_disk_creates_a_cluster_joins_one_or_waits() {
        let fresh = || other(true, false, &[]);
        let cluster = || other(false, true, &[]);
        let founder = || other(false, true, &[OWN]);
        let first = |creates| NumberChoice::First { creates };
        let cases: [(&str, Vec<NodeDescription>, bool, u64, NumberChoice); 9] = [
            ("all disks are new", vec![fresh(), fresh()], false, 0, first(true)),
            ("a majority is new, at first", vec![fresh()], false, 1, NumberChoice::Wait),
            ("a majority is new, after the grace", vec![fresh()], false, 4, first(true)),
            ("no other node answers", vec![], false, 4, NumberChoice::Wait),
            ("no other node answers in time", vec![], false, 30, NumberChoice::GiveUp),
            ("a cluster is there", vec![cluster()], false, 0, NumberChoice::Next),
            ("a cluster and a new disk", vec![cluster(), fresh()], false, 0, NumberChoice::Next),
            ("created with this disk", vec![founder()], false, 0, first(false)),
            ("created with it, but it asked", vec![founder()], true, 0, NumberChoice::Next),
        ];
        for (name, others, has_asked, waited, choice) in cases {
            let found: BTreeMap<Seat, _> = (2..).map(Seat).zip(others).collect();
            let (seat, disk) = OWN;
            let waited = Duration::from_secs(waited);
            let new = NewDisk { seat, disk, has_asked, found: &found, waited };
            assert_eq!(new.choose(&options()), choice, "{name}");
        }
    }
}
