//! How a node comes into its cluster: finds out whether there is one, founds it with the others or
//! takes its seat in it, and starts everything that runs on the node's own account.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use openraft::{BasicNode, Config, SnapshotPolicy};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval};

use crate::cluster::damaged::put_aside;
use crate::cluster::identity::{
    absent, founding_grace, look_round, mint_for_damaged, settle_anew, take_seat,
};
use crate::cluster::leader::connections::Connections;
use crate::cluster::leader::{batch, placement};
use crate::cluster::messages::{NodeDescription, PeerRequest, PeerResponse, Raft, raft_id};
use crate::cluster::node::{Hub, Proposal, Voter, locked};
use crate::cluster::raft_log::{RaftLog, RaftLogThread};
use crate::cluster::raft_network::RaftPeers;
use crate::cluster::replica::chunks;
use crate::cluster::replica::snapshot::StateMachine;
use crate::cluster::replica::thread::{ReplicaHandle, ReplicaRequest, ReplicaThread};
use crate::cluster::server::ClusterServer;
use crate::cluster::stop::ClusterThread;
use crate::cluster::{
    ClusterHandle, ClusterOptions, ERRANDS_MAX, Reception, client, election, operator,
};
use crate::ledger::{Seat, Standing};
use crate::store::StoreError;
use crate::store::lock::DirLock;
use crate::wire::{WireClient, WireLimits, WireListener};

/// Proposals that may wait for the leader.
const PROPOSALS_MAX: usize = 1024;
/// Time between two heartbeats, and the time one message may take.
pub(super) const HEARTBEAT: Duration = Duration::from_millis(150);
const LOOK: Duration = Duration::from_millis(50);
/// How long a node waits at least for the others to leave a closed run, and at most for those who could
/// not leave without it.
pub(super) const FAREWELL: Duration = Duration::from_secs(5);
/// A node that finds no cluster, or has lost it, says so after this time.
const UNTOLD: Duration = Duration::from_secs(5);
/// Patience with what runs on while the node ends.
const LAST_MOMENTS: Duration = Duration::from_secs(1);
/// How often the size of the log is looked at.
const WEIGH: Duration = Duration::from_secs(1);
/// Bytes of a file of the log, at least and at most.
const PART_BYTES: (u64, u64) = (16 << 10, 8 << 20);

impl ClusterHandle {
    /// Opens the data directory, listens, and comes into the cluster. Blocks until the node has a
    /// number in it, `quorum_timeout` at most.
    pub(crate) fn open(options: ClusterOptions) -> Result<(Self, ClusterThread), StoreError> {
        let lock = DirLock::take(&options.dir)?;
        let (proposals, proposed) = mpsc::channel(PROPOSALS_MAX);
        let (asking, asked) = mpsc::channel(PROPOSALS_MAX);
        let (stop, stopped) = watch::channel(false);
        let (errands, to_carry) = mpsc::channel(ERRANDS_MAX);
        let (end, ended) = oneshot::channel();
        let (runtime, thread) = start_runtime(ended)
            .map_err(|error| StoreError::Failed(format!("no runtime for the cluster: {error}")))?;
        let (hub, threads) = furnish_or_replace(&runtime, options, (proposals, asking))?;
        let thread = ClusterThread {
            hub: Arc::clone(&hub),
            runtime,
            end,
            thread,
            stop,
            voter: threads,
            lock,
        };
        let started = thread.runtime.block_on(async {
            tokio::spawn(client::carry(Arc::clone(&hub), to_carry));
            tokio::spawn(receive(Arc::clone(&hub), stopped.clone()));
            tokio::spawn(tell_whom_we_await(Arc::clone(&hub)));
            let Some(voter) = &hub.voter else { return Ok(watch_from_afar(&hub)) };
            tokio::spawn(batch::propose(Arc::clone(&hub), proposed));
            tokio::spawn(placement::usher(Arc::clone(&hub), asked));
            open_door(&hub, stopped).await?;
            take_seat(&hub).await?;
            start_raft(&hub).await?;
            Ok(voter.machine.standing.clone())
        });
        match started {
            Ok(standing) => {
                let runtime = thread.runtime.clone();
                let parcels = Arc::new(Semaphore::new(chunks::AT_ONCE));
                Ok((Self { hub, errands, standing, runtime, parcels }, thread))
            }
            Err(error) => {
                thread.close();
                Err(error)
            }
        }
    }
}

/// Starts the thread that carries everything of raft; it ends with its sender.
fn start_runtime(ended: oneshot::Receiver<()>) -> io::Result<(Handle, JoinHandle<()>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new().name("raft".to_owned()).spawn(move || {
        // Whoever holds the other end says nothing, and goes.
        let _gone = runtime.block_on(ended).is_err();
        runtime.shutdown_timeout(LAST_MOMENTS);
    })?;
    Ok((handle, thread))
}

/// The threads of a node that has a vote.
type Threads = (RaftLogThread, ReplicaThread);

/// Where a node puts forward what it is asked, and who asks for jobs.
type Counters = (mpsc::Sender<Proposal>, mpsc::Sender<Proposal>);

/// What all parts of the node share. Damaged files are put aside, and the node is another disk, if the
/// others have a number for it.
fn furnish_or_replace(
    runtime: &Handle,
    options: ClusterOptions,
    counters: Counters,
) -> Result<(Arc<Hub>, Option<Threads>), StoreError> {
    let words = match furnish(options.clone(), counters.clone()) {
        Err(StoreError::Damaged(words)) => words,
        other => return other,
    };
    let Some(incarnation) = runtime.block_on(mint_for_damaged(&options))? else {
        return Err(StoreError::Damaged(words));
    };
    let aside = put_aside(&options.dir)?;
    tracing::warn!(
        "data directory is damaged; this node is rebuilt from the others, and what was there is \
         kept in `{}`: {words}",
        aside.display()
    );
    let (hub, threads) = furnish(options, counters)?;
    runtime.block_on(settle_anew(&hub, incarnation))?;
    Ok((hub, threads))
}

/// What all parts of the node share; with a vote, its log and its ledger are opened.
fn furnish(
    options: ClusterOptions,
    (proposals, asking): Counters,
) -> Result<(Arc<Hub>, Option<Threads>), StoreError> {
    // The threads tell the hub of what they cannot mend, and the hub is made after them.
    let told: Arc<OnceLock<Arc<Hub>>> = Arc::default();
    let fatal = |told: &Arc<OnceLock<Arc<Hub>>>| {
        let told = Arc::clone(told);
        move |error: StoreError| {
            if let Some(hub) = told.get() {
                hub.fail(error);
            }
        }
    };
    let (mut voter, mut threads) = (None, None);
    if options.votes {
        // So that a snapshot makes some of them superfluous.
        let part_bytes = (options.snapshot_bytes / 4).clamp(PART_BYTES.0, PART_BYTES.1);
        let (log, log_thread) = RaftLog::open(&options.dir, part_bytes, fatal(&told))?;
        let (machine, machine_thread) =
            ReplicaHandle::open(&options.dir, options.seen_memory, log.clone(), fatal(&told))?;
        threads = Some((log_thread, machine_thread));
        voter = Some(Voter {
            log,
            machine,
            proposals,
            asking,
            raft: OnceLock::new(),
            renewals: Mutex::default(),
            guests: Connections::default(),
            heard: watch::Sender::new(Instant::now()),
            led_since: Mutex::default(),
            spoke: Mutex::default(),
        });
    }
    let hub = Hub::new(options, voter);
    drop(told.set(Arc::clone(&hub)));
    Ok((hub, threads))
}

async fn open_door(hub: &Arc<Hub>, stop: watch::Receiver<bool>) -> Result<(), StoreError> {
    let listen = &hub.options.listen;
    let door = WireListener::bind(listen).await.map_err(|error| {
        StoreError::Excluded(format!(
            "node {} cannot listen on `{listen}`: {error}",
            hub.options.seat.0
        ))
    })?;
    let desk = Arc::new(ClusterServer { hub: Arc::clone(hub), rights: Arc::default() });
    let owner = Arc::clone(hub);
    let introduce = Arc::new(move || owner.hello());
    let credentials = Arc::new(hub.options.credentials());
    tokio::spawn(door.serve(credentials, introduce, WireLimits::default(), desk, stop));
    Ok(())
}

/// Listens for operators on this machine, from the start: a node that waits can be asked for whom.
async fn receive(hub: Arc<Hub>, stop: watch::Receiver<bool>) {
    let dir = hub.options.dir.clone();
    operator::serve(&dir, Arc::new(Reception { hub }), stop).await;
}

/// Says for whom a node waits that finds no cluster; who refuses it has been named.
async fn tell_whom_we_await(hub: Arc<Hub>) {
    tokio::time::sleep_until(tokio::time::Instant::now() + UNTOLD).await;
    let is_silent = |seat: &Seat, link: &WireClient| {
        link.peer().borrow().is_none() && hub.refusal(*seat).is_none()
    };
    let silent = hub.others().filter(|(seat, link)| is_silent(seat, link));
    let silent: Vec<Seat> = silent.map(|(seat, _)| seat).collect();
    // NodeDescription has had an answer from the others was in before.
    let was_in = hub.index.load(Ordering::Acquire) > 0;
    if hub.leader().is_none() && !was_in && !silent.is_empty() {
        tracing::warn!(
            "waiting for enough nodes, {} s at most (`cluster.quorum.timeout`): {}",
            hub.options.quorum_timeout.as_secs(),
            absent(&hub, silent.into_iter())
        );
    }
}

/// A node without a vote follows the few numbers from any node that has one.
fn watch_from_afar(hub: &Arc<Hub>) -> watch::Receiver<Standing> {
    let (publish, standing) = watch::channel(Standing::default());
    let hub = Arc::clone(hub);
    tokio::spawn(async move {
        while !publish.is_closed() {
            let known = *publish.borrow();
            let (call, loss_exit) = (PeerRequest::Watch(known), hub.options.loss_exit);
            // Those of a run that was about to end have ended with it.
            let ending = hub.options.end_wait + FAREWELL;
            let patience = if known.over { loss_exit.min(ending) } else { loss_exit };
            match tokio::time::timeout(patience, client::ask_anyone(&hub, &call)).await {
                Ok(Ok(PeerResponse::Standing(news))) => {
                    publish.send_if_modified(|known| std::mem::replace(known, news) != news);
                }
                Ok(Ok(_)) => {}
                Ok(Err(_)) => return,
                Err(_) => {
                    hub.fail(StoreError::NoQuorum(format!(
                        "no node with a vote has answered for {} s",
                        patience.as_secs()
                    )));
                    return;
                }
            }
        }
    });
    standing
}

async fn start_raft(hub: &Arc<Hub>) -> Result<(), StoreError> {
    let Some(voter) = &hub.voter else { return Ok(()) };
    let Some(identity) = *locked(&hub.identity) else { return Ok(()) };
    let internal = |what: String| StoreError::Failed(what);
    let config = Config {
        cluster_name: hub.options.name.clone(),
        heartbeat_interval: HEARTBEAT.as_millis() as u64,
        election_timeout_min: election::LEASE.as_millis() as u64 - 1,
        election_timeout_max: election::LEASE.as_millis() as u64,
        enable_elect: false,
        install_snapshot_timeout: 10_000,
        max_payload_entries: 64,
        replication_lag_threshold: 50,
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: 500,
        purge_batch_size: 256,
        ..Config::default()
    };
    let config = config.validate().map_err(|error| internal(error.to_string()))?;
    let replica = StateMachine::new(hub, voter);
    let network = RaftPeers::new(hub);
    let raft =
        Raft::new(identity.raft_id, Arc::new(config), network, voter.log.clone(), replica).await;
    let raft = raft.map_err(|error| hub.failure().unwrap_or(internal(error.to_string())))?;
    drop(voter.raft.set(raft));
    voter.heard.send_replace(Instant::now());
    if identity.raft_id == raft_id(identity.seat, 0) && voter.log.is_empty() {
        tokio::spawn(found(Arc::clone(hub)));
    }
    tokio::spawn(election::watch(Arc::clone(hub)));
    tokio::spawn(batch::beat(Arc::clone(hub)));
    tokio::spawn(batch::tend_members(Arc::clone(hub)));
    tokio::spawn(weigh_log(Arc::clone(hub)));
    tokio::spawn(watch_quorum(Arc::clone(hub)));
    Ok(())
}

/// Founds a new cluster. The first of the peers does so as soon as all have taken their seats; any
/// other only if nothing is heard of it.
async fn found(hub: Arc<Hub>) {
    let Some(raft) = hub.raft() else { return };
    let first = hub.peers().keys().next() == Some(&hub.options.seat);
    let grace = founding_grace(&hub.options);
    let deadline = Instant::now() + if first { grace / 3 } else { grace };
    while Instant::now() < deadline {
        if raft.is_initialized().await.unwrap_or(true) {
            return;
        }
        let seated =
            |found: &BTreeMap<Seat, NodeDescription>| found.values().all(|who| who.raft_id != 0);
        let found = if first { look_round(&hub).await } else { BTreeMap::new() };
        if first && found.len() + 1 == hub.peers().len() && seated(&found) {
            break;
        }
        tokio::time::sleep_until(tokio::time::Instant::now() + LOOK / 4).await;
    }
    let members: BTreeMap<u64, BasicNode> = hub
        .peers()
        .iter()
        .map(|(seat, address)| (raft_id(*seat, 0), BasicNode::new(address.clone())))
        .collect();
    // Refused if a leader has spoken to us before: then there is nothing to found.
    drop(raft.initialize(members).await);
}

/// Has a copy of the ledger made when the log has grown larger than it.
async fn weigh_log(hub: Arc<Hub>) {
    let (Some(voter), Some(raft)) = (&hub.voter, hub.raft()) else { return };
    let mut tick = interval(WEIGH);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let bytes = voter.log.bytes_since_snapshot();
        if bytes < hub.options.snapshot_bytes {
            continue;
        }
        let Ok(Ok(size)) = voter.machine.ask(ReplicaRequest::Settle).await else { return };
        if bytes >= size {
            voter.log.weigh_anew();
            if raft.trigger().snapshot().await.is_err() {
                return;
            }
        }
    }
}

/// Ends a node that has been without a leader for too long, or whose raft has ended.
async fn watch_quorum(hub: Arc<Hub>) {
    let Some(raft) = hub.raft() else { return };
    let mut tick = interval(WEIGH);
    let (mut seen, mut told, mut was_in) = (Instant::now(), false, false);
    loop {
        tick.tick().await;
        let metrics = raft.metrics().borrow().clone();
        if let Err(error) = &metrics.running_state {
            hub.fail(StoreError::Failed(format!("the replicated log has ended: {error}")));
            return;
        }
        if hub.is_led() {
            (seen, told) = (Instant::now(), false);
        }
        was_in |= hub.index.load(Ordering::Acquire) > 0;
        if was_in && seen.elapsed() >= UNTOLD && !std::mem::replace(&mut told, true) {
            let silent = hub.others().filter(|(_, link)| link.peer().borrow().is_none());
            tracing::warn!(
                "too few nodes are there to agree on anything; this one waits, {} s at most \
                 (`cluster.quorum.lossExit`): {}",
                hub.options.loss_exit.as_secs(),
                absent(&hub, silent.map(|(seat, _)| seat))
            );
        }
        if seen.elapsed() >= hub.options.loss_exit {
            hub.fail(StoreError::NoQuorum(format!(
                "too few nodes have been there for {} s; nothing is lost, start again when they are",
                hub.options.loss_exit.as_secs()
            )));
            return;
        }
    }
}
