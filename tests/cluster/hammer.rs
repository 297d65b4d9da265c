//! The hammer: runs in which nodes are killed, stopped and lose their disks again and again. The rows
//! must be those of an undisturbed run. For more faults:
//! `FAULTS=500 SEED=1 cargo test --test spoonbill hammer -- --ignored --nocapture`. `SET=polite` limits
//! the runs to one set of definitions.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use super::schedule::{FaultTarget, NodeFault, Planned, draw};
use crate::harness::site::{LoggedRequest, pauses_missed, pauses_missed_max};
use crate::harness::workdir::DEADLINE;
use crate::harness::{RunFiles, TestCluster};
use crate::kill::sets::{self, Set};
use crate::kill::shop::{SeededRandom, sorted};

/// `job.takeLimit` of these runs.
const TAKE_LIMIT: usize = 8;
/// The number of the worker, in rounds that have one.
const WORKER: usize = 9;
/// How long an undisturbed run takes, so that the faults hit a running cluster.
const LASTS: Duration = Duration::from_secs(7);
/// The pause of hosts that want one, for the same reason.
const PAUSE: Duration = Duration::from_millis(400);
/// How long after SIGCONT a process may still send a request that it had begun.
const WAKES: Duration = Duration::from_millis(1500);

/// Counts of faults and of their effects.
#[derive(Debug, Default)]
struct HammerFigures {
    rounds: usize,
    faults: usize,
    kills: usize,
    leader_kills: usize,
    stops: usize,
    leaves: usize,
    emptied: usize,
    /// Kills of several nodes at once.
    joint: usize,
    /// Kills while the last jobs were running.
    late: usize,
    /// Sessions that a live node lost.
    expiries: usize,
    /// Nodes that ended with a snapshot.
    snapshots: usize,
    /// Nodes that were killed after they had finished.
    closed: usize,
    /// Pages that were loaded again.
    again: usize,
    /// Requests to hosts that want a pause, and those that arrived while another one had no answer yet.
    asked: usize,
    overlaps: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HammeredState {
    Up,
    /// Killed. It starts again at this time.
    Down(Instant),
    /// Stopped at the first time, and woken at the second one.
    Asleep(Instant, Instant),
    /// Asked to leave. It starts again this long after it has ended.
    Leaving(Duration),
    Done,
}

struct Round<'a> {
    set: &'a Set,
    golden: &'a RunFiles,
    canonical: bool,
    cluster: TestCluster,
    states: BTreeMap<usize, HammeredState>,
    /// When nodes slept.
    slept: Vec<(Instant, Instant)>,
    /// When nodes were killed.
    killed: Vec<Instant>,
    began: Instant,
    story: Vec<String>,
    dice: SeededRandom,
    figures: HammerFigures,
}

impl Round<'_> {
    fn note(&mut self, words: String) {
        self.story.push(format!("{:8.3}  {words}", self.began.elapsed().as_secs_f64()));
    }

    /// Fails the test with the story of the round.
    fn fail(&mut self, words: &str) -> ! {
        let name = self.set.name;
        let story = self.story.join("\n");
        panic!("{name}: {words}\n{story}\nlogs in {}", self.cluster.work.path(".logs").display());
    }

    fn code(&self) -> i32 {
        if self.set.lost > 0 { 4 } else { 0 }
    }

    fn nodes(&self, wanted: impl Fn(HammeredState) -> bool) -> Vec<usize> {
        self.states.iter().filter(|(_, state)| wanted(**state)).map(|(node, _)| *node).collect()
    }

    fn up(&self) -> Vec<usize> {
        self.nodes(|state| state == HammeredState::Up)
    }

    /// Whether a node has all rows of the run in its files.
    fn is_complete(&self, node: usize) -> bool {
        node == WORKER || same(&self.cluster.files(node), self.golden, self.canonical)
    }

    /// The leader, if a running node reports one that runs.
    fn leader(&mut self) -> Option<usize> {
        let up: Vec<usize> = self.up().into_iter().filter(|node| *node != WORKER).collect();
        let first = self.dice.below(up.len().max(1) as u64) as usize;
        let mut asked = (0..up.len()).map(|place| up[(first + place) % up.len()]);
        let leader = asked.find_map(|node| self.cluster.status(node)?["leader"].as_u64());
        leader.map(|leader| leader as usize).filter(|leader| up.contains(leader))
    }

    fn pick(&mut self, target: FaultTarget) -> Option<(usize, bool)> {
        let leader = self.leader();
        let up = self.up();
        let node = match target {
            FaultTarget::Leader => leader?,
            FaultTarget::Any(place) => *up.get(place % up.len().max(1))?,
        };
        Some((node, Some(node) == leader))
    }

    fn kill(&mut self, node: usize, leads: bool, away: Duration) -> bool {
        if !self.cluster.kill(node) {
            return false;
        }
        self.states.insert(node, HammeredState::Down(Instant::now() + away));
        self.killed.push(Instant::now());
        self.figures.kills += 1;
        self.figures.leader_kills += usize::from(leads);
        let role = if leads { "leader" } else { "node" };
        self.note(format!("killed {role} {node}, away for {away:?}"));
        true
    }

    /// Applies a fault if a node that it can hit is running.
    fn inflict(&mut self, fault: NodeFault) {
        let done = match fault {
            NodeFault::Kill(target, away) => {
                self.pick(target).is_some_and(|(node, leads)| self.kill(node, leads, away))
            }
            NodeFault::Double(away) | NodeFault::All(away) => {
                let leader = self.leader();
                let mut victims = self.up();
                if matches!(fault, NodeFault::Double(_)) {
                    // The leader, if there is one, and one or two other nodes.
                    victims.sort_by_key(|node| Some(*node) != leader);
                    victims.truncate(2);
                }
                self.figures.joint += usize::from(victims.len() > 1);
                let mut killed = 0;
                for node in victims {
                    let away = away + Duration::from_millis(self.dice.below(700));
                    killed += usize::from(self.kill(node, Some(node) == leader, away));
                }
                killed > 0
            }
            NodeFault::Empty(target, away) => self.pick(target).is_some_and(|(node, leads)| {
                let killed = self.kill(node, leads, away);
                if killed {
                    // A node that was killed at its start may have none yet.
                    drop(std::fs::remove_dir_all(self.cluster.work.path(&format!("d{node}"))));
                    self.note(format!("emptied the disk of {node}"));
                    self.figures.emptied += 1;
                }
                killed
            }),
            NodeFault::Stop(target, time) => self.pick(target).is_some_and(|(node, leads)| {
                self.cluster.signal(node, "STOP");
                let now = Instant::now();
                self.states.insert(node, HammeredState::Asleep(now, now + time));
                self.figures.stops += 1;
                let role = if leads { "leader" } else { "node" };
                self.note(format!("stopped {role} {node} for {time:?}"));
                true
            }),
            NodeFault::Leave(target, away) => self.pick(target).is_some_and(|(node, leads)| {
                self.cluster.signal(node, "TERM");
                self.states.insert(node, HammeredState::Leaving(away));
                self.figures.leaves += 1;
                let role = if leads { "leader" } else { "node" };
                self.note(format!("asked {role} {node} to leave"));
                true
            }),
        };
        self.figures.faults += usize::from(done);
    }

    /// Restarts and wakes nodes whose time has come, and checks those that have ended.
    fn tend(&mut self) {
        for node in self.nodes(|_| true) {
            match self.states[&node] {
                HammeredState::Down(until) if Instant::now() >= until => {
                    let over = !self.nodes(|state| state == HammeredState::Done).is_empty();
                    if over && self.is_complete(node) {
                        self.figures.closed += 1;
                        self.note(format!("{node} had finished"));
                        self.states.insert(node, HammeredState::Done);
                        continue;
                    }
                    self.cluster.start(node);
                    self.states.insert(node, HammeredState::Up);
                    self.note(format!("started {node}"));
                }
                HammeredState::Asleep(from, until) if Instant::now() >= until => {
                    self.cluster.signal(node, "CONT");
                    self.slept.push((from, Instant::now()));
                    self.states.insert(node, HammeredState::Up);
                    self.note(format!("woke {node}"));
                }
                HammeredState::Up if self.cluster.has_ended(node) => self.ended(node),
                HammeredState::Leaving(away) if self.cluster.has_ended(node) => {
                    let code = self.cluster.node(node).code();
                    if code == Some(143) {
                        self.note(format!("{node} has left"));
                        self.states.insert(node, HammeredState::Down(Instant::now() + away));
                    } else {
                        // The run ended before the node could leave.
                        self.ended(node);
                    }
                }
                _ => {}
            }
        }
    }

    fn ended(&mut self, node: usize) {
        let code = self.cluster.node(node).code();
        self.note(format!("{node} ended with {code:?}"));
        if code != Some(self.code()) {
            // A node that was killed after it had finished found no other node for the next run.
            let alone = code == Some(75) && self.is_complete(node);
            if !alone {
                let said = self.cluster.node(node).stderr();
                self.fail(&format!("node {node} ended with {code:?}; it said:\n{said}"));
            }
            self.figures.closed += 1;
        }
        self.states.insert(node, HammeredState::Done);
    }

    /// Whether a node reports that the run is over or that only a few jobs are left.
    fn is_late(&self) -> bool {
        self.up().iter().filter(|node| **node != WORKER).any(|node| {
            let Some(status) = self.cluster.status(*node) else { return false };
            let run = &status["run"];
            let left = |word: &str| run[word].as_u64().unwrap_or(u64::MAX / 4);
            run["state"] == "over"
                || run["state"] == "running" && left("pending") + left("taken") < 4
        })
    }

    /// Runs the cluster with the planned faults until all nodes have finished.
    fn play(&mut self, plan: &[Planned]) {
        for node in self.nodes(|_| true) {
            self.cluster.start(node);
        }
        let mut plan = plan.iter();
        let mut next = plan.next();
        let mut due = Instant::now() + next.map_or(Duration::ZERO, |planned| planned.after);
        let mut quiet = Instant::now();
        let mut late = self.dice.below(2) == 0;
        while !self.nodes(|state| state != HammeredState::Done).is_empty() {
            self.tend();
            let over = !self.nodes(|state| state == HammeredState::Done).is_empty();
            if let Some(planned) = next.filter(|_| !over && Instant::now() >= due) {
                self.inflict(planned.fault);
                next = plan.next();
                due = Instant::now() + next.map_or(Duration::ZERO, |planned| planned.after);
                quiet = Instant::now();
            }
            if late && next.is_none() && !over && self.is_late() {
                late = false;
                let before = self.figures.faults;
                let away = Duration::from_millis(self.dice.below(3000));
                let target =
                    if self.dice.below(2) == 0 { FaultTarget::Leader } else { FaultTarget::Any(1) };
                self.inflict(NodeFault::Kill(target, away));
                self.figures.late += self.figures.faults - before;
                quiet = Instant::now();
            }
            if quiet.elapsed() > DEADLINE {
                self.fail("the run does not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Checks that the faults left no trace in files, data directories and requests.
    fn judge(&mut self) {
        for node in self.cluster.seats() {
            if !self.is_complete(node) {
                let found = self.cluster.files(node);
                let sizes = |files: &RunFiles| -> Vec<(String, usize)> {
                    files.iter().map(|(name, bytes)| (name.clone(), bytes.len())).collect()
                };
                let words = format!(
                    "node {node} has other rows: {:?} instead of {:?}",
                    sizes(&found),
                    sizes(self.golden)
                );
                self.fail(&words);
            }
            if self.cluster.files(node) != self.cluster.files(1) {
                self.fail(&format!("the files of node {node} differ from those of node 1"));
            }
            let checked = self.cluster.work.spoonbill(&["fsck", "--data-dir", &format!("d{node}")]);
            if checked.code != 0 {
                self.fail(&format!("fsck of node {node}: {checked:?}"));
            }
            let snapshot = self.cluster.work.exists(&format!("d{node}/snapshot.db"));
            self.figures.snapshots += usize::from(snapshot);
        }
        for log in self.cluster.work.list(".logs") {
            let said = self.cluster.work.read(&format!(".logs/{log}"));
            self.figures.expiries += said.matches("this node has lost its session").count();
        }
        self.judge_pages();
        self.judge_pauses();
    }

    /// Pages are loaded again only if a node that held them had a fault.
    fn judge_pages(&mut self) {
        let mut loaded: HashMap<String, usize> = HashMap::new();
        for answer in self.set.answers().iter().filter(|answer| answer.good) {
            *loaded.entry(answer.page.clone()).or_default() += 1;
        }
        if loaded.len() != self.set.pages {
            self.fail(&format!("{} of {} pages were loaded", loaded.len(), self.set.pages));
        }
        let again: usize = loaded.values().map(|times| times - 1).sum();
        self.figures.again += again;
        let hits = self.figures.kills + self.figures.stops;
        let most = loaded.values().max().copied().unwrap_or(0);
        // A run that was closed before the kill is started again, with all of its pages.
        if self.figures.closed == 0 && (most > 1 + hits || again > hits * TAKE_LIMIT) {
            self.fail(&format!("{again} pages loaded again, one of them {most} times"));
        }
    }

    /// Checks the logs of the sites: all pauses were kept, and no two requests overlapped.
    fn judge_pauses(&mut self) {
        if self.set.delay == Duration::ZERO {
            return;
        }
        for log in self.set.logs(self.began) {
            let excused = |hit: &LoggedRequest| {
                let woken = |woke: Instant| hit.at >= woke && hit.at < woke + WAKES + PAUSE;
                self.slept.iter().any(|(_, woke)| woken(*woke))
            };
            for stretch in log.split(excused) {
                let starts: Vec<Instant> = stretch.iter().map(|hit| hit.at).collect();
                self.figures.asked += starts.len();
                let missed = pauses_missed(&starts, PAUSE);
                if missed > pauses_missed_max(starts.len()) {
                    self.fail(&format!(
                        "{missed:.1} pauses between {} requests missed",
                        starts.len()
                    ));
                }
            }
            for pair in log.windows(2).filter(|pair| !excused(&pair[1]) && pair[1].in_flight > 1) {
                // A site does not notice that the client of an earlier request was killed.
                let killed = |at: &Instant| *at >= pair[0].at && *at <= pair[1].at;
                self.figures.overlaps += usize::from(!self.killed.iter().any(killed));
            }
        }
        // A node that got no CPU time for a while may have lost its session in the middle of a page.
        if self.figures.overlaps > self.figures.expiries {
            self.fail(&format!("requests overlapped: {:?}", self.figures));
        }
    }
}

fn same(found: &RunFiles, golden: &RunFiles, canonical: bool) -> bool {
    found.len() == golden.len()
        && found.iter().zip(golden).all(|((name, bytes), (wanted, rows))| {
            name == wanted && if canonical { bytes == rows } else { sorted(bytes) == sorted(rows) }
        })
}

fn settings(set: &Set, canonical: bool) -> Vec<String> {
    let order = if canonical { "canonical" } else { "arrival" };
    let own = [
        &format!("job.takeLimit={TAKE_LIMIT}"),
        &format!("output.order={order}"),
        "cluster.quorum.timeout=25s",
        // A worker that slept through the end of the run finds no node that could report it.
        "cluster.quorum.lossExit=30s",
        "cluster.snapshot.bytes=16KiB",
    ];
    let pause = format!("loader.fetch.delay={}ms", PAUSE.as_millis());
    let paced = |setting: &&'static str| {
        let is_pause = setting.starts_with("loader.fetch.delay=") && set.delay > Duration::ZERO;
        if is_pause { pause.clone() } else { (*setting).to_owned() }
    };
    set.settings.iter().map(paced).chain(own.map(str::to_owned)).collect()
}

/// The files of an undisturbed run on one node.
fn golden(set: &Set) -> RunFiles {
    let settings = settings(set, true);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    set.slow(Duration::ZERO);
    let cluster = TestCluster::of(3, &set.defs, &settings);
    let golden = cluster.solo(if set.lost > 0 { 4 } else { 0 });
    let lanes = if set.delay > Duration::ZERO || set.name == "chain" { 1 } else { 8 };
    if set.delay == Duration::ZERO {
        set.slow(LASTS * lanes / set.pages as u32);
    }
    golden
}

fn round(set: &Set, golden: &RunFiles, votes: usize, faults: usize, seed: u64) -> HammerFigures {
    let mut dice = SeededRandom(seed);
    let canonical = dice.below(2) == 0;
    let settings = settings(set, canonical);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let plan = draw(&mut dice, votes, faults);
    set.forget();
    if set.delay > Duration::ZERO {
        // With every second seed a page takes longer than the pause, so requests wait for its end.
        set.slow(if seed.is_multiple_of(2) { PAUSE * 3 / 2 } else { Duration::ZERO });
    }
    let cluster = TestCluster::of(votes, &set.defs, &settings);
    let worker = (seed % 3 == 1).then_some(WORKER);
    let states = cluster.seats().chain(worker).map(|node| (node, HammeredState::Up)).collect();
    let mut round = Round {
        set,
        golden,
        canonical,
        cluster,
        states,
        slept: Vec::new(),
        killed: Vec::new(),
        began: Instant::now(),
        story: vec![format!("seed {seed}, {votes} nodes, canonical: {canonical}")],
        dice,
        figures: HammerFigures::default(),
    };
    round.play(&plan);
    round.judge();
    println!(
        "{} on {votes} nodes, seed {seed}, {:.0?}: {:?}",
        set.name,
        round.began.elapsed(),
        round.figures
    );
    round.figures
}

impl HammerFigures {
    fn add(&mut self, other: &Self) {
        self.rounds += 1;
        for (own, more) in [
            (&mut self.faults, other.faults),
            (&mut self.kills, other.kills),
            (&mut self.leader_kills, other.leader_kills),
            (&mut self.stops, other.stops),
            (&mut self.leaves, other.leaves),
            (&mut self.emptied, other.emptied),
            (&mut self.joint, other.joint),
            (&mut self.late, other.late),
            (&mut self.expiries, other.expiries),
            (&mut self.snapshots, other.snapshots),
            (&mut self.closed, other.closed),
            (&mut self.again, other.again),
            (&mut self.asked, other.asked),
            (&mut self.overlaps, other.overlaps),
        ] {
            *own += more;
        }
    }
}

/// Runs sets of every kind on three and on five nodes until there were enough faults.
fn hammer(faults_least: usize) {
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = given("SEED").unwrap_or(7000);
    let named = std::env::var("SET").ok();
    let sets = sets::all();
    let golden: Vec<RunFiles> = sets.iter().map(golden).collect();
    let mut total = HammerFigures::default();
    let start = Instant::now();
    for seed in first.. {
        // There is not always a leader to hit, so this may take some rounds more.
        if total.faults >= faults_least && total.leader_kills * 3 >= total.kills {
            break;
        }
        assert!(
            seed < first + 10 + 5 * faults_least as u64,
            "too many faults come after the end of the run"
        );
        let which = seed as usize % sets.len();
        if named.as_ref().is_some_and(|name| name != sets[which].name) {
            continue;
        }
        let votes = if seed % 4 == 3 { 5 } else { 3 };
        total.add(&round(&sets[which], &golden[which], votes, 9, seed));
    }
    println!("seeds from {first}, {:.0?}: {total:?}", start.elapsed());
    // A test that did not hit what it should hit has failed.
    assert!(total.leader_kills * 3 >= total.kills, "too few kills of leaders: {total:?}");
    assert!(total.emptied > 0 && total.joint > 0 && total.stops > 0, "{total:?}");
    assert!(total.expiries > 0 && total.snapshots > 0, "{total:?}");
    println!("{} faults, {} kills: no row lost, no row twice", total.faults, total.kills);
}

#[test]
fn hammered_nodes_write_what_one_writes_alone() {
    hammer(40);
}

#[test]
#[ignore = "takes many minutes: run it by name, with FAULTS"]
fn hammered_nodes_survive_hundreds_of_faults() {
    let faults = std::env::var("FAULTS").ok().and_then(|text| text.parse().ok());
    hammer(faults.unwrap_or(500));
}
