//! One replica without raft: entries are passed directly to it.

use std::cell::{Cell, RefCell};

use openraft::{CommittedLeaderId, EntryPayload};

use super::*;
use crate::cluster::messages::{Batch, BatchItem, EncodedBatch, LogId, encode};
use crate::cluster::raft_log::RaftLogThread;
use crate::cluster::replica::chunks::send_in_chunks;
use crate::ledger::{Command, JoinRequest, Stamp};

struct Alone {
    machine: ReplicaHandle,
    threads: (RaftLogThread, ReplicaThread),
    failed: crossbeam_channel::Receiver<StoreError>,
    next: Cell<u64>,
}

impl Alone {
    fn open(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        let (log, log_thread) = RaftLog::open(dir, 1 << 20, |_| {}).unwrap();
        let (tell, failed) = crossbeam_channel::bounded(1);
        let fatal = move |error| drop(tell.try_send(error));
        let (machine, thread) = ReplicaHandle::open(dir, 1 << 20, log, fatal).unwrap();
        Self { machine, threads: (log_thread, thread), failed, next: Cell::new(1) }
    }

    async fn apply(
        &self,
        items: Vec<BatchItem>,
        check: Option<DigestCheck>,
    ) -> Result<Vec<Reply>, StoreError> {
        let index = self.next.replace(self.next.get() + 1);
        let batch = Batch { stamp: Stamp { leadership: 1, ms: index }, check, items };
        let entry = LogEntry {
            log_id: LogId::new(CommittedLeaderId::new(1, 1), index),
            payload: EntryPayload::Normal(EncodedBatch(encode(&batch).into())),
        };
        let applied = self.machine.ask(|done| ReplicaRequest::Apply(vec![entry], done)).await?;
        Ok(applied?.remove(0).0)
    }

    async fn send(&self, item: BatchItem) -> Result<Reply, StoreError> {
        Ok(self.apply(vec![item], None).await?.remove(0))
    }

    fn close(self) {
        self.threads.1.close();
        self.threads.0.close();
    }
}

fn now<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// A command of several chunks.
fn large() -> bytes::Bytes {
    let seed = Command::Seed {
        session: crate::ledger::SessionId(9),
        epoch: crate::ledger::Epoch(1),
        group: "g".repeat(500 << 10),
        jobs: Vec::new(),
        last: true,
    };
    encode(&seed).into()
}

#[test]
fn a_command_that_lost_a_chunk_is_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let alone = Alone::open(dir.path());
    let seen = RefCell::new(Vec::new());
    let reply = now(send_in_chunks(large(), None, |item| {
        let (alone, first) =
            (&alone, matches!(item, BatchItem::AllChunks { .. }) && seen.borrow().len() < 4);
        seen.borrow_mut().push(item.clone());
        async move {
            // Other commands displace it before it is complete.
            for command in (0..300).filter(|_| first) {
                alone.send(BatchItem::Chunk { command, number: 0, bytes: vec![1].into() }).await?;
            }
            alone.send(item).await
        }
    }));
    // It was applied: the ledger has no such session.
    assert_eq!(reply.unwrap(), Reply::Stale);
    let parts = seen.borrow().iter().filter(|item| matches!(item, BatchItem::Chunk { .. })).count();
    assert_eq!((seen.borrow().len(), parts), (8, 6), "all of it, twice");
    alone.close();
}

#[test]
fn a_command_that_never_arrives_complete_gives_an_error() {
    let sent = Cell::new(0);
    let reply = now(send_in_chunks(large(), None, |item| {
        sent.set(sent.get() + 1);
        async move {
            Ok(if matches!(item, BatchItem::AllChunks { .. }) { Reply::Missing } else { Reply::Ok })
        }
    }));
    assert!(
        matches!(&reply, Err(StoreError::Failed(words)) if words.contains("dropped")),
        "{reply:?}"
    );
    assert_eq!(sent.get(), 64);
}

#[test]
fn answered_commands_are_dropped_before_incomplete_ones() {
    let dir = tempfile::tempdir().unwrap();
    let alone = Alone::open(dir.path());
    now(async {
        let chunk = |command| BatchItem::Chunk { command, number: 0, bytes: vec![1].into() };
        for command in 0..200 {
            alone.send(chunk(command)).await.unwrap();
        }
        // They cannot be decoded, but each gets an answer.
        for command in 1000..1100 {
            alone.send(chunk(command)).await.unwrap();
            let reply =
                alone.send(BatchItem::AllChunks { command, chunks: 1, by: None }).await.unwrap();
            assert_eq!(reply, Reply::Stale);
        }
        for command in 0..200 {
            let reply =
                alone.send(BatchItem::AllChunks { command, chunks: 1, by: None }).await.unwrap();
            assert_eq!(reply, Reply::Stale, "{command} is complete");
        }
        let reply =
            alone.send(BatchItem::AllChunks { command: 1000, chunks: 1, by: None }).await.unwrap();
        assert_eq!(reply, Reply::Missing);
    });
    alone.close();
}

fn join(life: u64) -> BatchItem {
    let seat = Seat(1);
    let arrival = JoinRequest { nonce: life, life, seat, votes: true, alone: false };
    BatchItem::Command(encode(&Command::Join(arrival)).into())
}

#[test]
fn a_node_whose_ledger_is_not_the_clusters_stops_at_the_next_check_and_keeps_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (Alone::open(&dir.path().join("1")), Alone::open(&dir.path().join("2")));
    now(async {
        for node in [&one, &other] {
            node.send(join(1)).await.unwrap();
        }
        let agreed = *one.machine.summed.borrow();
        assert_eq!(agreed, *other.machine.summed.borrow());
        one.apply(vec![join(2)], agreed).await.unwrap();
        // This replica applies another command than its peers.
        other.apply(vec![join(3)], agreed).await.unwrap();
        let check = *one.machine.summed.borrow();
        assert!(one.apply(vec![join(4)], check).await.is_ok());
        let stopped = other.apply(vec![join(4)], check).await;
        assert!(matches!(&stopped, Err(StoreError::Damaged(_))), "{stopped:?}");
    });
    let error = other.failed.recv().unwrap().to_string();
    assert!(error.contains("not the cluster's, at entry 2"), "{error}");
    assert!(dir.path().join("2/state.db").exists(), "there is something to look at");
    one.close();
    other.close();
}
