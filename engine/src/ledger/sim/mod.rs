//! A seeded simulation: workers with and without a vote, whose clocks are wrong; a network that loses,
//! repeats and cuts off, in one direction or both; a store that commits in groups and dies between, or
//! is led by one node after another; an appender that crashes after every step; a site of linked pages
//! that wants its pauses. One seed makes all; the invariants hold after every step, and once the faults
//! stop it must heal and the end be told on every seat.
//!
//! `SIM_SEED=n cargo test -p spoonbill-engine --lib ledger::sim` replays one seed,
//! `SIM_SEEDS=n` runs more of them.

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

/// A mistake planted to see that the simulation finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bug {
    None,
    /// A result is taken whatever its token.
    NoTokenCheck,
    /// A page that is known becomes a job again.
    NoDedupe,
    /// Links are committed after the rows they came with.
    SplitCommit,
    /// A resent Take is answered with more jobs.
    TakeAnew,
    /// An appender acknowledges what it has not written.
    AckBeforeWrite,
    /// Answers leave before the commit.
    ReplyBeforeCommit,
    /// A process that follows a dead one starts at once.
    NoGap,
    /// A checkpoint without the lanes.
    LanesNotStored,
    /// A lane's pause is forgotten when its job ends.
    NoDelay,
    /// Everybody gets jobs of a polite lane at the same time.
    NoExclusiveLanes,
    /// A lane's pause counts from the grant, however late the host is asked.
    GapFromGrant,
    /// A lane does not pause when its holder is gone.
    NoHandOverGap,
    /// A worker that has passed its deadline drops its work and keeps its session.
    RevivedSession,
    /// A worker counts its lease from the answer instead of from its sign of life.
    AckTimeLease,
    /// A leader that has been deposed goes on answering.
    StaleLeaderAck,
    /// A node that is owed the end of a run begins another.
    EndForgotten,
    /// A job is granted before all of a smaller depth have ended.
    AnyLevel,
    /// A restart forgets how much a rule has added.
    QuotaForgotten,
    /// Whoever seems to be gone is taken for dead.
    DoubtIsProof,
    /// A worker asks a host for a job that may have been taken away from it.
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

/// How often things happened: a run that did not exercise its faults is no proof.
type Coverage = BTreeMap<&'static str, u64>;

/// What came of one seed.
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
fn whatever_happens_nothing_is_lost_and_nothing_comes_twice() {
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
    // Least counts for each thousand seeds.
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
