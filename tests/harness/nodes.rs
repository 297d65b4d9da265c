//! A cluster of real processes on this machine. Each has its own data directory, output and address.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;

use super::workdir::{DEADLINE, ProcessOutput, Running, Workdir, send_signal, wait_until};

/// Longest wait for the answer of a node. A node stopped by SIGSTOP never answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// A cluster holds this port of its address, so that no other cluster chooses the address.
const CLAIM_PORT: u16 = 7399;

/// The files of a run by name.
pub type RunFiles = BTreeMap<String, Vec<u8>>;

/// Voters are numbered from 1. Any larger number is a worker, a node without a vote.
pub struct TestCluster {
    pub work: Workdir,
    /// The command of all nodes: `run` or `retry`.
    pub command: &'static str,
    peers: Vec<String>,
    settings: Vec<String>,
    /// More arguments of single nodes, used at every start.
    more: BTreeMap<usize, Vec<String>>,
    running: BTreeMap<usize, Running>,
    /// A command that runs the node's command, such as `ip netns exec NAME`.
    behind: BTreeMap<usize, Vec<String>>,
    /// More arguments of `status`, `cancel` and similar commands of an operator.
    operator: Vec<String>,
    /// The held port that makes the address this cluster's own.
    claim: Option<TcpListener>,
}

/// A loopback address that no other cluster on this machine uses while the listener lives. Clients
/// call from 127.0.0.1, so their connections never take a port of this address either.
fn own_host() -> (String, TcpListener) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(std::process::id() * 64);
        let [_, a, b, c] = number.to_be_bytes();
        let host = format!("127.{}.{b}.{}", 16 + a % 200, 1 + c % 250);
        if let Ok(claim) = TcpListener::bind((host.as_str(), CLAIM_PORT)) {
            return (host, claim);
        }
    }
}

impl TestCluster {
    /// A cluster with `votes` voters. No process runs yet.
    pub fn of(votes: usize, defs: &str, settings: &[&str]) -> Self {
        let (host, claim) = own_host();
        // Below the ports that the system gives to connections.
        let peers = (1..=votes as u16).map(|node| format!("{host}:{}", CLAIM_PORT + node));
        let mut cluster = Self::at(peers.collect(), defs, settings);
        cluster.claim = Some(claim);
        cluster
    }

    /// A cluster with voters at these addresses.
    pub fn at(peers: Vec<String>, defs: &str, settings: &[&str]) -> Self {
        Self {
            work: Workdir::with_defs(defs),
            command: "run",
            peers,
            settings: settings.iter().map(|word| (*word).to_owned()).collect(),
            more: BTreeMap::new(),
            running: BTreeMap::new(),
            behind: BTreeMap::new(),
            operator: Vec::new(),
            claim: None,
        }
    }

    /// Lets another command run the node's command.
    pub fn put_behind(&mut self, node: usize, words: &[&str]) {
        self.behind.insert(node, words.iter().map(|word| (*word).to_owned()).collect());
    }

    /// Gives all nodes and the operator the same secret.
    pub fn share_secret(&mut self) {
        self.work.write("secret", [b's'; 48]);
        self.settings.push("cluster.secretFile=secret".to_owned());
        self.operator = vec!["--set".to_owned(), "cluster.secretFile=secret".to_owned()];
    }

    pub fn votes(&self) -> usize {
        self.peers.len()
    }

    /// The numbers of the voters.
    pub fn seats(&self) -> std::ops::RangeInclusive<usize> {
        1..=self.votes()
    }

    pub fn address(&self, node: usize) -> &str {
        &self.peers[node - 1]
    }

    pub fn peers(&self) -> String {
        let named = self.peers.iter().enumerate();
        named.map(|(place, at)| format!("{}={at}", place + 1)).collect::<Vec<_>>().join(",")
    }

    /// More arguments for one node. They replace the defaults of the same options.
    pub fn give(&mut self, node: usize, more: &[&str]) {
        let more = more.iter().map(|word| (*word).to_owned());
        self.more.entry(node).or_default().extend(more);
    }

    /// The arguments that a node is started with.
    pub fn words(&self, node: usize) -> Vec<String> {
        let mut words: Vec<String> = [self.command, "defs", "--cluster"].map(str::to_owned).into();
        let more = self.more.get(&node);
        let given = |option: &str| more.is_some_and(|more| more.iter().any(|word| word == option));
        if !given("--peers") {
            words.extend(["--peers".to_owned(), self.peers()]);
        }
        if node > self.votes() {
            words.extend(["--role", "worker"].map(str::to_owned));
        } else {
            words.extend(["--node-id".to_owned(), node.to_string()]);
            if !given("--listen") {
                words.extend(["--listen".to_owned(), self.address(node).to_owned()]);
            }
        }
        for (option, value) in [
            ("--data-dir", format!("d{node}")),
            ("--output", format!("o{node}")),
            ("--report", format!("r{node}.json")),
        ] {
            if !given(option) {
                words.extend([option.to_owned(), value]);
            }
        }
        for setting in &self.settings {
            words.extend(["--set".to_owned(), setting.clone()]);
        }
        words.extend(more.into_iter().flatten().cloned());
        words
    }

    pub fn start(&mut self, node: usize) {
        self.start_with_env(node, &[]);
    }

    pub fn start_with_env(&mut self, node: usize, env: &[(&str, &str)]) {
        let mut words = self.behind.get(&node).cloned().unwrap_or_default();
        words.push(env!("CARGO_BIN_EXE_spoonbill").to_owned());
        words.extend(self.words(node));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let running = self.work.start_program(words[0], &words[1..], env);
        let before = self.running.insert(node, running);
        assert!(
            before.is_none_or(|mut before| before.has_ended()),
            "node {node} is already running"
        );
    }

    pub fn start_all(&mut self) {
        for node in self.seats() {
            self.start(node);
        }
    }

    /// Starts a second process with the same arguments as a node, which may be running.
    pub fn start_beside(&self, node: usize) -> Running {
        let words = self.words(node);
        self.work.start(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub fn node(&mut self, node: usize) -> &mut Running {
        self.running.get_mut(&node).expect("a node that was started")
    }

    pub fn signal(&mut self, node: usize, name: &str) {
        self.node(node).signal_if_there(name);
    }

    /// Sends SIGKILL and waits until the process is gone. Returns false if it had ended before.
    pub fn kill(&mut self, node: usize) -> bool {
        let running = self.node(node);
        if running.has_ended() {
            return false;
        }
        running.signal_if_there("KILL");
        assert!(running.ends_within(DEADLINE), "node {node} survived SIGKILL");
        running.code() == Some(137)
    }

    pub fn has_ended(&mut self, node: usize) -> bool {
        self.node(node).has_ended()
    }

    pub fn end(&mut self, node: usize) -> ProcessOutput {
        self.running.remove(&node).expect("a node that was started").end()
    }

    /// Waits until all voters have ended.
    pub fn ends(&mut self) -> Vec<ProcessOutput> {
        self.seats().map(|node| self.end(node)).collect()
    }

    /// Waits until all voters have ended, each with this exit code.
    pub fn all_end_with(&mut self, code: i32) -> Vec<ProcessOutput> {
        let ends = self.ends();
        for (ending, node) in ends.iter().zip(1..) {
            assert_eq!(ending.code, code, "node {node}: {ending:?}");
        }
        ends
    }

    /// Runs an operator command on a node. Returns exit code, stdout and stderr, or `None` if the node
    /// does not answer.
    pub fn ask(&self, node: usize, words: &[&str]) -> Option<(i32, String, String)> {
        let more = self.operator.iter().map(String::as_str);
        let words: Vec<&str> = words.iter().copied().chain(more).collect();
        ask(self.address(node), &words, self.work.root(), ANSWER_TIMEOUT)
    }

    /// The status that a node reports, or `None` if it does not answer.
    pub fn status(&self, node: usize) -> Option<Value> {
        let (code, stdout, _) = self.ask(node, &["status", "--json"])?;
        if code == 0 { serde_json::from_str(&stdout).ok() } else { None }
    }

    /// The entry of a node in the status that another voter reports. Workers have other numbers there,
    /// so for a worker this is the entry of the first worker.
    pub fn seen(&self, node: usize) -> Value {
        let is_meant = |seen: &&Value| match node {
            node if node > self.votes() => seen["role"] == "worker",
            seat => seen["id"].as_u64() == Some(seat as u64),
        };
        let mut others = self.seats().filter(|other| *other != node);
        let status = others.find_map(|other| self.status(other)).unwrap_or_default();
        status["nodes"].as_array().into_iter().flatten().find(is_meant).cloned().unwrap_or_default()
    }

    /// Waits until another node reports this state of a node, such as `running`.
    pub fn wait_for_state(&self, node: usize, state: &str) {
        wait_until(&format!("node {node} is {state}"), || self.seen(node)["state"] == state);
    }

    /// Waits until another node reports that a node holds jobs.
    pub fn wait_for_jobs(&self, node: usize) {
        wait_until(&format!("node {node} holds jobs"), || {
            self.seen(node)["jobs"].as_u64() > Some(0)
        });
    }

    /// Waits until a node that got a signal has begun to stop and is no longer ready.
    pub fn wait_until_stopping(&self, node: usize) {
        wait_until(&format!("node {node} stops"), || {
            self.ask(node, &["status", "--ready"]).is_none_or(|(code, _, _)| code != 0)
        });
    }

    /// The node that reports itself as leader.
    pub fn leader(&self) -> Option<usize> {
        self.seats().find(|node| {
            self.status(*node).is_some_and(|status| status["leader"].as_u64() == Some(*node as u64))
        })
    }

    /// Waits for a leader.
    pub fn led(&self) -> usize {
        let mut leader = None;
        wait_until("a node leads the cluster", || {
            leader = self.leader();
            leader.is_some()
        });
        leader.unwrap()
    }

    /// Waits until any voter reports at least `jobs` finished jobs.
    pub fn done(&self, jobs: u64) {
        wait_until("enough jobs are done", || {
            self.seats().any(|node| {
                let status = self.status(node);
                status.is_some_and(|status| status["run"]["done"].as_u64() >= Some(jobs))
            })
        });
    }

    /// The files of the latest run of a node.
    pub fn files(&self, node: usize) -> RunFiles {
        files_below(&self.work.path(&format!("o{node}/latest")))
    }

    pub fn report(&self, node: usize) -> Value {
        serde_json::from_str(&self.work.read(&format!("r{node}.json"))).expect("a report")
    }

    /// Runs the same definitions without a cluster, in separate directories.
    pub fn solo(&self, code: i32) -> RunFiles {
        let mut words: Vec<&str> = vec![
            "run",
            "defs",
            "--data-dir",
            "solo",
            "--output",
            "solo-out",
            "--report",
            "solo.json",
        ];
        for setting in self.settings.iter().filter(|setting| !setting.starts_with("cluster.")) {
            words.extend(["--set", setting]);
        }
        let ending = self.work.spoonbill(&words);
        assert_eq!(ending.code, code, "{ending:?}");
        files_below(&self.work.path("solo-out/latest"))
    }

    /// Checks the data directories of all voters with `fsck`.
    pub fn fsck(&self) {
        for node in self.seats() {
            let ending = self.work.spoonbill(&["fsck", "--data-dir", &format!("d{node}")]);
            assert_eq!(ending.code, 0, "node {node}: {ending:?}");
        }
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        // SIGKILL ends a node that was stopped by SIGSTOP, too.
        self.running.clear();
        if std::thread::panicking() {
            self.work.keep();
            println!("the files of the cluster are kept in {}", self.work.root().display());
        }
    }
}

/// Runs an operator command on the node at an address, and gives up after `timeout`.
pub fn ask(
    address: &str,
    words: &[&str],
    root: &Path,
    timeout: Duration,
) -> Option<(i32, String, String)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spoonbill"));
    command.args(words).args(["--addr", address]).current_dir(root);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = child.id();
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output().unwrap()).ok());
    let Ok(output) = receiver.recv_timeout(timeout) else {
        send_signal("KILL", pid);
        return None;
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((output.status.code()?, text(&output.stdout), text(&output.stderr)))
}

/// All files below a folder, by their paths relative to it.
pub fn files_below(folder: &Path) -> RunFiles {
    let mut found = RunFiles::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}
