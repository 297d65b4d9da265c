//! Seeding: every locator of the definitions becomes a job, once.

use std::sync::Arc;

use spoonbill_defs::{Defs, LocatorGroup};
use spoonbill_plugins::loader::Target;
use tokio::task::JoinSet;

use crate::error::RunError;
use crate::ledger::{Command, Epoch, JobKey, NewJob, Reply, SessionId};
use crate::store::Store;

/// Jobs in one command.
const CHUNK: usize = 500;

/// Seeds all groups side by side and waits until the last of them is in.
pub(crate) async fn seed(
    store: &Arc<dyn Store>,
    session: SessionId,
    epoch: Epoch,
    defs: &Defs,
) -> Result<(), RunError> {
    let mut latch = JoinSet::new();
    for group in defs.locator_groups.clone() {
        latch.spawn(seed_group(Arc::clone(store), session, epoch, group));
    }
    while let Some(seeded) = latch.join_next().await {
        seeded.map_err(|error| RunError::Internal(format!("seeding ended: {error}")))??;
    }
    Ok(())
}

async fn seed_group(
    store: Arc<dyn Store>,
    session: SessionId,
    epoch: Epoch,
    group: LocatorGroup,
) -> Result<(), RunError> {
    let name = group.name.text;
    let mut chunks = group.locators.chunks(CHUNK).peekable();
    while let Some(chunk) = chunks.next() {
        let jobs = chunk
            .iter()
            .map(|locator| {
                let root = key(&[&name, &locator.name.text, &locator.url.text]);
                new_job(root, &locator.name.text, &name, &locator.url.text, 0)
            })
            .collect();
        let last = chunks.peek().is_none();
        let seed = Command::Seed { session, epoch, group: name.clone(), jobs, last };
        match store.submit(seed).await? {
            Reply::Ok => {}
            other => return Err(RunError::unexpected("seed", &other)),
        }
    }
    Ok(())
}

/// A job for a locator. Its key holds the seeded locator it descends from: below one of them a
/// page is loaded once for each group, below another it is other work.
pub(crate) fn new_job(root: JobKey, name: &str, group: &str, url: &str, depth: u32) -> NewJob {
    // An address that cannot be loaded still becomes a job: it fails with its reason.
    let lane = Target::of(url).map_or_else(|_| "local".to_owned(), |target| target.lane());
    NewJob {
        key: key(&[std::str::from_utf8(&hex(root)).unwrap_or_default(), group, url]),
        root,
        polite: lane != "local",
        lane,
        name: name.to_owned(),
        group: group.to_owned(),
        url: url.to_owned(),
        depth,
    }
}

fn hex(key: JobKey) -> [u8; 32] {
    let mut hex = [0; 32];
    for (pair, byte) in hex.as_chunks_mut::<2>().0.iter_mut().zip(key.0) {
        *pair = [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]);
    }
    hex
}

/// 128 bits of a hash over the parts and their lengths.
pub(crate) fn key(parts: &[&str]) -> JobKey {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut key = [0; 16];
    key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    JobKey(key)
}
