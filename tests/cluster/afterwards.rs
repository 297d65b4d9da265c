//! Commands that read the data directories of stopped nodes: `failed`, `fsck` and `replay`. And `retry`,
//! which runs on all nodes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{QUICK, all_rows, rows_of, same_everywhere, three_at_gate};
use crate::harness::nodes::files_below;
use crate::harness::{
    PageGate, ProcessOutput, RunFiles, SiteResponse, TITLE, TestCluster, TestSite, job, titled,
    wait_until,
};

const PAGES: usize = 50;
/// Pages that fail until the site is repaired.
const BROKEN: [usize; 4] = [2, 5, 11, 17];

/// The parts of the site that tests change while it runs.
#[derive(Clone)]
struct BrokenSite {
    /// Whether the broken pages answer.
    repaired: Arc<AtomicBool>,
    /// Holds the last two pages back. Two nodes may wait for them while the third one does all others.
    gate: PageGate,
}

impl BrokenSite {
    fn repair(&self) {
        self.repaired.store(true, Ordering::SeqCst);
    }
}

/// A site with broken pages and a gate before its last pages, and three nodes for it.
fn broken_site() -> (TestSite, TestCluster, BrokenSite) {
    let site = TestSite::start();
    let broken = BrokenSite { repaired: Arc::default(), gate: PageGate::at(PAGES - 2) };
    let theirs = broken.clone();
    site.otherwise(move |request, _| {
        let number = request.path[1..].parse().unwrap_or(0);
        if BROKEN.contains(&number) && !theirs.repaired.load(Ordering::SeqCst) {
            return SiteResponse::status(if number % 2 == 0 { 404 } else { 500 });
        }
        let page = SiteResponse::html(titled(&request.path.replace('/', "page ")));
        page.delay(Duration::from_millis(60)).held_by(&theirs.gate, number)
    });
    let locators: Vec<(String, String)> =
        (0..PAGES).map(|n| (format!("n{n:03}"), site.url(&format!("/{n:03}")))).collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    let own = ["job.takeLimit=2", "cluster.end.wait=1s", "cluster.quorum.timeout=20s"];
    let settings: Vec<&str> = QUICK.iter().chain(&own).copied().collect();
    (site, TestCluster::of(3, &job(&locators, TITLE), &settings), broken)
}

/// The rows of all pages that never fail.
fn rows_without_broken() -> Vec<String> {
    let rows = all_rows(PAGES).into_iter().enumerate();
    rows.filter(|(number, _)| !BROKEN.contains(number)).map(|(_, row)| row).collect()
}

fn read_only(cluster: &TestCluster, command: &str, node: usize) -> ProcessOutput {
    cluster.work.spoonbill(&[command, "--data-dir", &format!("d{node}")])
}

/// The lines that `failed` prints for a stopped node, sorted.
fn failed(cluster: &TestCluster, node: usize) -> Vec<String> {
    let ending = read_only(cluster, "failed", node);
    assert_eq!(ending.code, 0, "node {node}: {ending:?}");
    let mut lines: Vec<String> = ending.stdout.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn names(lines: &[String]) -> Vec<String> {
    let name = |line: &String| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(!line["reasons"].as_array().unwrap().is_empty(), "{line}");
        line["name"].as_str().unwrap().to_owned()
    };
    lines.iter().map(name).collect()
}

/// The data directory of a node, without the files in which SQLite moves data around.
fn disk(cluster: &TestCluster, node: usize) -> RunFiles {
    let mut files = files_below(&cluster.work.path(&format!("d{node}")));
    files.retain(|name, _| !name.contains(".db"));
    files
}

/// Copies the data directory of a node that may be running.
fn copied(cluster: &TestCluster, node: usize) -> PathBuf {
    let copy = cluster.work.path("copy");
    drop(std::fs::remove_dir_all(&copy));
    std::fs::create_dir(&copy).unwrap();
    for file in std::fs::read_dir(cluster.work.path(&format!("d{node}"))).unwrap() {
        let file = file.unwrap();
        // A socket cannot be copied, and some files may be gone by now.
        drop(std::fs::copy(file.path(), copy.join(file.file_name())));
    }
    copy
}

/// Waits until the data directory of a running node holds its unfinished run. A node writes only now and
/// then how far its log is committed, and one that is killed before that does not know its run.
pub(super) fn wait_until_run_is_written(cluster: &TestCluster, node: usize) {
    wait_until("the unfinished run is on the disk", || {
        copied(cluster, node);
        let ending = cluster.work.spoonbill(&["replay", "defs", "--data-dir", "copy"]);
        ending.stderr.contains("not finished")
    });
}

/// Waits until the data directory of a running node lists `jobs` failed jobs. A node writes only now
/// and then how far its log is committed.
fn wait_until_written(cluster: &TestCluster, node: usize, jobs: usize) {
    wait_until("the data directory lists the failed jobs", || {
        copied(cluster, node);
        let ending = cluster.work.spoonbill(&["failed", "--data-dir", "copy"]);
        ending.code == 0 && ending.stdout.lines().count() >= jobs
    });
}

/// The failed jobs in the tables of a node. Its log may have more.
fn failed_in_tables(cluster: &TestCluster, node: usize) -> i64 {
    let connection = rusqlite::Connection::open(copied(cluster, node).join("state.db")).unwrap();
    connection.query_row("SELECT count(*) FROM failed", [], |row| row.get(0)).unwrap_or(0)
}

/// Kills a node that knows all failed jobs in the second half of the run. The other nodes finish it.
fn one_killed_near_the_end(cluster: &mut TestCluster, broken: &BrokenSite) -> usize {
    cluster.start_all();
    cluster.done(5);
    let victim = 1 + cluster.led() % 3;
    wait_until("the node knows all failed jobs", || {
        cluster.status(victim).is_some_and(|status| {
            let run = &status["run"];
            run["failed"] == BROKEN.len() && run["done"].as_u64() >= Some(PAGES as u64 / 2)
        })
    });
    wait_until_written(cluster, victim, BROKEN.len());
    assert!(cluster.kill(victim), "the node had ended");
    broken.gate.open();
    for node in cluster.seats() {
        let code = if node == victim { 137 } else { 4 };
        let ending = cluster.end(node);
        assert_eq!(ending.code, code, "node {node}: {ending:?}");
    }
    victim
}

#[test]
fn stopped_nodes_list_the_same_failed_jobs_and_retry_them_together() {
    let (site, mut cluster, broken) = broken_site();
    let victim = one_killed_near_the_end(&mut cluster, &broken);
    assert_eq!(failed_in_tables(&cluster, victim), 0, "its tables must be behind its log");
    let before: Vec<RunFiles> = cluster.seats().map(|node| disk(&cluster, node)).collect();
    let lines = failed(&cluster, 1);
    assert_eq!(names(&lines), BROKEN.map(|n| format!("n{n:03}")));
    // Neither a second call nor `fsck` in between changes the list.
    for node in cluster.seats().chain(cluster.seats()) {
        assert_eq!(failed(&cluster, node), lines, "node {node}");
        cluster.fsck();
    }
    for (node, files) in cluster.seats().zip(before) {
        let now = disk(&cluster, node);
        let changed: BTreeSet<&String> =
            files.keys().chain(now.keys()).filter(|key| files.get(*key) != now.get(*key)).collect();
        assert!(changed.is_empty(), "reading changed files of node {node}: {changed:?}");
    }
    assert_eq!(failed_in_tables(&cluster, victim), 0, "reading changed its tables");
    let asked = site.log().len();
    broken.repair();
    cluster.command = "retry";
    cluster.start_all();
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, victim), all_rows(PAGES));
    assert_eq!(site.log().len(), asked + BROKEN.len(), "another page was loaded");
    for node in cluster.seats() {
        assert_eq!(failed(&cluster, node), Vec::<String>::new());
    }
    cluster.fsck();
    cluster.start_all();
    for ending in cluster.all_end_with(0) {
        assert!(ending.stderr.contains("nothing to retry"), "{ending:?}");
    }
}

/// Replays the pages of a node. Returns the exit code, the rows and the number of missing pages.
fn replay(cluster: &TestCluster, node: usize) -> (i32, Vec<String>, u64) {
    let (data, output) = (format!("d{node}"), format!("again{node}"));
    let mut words = vec!["replay", "defs", "--data-dir", &data, "--output", &output];
    words.extend(["--report", "replay.json", "--set", QUICK[2]]);
    let ending = cluster.work.spoonbill(&words);
    let report: serde_json::Value = serde_json::from_str(&cluster.work.read("replay.json"))
        .unwrap_or_else(|_| panic!("no report: {ending:?}"));
    let folder = cluster.work.list(&output).pop().unwrap_or_default();
    let mut rows = cluster.work.lines(&format!("{output}/{folder}/data.txt"));
    rows.sort();
    (ending.code, rows, report["replay"]["pagesMissing"].as_u64().unwrap())
}

#[test]
fn a_node_replays_its_own_pages_and_its_data_stays_usable() {
    let (site, mut cluster, broken) = broken_site();
    broken.gate.open();
    cluster.start_all();
    cluster.all_end_with(4);
    assert_eq!(rows_of(&cluster, 1), rows_without_broken());
    let asked = site.log().len();
    let mut all = BTreeSet::new();
    for node in cluster.seats() {
        let share = cluster.report(node)["share"]["jobs"].as_u64().unwrap();
        let (code, rows, missing) = replay(&cluster, node);
        println!("node {node}: {share} jobs, {} rows, {missing} pages missing", rows.len());
        assert_eq!(code, 4, "node {node}: other nodes have some of the pages");
        assert_eq!(rows.len() as u64 + missing, PAGES as u64, "node {node}");
        assert!(rows.len() as u64 <= share && rows.iter().all(|row| all.insert(row.clone())));
        assert!(!cluster.work.exists(&format!("d{node}/replay")));
    }
    assert_eq!(
        Vec::from_iter(all),
        rows_without_broken(),
        "together the nodes must have all pages"
    );
    assert_eq!(site.log().len(), asked, "a replay loaded a page");
    // A killed replay leaves a folder behind, which later commands ignore.
    std::fs::create_dir_all(cluster.work.path("d2/replay")).unwrap();
    cluster.work.write("d2/replay/state.db", "half of a ledger");
    cluster.fsck();
    broken.repair();
    cluster.command = "retry";
    cluster.start_all();
    cluster.all_end_with(0);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 2), all_rows(PAGES));
    assert_eq!(site.log().len(), asked + BROKEN.len(), "another page was loaded");
    assert_eq!(replay(&cluster, 2).0, 4);
    assert!(!cluster.work.exists("d2/replay"));
}

#[test]
fn failed_and_fsck_refuse_a_running_node() {
    let (_site, mut cluster, broken) = broken_site();
    cluster.start_all();
    cluster.start(9);
    cluster.done(5);
    wait_until("all nodes run", || {
        cluster.seats().all(|node| {
            let status = cluster.status(node).unwrap_or_default();
            let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
            nodes.iter().filter(|node| node["state"] == "running").count() == 4
        })
    });
    for command in ["failed", "fsck"] {
        for node in cluster.seats() {
            let ending = read_only(&cluster, command, node);
            assert_eq!(ending.code, 10, "{command} of node {node}: {ending:?}");
        }
    }
    // An unfinished run has no rows to compare with.
    for node in cluster.seats() {
        wait_until_written(&cluster, node, 1);
    }
    for node in cluster.seats() {
        cluster.kill(node);
    }
    cluster.kill(9);
    let ending = cluster.work.spoonbill(&["replay", "defs", "--data-dir", "d1"]);
    assert_eq!(ending.code, 3, "{ending:?}");
    assert!(ending.stderr.contains("is not finished"), "{ending:?}");
    cluster.fsck();
    let worker = read_only(&cluster, "failed", 9);
    assert_eq!((worker.code, worker.stdout.as_str()), (1, ""), "{worker:?}");
    assert!(worker.stderr.contains("a node without a vote has no ledger"), "{worker:?}");
    broken.gate.open();
    cluster.start_all();
    cluster.all_end_with(4);
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), rows_without_broken());
}

#[test]
fn a_node_that_missed_the_end_completes_its_files_before_the_next_run() {
    for order in ["arrival", "canonical"] {
        let order = format!("output.order={order}");
        let own = ["cluster.end.wait=0s", "job.takeLimit=2", order.as_str()];
        let (site, mut cluster, gate) = three_at_gate(40, 5, &own);
        cluster.start_all();
        cluster.done(5);
        assert!(cluster.kill(1), "the node had ended");
        gate.open();
        for node in [2, 3] {
            assert_eq!(cluster.end(node).code, 0);
        }
        let last = cluster.files(2);
        assert!(cluster.files(1) != last, "the killed node has all files");
        // Two nodes are enough for the next run, but they wait for the third one.
        cluster.start(2);
        cluster.start(3);
        cluster.led();
        cluster.start(1);
        let ends = cluster.all_end_with(0);
        assert!(ends[0].stderr.contains("it completes the files of that run now"), "{ends:?}");
        assert!(ends[1..].iter().any(|end| end.stderr.contains("before the next run begins")));
        assert!(cluster.files(1) == last, "its files differ");
        assert_eq!(rows_of(&cluster, 2), all_rows(40));
        assert!(site.log().len() >= 80, "the second run loaded too few pages");
        cluster.fsck();
    }
}

#[test]
fn a_node_that_joins_in_the_next_run_reports_its_incomplete_files() {
    let own = ["cluster.end.wait=0s", "job.takeLimit=2"];
    let (site, mut cluster, gate) = three_at_gate(60, 5, &own);
    cluster.start_all();
    cluster.done(5);
    wait_until_run_is_written(&cluster, 1);
    assert!(cluster.kill(1), "the node had ended");
    gate.open();
    for node in [2, 3] {
        assert_eq!(cluster.end(node).code, 0);
    }
    gate.let_through(5);
    let asked = site.log().len();
    cluster.start(2);
    cluster.start(3);
    wait_until("the next run is under way", || site.log().len() > asked + 5);
    cluster.start(1);
    cluster.wait_for_state(1, "running");
    gate.open();
    let ends = cluster.all_end_with(0);
    assert!(ends[0].stderr.contains("ended without this node, and another has begun"), "{ends:?}");
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(60));
}
