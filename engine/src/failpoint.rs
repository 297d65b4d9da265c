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
    "seed.before",
    "seed.after",
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
    "append.rename.before",
    "append.rename.after",
    "report.write.before",
    "report.write.after",
    "run.close.before",
    "run.close.after",
];

/// The points that only a node of a cluster comes to.
pub const CLUSTER_POINTS: [&str; 23] = [
    "raft.vote.before",
    "raft.vote.after",
    "raft.append.before",
    "raft.commit.before",
    "raft.commit.after",
    "raft.apply.before",
    "raft.apply.after",
    "replica.commit.before",
    "replica.commit.after",
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
    }

    static ORDERS: OnceLock<Orders> = OnceLock::new();

    pub(super) fn pass(point: &str) {
        let known = super::POINTS.contains(&point) || super::CLUSTER_POINTS.contains(&point);
        debug_assert!(known, "`{point}` is in a list");
        let orders = ORDERS.get_or_init(read);
        if let Some((wanted, left)) = &orders.kill
            && wanted == point
            && left.fetch_sub(1, Ordering::SeqCst) == 1
        {
            // As from outside: nothing is flushed, nothing unwinds.
            let died = signal_hook::low_level::raise(signal_hook::consts::SIGKILL);
            debug_assert!(died.is_err(), "nobody survives");
        }
        // A commit brings the journal to the disk, and now and then the tables.
        let synced: &[&str] = match point {
            "store.commit.after" => &["journal"],
            "store.settle.after" => &["journal", "db", "db-wal"],
            _ => &[],
        };
        if let Some((from, to)) = orders.image.as_ref().filter(|_| !synced.is_empty()) {
            let copied = image(from, to, synced);
            debug_assert!(copied.is_ok(), "{copied:?}");
        }
    }

    fn read() -> Orders {
        let kill = std::env::var("FAILPOINT").ok().map(|text| {
            let (point, count) = text.split_once(':').unwrap_or((&text, "1"));
            (point.to_owned(), AtomicI64::new(count.parse().unwrap_or(1)))
        });
        let image = std::env::var("FAILPOINT_IMAGE").ok().and_then(|text| {
            let (from, to) = text.split_once(':')?;
            Some((PathBuf::from(from), PathBuf::from(to)))
        });
        Orders { kill, image }
    }

    /// Copies what was synced; a file `copying` stands beside the copies meanwhile.
    fn image(from: &Path, to: &Path, synced: &[&str]) -> std::io::Result<()> {
        let mark = to.join("copying");
        std::fs::write(&mark, "")?;
        for ending in synced {
            let file = from.with_extension(ending);
            let name = file.file_name().unwrap_or_default();
            std::fs::write(to.join(name), std::fs::read(&file).unwrap_or_default())?;
        }
        std::fs::remove_file(mark)
    }
}
