//! Named points at the steps that make work durable, where a test can kill the process.
//! `FAILPOINT=store.commit.before:3` kills it at the third pass of that point.
//!
//! Only debug builds read the environment. In a release build these functions are empty.

/// All points, in the order of their first pass in a run.
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

/// The points that only a node of a cluster passes.
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

/// Passes a point, or kills the process there if a test asks for it.
#[cfg(debug_assertions)]
pub(crate) fn pass(point: &str) {
    armed::pass(point);
}

/// Whether a test wants this node's ledger to differ from the cluster's from now on.
#[cfg(not(debug_assertions))]
#[inline]
pub(crate) const fn goes_astray() -> bool {
    false
}

/// Whether a test wants this node's ledger to differ from the cluster's from now on.
/// `FAILPOINT_ASTRAY=20` does that at the twentieth entry.
#[cfg(debug_assertions)]
pub(crate) fn goes_astray() -> bool {
    armed::goes_astray()
}

/// Called with each page before its tasks.
#[cfg(not(debug_assertions))]
#[inline]
pub(crate) const fn read(_body: &[u8]) {}

/// Called with each page before its tasks. `FAILPOINT_PAGE=text` kills the process at a page with that
/// text, like a page that crashes a parser.
#[cfg(debug_assertions)]
pub(crate) fn read(body: &[u8]) {
    armed::read(body);
}

#[cfg(debug_assertions)]
mod armed {
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicI64, Ordering};

    /// The failpoints set in the environment.
    #[derive(Default)]
    struct ArmedFailpoints {
        /// Point at which to kill the process, and remaining passes.
        kill: Option<(String, AtomicI64)>,
        /// File of the ledger, and the folder to which its files are copied after each sync. A test uses
        /// the copies as the state after a power failure.
        image: Option<(PathBuf, PathBuf)>,
        /// Remaining entries until the ledger differs.
        astray: Option<AtomicI64>,
        /// Text of a page that kills the process.
        deadly: Option<String>,
    }

    static ORDERS: OnceLock<ArmedFailpoints> = OnceLock::new();

    pub(super) fn pass(point: &str) {
        let known = super::POINTS.contains(&point) || super::CLUSTER_POINTS.contains(&point);
        debug_assert!(known, "`{point}` is missing in the lists");
        let orders = ORDERS.get_or_init(orders);
        if let Some((wanted, left)) = &orders.kill
            && wanted == point
            && left.fetch_sub(1, Ordering::SeqCst) == 1
        {
            // Like a kill from outside: nothing is flushed or unwound.
            let died = signal_hook::low_level::raise(signal_hook::consts::SIGKILL);
            debug_assert!(died.is_err(), "the process survived SIGKILL");
        }
        let synced = synced_at(point);
        if let Some((from, to)) = orders.image.as_ref().filter(|_| !synced.is_empty()) {
            let copied = image(from, to, synced);
            debug_assert!(copied.is_ok(), "{copied:?}");
        }
    }

    /// The files that are completely on disk at a point. `raft-` stands for all files whose name begins
    /// with it.
    fn synced_at(point: &str) -> &'static [&'static str] {
        match point {
            // A commit syncs the journal, and sometimes the tables.
            "store.commit.after" => &["state.journal"],
            "store.settle.after" => &["state.journal", "state.db", "state.db-wal"],
            // SQLite syncs the file of new tables, but not their WAL.
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

    fn orders() -> ArmedFailpoints {
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
        ArmedFailpoints { kill, image, astray: astray.map(AtomicI64::new), deadly }
    }

    /// Copies the synced files. During the copy, a file `copying-` with the first name exists beside them.
    fn image(from: &Path, to: &Path, synced: &[&str]) -> std::io::Result<()> {
        let dir = from.parent().unwrap_or(Path::new("."));
        let mark = to.join(format!("copying-{}", synced.first().unwrap_or(&"")));
        std::fs::write(&mark, "")?;
        for wanted in synced {
            let several = wanted.ends_with('-');
            let is_meant = |name: &str| name == *wanted || several && name.starts_with(wanted);
            // Files that were removed must disappear from the copies, too.
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
