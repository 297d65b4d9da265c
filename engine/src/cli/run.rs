//! `spoonbill run`, `retry` and `replay`: from the arguments to an exit code.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::sync::watch;

use super::problems::{self, ProblemsShown};
use super::{
    CommandFailure, CommandResult, LogArgs, RunCommand, SettingArgs, expect_run, failed, print_err,
    progress, secrets,
};
use crate::bootstrap::Node;
use crate::cluster::{serve_control, withdraw_control};
use crate::config::Config;
use crate::error::{RunError, Signal, counted};
use crate::failpoint;
use crate::ledger::OpenMode;
use crate::plan::identity::identity;
use crate::plan::load::Definitions;
use crate::run::exit_code::{self, Circumstances};
use crate::run::replay::PlannedReplay;
use crate::run::report::{FinishReason, ReplayChanges, Report};
use crate::run::shutdown::{self, SignalListener, Stop};
use crate::run::{LocalSetup, Reported, RunRequest, exit_mark};
use crate::store::{Answer, Question, StoreError, leave};
use crate::threads::ignore::ignore_closed;
use crate::threads::pause::pause;

/// Options of `run`. The cluster's come last in each command, because clap puts all options that follow a
/// heading below it.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Discard the unfinished run in the data directory and start a new one
    #[arg(long)]
    fresh: bool,
    /// Complete the last run on every node that needs it, and start no other run; with `--cluster`, give
    /// it on all nodes
    #[arg(long, conflicts_with = "fresh")]
    complete: bool,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Options of `retry`.
#[derive(Debug, Args)]
pub(super) struct RetryArgs {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Options of `replay`, which runs on one node.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    job: JobArgs,
}

/// Options of all three.
#[derive(Debug, Args)]
struct JobArgs {
    /// Directory of definition files
    defs_dir: PathBuf,
    /// Base directory of file appenders [default: output]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write the end-of-run report to this file as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingArgs,
    #[command(flatten)]
    logging: LogArgs,
}

/// How a node takes part in a cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
struct ClusterArgs {
    /// Share the run with other nodes
    #[arg(long)]
    cluster: bool,
    /// This node's number among the peers, from 1; `auto` takes it from the machine's name
    #[arg(long, value_name = "N")]
    node_id: Option<String>,
    /// Address and port to listen on [default: this node's own among the peers]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// All nodes with a vote, the same on every node
    #[arg(long, value_name = "1=HOST:PORT,2=...")]
    peers: Option<String>,
    /// Nodes with a vote that must be connected before the run starts [default: more than half]
    #[arg(long, value_name = "N")]
    quorum: Option<usize>,
    /// `voter` keeps the ledger and votes, `worker` only works [default: voter]
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
}

impl ClusterArgs {
    /// The same as settings.
    fn flags(&self) -> Vec<(String, String)> {
        let quorum = self.quorum.map(|quorum| quorum.to_string());
        let flags = [
            ("cluster.enable", self.cluster.then(|| "true".to_owned())),
            ("cluster.node.id", self.node_id.clone()),
            ("cluster.listen", self.listen.clone()),
            ("cluster.peers", self.peers.clone()),
            ("cluster.quorum.size", quorum),
            ("cluster.role", self.role.clone()),
        ];
        let given = flags.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        given.collect()
    }
}

/// A run serves `spoonbill status` from this time on. Most short runs have ended before.
const CONTROL_DELAY: Duration = Duration::from_millis(150);
/// A timer that is always due before the timeout of a request. A request that sets the earliest timer of
/// all wakes the thread of the timers, by a system call.
const EARLY_TIMER_INTERVAL: Duration = Duration::from_secs(1);
/// One thread that loads pages keeps this number of cores busy. More such threads would only wake each
/// other.
const CORES_PER_LOADER: usize = 4;

/// Which of the three commands was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Run,
    Retry,
    Replay,
}

impl Verb {
    /// The purpose of an earlier run, if the command needs one.
    fn needs_a_run(self) -> Option<&'static str> {
        match self {
            Self::Run => None,
            Self::Retry => Some(" whose failed jobs could be retried"),
            Self::Replay => Some(" whose pages could be replayed"),
        }
    }
}

impl RunCommand for RunArgs {
    fn run(&self) -> CommandResult {
        let mode = match (self.fresh, self.complete) {
            (true, _) => OpenMode::Fresh,
            (false, true) => OpenMode::Complete,
            (false, false) => OpenMode::Continue,
        };
        start(&self.job, self.cluster.flags(), Verb::Run, mode)
    }
}

impl RunCommand for RetryArgs {
    fn run(&self) -> CommandResult {
        start(&self.job, self.cluster.flags(), Verb::Retry, OpenMode::Retry)
    }
}

impl RunCommand for ReplayArgs {
    fn run(&self) -> CommandResult {
        start(&self.job, Vec::new(), Verb::Replay, OpenMode::Fresh)
    }
}

fn start(
    args: &JobArgs,
    flags: Vec<(String, String)>,
    verb: Verb,
    mode: OpenMode,
) -> CommandResult {
    // First, so that a signal while definitions are read ends the process with the right exit code.
    let listener = SignalListener::open()
        .map_err(|error| CommandFailure::new(1, format!("no signal handler: {error}")))?;
    args.logging.start();
    let config = args.settings.resolve_with(flags, Some(&args.defs_dir), args.output.as_deref())?;
    check_cluster(&config, verb)?;
    let setup = load(args, &config)?;
    if let Some(path) = &args.report
        && let Err(error) = std::fs::File::options().create(true).append(true).open(path)
    {
        let words = format!("report `{}` cannot be written: {error}", path.display());
        return Err(CommandFailure::new(2, words));
    }
    if let Some(purpose) = verb.needs_a_run() {
        expect_run(&config.store.data_dir, purpose)?;
    }
    let performed = match verb {
        Verb::Run | Verb::Retry => perform(args, verb, listener, &setup, mode),
        Verb::Replay => perform_replay(args, listener, setup),
    };
    Ok(performed.unwrap_or_else(|error| report_error(args, &error)))
}

/// Reads the definitions. A node of a cluster starts even with invalid ones, after printing the problems:
/// other nodes may have valid ones, and if it is to set up the run, they learn of the problems.
fn load(args: &JobArgs, config: &Config) -> Result<LocalSetup, CommandFailure> {
    match Definitions::load(&args.defs_dir, config) {
        Ok(definitions) => {
            secrets::keep(&definitions.plan.published.secrets);
            if !args.logging.quiet {
                problems::print(&definitions.warnings, ProblemsShown::Only);
            }
            Ok(LocalSetup::of(definitions))
        }
        Err(found) if !config.cluster.enable => Err(found.into()),
        Err(found) => {
            problems::print(&found.0, ProblemsShown::WithCount);
            let (config, dir) = (config.clone(), args.defs_dir.clone());
            Ok(LocalSetup { definitions: Err(RunError::Problems(found).words()), config, dir })
        }
    }
}

/// Prints an error and returns its exit code.
fn report_error(args: &JobArgs, error: &RunError) -> u8 {
    let code = exit_code::of_error(error);
    match error {
        RunError::Problems(found) => problems::print(&found.0, ProblemsShown::WithCount),
        // Its problems were printed when it was loaded.
        RunError::Broken(_) => {}
        error if code != 0 => print_err(&format!("error: {error}\n")),
        error if !args.logging.quiet => print_err(&format!("{error}\n")),
        _ => {}
    }
    code
}

/// Fails if the settings of a cluster do not work together.
fn check_cluster(config: &Config, verb: Verb) -> Result<(), CommandFailure> {
    if !config.cluster.enable {
        return Ok(());
    }
    if verb == Verb::Replay {
        let words = "`replay` runs on one node: add `--set cluster.enable=false`";
        return Err(CommandFailure::new(2, words));
    }
    config.cluster.seating().map(drop).map_err(|words| CommandFailure::new(2, words))
}

/// Runs, prints the report and closes the run, in this order: nothing is left to do after that.
fn perform(
    args: &JobArgs,
    verb: Verb,
    listener: SignalListener,
    setup: &LocalSetup,
    mode: OpenMode,
) -> Result<u8, RunError> {
    let engine = Engine::start(listener)?;
    let dir = &setup.config.store.data_dir;
    if mode != OpenMode::Continue {
        exit_mark::remove(dir);
    }
    let node = engine.open(&setup.config)?;
    if let Err(error) = engine.hear(&node) {
        node.close();
        return Err(error);
    }
    // Jobs of an earlier run may contain values that were secret then.
    failed::keep_secrets(&node)?;
    if !args.logging.quiet {
        announce_unfinished_run(args, &node, setup, mode)?;
    }
    let request = RunRequest { mode, replay: None };
    let code = engine.drive(args, &node, setup, &request).and_then(|reported| {
        let code = conclude(args, verb, &reported.report, *engine.stop.borrow(), &node);
        node.end_process_with(code);
        if node.member.is_exclusive {
            withdraw_control(dir);
        }
        let closed = reported.close(&node.store, engine.stop.clone(), code);
        engine.runtime.block_on(closed).map(|()| code)
    });
    let is_among_others = !node.member.is_exclusive;
    node.close();
    engine.runtime.shutdown_background();
    exit_mark::remove(dir);
    match code {
        Ok(code) if is_among_others => leave(code),
        code => code,
    }
}

/// Prints that the data directory holds an unfinished run, and how much of it is left. A node without a
/// vote has none.
fn announce_unfinished_run(
    args: &JobArgs,
    node: &Node,
    setup: &LocalSetup,
    mode: OpenMode,
) -> Result<(), RunError> {
    if !node.member.votes {
        return Ok(());
    }
    let Answer::Run(Some(run)) = node.store.ask_blocking(Question::Run)? else { return Ok(()) };
    let is_same = |own: &Definitions| run.plan.identity == identity(&own.plan);
    let is_continued = setup.definitions.as_ref().is_ok_and(is_same);
    if mode == OpenMode::Fresh || run.closed || !is_continued {
        return Ok(());
    }
    let (done, left) = (counted(run.done, "job"), run.known - run.done - run.failed);
    args.logging.say(&if node.member.has_peers() {
        format!(
            "this node stopped before the last run had ended, with {done} done and {left} to do; asking \
             other nodes for its state"
        )
    } else {
        format!("continuing the unfinished run of this data directory: {done} done, {left} to do")
    });
    Ok(())
}

/// Computes all rows again, next to the last run, whose data directory is locked but not changed.
fn perform_replay(
    args: &JobArgs,
    listener: SignalListener,
    setup: LocalSetup,
) -> Result<u8, RunError> {
    let definitions = setup.definitions.map_err(RunError::Broken)?;
    let engine = Engine::start(listener)?;
    let before = Node::read(&definitions.plan.config)?;
    failed::keep_secrets(&before)?;
    let replayed = PlannedReplay::new(&before, &definitions).and_then(|replay| {
        let node = Node::solo(&replay.setup.config)?;
        let reported = engine.drive(args, &node, &replay.setup, &replay.request);
        let code = reported.and_then(|mut reported| {
            match reported.report.finish_reason {
                FinishReason::Finished => replay.complete(&mut reported.report, &before, &node)?,
                _ => reported.report.replay = Some(ReplayChanges::default()),
            }
            Ok(conclude(args, Verb::Replay, &reported.report, *engine.stop.borrow(), &node))
        });
        node.close();
        replay.clear().and(code)
    });
    before.close();
    engine.runtime.shutdown_background();
    replayed
}

/// The async runtime of a run, and what stops the run.
struct Engine {
    runtime: tokio::runtime::Runtime,
    token: watch::Sender<Stop>,
    stop: watch::Receiver<Stop>,
    /// Ends the service for operators.
    ended: watch::Sender<bool>,
}

impl Engine {
    fn start(listener: SignalListener) -> Result<Self, RunError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut builder = if cores <= CORES_PER_LOADER {
            tokio::runtime::Builder::new_current_thread()
        } else {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(cores.div_ceil(CORES_PER_LOADER).min(4));
            builder
        };
        let runtime = builder
            .enable_all()
            .build()
            .map_err(|error| RunError::Internal(format!("no async runtime: {error}")))?;
        let token = listener.begin();
        let (stop, ended) = (token.subscribe(), watch::Sender::new(false));
        Ok(Self { runtime, token, stop, ended })
    }

    /// Opens the node. A signal stops one that waits for other nodes: nothing has begun yet.
    fn open(&self, config: &Config) -> Result<Node, RunError> {
        if !config.cluster.enable {
            return Ok(Node::open(config)?);
        }
        let (opened, node) = tokio::sync::oneshot::channel();
        let config = config.clone();
        let opening = std::thread::Builder::new().name("opening".to_owned());
        opening
            .spawn(move || ignore_closed(opened.send(Node::open(&config))))
            .map_err(|error| RunError::Internal(format!("no thread: {error}")))?;
        self.runtime.block_on(async {
            tokio::select! {
                node = node => match node {
                    Ok(node) => Ok(node?),
                    Err(_) => Err(RunError::Internal("the node could not be opened".to_owned())),
                },
                stopped = self.stopped() => Err(stopped),
            }
        })
    }

    /// Waits until a node without a vote gets an answer from one that has it. A signal or the time for
    /// joining ends the wait.
    fn hear(&self, node: &Node) -> Result<(), RunError> {
        let Some(limit) = node.member.join_timeout.filter(|_| !node.member.votes) else {
            return Ok(());
        };
        self.runtime.block_on(async {
            let heard = tokio::time::timeout(limit, node.store.ask(Question::Run));
            tokio::select! {
                heard = heard => match heard {
                    Ok(answer) => Ok(answer.map(drop)?),
                    Err(_) => Err(node.not_formed().into()),
                },
                stopped = self.stopped() => Err(stopped),
            }
        })
    }

    /// Waits for a signal.
    async fn stopped(&self) -> RunError {
        let mut stop = self.stop.clone();
        let asked = stop.wait_for(|stop| *stop != Stop::No).await.map(|asked| asked.signal());
        match asked {
            Ok(Some(signal)) => RunError::Stopped(signal),
            _ => std::future::pending().await,
        }
    }

    /// Runs to the end and shows the progress. A run that fails has a report file too.
    fn drive(
        &self,
        args: &JobArgs,
        node: &Node,
        setup: &LocalSetup,
        request: &RunRequest,
    ) -> Result<Reported, RunError> {
        let start = jiff::Timestamp::now();
        let token = self.token.clone();
        let control = node.control(move || shutdown::ask(&token, Signal::Interrupt));
        let (dir, ended) = (setup.config.store.data_dir.clone(), self.ended.subscribe());
        self.runtime.spawn(async move {
            let Some(control) = control else { return };
            pause(CONTROL_DELAY).await;
            serve_control(&dir, control, ended).await;
        });
        let (store, mut stop) = (Arc::clone(&node.store), self.stop.clone());
        self.runtime.spawn(async move {
            if stop.wait_for(|stop| *stop != Stop::No).await.is_ok() {
                store.step_aside();
            }
        });
        self.runtime.spawn(async {
            let mut next = tokio::time::interval(EARLY_TIMER_INTERVAL);
            loop {
                next.tick().await;
            }
        });
        let result = self.runtime.block_on(async {
            let running = crate::run::run(node, setup, request, self.stop.clone());
            if args.logging.quiet {
                return running.await;
            }
            let (standing, stop) = (node.store.standing(), self.stop.clone());
            let interval = setup.config.run.progress_interval;
            tokio::select! {
                reported = running => reported,
                () = progress::show(standing, stop, node.member.is_exclusive, interval, &args.logging) => {
                    Err(RunError::Internal("progress ended".to_owned()))
                }
            }
        });
        // The report of a run that had ended before is written, and one without work has none.
        let has_failed = |error: &&RunError| {
            !matches!(error, RunError::Store(StoreError::Ended(_)) | RunError::NothingToComplete)
        };
        if let (Some(error), Some(path)) = (result.as_ref().err().filter(has_failed), &args.report)
        {
            let standing = *node.store.standing().borrow();
            let failed = Report::failed(start, standing, &node.member, error.to_string());
            report_to(path, &failed);
        }
        result
    }
}

/// Prints and writes the report, and returns the exit code.
fn conclude(args: &JobArgs, verb: Verb, report: &Report, stop: Stop, node: &Node) -> u8 {
    let is_cancelled = node.store.standing().borrow().cancelled;
    match (verb, args.logging.quiet) {
        (_, true) => print_failures(args, verb, report),
        (Verb::Replay, false) => args.logging.say("computed all rows again from stored pages"),
        (Verb::Retry, false) => args.logging.say("retried the failed jobs of the last run"),
        (Verb::Run, false) if report.continued && node.member.votes => {
            args.logging.say("continued the unfinished run of this data directory");
        }
        (Verb::Run, false) => {}
    }
    if !args.logging.quiet {
        args.logging.print_report(report);
    }
    let is_report_lost = args.report.as_ref().is_some_and(|path| !report_to(path, report));
    exit_code::of_run(report, Circumstances { signal: stop.signal(), is_cancelled, is_report_lost })
}

/// Prints what even a quiet run reports.
fn print_failures(args: &JobArgs, verb: Verb, report: &Report) {
    if let (FinishReason::Halted, Some(why)) = (report.finish_reason, &report.error) {
        args.logging.say(&format!("error: halted, since {why}; run again to continue"));
    }
    if report.jobs.failed > 0 {
        let failed = counted(report.jobs.failed, "job");
        let why = if verb == Verb::Replay { "" } else { "; `spoonbill failed` lists the reasons" };
        args.logging.say(&format!("error: {failed} failed{why}"));
    }
    for unmet in &report.unmet {
        args.logging.say(&format!("error: expectation not met: {}", unmet.text()));
    }
    for error in report.outputs.iter().filter_map(|output| output.error.as_ref()) {
        args.logging.say(&format!("error: {error}; its rows are kept, run again"));
    }
}

/// Writes the report as JSON. Prints an error and returns false if it cannot be written.
fn report_to(path: &Path, report: &Report) -> bool {
    let text = serde_json::to_string_pretty(report).map_err(std::io::Error::other);
    failpoint::pass("report.write.before");
    let written = text.and_then(|text| std::fs::write(path, format!("{}\n", secrets::hide(&text))));
    failpoint::pass("report.write.after");
    if let Err(error) = &written {
        print_err(&format!("error: report `{}` could not be written: {error}\n", path.display()));
    }
    written.is_ok()
}
