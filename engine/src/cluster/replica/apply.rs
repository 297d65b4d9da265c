//! Applies committed entries to the tables of a node. Each entry and its replies go into a digest. The leader
//! sends its digest along now and then, and a node with another digest stops.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use openraft::EntryPayload;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::cluster::messages::{
    Batch, BatchItem, DigestCheck, LogEntry, Membership, Replies, encode,
};
use crate::cluster::replica::chunks::Chunks;
use crate::cluster::replica::mark::{MARK, ReplicaMark};
use crate::cluster::replica::restore::{Tables, restore};
use crate::failpoint;
use crate::ledger::{Command, Reply, SessionId, Stamp, TableError};
use crate::store::StoreError;

/// Entries whose digests are kept for comparison.
const DIGESTS_KEPT: usize = 1 << 15;
/// The core of the ledger goes into the digest once in this many entries, because it is costly.
const CORE_DIGEST_INTERVAL: u64 = 1024;

/// The tables of a node and their mark.
pub(in crate::cluster) struct Replica {
    dir: PathBuf,
    pub ledger: Tables,
    pub mark: ReplicaMark,
    /// The digests after the latest entries.
    pub sums: VecDeque<DigestCheck>,
    /// Commands applied since the last commit.
    pub uncommitted: usize,
    /// Buffer for encoded replies.
    encoded: Vec<u8>,
}

impl Replica {
    pub(in crate::cluster) fn new(dir: &Path, ledger: Tables, mark: ReplicaMark) -> Self {
        let (sums, encoded) = (VecDeque::new(), Vec::new());
        Self { dir: dir.to_owned(), ledger, mark, sums, uncommitted: 0, encoded }
    }

    /// The ledger of a node that is down, up to the last entry that it knows to be committed. Entries that
    /// the tables do not hold yet are applied in a transaction that is never committed.
    pub(in crate::cluster) fn of_node_that_is_down(
        dir: &Path,
        seen_memory: u64,
    ) -> Result<Self, StoreError> {
        let (ledger, mark) = restore(dir, seen_memory)?;
        let mut replica = Self::new(dir, ledger, mark);
        for entry in crate::cluster::raft_log::agreed_after(dir, replica.index())? {
            replica.apply(entry)?;
        }
        Ok(replica)
    }

    /// The last applied entry.
    pub(in crate::cluster) fn index(&self) -> u64 {
        self.mark.applied.map_or(0, |applied| applied.index)
    }

    /// Applies a committed entry.
    pub(in crate::cluster) fn apply(&mut self, entry: LogEntry) -> Result<Replies, TableError> {
        failpoint::pass("raft.apply.before");
        let index = entry.log_id.index;
        let replies = match entry.payload {
            EntryPayload::Blank => Replies::default(),
            EntryPayload::Membership(membership) => {
                self.mark.membership = Membership::new(Some(entry.log_id), membership);
                Replies::default()
            }
            EntryPayload::Normal(batch) => {
                let replies = self.apply_batch(index, &batch.0)?;
                self.add_to_digest(index, &batch.0, &replies);
                replies
            }
        };
        self.mark.applied = Some(entry.log_id);
        self.uncommitted += 1;
        failpoint::pass("raft.apply.after");
        Ok(replies)
    }

    fn apply_batch(&mut self, index: u64, bytes: &[u8]) -> Result<Replies, TableError> {
        let odd = |what: &str| TableError {
            message: format!("entry {index} of the log cannot be read: {what}"),
            full: false,
        };
        let batch: Batch = postcard::from_bytes(bytes).map_err(|error| odd(&error.to_string()))?;
        if let Some(check) = batch.check {
            self.compare(check)?;
        }
        let mut replies = Vec::with_capacity(batch.items.len());
        for item in batch.items {
            self.uncommitted += 1;
            replies.push(match item {
                BatchItem::Command(bytes) => {
                    let command =
                        postcard::from_bytes(&bytes).map_err(|error| odd(&error.to_string()))?;
                    self.ledger.apply(batch.stamp, command)?
                }
                BatchItem::Take { session, number, limit, ahead } => {
                    let take = Command::Take { session, number, limit, ahead };
                    self.ledger.apply(batch.stamp, take)?
                }
                BatchItem::SessionEnd { session, leaves } => {
                    let leave = Command::Leave { session };
                    let command = if leaves { leave } else { Command::Close { session } };
                    self.ledger.apply(batch.stamp, command)?
                }
                BatchItem::Chunk { command, number, bytes } => {
                    Chunks::of(self.ledger.tables_mut())?.put(command, number, &bytes)?;
                    Reply::Ok
                }
                BatchItem::AllChunks { command, chunks, by } => {
                    self.apply_chunked(batch.stamp, command, chunks, by)?
                }
            });
        }
        Ok(Replies(replies))
    }

    /// Applies a command that was sent in chunks. If it was applied before, repeats the reply.
    fn apply_chunked(
        &mut self,
        stamp: Stamp,
        command: u64,
        chunks: u32,
        by: Option<SessionId>,
    ) -> Result<Reply, TableError> {
        let mut known = Chunks::of(self.ledger.tables_mut())?;
        if let Some(reply) = known.answered(command) {
            return Ok(reply);
        }
        let Some(bytes) = known.join(command, chunks)? else { return Ok(Reply::Missing) };
        let reply = match postcard::from_bytes::<Command>(&bytes) {
            Ok(command) if command.session() == by => self.ledger.apply(stamp, command)?,
            // It cannot be decoded, or acts for another session than its sender.
            _ => Reply::Stale,
        };
        Chunks::of(self.ledger.tables_mut())?.answer(command, &reply)?;
        Ok(reply)
    }

    fn add_to_digest(&mut self, index: u64, batch: &[u8], replies: &Replies) {
        let mut digest = xxh3_64_with_seed(batch, self.mark.digest ^ index);
        self.encoded.clear();
        for reply in &replies.0 {
            self.add_reply(reply);
        }
        digest = xxh3_64_with_seed(&self.encoded, digest);
        if index.is_multiple_of(CORE_DIGEST_INTERVAL) {
            digest = xxh3_64_with_seed(&encode(self.ledger.core()), digest);
        }
        if failpoint::goes_astray() {
            digest = !digest;
        }
        self.mark.digest = digest;
        self.sums.push_back(DigestCheck { index, digest: self.mark.digest });
        if self.sums.len() > DIGESTS_KEPT {
            self.sums.pop_front();
        }
    }

    /// Adds a reply to the digest. Of granted jobs only their ids and tokens count.
    fn add_reply(&mut self, reply: &Reply) {
        let jobs = if let Reply::Granted { jobs, .. } = reply { jobs.as_slice() } else { &[] };
        for grant in jobs {
            self.encoded.extend(grant.id.0.to_le_bytes());
            self.encoded.extend(grant.token.0.to_le_bytes());
        }
        if jobs.is_empty() {
            let encoded = postcard::to_extend(reply, std::mem::take(&mut self.encoded));
            self.encoded = encoded.unwrap_or_default();
        }
    }

    /// Stops a node whose ledger differs from the leader's.
    fn compare(&self, check: DigestCheck) -> Result<(), TableError> {
        let own = self.sums.iter().rev().find(|own| own.index == check.index);
        if own.is_none_or(|own| own.digest == check.digest) {
            return Ok(());
        }
        Err(TableError {
            message: format!(
                "this node's ledger is not the cluster's, at entry {}: `{}` is kept as it is; move \
                 it away and start again, and the node is rebuilt from the others",
                check.index,
                self.dir.display()
            ),
            full: false,
        })
    }

    /// Puts everything into the database; whether it outlives a power cut is another matter.
    pub(in crate::cluster) fn commit(&mut self) -> Result<(), TableError> {
        if std::mem::take(&mut self.uncommitted) == 0 {
            return Ok(());
        }
        self.ledger.save_lanes()?;
        let mark = encode(&self.mark);
        let (core, tables) = self.ledger.parts();
        tables.put_replica(MARK, &mark)?;
        failpoint::pass("replica.commit.before");
        let commits = tables.commits() + 1;
        tables.commit(core, commits)?;
        failpoint::pass("replica.commit.after");
        Ok(())
    }
}

/// [`Replica::of_node_that_is_down`], its tables alone.
pub(in crate::cluster) fn look(dir: &Path, seen_memory: u64) -> Result<Tables, StoreError> {
    Replica::of_node_that_is_down(dir, seen_memory).map(|replica| replica.ledger)
}
