//! Named points at the steps that make work durable, where a test may have the process killed:
//! `FAILPOINT=store.commit.before:3` kills it when it comes there for the third time.
//!
//! Only debug builds look at the environment; in a release nothing is left of this.

/// Every point, in the order in which a run first comes to it.
pub const POINTS: [&str; 38] = [
    "store.lock.after",
    "store.open.after",
    "store.apply.before",
    "store.apply.after",
    "store.commit.before",
    "store.commit.after",
    "store.settle.before",
    "store.settle.after",
    "store.answer.after",
    "run.folder.before",
    "run.folder.after",
    "run.open.after",
    "crossing.end.before",
    "crossing.end.after",
    "append.create.before",
    "append.create.after",
    "latest.before",
    "latest.linked",
    "latest.after",
    "job.take.before",
    "job.take.after",
    "page.load.before",
    "page.load.after",
    "pages.commit.before",
    "pages.commit.after",
    "job.finish.before",
    "job.finish.after",
    "append.write.before",
    "append.write.after",
    "append.sync.before",
    "append.sync.after",
    "append.ack.after",
    "append.finish.before",
    "append.finish.after",
    "report.write.before",
    "report.write.after",
    "run.close.before",
    "run.close.after",
];

/// The points that only a node of a cluster comes to.
pub const CLUSTER_POINTS: [&str; 26] = [
    "replica.open.after",
    "raft.vote.before",
    "raft.vote.after",
    "raft.append.before",
    "raft.commit.before",
    "raft.sync.after",
    "raft.commit.after",
    "raft.apply.before",
    "raft.apply.after",
    "replica.commit.before",
    "replica.commit.after",
    "replica.sync.after",
    "raft.truncate.before",
    "raft.truncate.after",
    "raft.purge.before",
    "raft.purge.after",
    "raft.part.before",
    "raft.drop.before",
    "raft.drop.after",
    "snapshot.copy.before",
    "snapshot.rename.before",
    "snapshot.rename.after",
    "snapshot.kept.after",
    "snapshot.install.before",
    "snapshot.install.middle",
    "snapshot.install.after",
];

/// Passes a point.
#[cfg(not(debug_assertions))]
#[inline]
pub(crate) const fn pass(_point: &str) {}

/// Passes a point, unless this is where the process is to be killed.
#[cfg(debug_assertions)]
pub(crate) fn pass(point: &str) {
    armed::pass(point);
}

/// Whether a test wants this node's ledger to be another than the cluster's from here on.
#[cfg(not(debug_assertions))]
#[inline]
pub(crate) const fn goes_astray() -> bool {
    false
}

/// Whether a test wants this node's ledger to be another than the cluster's from here on:
/// `FAILPOINT_ASTRAY=20` at the twentieth entry.
#[cfg(debug_assertions)]
pub(crate) fn goes_astray() -> bool {
    armed::goes_astray()
}

/// Reads a page before its tasks do.
#[cfg(not(debug_assertions))]
#[inline]
pub(crate) const fn read(_body: &[u8]) {}

/// Reads a page before its tasks do; one with the mark of a test kills the process, as a page might
/// that no parser survives: `FAILPOINT_PAGE=mark`.
#[cfg(debug_assertions)]
pub(crate) fn read(body: &[u8]) {
    armed::read(body);
}

#[cfg(debug_assertions)]
mod armed {
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicI64, Ordering};

    /// What the environment asks for.
    #[derive(Default)]
    struct Orders {
        /// Where to be killed, and passes left until then.
        kill: Option<(String, AtomicI64)>,
        /// The ledger's file, and where it is copied to whenever all of it is on disk: a test can
        /// then tell what a power cut may have taken.
        image: Option<(PathBuf, PathBuf)>,
        /// Entries left until the ledger is another than it should be.
        astray: Option<AtomicI64>,
        /// What no page may hold.
        deadly: Option<String>,
    }

    static ORDERS: OnceLock<Orders> = OnceLock::new();

    pub(super) fn pass(point: &str) {
        let known = super::POINTS.contains(&point) || super::CLUSTER_POINTS.contains(&point);
        debug_assert!(known, "`{point}` is in a list");
        let orders = ORDERS.get_or_init(orders);
        if let Some((wanted, left)) = &orders.kill
            && wanted == point
            && left.fetch_sub(1, Ordering::SeqCst) == 1
        {
            // As from outside: nothing is flushed, nothing unwinds.
            let died = signal_hook::low_level::raise(signal_hook::consts::SIGKILL);
            debug_assert!(died.is_err(), "nobody survives");
        }
        let synced = synced_at(point);
        if let Some((from, to)) = orders.image.as_ref().filter(|_| !synced.is_empty()) {
            let copied = image(from, to, synced);
            debug_assert!(copied.is_ok(), "{copied:?}");
        }
    }

    /// The files that are on the disk as they are when a point is passed; `raft-` begins the names of
    /// several.
    fn synced_at(point: &str) -> &'static [&'static str] {
        match point {
            // A commit brings the journal to the disk, and now and then the tables.
            "store.commit.after" => &["state.journal"],
            "store.settle.after" => &["state.journal", "state.db", "state.db-wal"],
            // Tables that have just been made: SQLite syncs their file, not their log.
            "replica.open.after" => &["state.db"],
            "raft.sync.after" => &["raft-"],
            "replica.sync.after" | "snapshot.install.after" => &["state.db", "state.db-wal"],
            "snapshot.rename.after" => &["snapshot.db"],
            _ => &[],
        }
    }

    pub(super) fn goes_astray() -> bool {
        let left = ORDERS.get_or_init(orders).astray.as_ref();
        left.is_some_and(|left| left.fetch_sub(1, Ordering::SeqCst) == 1)
    }

    pub(super) fn read(body: &[u8]) {
        let Some(mark) = &ORDERS.get_or_init(orders).deadly else { return };
        if !mark.is_empty() && body.windows(mark.len()).any(|part| part == mark.as_bytes()) {
            std::process::abort();
        }
    }

    fn orders() -> Orders {
        let kill = std::env::var("FAILPOINT").ok().map(|text| {
            let (point, count) = text.split_once(':').unwrap_or((&text, "1"));
            (point.to_owned(), AtomicI64::new(count.parse().unwrap_or(1)))
        });
        let image = std::env::var("FAILPOINT_IMAGE").ok().and_then(|text| {
            let (from, to) = text.split_once(':')?;
            Some((PathBuf::from(from), PathBuf::from(to)))
        });
        let astray = std::env::var("FAILPOINT_ASTRAY").ok().and_then(|text| text.parse().ok());
        let deadly = std::env::var("FAILPOINT_PAGE").ok();
        Orders { kill, image, astray: astray.map(AtomicI64::new), deadly }
    }

    /// Copies what was synced; meanwhile a file `copying-` with the first name stands beside the
    /// copies.
    fn image(from: &Path, to: &Path, synced: &[&str]) -> std::io::Result<()> {
        let dir = from.parent().unwrap_or(Path::new("."));
        let mark = to.join(format!("copying-{}", synced.first().unwrap_or(&"")));
        std::fs::write(&mark, "")?;
        for wanted in synced {
            let several = wanted.ends_with('-');
            let is_meant = |name: &str| name == *wanted || several && name.starts_with(wanted);
            // What is gone by now is gone for good.
            for name in names(to)?.iter().filter(|name| is_meant(name)) {
                std::fs::remove_file(to.join(name))?;
            }
            for name in names(dir)?.iter().filter(|name| is_meant(name)) {
                std::fs::copy(dir.join(name), to.join(name))?;
            }
        }
        std::fs::remove_file(mark)
    }

    fn names(dir: &Path) -> std::io::Result<Vec<String>> {
        let names = std::fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.file_name()));
        names.map(|name| name.map(|name| name.to_string_lossy().into_owned())).collect()
    }
}
