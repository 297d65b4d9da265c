//! Wiring: binds the interfaces of the engine to their components, for one machine or for many.
//! The only file that names a concrete store.

use std::sync::Arc;
use std::time::Duration;

use shaku::{Component, HasComponent, Interface, module};

use crate::cluster::{
    ClusterHandle, ClusterOptions, ClusterStore, ClusterStoreParameters, ClusterThread,
    OperatorTarget, ReadOnlyReplica, ReadOnlyStore, ReadOnlyStoreParameters, SoloControl, has_log,
};
use crate::config::{Config, Durability, Seating};
use crate::ledger::Seat;
use crate::store::{
    OpenOptions, SoloHandle, SoloStore, SoloStoreParameters, SoloThread, Store, StoreError,
};

/// Time between two beats of a cluster's leader.
const BEAT: Duration = Duration::from_millis(250);

/// Where the engine asks for the time of day; the ledger never does.
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

/// What has to be ended with a node.
enum Behind {
    Solo(SoloThread),
    /// Nothing: it is only read.
    Nobody,
    Cluster(Box<ClusterThread>, ClusterHandle),
}

/// A wired node: what the run needs, whichever module it came from.
pub(crate) struct Node {
    /// Where the ledger is kept.
    pub store: Arc<dyn Store>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Its place among the nodes of the run.
    pub place: Place,
    behind: Behind,
}

/// A node's place among the nodes of a run.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Its number.
    pub seat: Seat,
    /// All seats that write files.
    pub seats: Vec<Seat>,
    /// Whether it has a vote, and writes files.
    pub votes: bool,
    /// Whether no other process can be part of the run.
    pub alone: bool,
    /// Drawn anew at every start.
    pub life: u64,
    /// Nodes with a vote that must be there before a run starts.
    pub quorum: u32,
    /// How long to wait for them.
    pub patience: Duration,
    /// Whether strangers can take part.
    pub exposed: bool,
}

impl Place {
    fn alone(life: u64) -> Self {
        Self {
            seat: Seat(1),
            seats: vec![Seat(1)],
            votes: true,
            alone: true,
            life,
            quorum: 1,
            patience: Duration::ZERO,
            exposed: false,
        }
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
                "`{}` belongs to a node of a cluster: go on with `--cluster`, or name another \
                 directory with `--data-dir`",
                dir.display()
            )));
        }
        Self::solo(config)
    }

    /// Opens the data directory to look at its last run, whoever's it is.
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
        Ok(Self { store, clock, place: Place::alone(0), behind: Behind::Nobody })
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
        Ok(Self { store, clock, place: Place::alone(life), behind: Behind::Solo(thread) })
    }

    /// Opens the data directory, comes into the cluster and wires a node of it.
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
            beat: BEAT,
        };
        let (handle, thread) = ClusterHandle::open(options)?;
        let place = Place {
            seat: Seat(seat),
            seats,
            votes,
            alone: false,
            life: handle.life(),
            quorum: quorum as u32,
            patience: config.cluster.quorum_timeout,
            exposed,
        };
        let parameters = ClusterStoreParameters { handle: handle.clone() };
        let module =
            ClusterModule::builder().with_component_parameters::<ClusterStore>(parameters).build();
        let (store, clock): (Arc<dyn Store>, Arc<dyn Clock>) = (module.resolve(), module.resolve());
        Ok(Self { store, clock, place, behind: Behind::Cluster(Box::new(thread), handle) })
    }

    /// Has the process end, with this exit code, in the moment its run is closed, if it is alone.
    pub(crate) fn end_process_with(&self, code: u8) {
        if let Behind::Solo(thread) = &self.behind {
            thread.end_process_with(code);
        }
    }

    /// Which other nodes with a vote do not answer, in words.
    pub(crate) fn absent(&self) -> String {
        match &self.behind {
            Behind::Solo(_) | Behind::Nobody => String::new(),
            Behind::Cluster(_, handle) => handle.absent(),
        }
    }

    /// Whether another node with a vote is there.
    pub(crate) fn hears_others(&self) -> bool {
        match &self.behind {
            Behind::Solo(_) | Behind::Nobody => false,
            Behind::Cluster(_, handle) => handle.hears_others(),
        }
    }

    /// Whether the cluster agreed on something a moment ago, as far as this node knows.
    pub(crate) fn is_led(&self) -> bool {
        match &self.behind {
            Behind::Solo(_) | Behind::Nobody => false,
            Behind::Cluster(_, handle) => handle.is_led(),
        }
    }

    /// Nobody has come within the time there is for it.
    pub(crate) fn not_formed(&self) -> StoreError {
        let (patience, absent) = (self.place.patience.as_secs(), self.absent());
        StoreError::NoQuorum(format!("the cluster was not formed within {patience} s: {absent}"))
    }

    /// What an operator can ask of a node that is alone, which `stop` ends; the nodes of a cluster
    /// answer by themselves.
    pub(crate) fn control(
        &self,
        stop: impl Fn() + Send + Sync + 'static,
    ) -> Option<Arc<dyn OperatorTarget>> {
        match &self.behind {
            Behind::Solo(_) | Behind::Nobody => {
                let standing = self.store.standing();
                Some(Arc::new(SoloControl { standing, stop: Box::new(stop) }))
            }
            Behind::Cluster(..) => None,
        }
    }

    /// Ends the store after everything is durable.
    pub(crate) fn close(self) {
        let Self { store, behind, .. } = self;
        drop(store);
        match behind {
            Behind::Solo(thread) => thread.close(),
            Behind::Nobody => {}
            Behind::Cluster(thread, _) => thread.close(),
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
