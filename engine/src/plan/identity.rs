//! The identities of runs and jobs. A run is continued only by definitions with the same identity, and
//! jobs with the same key are one job.

use spoonbill_plugins::follow::without_user;
use spoonbill_plugins::loader::PageTarget;

use crate::config::deciding;
use crate::ledger::{JobKey, NewJob, Quota};
use crate::plan::prepare::Plan;
use crate::plan::publish::encode;

/// The identity of a run: a hash of its definitions and of the settings that decide the rows.
pub(crate) fn identity(plan: &Plan) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&encode(&*plan.published));
    for key in deciding() {
        hasher.update(plan.config.get(key).unwrap_or_default().as_bytes());
        hasher.update(&[0]);
    }
    *hasher.finalize().as_bytes()
}

/// The job of a locator. Its key includes the seeded locator that it descends from: a group loads a
/// page once below each seeded locator.
pub(crate) fn new_job(root: JobKey, name: &str, group: &str, url: &str, depth: u32) -> NewJob {
    // An invalid address becomes a job too: the job fails, and the report names its reason.
    let lane = PageTarget::lane_of(url).unwrap_or_else(|| "local".to_owned());
    NewJob {
        key: key(&[std::str::from_utf8(&hex(root)).unwrap_or_default(), group, url]),
        root,
        polite: lane != "local",
        lane,
        name: name.to_owned(),
        group: group.to_owned(),
        url: url.to_owned(),
        depth,
        origin: None,
        quota: None,
    }
}

/// The job of a page that a link leads to: a group loads it once a run. It is its own root, so nothing
/// below it depends on which page linked to it first.
pub(crate) fn followed_job(
    name: &str,
    group: &str,
    url: &str,
    depth: u32,
    origin: Option<String>,
    quota: Option<Quota>,
) -> NewJob {
    let key = page_key(group, url);
    NewJob { key, origin, quota, ..new_job(key, name, group, url, depth) }
}

/// The key of a followed page. `url` is canonical.
pub(crate) fn page_key(group: &str, url: &str) -> JobKey {
    key(&["follow", group, &without_user(url)])
}

fn hex(key: JobKey) -> [u8; 32] {
    let mut hex = [0; 32];
    for (pair, byte) in hex.as_chunks_mut::<2>().0.iter_mut().zip(key.0) {
        *pair = [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]);
    }
    hex
}

/// 128 bits of a hash over the parts and their lengths, so that no two lists of parts collide.
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
