//! How a node starts: it opens its files, listens, gets its raft number, and starts raft. The first
//! nodes create the cluster.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use openraft::{BasicNode, Config, SnapshotPolicy};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::cluster::client::{ClusterClient, Submission};
use crate::cluster::damaged::put_aside;
use crate::cluster::election::{self, Leadership};
use crate::cluster::identity::{
    NodeIdentity, acquire, describe_others, founding_grace, mint_for_damaged,
};
use crate::cluster::leader::batch::Proposal;
use crate::cluster::leader::beat::LocalLeader;
use crate::cluster::leader::connections::Connections;
use crate::cluster::leader::placement::LeaderQueue;
use crate::cluster::leader::{batch, beat, members, placement};
use crate::cluster::messages::{Raft, raft_id};
use crate::cluster::operator::{self, ClusterControl};
use crate::cluster::peers::{PeerClients, Peers};
use crate::cluster::permissions::Permissions;
use crate::cluster::raft_log::{RaftLog, RaftLogThread};
use crate::cluster::raft_network::RaftPeers;
use crate::cluster::replica::chunks;
use crate::cluster::replica::raft::StateMachine;
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaThread};
use crate::cluster::server::ClusterServer;
use crate::cluster::status::reader::StatusReader;
use crate::cluster::stop::{ClusterThread, Departing};
use crate::cluster::{ClusterHandle, ClusterOptions, Failure, watchdogs};
use crate::ledger::{Run, Seat};
use crate::store::StoreError;
use crate::store::lock::DirLock;
use crate::threads::pause::pause;
use crate::wire::{HelloSource, WireLimits, WireListener};

/// Submissions that wait for the client. Those that were queued together count as one.
const SUBMISSIONS_MAX: usize = 1024;
/// Proposals that wait for the leader.
const PROPOSALS_MAX: usize = 1024;
/// Time between two heartbeats, and the longest time that one message may take.
pub(super) const HEARTBEAT: Duration = Duration::from_millis(150);
/// Pause before a node that creates a cluster looks for its peers again.
const FOUNDING_INTERVAL: Duration = Duration::from_millis(12);
/// How long tasks may run on while the node ends.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// Smallest and largest file of the log, in bytes.
const LOG_FILE_BYTES: (u64, u64) = (16 << 10, 8 << 20);

/// The files of a node with a vote, and the threads that write them.
struct Storage {
    log: RaftLog,
    replica: ReplicaHandle,
    threads: (RaftLogThread, ReplicaThread),
}

/// The receivers of what the leader is asked.
struct LeaderInbox {
    proposals: mpsc::Receiver<Proposal>,
    takes: mpsc::Receiver<Proposal>,
}

impl ClusterHandle {
    /// Opens the data directory and joins or creates the cluster. Blocks until the node has a raft
    /// number, `quorum_timeout` at most.
    pub(crate) fn open(options: ClusterOptions) -> Result<(Self, ClusterThread), StoreError> {
        let lock = DirLock::take(&options.dir)?;
        let (end, ended) = oneshot::channel();
        let (runtime, thread) = start_runtime(ended)
            .map_err(|error| StoreError::Failed(format!("no runtime for the cluster: {error}")))?;
        let failure = Failure::new();
        let opened = Storage::open_or_replace(&runtime, &options, &failure)?;
        let (storage, new_disk) = opened.map_or((None, None), |(files, new)| (Some(files), new));
        let (parts, inbox) = Parts::new(&options, storage.as_ref(), failure);
        let (submissions, submitted) = mpsc::channel(SUBMISSIONS_MAX);
        let (stop, stopped) = watch::channel(false);
        let started = runtime.block_on(async {
            parts.start_tasks(&options, submitted, &stopped);
            let Some(Storage { log, replica, .. }) = &storage else {
                let (client, failure) = (parts.client.clone(), parts.failure.clone());
                return Ok((watchdogs::follow_standing(&options, client, failure), None));
            };
            let (log, replica) = (log.clone(), replica.clone());
            let standing = replica.standing.clone();
            let connections = Arc::default();
            let voter = VoterStart { options: &options, parts: &parts, log, replica, connections };
            voter.start(inbox, new_disk, stopped).await.map(|last_run| (standing, last_run))
        });
        let replica = storage.as_ref().map(|storage| storage.replica.clone());
        let departing = replica.clone().map(|replica| Departing {
            seat: options.seat,
            end_wait: options.end_wait,
            majority: options.majority(),
            replica,
            peers: Arc::clone(&parts.peers),
            leadership: Arc::clone(&parts.leadership),
            client: parts.client.clone(),
        });
        let (threads, dir) = (storage.map(|storage| storage.threads), options.dir);
        let ended = ClusterThread { departing, runtime, end, thread, stop, threads, dir, lock };
        match started {
            Ok((standing, run_at_start)) => {
                let handle = Self {
                    client: parts.client,
                    submissions,
                    peers: parts.peers,
                    leadership: parts.leadership,
                    replica,
                    standing,
                    run_at_start: Arc::new(run_at_start),
                    failure: parts.failure,
                    runtime: ended.runtime.clone(),
                    chunk_permits: Arc::new(Semaphore::new(chunks::COMMANDS_AT_ONCE)),
                    life: parts.identity.life,
                };
                Ok((handle, ended))
            }
            Err(error) => {
                ended.close();
                Err(error)
            }
        }
    }
}

/// The parts of every node, with a vote or without. Only the start sees all of them.
struct Parts {
    identity: Arc<NodeIdentity>,
    peers: Arc<PeerClients>,
    leadership: Arc<Leadership>,
    local: LocalLeader,
    client: ClusterClient,
    status: Arc<StatusReader>,
    failure: Failure,
}

impl Parts {
    fn new(
        options: &ClusterOptions,
        storage: Option<&Storage>,
        failure: Failure,
    ) -> (Self, LeaderInbox) {
        let identity = NodeIdentity::new(options, storage.map(|one| (&one.log, &one.replica)));
        let peers = PeerClients::new(options, &hello_of(&identity));
        let leadership = Leadership::new();
        let (queue, inbox) = leader_queue(options);
        let local = LocalLeader { queue, renewals: Arc::default() };
        let client = ClusterClient::new(
            Arc::clone(&peers),
            Arc::clone(&leadership),
            storage.map(|_| local.clone()),
            failure.clone(),
        );
        let status = Arc::new(StatusReader {
            identity: Arc::clone(&identity),
            peers: Arc::clone(&peers),
            leadership: Arc::clone(&leadership),
            client: client.clone(),
            replica: storage.map(|storage| storage.replica.clone()),
        });
        (Self { identity, peers, leadership, local, client, status, failure }, inbox)
    }

    /// Starts the tasks of every node. Operators are answered from the start.
    fn start_tasks(
        &self,
        options: &ClusterOptions,
        submitted: mpsc::Receiver<Vec<Submission>>,
        stopped: &watch::Receiver<bool>,
    ) {
        tokio::spawn(self.client.clone().run(submitted));
        let (status, client) = (Arc::clone(&self.status), self.client.clone());
        let control = Arc::new(ClusterControl { status, client: client.clone() });
        let (dir, stopped) = (options.dir.clone(), stopped.clone());
        tokio::spawn(async move { operator::serve(&dir, control, stopped).await });
        let (peers, leadership) = (Arc::clone(&self.peers), Arc::clone(&self.leadership));
        let options = options.clone();
        tokio::spawn(watchdogs::warn_while_forming(options, peers, leadership, client));
    }
}

/// Starts the thread that runs raft and all connections. It ends when the sender is dropped.
fn start_runtime(ended: oneshot::Receiver<()>) -> io::Result<(Handle, JoinHandle<()>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new().name("raft".to_owned()).spawn(move || {
        let _dropped = runtime.block_on(ended).is_err();
        runtime.shutdown_timeout(RUNTIME_SHUTDOWN_TIMEOUT);
    })?;
    Ok((handle, thread))
}

fn hello_of(identity: &Arc<NodeIdentity>) -> HelloSource {
    let identity = Arc::clone(identity);
    Arc::new(move || identity.hello())
}

fn leader_queue(options: &ClusterOptions) -> (LeaderQueue, LeaderInbox) {
    let (proposals, proposed) = mpsc::channel(PROPOSALS_MAX);
    let (takes, taken) = mpsc::channel(PROPOSALS_MAX);
    let queue = LeaderQueue { proposals, takes, placement: options.placement };
    (queue, LeaderInbox { proposals: proposed, takes: taken })
}

impl Storage {
    fn open(options: &ClusterOptions, failure: &Failure) -> Result<Self, StoreError> {
        let fail = || {
            let failure = failure.clone();
            move |error| failure.set(error)
        };
        // Several files per snapshot, so that each snapshot makes some of them superfluous.
        let file_bytes = (options.snapshot_bytes / 4).clamp(LOG_FILE_BYTES.0, LOG_FILE_BYTES.1);
        let (log, log_thread) = RaftLog::open(&options.dir, file_bytes, fail())?;
        let (replica, replica_thread) =
            ReplicaHandle::open(&options.dir, options.seen_memory, log.clone(), fail())?;
        Ok(Self { log, replica, threads: (log_thread, replica_thread) })
    }

    /// Opens the files of a node with a vote. Damaged files are kept aside, and the node begins with a new
    /// disk, whose incarnation is returned. Without a cluster that could rebuild the node, the damage is
    /// an error.
    fn open_or_replace(
        runtime: &Handle,
        options: &ClusterOptions,
        failure: &Failure,
    ) -> Result<Option<(Self, Option<u32>)>, StoreError> {
        if !options.votes {
            return Ok(None);
        }
        let damage = match Self::open(options, failure) {
            Err(StoreError::Damaged(damage)) => damage,
            opened => return opened.map(|storage| Some((storage, None))),
        };
        let identity = NodeIdentity::new(options, None);
        let peers = PeerClients::new(options, &hello_of(&identity));
        let client =
            ClusterClient::new(Arc::clone(&peers), Leadership::new(), None, Failure::new());
        let minted = runtime.block_on(mint_for_damaged(options, &peers, &client))?;
        let Some(incarnation) = minted else { return Err(StoreError::Damaged(damage)) };
        let aside = put_aside(&options.dir)?;
        tracing::warn!(
            "the data directory is damaged; this node is rebuilt from the others, and the damaged files \
             are kept in `{}`: {damage}",
            aside.display()
        );
        Ok(Some((Self::open(options, failure)?, Some(incarnation))))
    }
}

/// Starts what only a node with a vote has.
struct VoterStart<'a> {
    options: &'a ClusterOptions,
    parts: &'a Parts,
    log: RaftLog,
    replica: ReplicaHandle,
    connections: Arc<Connections>,
}

impl VoterStart<'_> {
    async fn start(
        &self,
        inbox: LeaderInbox,
        new_disk: Option<u32>,
        stopped: watch::Receiver<bool>,
    ) -> Result<Option<Run>, StoreError> {
        let Parts { identity, peers, leadership, local, client, .. } = self.parts;
        let replica = &self.replica;
        tokio::spawn(batch::run(inbox.proposals, Arc::clone(leadership), replica.clone()));
        tokio::spawn(placement::run(inbox.takes, replica.clone(), local.queue.clone()));
        if let Some(incarnation) = new_disk {
            identity.keep_number_of_new_disk(&self.log, incarnation).await?;
        }
        self.listen(stopped).await?;
        acquire(self.options, identity, &self.log, peers, client).await?;
        let run_at_start = self.start_raft().await?;
        self.start_tasks();
        Ok(run_at_start)
    }

    async fn listen(&self, stopped: watch::Receiver<bool>) -> Result<(), StoreError> {
        let (address, node) = (&self.options.listen, self.options.seat.0);
        let listener = WireListener::bind(address).await.map_err(|error| {
            StoreError::Excluded(format!("node {node} cannot listen on `{address}`: {error}"))
        })?;
        let Parts { identity, peers, leadership, client, status, .. } = self.parts;
        let server = ClusterServer {
            identity: Arc::clone(identity),
            peers: Arc::clone(peers),
            leadership: Arc::clone(leadership),
            client: client.clone(),
            log: self.log.clone(),
            replica: self.replica.clone(),
            connections: Arc::clone(&self.connections),
            permissions: Arc::new(Permissions::default()),
            status: Arc::clone(status),
        };
        let (credentials, hello) = (Arc::new(self.options.credentials()), hello_of(identity));
        let (limits, server) = (WireLimits::default(), Arc::new(server));
        tokio::spawn(listener.serve(credentials, hello, limits, server, stopped));
        Ok(())
    }

    /// Starts raft. Returns the run that this node knows before another node tells it anything.
    async fn start_raft(&self) -> Result<Option<Run>, StoreError> {
        let Parts { identity, peers, leadership, failure, .. } = self.parts;
        let own = identity.raft_id();
        let config = raft_config(&self.options.name).validate();
        let config = config.map_err(|error| StoreError::Failed(error.to_string()))?;
        let network = RaftPeers::new(
            Arc::clone(identity),
            Arc::clone(peers),
            Arc::clone(&self.connections),
            self.replica.standing.clone(),
            self.options.majority(),
        );
        let (replica, log) = (self.replica.clone(), self.log.clone());
        let machine = StateMachine::new(replica, log, Arc::downgrade(leadership));
        let raft = Raft::new(own, Arc::new(config), network, self.log.clone(), machine).await;
        let raft = raft.map_err(|error| {
            failure.get().unwrap_or_else(|| StoreError::Failed(error.to_string()))
        })?;
        let run_at_start = self.replica.last_run().await?;
        leadership.set_raft(raft.clone());
        if own == raft_id(self.options.seat, 0) && self.log.is_empty() {
            tokio::spawn(create_cluster(self.options.clone(), Arc::clone(peers), raft));
        }
        Ok(run_at_start)
    }

    fn start_tasks(&self) {
        let Self { options, parts, log, replica, connections } = self;
        let peers = || Arc::clone(&parts.peers);
        let leadership = || Arc::clone(&parts.leadership);
        let (log, replica) = (|| log.clone(), || replica.clone());
        tokio::spawn(election::watch(leadership(), peers(), log(), options.majority()));
        tokio::spawn(beat::run(
            options.beat,
            leadership(),
            replica(),
            parts.local.clone(),
            Arc::clone(connections),
        ));
        tokio::spawn(members::run(leadership(), replica(), peers()));
        tokio::spawn(watchdogs::limit_log(options.snapshot_bytes, log(), replica(), leadership()));
        tokio::spawn(watchdogs::watch_quorum(
            options.loss_exit,
            peers(),
            leadership(),
            parts.client.clone(),
            parts.failure.clone(),
        ));
    }
}

fn raft_config(name: &str) -> Config {
    Config {
        cluster_name: name.to_owned(),
        heartbeat_interval: HEARTBEAT.as_millis() as u64,
        election_timeout_min: election::LEASE.as_millis() as u64 - 1,
        election_timeout_max: election::LEASE.as_millis() as u64,
        // `election` decides when to stand.
        enable_elect: false,
        install_snapshot_timeout: 10_000,
        max_payload_entries: 64,
        replication_lag_threshold: 50,
        // `watchdogs` decides when to make a snapshot.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: 500,
        purge_batch_size: 256,
        ..Config::default()
    }
}

/// Creates a new cluster. The first node on the list of peers does so once all nodes have raft
/// numbers. The other nodes wait longer, in case the first one does not start. Raft refuses if a leader
/// has contacted this node before.
async fn create_cluster(options: ClusterOptions, peers: Arc<PeerClients>, raft: Raft) {
    let is_first = options.peers.keys().next() == Some(&options.seat);
    let grace = founding_grace(&options);
    let deadline = Instant::now() + if is_first { grace / 3 } else { grace };
    while Instant::now() < deadline {
        if raft.is_initialized().await.unwrap_or(true) {
            return;
        }
        if is_first {
            let found = describe_others(&peers).await;
            if found.len() + 1 == options.peers.len()
                && found.values().all(|other| other.raft_id != 0)
            {
                break;
            }
        }
        pause(FOUNDING_INTERVAL).await;
    }
    drop(raft.initialize(first_members(&options.peers)).await);
}

fn first_members(peers: &Peers) -> BTreeMap<u64, BasicNode> {
    let member =
        |(seat, address): (&Seat, &String)| (raft_id(*seat, 0), BasicNode::new(address.clone()));
    peers.iter().map(member).collect()
}
