//! Names of jobs: two jobs with one key are one job.

use spoonbill_plugins::follow::without_user;
use spoonbill_plugins::loader::Target;

use crate::ledger::{JobKey, NewJob, Quota};

/// A job for a locator. Its key holds the seeded locator it descends from: below one of them a
/// page is loaded once for each group, below another it is other work.
pub(crate) fn new_job(root: JobKey, name: &str, group: &str, url: &str, depth: u32) -> NewJob {
    // An address that cannot be loaded still becomes a job: it fails with its reason.
    let lane = Target::lane_of(url).unwrap_or_else(|| "local".to_owned());
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

/// A job for a page found by following a link, wherever that was: once for each group and run. It
/// is its own root, so that nothing below it depends on who found it first.
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

/// Names a page of a group that links lead to, by its address in the one spelling.
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
