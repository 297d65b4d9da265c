//! The contract of a store for the replicated store: with one node, and with three nodes in this process that
//! are closed and opened again in turn.

use std::net::TcpListener;

use super::*;
use crate::cluster::{ClusterHandle, ClusterOptions, ClusterStore, ClusterThread};
use crate::config::Placement;

struct Node {
    options: ClusterOptions,
    open: Option<(ClusterHandle, ClusterThread)>,
}

impl Node {
    fn open(&mut self) {
        self.open = Some(ClusterHandle::open(self.options.clone()).unwrap());
    }
}

/// Nodes in this process. Commands and questions go to the first.
pub(super) struct Cluster<const NODES: usize> {
    _dir: tempfile::TempDir,
    nodes: Vec<Node>,
}

impl<const NODES: usize> Cluster<NODES> {
    fn with(snapshot_bytes: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // Held until all are bound, so that no port is drawn twice.
        let ports: Vec<_> = (0..NODES).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let peers: BTreeMap<Seat, String> = ports
            .iter()
            .zip(1..)
            .map(|(port, seat)| (Seat(seat), port.local_addr().unwrap().to_string()))
            .collect();
        drop(ports);
        let nodes = peers.iter().map(|(seat, address)| Node {
            options: ClusterOptions {
                dir: dir.path().join(seat.0.to_string()),
                seat: *seat,
                votes: true,
                listen: address.clone(),
                peers: peers.clone(),
                name: "suite".to_owned(),
                secret: None,
                quorum_timeout: Duration::from_secs(30),
                loss_exit: Duration::from_mins(1),
                end_wait: Duration::from_secs(1),
                snapshot_bytes,
                seen_memory: SEEN_MEMORY,
                placement: Placement::Any,
                // Without beats, time passes only with commands, as in the model.
                beat: Duration::from_hours(1),
            },
            open: None,
        });
        let mut cluster = Self { nodes: nodes.collect(), _dir: dir };
        std::thread::scope(|scope| {
            for node in &mut cluster.nodes {
                scope.spawn(|| node.open());
            }
        });
        cluster
    }

    pub(super) fn handles(&self) -> Vec<Option<ClusterHandle>> {
        self.nodes.iter().map(|node| node.open.as_ref().map(|(handle, _)| handle.clone())).collect()
    }

    /// The index of the node that leads, if any.
    pub(super) fn leader(&self) -> Option<usize> {
        self.handles().iter().position(|handle| handle.as_ref().is_some_and(ClusterHandle::leads))
    }

    /// Closes one node and opens it again.
    pub(super) fn reopen_one(&mut self, place: usize) {
        let (handle, thread) = self.nodes[place].open.take().unwrap();
        drop(handle);
        thread.close();
        self.nodes[place].open();
    }
}

impl<const NODES: usize> Subject for Cluster<NODES> {
    fn open() -> Self {
        Self::with(64 << 20)
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(ClusterStore { handle: self.nodes[0].open.as_ref().unwrap().0.clone() })
    }

    fn reopen(&mut self, dice: &mut Dice) {
        let place = dice.below(self.nodes.len() as u64) as usize;
        self.reopen_one(place);
    }
}

fn play<S: Subject>(seeds: std::ops::Range<u64>, steps: usize) {
    let mut jobs = 0;
    for seed in seeds.clone() {
        let mut pair = Pair::<S>::new(seed);
        pair.begin();
        for _ in 0..steps {
            pair.step();
            match pair.dice.below(60) {
                0 => pair.reopen(),
                1 => pair.compare(),
                _ => {}
            }
        }
        pair.reopen();
        pair.compare();
        jobs += pair.model.core().run.as_ref().map_or(0, |run| run.done);
    }
    println!("{} seeds: {jobs} jobs done", seeds.end - seeds.start);
    assert!(jobs > 0, "nothing was exercised");
}

#[test]
fn a_cluster_of_one_answers_like_the_ledger_in_memory() {
    play::<Cluster<1>>(100..103, 200);
}

#[test]
fn a_cluster_of_three_answers_like_the_ledger_in_memory() {
    play::<Cluster<3>>(200..202, 150);
}

#[test]
fn a_command_too_large_for_one_entry_is_sent_in_chunks() {
    let mut pair = Pair::<Cluster<1>>::new(7);
    pair.begin();
    let session = SessionId(1);
    let jobs = vec![pair.new_job()];
    let group = "group 0".to_owned();
    pair.both(Command::Seed { session, epoch: Epoch(1), group, jobs, last: true });
    let Reply::Granted { jobs, .. } =
        pair.both(Command::Take { session, number: 1, limit: 1, ahead: u32::MAX })
    else {
        panic!()
    };
    let bytes = vec![b'x'; 3 << 20];
    let block = Block { appender: 0, data_def: "d".to_owned(), ordinal: 0, rows: 1, bytes };
    let outcome = Outcome::Done(Box::new(Harvest { blocks: vec![block], ..Harvest::default() }));
    let (job, token) = (jobs[0].id, jobs[0].token);
    let finish = Command::Finish { session, job, token, since_start_ms: None, outcome };
    assert_eq!(pair.both(finish), Reply::Ok);
    pair.reopen();
    pair.compare();
}

#[test]
fn a_node_with_a_new_disk_is_rebuilt_from_a_snapshot() {
    let mut cluster = Cluster::<3>::with(4 << 10);
    let store = cluster.store();
    for number in 0..400 {
        // The third node has no session any more.
        let (nonce, seat) = (5000 + number, Seat(1 + (number % 2) as u32));
        let arrival = JoinRequest { nonce, life: nonce, seat, votes: true, alone: false };
        let reply = store.submit_blocking(Command::Join(arrival)).unwrap();
        assert!(matches!(reply, Reply::Joined(_)));
    }
    let last = store.ask_blocking(Question::Flush);
    assert!(last.is_ok());
    let node = &mut cluster.nodes[2];
    let (handle, thread) = node.open.take().unwrap();
    drop(handle);
    thread.close();
    std::fs::remove_dir_all(&node.options.dir).unwrap();
    node.open();
    let handle = node.open.as_ref().unwrap().0.clone();
    let fresh = ClusterStore { handle };
    let began = std::time::Instant::now();
    while *fresh.standing().borrow() != *store.standing().borrow() {
        assert!(began.elapsed() < Duration::from_mins(5), "it does not catch up");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn tables_that_end_before_the_log_begins_are_replaced_by_the_snapshot() {
    let mut cluster = Cluster::<1>::with(4 << 10);
    let store = cluster.store();
    let began = std::time::Instant::now();
    let first_part = cluster.nodes[0].options.dir.join("raft-000001.journal");
    let mut nonce = 0;
    while first_part.exists() {
        assert!(began.elapsed() < Duration::from_mins(5), "the log is never cut");
        nonce += 1;
        store.submit_blocking(join(nonce, false)).unwrap();
    }
    let standing = *store.standing().borrow();
    drop(store);
    let node = &mut cluster.nodes[0];
    let (handle, thread) = node.open.take().unwrap();
    drop(handle);
    thread.close();
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        std::fs::remove_file(node.options.dir.join(name)).ok();
    }
    node.open();
    let again = ClusterStore { handle: node.open.as_ref().unwrap().0.clone() };
    let began = std::time::Instant::now();
    while *again.standing().borrow() != standing {
        assert!(began.elapsed() < Duration::from_mins(5), "it does not come back");
        std::thread::sleep(Duration::from_millis(20));
    }
}
