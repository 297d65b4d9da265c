//! Wiring: binds the interfaces of the engine to their components, for one machine or for many. Only this
//! file names a concrete store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use shaku::{Component, HasComponent, Interface, module};

use crate::cluster::{
    ClusterHandle, ClusterOptions, ClusterStore, ClusterStoreParameters, ClusterThread,
    OperatorTarget, ReadOnlyReplica, ReadOnlyStore, ReadOnlyStoreParameters, SoloControl, has_log,
};
use crate::config::{Config, Durability, Seating};
use crate::ledger::{Run, Seat};
use crate::store::{
    OpenOptions, SoloHandle, SoloStore, SoloStoreParameters, SoloThread, Store, StoreError,
};

/// Time between two beats of a cluster's leader.
const BEAT_INTERVAL: Duration = Duration::from_millis(250);

/// Jobs of one host that a node of a cluster is granted ahead of their turn, at most.
const AHEAD_MAX: u32 = 32;

/// The time of day. The ledger never asks for it.
pub(crate) trait Clock: Interface {
    /// Now.
    fn now(&self) -> jiff::Timestamp;
}

/// The machine's clock.
#[derive(Debug, Component)]
#[shaku(interface = Clock)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}

module! {
    pub SoloModule {
        components = [SoloStore, SystemClock],
        providers = []
    }
}

module! {
    pub ClusterModule {
        components = [ClusterStore, SystemClock],
        providers = []
    }
}

module! {
    pub ReadOnlyModule {
        components = [ReadOnlyStore, SystemClock],
        providers = []
    }
}

/// The threads behind a node.
enum NodeThreads {
    Solo(SoloThread),
    /// The data directory is only read.
    None,
    Cluster(Box<ClusterThread>, ClusterHandle),
}

/// A wired node: what a run needs, on one machine or in a cluster.
pub(crate) struct Node {
    /// Where the ledger is kept.
    pub store: Arc<dyn Store>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Its part in the run.
    pub member: Membership,
    threads: NodeThreads,
}

/// A node's part in a run, and what depends on whether there can be other nodes.
#[derive(Debug, Clone)]
pub(crate) struct Membership {
    /// The number of this node.
    pub seat: Seat,
    /// The numbers of all nodes with a vote. They write files.
    pub seats: Vec<Seat>,
    /// Whether this node has a vote.
    pub votes: bool,
    /// A number that is new at every start of the process.
    pub life: u64,
    /// Nodes with a vote that have to be connected before a run starts.
    pub quorum: u32,
    /// Whether the lock on the data directory keeps all other processes out of the run. Sessions then do
    /// not expire, and the node's own figures are those of the run.
    pub is_exclusive: bool,
    /// How long to wait for other nodes; `None` if there cannot be any.
    pub join_timeout: Option<Duration>,
    /// Jobs of one host that are granted ahead of their turn, at most. Zero where a request for jobs is
    /// cheap.
    pub ahead_max: u32,
    /// Where the node leaves a mark that its run has ended, if other nodes can end it.
    pub exit_mark_dir: Option<PathBuf>,
    /// Whether other machines can reach the node without a secret.
    pub is_insecure: bool,
}

impl Membership {
    /// The only process of a run.
    pub(crate) fn alone(life: u64) -> Self {
        Self {
            seat: Seat(1),
            seats: vec![Seat(1)],
            votes: true,
            life,
            quorum: 1,
            is_exclusive: true,
            join_timeout: None,
            ahead_max: 0,
            exit_mark_dir: None,
            is_insecure: false,
        }
    }

    /// Whether there are other nodes with a vote.
    pub(crate) fn has_peers(&self) -> bool {
        self.seats.iter().any(|seat| *seat != self.seat)
    }
}

impl Node {
    /// Opens the data directory and wires the node that the settings ask for.
    pub(crate) fn open(config: &Config) -> Result<Self, StoreError> {
        if config.cluster.enable {
            return Self::cluster(config);
        }
        let dir = &config.store.data_dir;
        if has_log(dir) {
            return Err(StoreError::Excluded(format!(
                "`{}` belongs to a node of a cluster: add `--cluster`, or name another directory with \
                 `--data-dir`",
                dir.display()
            )));
        }
        Self::solo(config)
    }

    /// Opens the data directory to read its last run, of one machine or of a cluster.
    pub(crate) fn read(config: &Config) -> Result<Self, StoreError> {
        let dir = &config.store.data_dir;
        if !has_log(dir) {
            return Self::solo(config);
        }
        let resting = ReadOnlyReplica::open(dir, config.store.seen_memory)?;
        let module = ReadOnlyModule::builder()
            .with_component_parameters::<ReadOnlyStore>(ReadOnlyStoreParameters { resting })
            .build();
        let (store, clock): (Arc<dyn Store>, Arc<dyn Clock>) = (module.resolve(), module.resolve());
        Ok(Self { store, clock, member: Membership::alone(0), threads: NodeThreads::None })
    }

    /// Opens the data directory and wires a solo node.
    pub(crate) fn solo(config: &Config) -> Result<Self, StoreError> {
        let options = OpenOptions {
            dir: config.store.data_dir.clone(),
            in_memory: config.store.durability == Durability::None,
            commit_interval: config.store.commit_interval,
            commit_max: config.store.commit_max,
            queue_max: config.job.take_limit.max(64) * 4,
            seen_memory: config.store.seen_memory,
            journal_max: config.store.journal_max,
        };
        let (handle, thread) = SoloHandle::open(&options)?;
        let module = SoloModule::builder()
            .with_component_parameters::<SoloStore>(SoloStoreParameters { handle })
            .build();
        let (store, clock): (Arc<dyn Store>, Arc<dyn Clock>) = (module.resolve(), module.resolve());
        let life = clock.now().as_nanosecond() as u64 ^ (u64::from(std::process::id()) << 32);
        Ok(Self {
            store,
            clock,
            member: Membership::alone(life),
            threads: NodeThreads::Solo(thread),
        })
    }

    /// Opens the data directory, connects to the cluster and wires a node of it.
    fn cluster(config: &Config) -> Result<Self, StoreError> {
        let Seating { seat, listen, peers, secret, quorum, exposed } =
            config.cluster.seating().map_err(StoreError::Unfit)?;
        let peers: std::collections::BTreeMap<Seat, String> =
            peers.into_iter().map(|(seat, address)| (Seat(seat), address)).collect();
        let seats = peers.keys().copied().collect();
        let votes = config.cluster.votes();
        let options = ClusterOptions {
            dir: config.store.data_dir.clone(),
            seat: Seat(seat),
            votes,
            listen,
            peers,
            name: config.cluster.name.clone(),
            secret,
            quorum_timeout: config.cluster.quorum_timeout,
            loss_exit: config.cluster.loss_exit,
            end_wait: config.cluster.end_wait,
            snapshot_bytes: config.cluster.snapshot_bytes,
            seen_memory: config.store.seen_memory,
            placement: config.cluster.placement,
            beat: BEAT_INTERVAL,
        };
        let (handle, thread) = ClusterHandle::open(options)?;
        let member = Membership {
            seat: Seat(seat),
            seats,
            votes,
            life: handle.life(),
            quorum: quorum as u32,
            is_exclusive: false,
            join_timeout: Some(config.cluster.quorum_timeout),
            ahead_max: AHEAD_MAX,
            exit_mark_dir: Some(config.store.data_dir.clone()),
            is_insecure: exposed,
        };
        let parameters = ClusterStoreParameters { handle: handle.clone() };
        let module =
            ClusterModule::builder().with_component_parameters::<ClusterStore>(parameters).build();
        let (store, clock): (Arc<dyn Store>, Arc<dyn Clock>) = (module.resolve(), module.resolve());
        Ok(Self { store, clock, member, threads: NodeThreads::Cluster(Box::new(thread), handle) })
    }

    /// If no other process is part of the run, the process ends with this exit code when the run is closed.
    pub(crate) fn end_process_with(&self, code: u8) {
        if let NodeThreads::Solo(thread) = &self.threads {
            thread.end_process_with(code);
        }
    }

    /// A text that names the nodes with a vote that do not answer this one.
    pub(crate) fn absent(&self) -> String {
        match &self.threads {
            NodeThreads::Solo(_) | NodeThreads::None => String::new(),
            NodeThreads::Cluster(_, handle) => handle.absent(),
        }
    }

    /// The last run that a node of a cluster knew before other nodes told it about later ones.
    pub(crate) fn run_at_start(&self) -> Option<Run> {
        match &self.threads {
            NodeThreads::Solo(_) | NodeThreads::None => None,
            NodeThreads::Cluster(_, handle) => handle.run_at_start(),
        }
    }

    /// Whether another node with a vote is connected.
    pub(crate) fn hears_others(&self) -> bool {
        match &self.threads {
            NodeThreads::Solo(_) | NodeThreads::None => false,
            NodeThreads::Cluster(_, handle) => handle.hears_others(),
        }
    }

    /// Whether this node knows that the cluster agreed on a command a moment ago.
    pub(crate) fn is_led(&self) -> bool {
        match &self.threads {
            NodeThreads::Solo(_) | NodeThreads::None => false,
            NodeThreads::Cluster(_, handle) => handle.is_led(),
        }
    }

    /// The error of a node that has waited for other nodes too long.
    pub(crate) fn not_formed(&self) -> StoreError {
        let limit = self.member.join_timeout.unwrap_or_default().as_secs();
        let absent = self.absent();
        StoreError::NoQuorum(format!("the cluster was not formed within {limit} s: {absent}"))
    }

    /// Serves operators of a node on one machine, which `stop` ends. Nodes of a cluster serve them
    /// without this.
    pub(crate) fn control(
        &self,
        stop: impl Fn() + Send + Sync + 'static,
    ) -> Option<Arc<dyn OperatorTarget>> {
        match &self.threads {
            NodeThreads::Solo(_) | NodeThreads::None => {
                let standing = self.store.standing();
                Some(Arc::new(SoloControl { standing, stop: Box::new(stop) }))
            }
            NodeThreads::Cluster(..) => None,
        }
    }

    /// Ends the store when everything is durable.
    pub(crate) fn close(self) {
        let Self { store, threads, .. } = self;
        drop(store);
        match threads {
            NodeThreads::Solo(thread) => thread.close(),
            NodeThreads::None => {}
            NodeThreads::Cluster(thread, _) => thread.close(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solo_module_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().display().to_string();
        let config = Config::from_map(&[("data.dir".to_owned(), data)].into()).unwrap();
        let node = Node::solo(&config).unwrap();
        let second = Node::solo(&config);
        assert!(matches!(second, Err(StoreError::InUse(_))));
        node.close();
        Node::solo(&config).unwrap().close();
    }
}
