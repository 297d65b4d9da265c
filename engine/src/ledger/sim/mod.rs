//! A seeded simulation of whole runs. Each seed determines:
//!
//! - workers with and without a vote, whose clocks are inaccurate;
//! - a network that loses, repeats and blocks messages, in one direction or both;
//! - a store that commits in batches, dies between two batches, and changes its leader;
//! - an appender that may crash after every step;
//! - a site of linked pages with delays between requests.
//!
//! The invariants are checked after every step. Once the faults stop, the run must reach its end, and
//! every seat must report it.
//!
//! `SIM_SEED=n cargo test -p spoonbill-engine --lib ledger::sim` replays one seed, `SIM_SEEDS=n` runs more
//! of them.

mod appender;
mod dice;
mod faults;
mod leaders;
mod site;
mod store;
mod worker;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use world::World;

/// A planted mistake, to test that the simulation finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bug {
    None,
    /// A result with any token counts.
    NoTokenCheck,
    /// A known page becomes a job again.
    NoDedupe,
    /// Links are committed after the rows they came with.
    SplitCommit,
    /// A resent Take is answered with more jobs.
    TakeAnew,
    /// An appender acknowledges what it has not written.
    AckBeforeWrite,
    /// Replies are sent before the commit.
    ReplyBeforeCommit,
    /// A process after a dead one does not wait for the delay.
    NoGap,
    /// The stored state lacks the lanes.
    LanesNotStored,
    /// The pause of a lane is dropped when its job ends.
    NoDelay,
    /// Several sessions get jobs of an exclusive lane at the same time.
    NoExclusiveLanes,
    /// The pause of a lane counts from the grant instead of from the request.
    GapFromGrant,
    /// A lane does not pause when its holder ends.
    NoHandOverGap,
    /// A worker past its deadline drops its jobs but keeps its session.
    RevivedSession,
    /// A worker counts its lease from the reply instead of from the renewal.
    AckTimeLease,
    /// A deposed leader still replies.
    StaleLeaderAck,
    /// A node begins another run before it has reported the end of the last one.
    EndForgotten,
    /// A job is granted before all of a smaller depth have ended.
    AnyLevel,
    /// A restart loses the counts of rules with a quota.
    QuotaForgotten,
    /// A doubt ends the session at once.
    DoubtIsProof,
    /// A worker starts a job that another node may have got in the meantime.
    LateStart,
}

const BUGS: [Bug; 20] = [
    Bug::NoTokenCheck,
    Bug::NoDedupe,
    Bug::SplitCommit,
    Bug::TakeAnew,
    Bug::AckBeforeWrite,
    Bug::ReplyBeforeCommit,
    Bug::NoGap,
    Bug::LanesNotStored,
    Bug::NoDelay,
    Bug::NoExclusiveLanes,
    Bug::GapFromGrant,
    Bug::NoHandOverGap,
    Bug::RevivedSession,
    Bug::AckTimeLease,
    Bug::StaleLeaderAck,
    Bug::EndForgotten,
    Bug::AnyLevel,
    Bug::QuotaForgotten,
    Bug::DoubtIsProof,
    Bug::LateStart,
];

/// Number of events by name. A simulation without enough faults proves nothing.
type Coverage = BTreeMap<&'static str, u64>;

/// The result of one seed.
struct Verdict {
    seed: u64,
    trace: u64,
    coverage: Coverage,
    failure: Option<String>,
}

fn play(seed: u64, bug: Bug) -> Verdict {
    let mut world = World::new(seed, bug);
    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.play()));
    let failure = played.unwrap_or_else(|_| Err(String::from("panicked"))).err();
    let (trace, coverage) = world.end();
    Verdict { seed, trace, coverage, failure }
}

/// Plays seeds on all cores.
fn play_all(seeds: std::ops::Range<u64>, bug: Bug) -> Vec<Verdict> {
    let (next, verdicts) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let verdict = play(seed, bug);
                    verdicts.lock().unwrap().push(verdict);
                }
            });
        }
    });
    verdicts.into_inner().unwrap()
}

fn number_from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn sum(verdicts: &[Verdict]) -> Coverage {
    let mut sum = Coverage::new();
    for (what, count) in verdicts.iter().flat_map(|verdict| &verdict.coverage) {
        *sum.entry(what).or_default() += count;
    }
    sum
}

#[test]
fn no_row_is_lost_or_repeated_under_any_fault() {
    if let Some(seed) = number_from_environment("SIM_SEED") {
        let verdict = play(seed, Bug::None);
        println!("seed {seed}: trace {:016x}, {:?}", verdict.trace, verdict.coverage);
        assert_eq!(verdict.failure, None, "seed {seed}");
        return;
    }
    let seeds = number_from_environment("SIM_SEEDS").unwrap_or(3000);
    let verdicts = play_all(0..seeds, Bug::None);
    let mut failed: Vec<_> = verdicts
        .iter()
        .filter_map(|verdict| verdict.failure.as_ref().map(|failure| (verdict.seed, failure)))
        .collect();
    failed.sort_unstable();
    let coverage = sum(&verdicts);
    println!("{seeds} seeds: {coverage:#?}");
    assert!(
        failed.is_empty(),
        "{} of {seeds} seeds failed, the first: {:?}\nreplay: SIM_SEED={} cargo test -p \
         spoonbill-engine --lib ledger::sim",
        failed.len(),
        failed[0],
        failed[0].0
    );
    // Minimum number of events per thousand seeds.
    for (what, least) in [
        ("process killed", 1500),
        ("worker killed", 2000),
        ("ledger restarted", 250),
        ("leader changed", 500),
        ("tail lost", 150),
        ("leader stale", 200),
        ("stale leader asked", 500),
        ("network cut", 200),
        ("worker cut off", 200),
        ("worker cut one way", 400),
        ("worker paused", 2000),
        ("seat fenced", 150),
        ("seat admitted", 250),
        ("away at the end", 120),
        ("ended on every seat", 500),
        ("session expired", 1500),
        ("hint with reason", 300),
        ("hint without reason", 400),
        ("jobs returned on a hint", 40),
        ("job taken away", 40),
        ("session replaced", 1500),
        ("late finish accepted", 20),
        ("late finish refused", 200),
        ("request resent", 2000),
        ("message lost", 1000),
        ("message repeated", 1000),
        ("appender crashed", 300),
        ("job isolated", 50),
        ("job poisoned", 20),
        ("failed jobs retried", 100),
        ("levels kept", 150),
        ("groups in order", 100),
        ("quota reached", 50),
    ] {
        let count = coverage.get(what).copied().unwrap_or(0);
        assert!(count * 1000 >= least * seeds, "{what}: only {count} times in {seeds} seeds");
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..20 {
        let (first, second) = (play(seed, Bug::None), play(seed, Bug::None));
        assert_eq!((first.trace, first.coverage), (second.trace, second.coverage));
        assert_ne!(first.trace, play(seed + 1000, Bug::None).trace);
    }
}

#[test]
fn every_planted_bug_is_found() {
    let bugs = BUGS.iter().filter(|bug| {
        let found = (0..3_000).step_by(100).find_map(|from| {
            let mut verdicts = play_all(from..from + 100, **bug);
            verdicts.sort_unstable_by_key(|one| one.seed);
            verdicts.into_iter().find_map(|one| Some((one.seed, one.failure?)))
        });
        println!("{bug:?}: found by seed {found:?}");
        found.is_none()
    });
    assert_eq!(bugs.collect::<Vec<_>>(), Vec::<&Bug>::new());
}
