//! Commands that are too large for one entry: their parts wait here until all have come. Senders
//! may die half way, so there is a bound: those that are answered go first, then the oldest, whose
//! senders send all of it anew.

use std::collections::VecDeque;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::cluster::messages::{BatchItem, encode};
use crate::cluster::{WHOLE_MAX, node};
use crate::ledger::{Reply, SessionId, TableError, TableResult};
use crate::store::StoreError;
use crate::store::sqlite::SqliteTables;

/// Chunks that are known at a time, answered ones too.
const KNOWN_MAX: usize = 256;
/// Chunks that a node sends at a time, so that all nodes together do not crowd each other out.
pub(in crate::cluster) const AT_ONCE: usize = 8;
/// How often a parcel is sent.
const TRIES_MAX: usize = 16;
/// Name of the list among the replica's records.
const LIST: &str = "parcels";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ChunkedCommand {
    number: u64,
    parts: u32,
    reply: Option<Vec<u8>>,
}

/// The parcels of a replica; the same on every node.
pub(in crate::cluster) struct Chunks<'t> {
    tables: &'t mut SqliteTables,
    list: VecDeque<ChunkedCommand>,
}

impl<'t> Chunks<'t> {
    pub(in crate::cluster) fn of(tables: &'t mut SqliteTables) -> TableResult<Self> {
        let list = match tables.replica(LIST)? {
            Some(bytes) => postcard::from_bytes(&bytes).map_err(|error| TableError {
                message: format!("the list of parcels cannot be read: {error}"),
                full: false,
            })?,
            None => VecDeque::new(),
        };
        Ok(Self { tables, list })
    }

    pub(in crate::cluster) fn put(
        &mut self,
        parcel: u64,
        number: u32,
        bytes: &[u8],
    ) -> TableResult<()> {
        match self.list.iter_mut().find(|known| known.number == parcel) {
            Some(known) if known.reply.is_some() => return Ok(()),
            Some(known) => known.parts = known.parts.max(number + 1),
            None => {
                self.list.push_back(ChunkedCommand {
                    number: parcel,
                    parts: number + 1,
                    reply: None,
                });
            }
        }
        if self.list.len() > KNOWN_MAX {
            let answered = self.list.iter().position(|known| known.reply.is_some());
            if let Some(gone) = self.list.remove(answered.unwrap_or(0)) {
                self.forget_parts(&gone)?;
            }
        }
        self.tables.put_replica(&part_name(parcel, number), bytes)?;
        self.save()
    }

    /// What a parcel was answered with, if it was.
    pub(in crate::cluster) fn answered(&self, parcel: u64) -> Option<Reply> {
        let known = self.list.iter().find(|known| known.number == parcel);
        let reply = known.and_then(|known| known.reply.as_ref());
        reply.and_then(|bytes| postcard::from_bytes(bytes).ok())
    }

    /// All of it, if all is there.
    pub(in crate::cluster) fn open(
        &mut self,
        parcel: u64,
        parts: u32,
    ) -> TableResult<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        for number in 0..parts {
            match self.tables.replica(&part_name(parcel, number))? {
                Some(part) => bytes.extend_from_slice(&part),
                None => return Ok(None),
            }
        }
        Ok(Some(bytes))
    }

    /// Keeps the answer instead of the parts.
    pub(in crate::cluster) fn answer(&mut self, parcel: u64, reply: &Reply) -> TableResult<()> {
        if let Some(known) = self.list.iter_mut().find(|known| known.number == parcel) {
            known.reply = Some(encode(reply));
            let known = known.clone();
            self.forget_parts(&known)?;
        }
        self.save()
    }

    fn forget_parts(&mut self, parcel: &ChunkedCommand) -> TableResult<()> {
        for number in 0..parcel.parts {
            self.tables.drop_replica(&part_name(parcel.number, number))?;
        }
        Ok(())
    }

    fn save(&mut self) -> TableResult<()> {
        self.tables.put_replica(LIST, &encode(&self.list))
    }
}

/// Sends a command in parts, and all of them anew when some were dropped on the way.
pub(in crate::cluster) async fn send_in_parts<F>(
    bytes: Bytes,
    by: Option<SessionId>,
    send: impl Fn(BatchItem) -> F,
) -> Result<Reply, StoreError>
where
    F: Future<Output = Result<Reply, StoreError>>,
{
    let (parcel, size) = (node::random(), bytes.len());
    for _ in 0..TRIES_MAX {
        let (mut rest, mut number) = (bytes.clone(), 0);
        while !rest.is_empty() {
            let part = rest.split_to(rest.len().min(WHOLE_MAX));
            send(BatchItem::Chunk { parcel, number, bytes: part }).await?;
            number += 1;
        }
        match send(BatchItem::AllChunks { parcel, parts: number, by }).await? {
            Reply::Missing => tracing::debug!(size, "parts of a command were dropped"),
            reply => return Ok(reply),
        }
    }
    Err(StoreError::Failed(format!(
        "a command of {size} bytes was sent {TRIES_MAX} times, and parts of it were dropped each time"
    )))
}

fn part_name(parcel: u64, number: u32) -> String {
    format!("parcel {parcel:016x} {number}")
}
