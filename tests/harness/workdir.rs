//! The working directory of one test, and processes that run in it with a deadline.

#![allow(dead_code, clippy::missing_panics_doc)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Longest time that a test waits for anything. A busy machine needs far less.
pub const DEADLINE: Duration = Duration::from_mins(5);

/// Settings of most tests: no pause between requests, short retries and a fixed date.
const QUICK: [&str; 3] = [
    "loader.fetch.delay=0",
    "loader.retry.backoff=20ms",
    "runDateTimeText=2020-07-01T10:20:05.000+0000",
];

/// Waits for a fact and returns how long it took. The test fails if it does not come true.
pub fn wait_until(what: &str, mut fact: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !fact() {
        assert!(start.elapsed() < DEADLINE, "this did not happen: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
    start.elapsed()
}

/// A directory that is removed at the end of the test.
pub struct Workdir {
    dir: TempDir,
}

/// The exit code and the output of a process that has ended.
#[derive(Debug)]
pub struct ProcessOutput {
    /// The exit code, or 128 + the number of the signal that killed the process.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A running process. It is killed when this value is dropped.
pub struct Running {
    pid: u32,
    ended: Receiver<ExitStatus>,
    stdout: PathBuf,
    stderr: PathBuf,
    status: Option<ExitStatus>,
}

impl Workdir {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// A directory with definitions in `defs/job.yml`.
    pub fn with_defs(defs: &str) -> Self {
        let work = Self::new();
        work.write("defs/job.yml", defs);
        work
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Keeps the directory after the test, so that the cause of a failure can be found.
    pub fn keep(&mut self) {
        self.dir.disable_cleanup(true);
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// The content of a file, or an empty text if it does not exist.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The names in a directory, sorted.
    pub fn list(&self, name: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(name)) else {
            return Vec::new();
        };
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Starts the binary with exactly these arguments.
    pub fn start(&self, arguments: &[&str]) -> Running {
        self.start_with_env(arguments, &[])
    }

    pub fn start_with_env(&self, arguments: &[&str], env: &[(&str, &str)]) -> Running {
        self.start_program(env!("CARGO_BIN_EXE_spoonbill"), arguments, env)
    }

    /// Starts any program, such as a shell that starts the binary.
    pub fn start_program(&self, name: &str, arguments: &[&str], env: &[(&str, &str)]) -> Running {
        // Each process gets its own two files.
        let log = |stream: &str| {
            let number = self.list(".logs").len();
            self.path(&format!(".logs/{number}-{stream}"))
        };
        fs::create_dir_all(self.path(".logs")).unwrap();
        let stdout = log("stdout");
        let out = File::create(&stdout).unwrap();
        let stderr = log("stderr");
        let err = File::create(&stderr).unwrap();
        let mut child = Command::new(name)
            .args(arguments)
            .current_dir(self.root())
            .env_clear()
            .envs([("TZ", "UTC"), ("NO_COLOR", "1"), ("RUST_BACKTRACE", "1")])
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap();
        let pid = child.id();
        let (sender, ended) = channel();
        std::thread::spawn(move || {
            // The test may have ended meanwhile.
            sender.send(child.wait().unwrap()).ok();
        });
        Running { pid, ended, stdout, stderr, status: None }
    }

    /// Runs the binary with exactly these arguments.
    pub fn spoonbill(&self, arguments: &[&str]) -> ProcessOutput {
        self.start(arguments).end()
    }

    /// Starts `run defs` with the quick settings and further settings (`key=value`) or options.
    pub fn start_run(&self, more: &[&str]) -> Running {
        self.start(&arguments_of("run", more).iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub fn run(&self, more: &[&str]) -> ProcessOutput {
        self.start_run(more).end()
    }

    pub fn retry(&self, more: &[&str]) -> ProcessOutput {
        self.spoonbill(&arguments_of("retry", more).iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs to the end, expects success and returns the rows in the order of the file.
    pub fn rows(&self, more: &[&str]) -> Vec<String> {
        let ending = self.run(more);
        assert_eq!(ending.code, 0, "{ending:?}");
        self.lines("output/latest/data.txt")
    }

    pub fn lines(&self, name: &str) -> Vec<String> {
        self.read(name).lines().map(str::to_owned).collect()
    }

    /// The rows of the latest run, sorted.
    pub fn latest(&self) -> Vec<String> {
        let mut rows = self.lines("output/latest/data.txt");
        rows.sort();
        rows
    }

    /// The JSON report of the last run.
    pub fn report(&self) -> Value {
        serde_json::from_str(&self.read("report.json")).expect("a report")
    }
}

fn arguments_of(command: &str, more: &[&str]) -> Vec<String> {
    let mut arguments: Vec<String> =
        [command, "defs", "--report", "report.json"].map(str::to_owned).to_vec();
    let is_setting = |word: &&str| word.contains('=') && !word.starts_with('-');
    let given = |key: &str| more.iter().any(|word| word.split('=').next() == key.split('=').next());
    for setting in
        QUICK.iter().filter(|key| !given(key)).chain(more.iter().filter(|w| is_setting(w)))
    {
        arguments.extend(["--set".to_owned(), (*setting).to_owned()]);
    }
    arguments.extend(more.iter().filter(|word| !is_setting(word)).map(|word| (*word).to_owned()));
    arguments
}

impl Running {
    /// Sends a signal by its short name, `INT`.
    pub fn signal(&self, name: &str) {
        assert!(send_signal(name, self.pid), "signal {name} could not be sent");
    }

    /// Waits for the end. At the deadline the process is killed and the test fails.
    pub fn end(mut self) -> ProcessOutput {
        let ended = self.ends_within(DEADLINE);
        let (stdout, stderr) = (self.stdout(), self.stderr());
        assert!(ended, "the process does not end; its output:\n{stdout}\n{stderr}");
        ProcessOutput { code: self.code().unwrap(), stdout, stderr }
    }

    /// Sends SIGINT until the process has ended. Two signals in a row may count as one, which would
    /// leave the process waiting for its jobs.
    pub fn end_now(mut self) -> ProcessOutput {
        wait_until("a second SIGINT ends the process", || {
            self.signal_if_there("INT");
            self.has_ended()
        });
        self.end()
    }

    /// Sends a signal unless the process has ended: its number may belong to another process then.
    pub fn signal_if_there(&mut self, name: &str) {
        if self.has_ended() {
            return;
        }
        send_signal(name, self.pid);
    }

    /// Waits for the end, but no longer than the limit. Returns whether the process has ended.
    pub fn ends_within(&mut self, limit: Duration) -> bool {
        if self.status.is_none() {
            self.status = self.ended.recv_timeout(limit).ok();
        }
        self.status.is_some()
    }

    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.ended.try_recv().ok();
        }
        self.status.is_some()
    }

    /// The exit code of a process that has ended, as in [`ProcessOutput::code`].
    pub fn code(&self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        let status = self.status?;
        status.code().or_else(|| status.signal().map(|number| 128 + number))
    }

    /// Whether a signal killed the process.
    pub fn was_killed(&self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        self.status.is_some_and(|status| status.signal().is_some())
    }

    /// Whether the process has installed its handler for SIGTERM.
    pub fn catches_term(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|mask| mask >> 14 & 1 == 1)
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stdout).unwrap()).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stderr).unwrap()).into_owned()
    }
}

/// Sends a signal by its short name; false if the process is gone. The shell has the command built in.
pub fn send_signal(name: &str, pid: u32) -> bool {
    let mut kill = Command::new("sh");
    kill.args(["-c", &format!("kill -s {name} {pid}")]).stderr(Stdio::null());
    kill.status().unwrap().success()
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended() {
            send_signal("KILL", self.pid);
        }
    }
}
