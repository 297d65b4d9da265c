//! SIGKILLs over definitions of every kind, judged by sites that log every request. For hundreds of
//! kills: `KILLS=500 cargo test --test spoonbill judged -- --ignored --nocapture`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::sets::{self, Set, SiteAnswer};
use super::shop::{SeededRandom, folders_in, sorted, words};
use super::site::{pauses_missed, pauses_missed_max};

/// `job.takeLimit` of these runs.
const TAKE_LIMIT: usize = 32;

/// Counts of the kills of one set and of their effects.
#[derive(Debug, Default)]
struct KillFigures {
    rounds: usize,
    kills: usize,
    /// Pages that had been answered and were asked for again by a later process.
    again: usize,
    /// The largest number of them in the life of one process.
    again_most: usize,
    /// Kills after the run was closed.
    closed: usize,
}

/// A directory with definitions, data and output.
struct JudgedDir<'a> {
    dir: tempfile::TempDir,
    set: &'a Set,
    canonical: bool,
}

impl<'a> JudgedDir<'a> {
    fn new(set: &'a Set, canonical: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("defs")).unwrap();
        std::fs::write(dir.path().join("defs/job.yml"), &set.defs).unwrap();
        set.forget();
        Self { dir, set, canonical }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spoonbill"));
        command.current_dir(self.dir.path()).args(words).env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    fn on_defs(&self, word: &str) -> Command {
        let mut command = self.command(&[word, "defs", "--report", "report.json"]);
        let order = if self.canonical { "canonical" } else { "arrival" };
        let more = [format!("job.takeLimit={TAKE_LIMIT}"), format!("output.order={order}")];
        for setting in self.set.settings.iter().copied().chain(more.iter().map(String::as_str)) {
            command.args(["--set", setting]);
        }
        command
    }

    fn folders(&self) -> Vec<PathBuf> {
        folders_in(&self.dir.path().join("output"))
    }

    fn report(&self) -> serde_json::Value {
        let text = std::fs::read_to_string(self.dir.path().join("report.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

type RunFiles = BTreeMap<String, Vec<u8>>;

/// All files below a folder by their paths relative to it.
fn files(folder: &Path) -> RunFiles {
    let mut found = RunFiles::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

fn same(found: &RunFiles, golden: &RunFiles, canonical: bool) -> bool {
    found.len() == golden.len()
        && found.iter().zip(golden).all(|((name, bytes), (wanted, rows))| {
            name == wanted && if canonical { bytes == rows } else { sorted(bytes) == sorted(rows) }
        })
}

/// The files of an undisturbed run.
fn golden(set: &Set) -> RunFiles {
    let place = JudgedDir::new(set, true);
    let output = place.on_defs("run").output().unwrap();
    finished(set, &output);
    let answers = set.answers();
    assert_eq!(answers.iter().filter(|answer| answer.good).count(), set.pages, "{}", set.name);
    files(place.folders().last().unwrap())
}

fn finished(set: &Set, output: &Output) {
    let code = if set.lost > 0 { 4 } else { 0 };
    assert_eq!(output.status.code(), Some(code), "{}: {}", set.name, words(output));
}

/// All pages that have been answered, with the number of the process that asked last.
type KnownPages = HashMap<String, usize>;

/// Adds the requests of one process to the known pages.
fn read_life(
    life: &[SiteAnswer],
    number: usize,
    known: &mut KnownPages,
    figures: &mut KillFigures,
) {
    let mut again = 0;
    for answer in life.iter().filter(|answer| answer.good) {
        if let Some(earlier) = known.insert(answer.page.clone(), number) {
            again += 1;
            assert!(earlier < number, "a process loaded a page twice: {answer:?}");
        }
    }
    figures.again += again;
    figures.again_most = figures.again_most.max(again);
}

/// Kills processes until one finishes the run. Then rows, requests and data directory must be those of
/// an undisturbed run.
fn round(set: &Set, golden: &RunFiles, dice: &mut SeededRandom, figures: &mut KillFigures) {
    let place = JudgedDir::new(set, figures.rounds.is_multiple_of(2));
    let (mut known, mut read) = (KnownPages::new(), 0);
    let longest_ms = 80 + dice.below(500);
    let (mut folders, mut starts) = (0, 0);
    let output = loop {
        let mut child = place.on_defs("run").spawn().unwrap();
        starts += 1;
        assert!(starts < 400, "{}: the run does not end", set.name);
        std::thread::sleep(Duration::from_millis(30 + dice.below(longest_ms + 2 * starts)));
        let ended = child.try_wait().unwrap().is_some();
        if !ended {
            child.kill().unwrap();
            figures.kills += 1;
        }
        let output = child.wait_with_output().unwrap();
        // Later, requests of this process would be taken for requests of the next one.
        set.settle();
        let there = place.folders();
        if folders > 0 && there.len() > folders {
            // A new run has begun. The previous one was closed with all of its rows, or was killed
            // when it had only created its folder.
            let before = files(&there[folders - 1]);
            if known.is_empty() {
                assert!(before.is_empty(), "{}: {:?}", set.name, before.keys());
            } else {
                assert!(
                    same(&before, golden, place.canonical),
                    "{}: a run was left unfinished",
                    set.name
                );
                known.clear();
                figures.closed += 1;
            }
        }
        folders = there.len();
        let answers = set.answers();
        read_life(&answers[read..], starts as usize - 1, &mut known, figures);
        read = answers.len();
        if ended {
            break output;
        }
    };
    finished(set, &output);
    assert_eq!(known.len(), set.pages, "{}", set.name);
    assert!(same(&files(&place.folders()[folders - 1]), golden, place.canonical), "{}", set.name);
    judge_pauses(set);
    assert_eq!(place.report()["jobs"]["failed"], set.lost);
    afterwards(&place);
    figures.rounds += 1;
}

/// The pauses of each host were kept over all processes.
fn judge_pauses(set: &Set) {
    if set.delay.is_zero() {
        return;
    }
    let mut starts: HashMap<String, Vec<Instant>> = HashMap::new();
    for answer in set.answers() {
        let host = answer.page.split('/').next().unwrap_or_default().to_owned();
        starts.entry(host).or_default().push(answer.at);
    }
    for (host, starts) in starts {
        let missed = pauses_missed(&starts, set.delay);
        let requests = starts.len();
        let most = pauses_missed_max(requests);
        assert!(missed <= most, "{host}: {missed:.1} pauses missed between {requests} requests");
    }
}

/// The data directory is whole, and a replay of the stored pages gives all rows again.
fn afterwards(place: &JudgedDir<'_>) {
    let set = place.set;
    let checked = place.command(&["fsck"]).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{}: {}", set.name, words(&checked));
    let asked = set.answers().len();
    finished(set, &place.on_defs("replay").output().unwrap());
    assert_eq!(set.answers().len(), asked, "a replay sent requests");
    let report = place.report();
    assert_eq!(report["replay"]["pagesMissing"], set.lost);
    for (name, change) in report["replay"]["dataDefs"].as_object().unwrap() {
        let moved = ["added", "removed", "changed"].map(|word| change[word].as_u64().unwrap());
        assert_eq!(moved, [0; 3], "{}: {name}", set.name);
    }
}

fn hammer(kills_least: usize) {
    let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7000);
    let sets = sets::all();
    let each = kills_least.div_ceil(sets.len());
    let mut total = 0;
    for (set, seed) in sets.iter().zip(seed..) {
        let golden = golden(set);
        assert!(golden.values().all(|rows| !rows.is_empty()));
        let (mut figures, mut dice) = (KillFigures::default(), SeededRandom(seed));
        while figures.kills < each {
            round(set, &golden, &mut dice, &mut figures);
        }
        println!("{}, seed {seed}: {figures:?}", set.name);
        assert!(figures.again <= figures.kills * TAKE_LIMIT);
        total += figures.kills;
    }
    println!("{total} kills: no row lost, no row twice");
}

#[test]
fn a_few_kills_for_every_kind_of_definitions_lose_no_row() {
    hammer(10);
}

#[test]
#[ignore = "takes minutes: run it by name, with KILLS"]
fn hundreds_of_kills_lose_no_row() {
    let kills = std::env::var("KILLS").ok().and_then(|text| text.parse().ok());
    hammer(kills.unwrap_or(500));
}
