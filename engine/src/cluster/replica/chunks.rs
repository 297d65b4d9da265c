//! Commands that are too large for one entry of the log. The client sends them in chunks, each in an entry
//! of its own:
//!
//! 1. `Chunk { command, number, bytes }` is kept in the tables of the replica.
//! 2. `AllChunks { command, chunks, by }` joins the chunks and applies the command.
//! 3. If a chunk is missing, the reply is `Missing`, and the client sends all chunks again.
//!
//! A client may die half way, so the number of commands is limited. Answered commands are dropped first,
//! then the oldest.

use std::collections::VecDeque;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::cluster::messages::{BatchItem, encode};
use crate::cluster::{COMMAND_BYTES_MAX, random};
use crate::ledger::{Reply, SessionId, TableError, TableResult};
use crate::store::StoreError;
use crate::store::sqlite::SqliteTables;

/// Commands that are kept, answered ones included.
const COMMANDS_MAX: usize = 256;
/// Commands that a node sends in chunks at once. All nodes together stay below [`COMMANDS_MAX`].
pub(in crate::cluster) const COMMANDS_AT_ONCE: usize = 8;
/// How often a client sends all chunks of a command.
const TRIES_MAX: usize = 16;
/// Record of the list.
const LIST: &str = "parcels";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ChunkedCommand {
    number: u64,
    chunks: u32,
    reply: Option<Vec<u8>>,
}

/// The chunked commands of a replica, the same on every node.
pub(in crate::cluster) struct Chunks<'t> {
    tables: &'t mut SqliteTables,
    list: VecDeque<ChunkedCommand>,
}

impl<'t> Chunks<'t> {
    pub(in crate::cluster) fn of(tables: &'t mut SqliteTables) -> TableResult<Self> {
        let list = match tables.replica(LIST)? {
            Some(bytes) => postcard::from_bytes(&bytes).map_err(|error| TableError {
                message: format!("the list of chunked commands cannot be read: {error}"),
                full: false,
            })?,
            None => VecDeque::new(),
        };
        Ok(Self { tables, list })
    }

    pub(in crate::cluster) fn put(
        &mut self,
        command: u64,
        number: u32,
        bytes: &[u8],
    ) -> TableResult<()> {
        match self.list.iter_mut().find(|known| known.number == command) {
            Some(known) if known.reply.is_some() => return Ok(()),
            Some(known) => known.chunks = known.chunks.max(number + 1),
            None => {
                self.list.push_back(ChunkedCommand {
                    number: command,
                    chunks: number + 1,
                    reply: None,
                });
            }
        }
        if self.list.len() > COMMANDS_MAX {
            let answered = self.list.iter().position(|known| known.reply.is_some());
            if let Some(gone) = self.list.remove(answered.unwrap_or(0)) {
                self.drop_chunks(&gone)?;
            }
        }
        self.tables.put_replica(&chunk_name(command, number), bytes)?;
        self.save()
    }

    /// The reply to a command, if it was applied.
    pub(in crate::cluster) fn answered(&self, command: u64) -> Option<Reply> {
        let known = self.list.iter().find(|known| known.number == command);
        let reply = known.and_then(|known| known.reply.as_ref());
        reply.and_then(|bytes| postcard::from_bytes(bytes).ok())
    }

    /// The bytes of a command, if all chunks have arrived.
    pub(in crate::cluster) fn join(
        &mut self,
        command: u64,
        chunks: u32,
    ) -> TableResult<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        for number in 0..chunks {
            match self.tables.replica(&chunk_name(command, number))? {
                Some(chunk) => bytes.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
        Ok(Some(bytes))
    }

    /// Keeps the reply instead of the chunks.
    pub(in crate::cluster) fn answer(&mut self, command: u64, reply: &Reply) -> TableResult<()> {
        if let Some(known) = self.list.iter_mut().find(|known| known.number == command) {
            known.reply = Some(encode(reply));
            let known = known.clone();
            self.drop_chunks(&known)?;
        }
        self.save()
    }

    fn drop_chunks(&mut self, known: &ChunkedCommand) -> TableResult<()> {
        for number in 0..known.chunks {
            self.tables.drop_replica(&chunk_name(known.number, number))?;
        }
        Ok(())
    }

    fn save(&mut self) -> TableResult<()> {
        self.tables.put_replica(LIST, &encode(&self.list))
    }
}

/// Sends a command in chunks, and again if a replica has dropped some.
pub(in crate::cluster) async fn send_in_chunks<F>(
    bytes: Bytes,
    by: Option<SessionId>,
    send: impl Fn(BatchItem) -> F,
) -> Result<Reply, StoreError>
where
    F: Future<Output = Result<Reply, StoreError>>,
{
    let (command, size) = (random(), bytes.len());
    for _ in 0..TRIES_MAX {
        let (mut rest, mut number) = (bytes.clone(), 0);
        while !rest.is_empty() {
            let chunk = rest.split_to(rest.len().min(COMMAND_BYTES_MAX));
            send(BatchItem::Chunk { command, number, bytes: chunk }).await?;
            number += 1;
        }
        match send(BatchItem::AllChunks { command, chunks: number, by }).await? {
            Reply::Missing => tracing::debug!(size, "chunks of a command were dropped"),
            reply => return Ok(reply),
        }
    }
    Err(StoreError::Failed(format!(
        "a command of {size} bytes was sent {TRIES_MAX} times, and chunks of it were dropped each time"
    )))
}

fn chunk_name(command: u64, number: u32) -> String {
    format!("parcel {command:016x} {number}")
}
