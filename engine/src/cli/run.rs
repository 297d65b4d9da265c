//! `spoonbill run`, `retry` and `replay`: from the arguments to an exit code.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::problems::{self, Shown};
use super::{
    JobArgs, ReplayArgs, RetryArgs, RunArgs, expect_run, failed, print_err, progress, secrets,
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

pub(super) fn run(args: &RunArgs) -> u8 {
    let mode = match (args.fresh, args.complete) {
        (true, _) => OpenMode::Fresh,
        (false, true) => OpenMode::Complete,
        (false, false) => OpenMode::Continue,
    };
    start(&args.job, args.cluster.flags(), Verb::Run, mode)
}

pub(super) fn retry(args: &RetryArgs) -> u8 {
    start(&args.job, args.cluster.flags(), Verb::Retry, OpenMode::Retry)
}

pub(super) fn replay(args: &ReplayArgs) -> u8 {
    start(&args.job, Vec::new(), Verb::Replay, OpenMode::Fresh)
}

fn start(args: &JobArgs, flags: Vec<(String, String)>, verb: Verb, mode: OpenMode) -> u8 {
    // First, so that a signal while definitions are read ends the process with the right exit code.
    let listener = match SignalListener::open() {
        Ok(listener) => listener,
        Err(error) => {
            print_err(&format!("error: no signal handler: {error}\n"));
            return 1;
        }
    };
    args.logging.start();
    let (defs_dir, output) = (Some(&args.defs_dir), args.output.as_ref());
    let config = match args.settings.resolve_with(flags, defs_dir, output) {
        Ok(config) => config,
        Err(code) => return code,
    };
    if let Some(code) = check_cluster(&config, verb) {
        return code;
    }
    let setup = match load(args, &config) {
        Ok(setup) => setup,
        Err(code) => return code,
    };
    if let Some(path) = &args.report
        && let Err(error) = std::fs::File::options().create(true).append(true).open(path)
    {
        print_err(&format!("error: report `{}` cannot be written: {error}\n", path.display()));
        return 2;
    }
    if let Some(purpose) = verb.needs_a_run()
        && let Err(code) = expect_run(&config.store.data_dir, purpose)
    {
        return code;
    }
    let performed = match verb {
        Verb::Run | Verb::Retry => perform(args, verb, listener, &setup, mode),
        Verb::Replay => perform_replay(args, listener, setup),
    };
    performed.unwrap_or_else(|error| report_error(args, &error))
}

/// Reads the definitions, and prints what is wrong with them. A node of a cluster still starts:
/// other nodes may have valid ones, and if it is to set up the run, they learn of the problems.
fn load(args: &JobArgs, config: &Config) -> Result<LocalSetup, u8> {
    match Definitions::load(&args.defs_dir, config) {
        Ok(definitions) => {
            secrets::keep(&definitions.plan.published.secrets);
            if !args.logging.quiet {
                problems::print(&definitions.warnings, Shown::Problems);
            }
            Ok(LocalSetup::of(definitions))
        }
        Err(found) => {
            problems::print(&found.0, Shown::ProblemsAndCount);
            let error = RunError::Problems(found);
            if !config.cluster.enable {
                return Err(exit_code::of_error(&error));
            }
            let (config, dir) = (config.clone(), args.defs_dir.clone());
            Ok(LocalSetup { definitions: Err(error.words()), config, dir })
        }
    }
}

/// Prints an error and returns its exit code.
fn report_error(args: &JobArgs, error: &RunError) -> u8 {
    let code = exit_code::of_error(error);
    match error {
        RunError::Problems(found) => problems::print(&found.0, Shown::ProblemsAndCount),
        // Its problems were printed when it was loaded.
        RunError::Broken(_) => {}
        error if code != 0 => print_err(&format!("error: {error}\n")),
        error if !args.logging.quiet => print_err(&format!("{error}\n")),
        _ => {}
    }
    code
}

/// Prints why the settings of a cluster do not work together, and returns the exit code.
fn check_cluster(config: &Config, verb: Verb) -> Option<u8> {
    if !config.cluster.enable {
        return None;
    }
    if verb == Verb::Replay {
        print_err("error: `replay` runs on one node: add `--set cluster.enable=false`\n");
        return Some(2);
    }
    let words = config.cluster.seating().err()?;
    print_err(&format!("error: {words}\n"));
    Some(2)
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
