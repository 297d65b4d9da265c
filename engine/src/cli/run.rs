//! `spoonbill run`, `retry` and `replay`: from what was typed to an exit code.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::problems::{self, Shown};
use super::{RunArgs, expect_run, failed, print_err, progress, secrets};
use crate::bootstrap::Node;
use crate::cluster::{serve_control, withdraw_control};
use crate::config::Config;
use crate::error::{RunError, Signal, counted};
use crate::failpoint;
use crate::ledger::OpenMode;
use crate::plan::identity::identity;
use crate::plan::load::Definitions;
use crate::run::replay::Plan;
use crate::run::report::{FinishReason, Replay, Report};
use crate::run::shutdown::{self, Ears, Stop};
use crate::run::{Ended, Errand, Offer, exit_mark};
use crate::store::{Answer, Question, StoreError, leave};

/// From when on a run can be asked how it is.
const ASKED_AFTER: Duration = Duration::from_millis(150);
/// A timer that is always due sooner than a request runs out of time. A request that set the next
/// timer of all would wake its own thread for it, by a system call.
const NEXT_TIMER: Duration = Duration::from_secs(1);
/// So many cores are kept busy by pages that one thread loads; more threads would wake each other.
const FEW_CORES: usize = 4;

/// Which jobs are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All of the definitions'.
    All,
    /// Those that failed last time.
    Failed,
    /// All of the definitions', from stored pages.
    Stored,
}

impl Which {
    /// Why `--fresh` makes no sense, if it does not.
    fn is_never_fresh(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Failed => Some(
                "`--fresh` discards a run, and `retry` needs one: leave it out, or begin anew with \
                 `spoonbill run --fresh`",
            ),
            Self::Stored => Some(
                "`--fresh` discards a run, and `replay` needs one: leave it out; a replay always \
                 begins anew",
            ),
        }
    }

    /// What an earlier run is needed for, if one is.
    fn needs_a_run(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Failed => Some(" whose failed jobs could be tried again"),
            Self::Stored => Some(" whose pages could be replayed"),
        }
    }
}

pub(super) fn run(args: &RunArgs, which: Which) -> u8 {
    // First of all: a signal that comes now has its exit code too.
    let ears = match Ears::open() {
        Ok(ears) => ears,
        Err(error) => {
            print_err(&format!("error: no signal handler: {error}\n"));
            return 1;
        }
    };
    args.logging.start();
    if let (true, Some(words)) = (args.fresh, which.is_never_fresh()) {
        print_err(&format!("error: {words}\n"));
        return 2;
    }
    let (defs_dir, output) = (Some(&args.defs_dir), args.output.as_ref());
    let config = match args.settings.resolve_with(args.cluster.flags(), defs_dir, output) {
        Ok(config) => config,
        Err(code) => return code,
    };
    if let Some(code) = unfit(&config, which) {
        return code;
    }
    let offer = match Definitions::load(&args.defs_dir, &config) {
        Ok(definitions) => {
            secrets::keep(&definitions.plan.published.secrets);
            if !args.logging.quiet {
                problems::print(&definitions.warnings, Shown::Problems);
            }
            Offer::of(definitions)
        }
        Err(found) => {
            problems::print(&found.0, Shown::ProblemsAndCount);
            if !config.cluster.enable {
                return 3;
            }
            // The others have to know if this node is to set up the run.
            let words = RunError::Problems(found).words();
            let (config, dir) = (config.clone(), args.defs_dir.clone());
            Offer { definitions: Err(words), config, dir }
        }
    };
    if let Some(path) = &args.report
        && let Err(error) = std::fs::File::options().create(true).append(true).open(path)
    {
        print_err(&format!("error: report `{}` cannot be written: {error}\n", path.display()));
        return 2;
    }
    if let Some(purpose) = which.needs_a_run()
        && let Err(code) = expect_run(&config.store.data_dir, purpose)
    {
        return code;
    }
    let performed = match (which, args.fresh) {
        (Which::Failed, _) => perform(args, which, ears, &offer, OpenMode::Retry),
        (Which::All, true) => perform(args, which, ears, &offer, OpenMode::Fresh),
        (Which::All, false) => perform(args, which, ears, &offer, OpenMode::Continue),
        (Which::Stored, _) => replay(args, ears, offer),
    };
    exit_code(args, performed)
}

/// Says what went wrong, and gives the exit code.
fn exit_code(args: &RunArgs, performed: Result<u8, RunError>) -> u8 {
    match performed {
        Ok(code) => code,
        Err(RunError::Problems(found)) => {
            problems::print(&found.0, Shown::ProblemsAndCount);
            3
        }
        // Its problems have been told.
        Err(RunError::Broken(_)) => 3,
        Err(error) if error.exit_code() == 0 => {
            if !args.logging.quiet {
                print_err(&format!("{error}\n"));
            }
            0
        }
        Err(error) => {
            print_err(&format!("error: {error}\n"));
            error.exit_code()
        }
    }
}

/// Says what is wrong with the settings of a cluster taken together, and gives the exit code.
fn unfit(config: &Config, which: Which) -> Option<u8> {
    if !config.cluster.enable {
        return None;
    }
    if which == Which::Stored {
        print_err("error: a replay is the work of one node: leave `--cluster` away\n");
        return Some(2);
    }
    let words = config.cluster.seating().err()?;
    print_err(&format!("error: {words}\n"));
    Some(2)
}

/// Runs, tells, and closes the run: nothing is left to do after that.
fn perform(
    args: &RunArgs,
    which: Which,
    ears: Ears,
    offer: &Offer,
    mode: OpenMode,
) -> Result<u8, RunError> {
    let engine = Engine::start(ears)?;
    if mode != OpenMode::Continue {
        exit_mark::end(&offer.config.store.data_dir);
    }
    let node = engine.open(&offer.config)?;
    if let Err(error) = engine.hear(&node) {
        node.close();
        return Err(error);
    }
    // The jobs of an earlier run may hold values that were secret then.
    failed::keep_secrets(&node)?;
    if !args.logging.quiet {
        tell_if_continued(args, &node, offer, mode)?;
    }
    let errand = Errand { mode, replay: None };
    let code = engine.drive(args, &node, offer, &errand).and_then(|ended| {
        let code = conclude(args, which, &ended.report, *engine.stop.borrow(), &node);
        node.end_process_with(code);
        if node.place.alone {
            withdraw_control(&offer.config.store.data_dir);
        }
        let closed = ended.close(&node.store, engine.stop.clone(), code);
        engine.runtime.block_on(closed).map(|()| code)
    });
    let alone = node.place.alone;
    node.close();
    engine.runtime.shutdown_background();
    exit_mark::end(&offer.config.store.data_dir);
    match code {
        Ok(code) if !alone => leave(code),
        code => code,
    }
}

/// Says at the start that an unfinished run is gone on with, and what is left of it. A node without a
/// vote has none.
fn tell_if_continued(
    args: &RunArgs,
    node: &Node,
    offer: &Offer,
    mode: OpenMode,
) -> Result<(), RunError> {
    if !node.place.votes {
        return Ok(());
    }
    let Answer::Run(Some(run)) = node.store.ask_blocking(Question::Run)? else { return Ok(()) };
    let same = |own: &Definitions| run.plan.identity == identity(&own.plan);
    if mode == OpenMode::Fresh || run.closed || !offer.definitions.as_ref().is_ok_and(same) {
        return Ok(());
    }
    let (done, left) = (counted(run.done, "job"), run.known - run.done - run.failed);
    args.logging.say(&format!(
        "continuing the unfinished run of this data directory: {done} done, {left} to do"
    ));
    Ok(())
}

/// Computes all rows anew beside the last run, whose data directory is held but not changed.
fn replay(args: &RunArgs, ears: Ears, offer: Offer) -> Result<u8, RunError> {
    let definitions = offer.definitions.map_err(RunError::Broken)?;
    let engine = Engine::start(ears)?;
    let before = Node::read(&definitions.plan.config)?;
    failed::keep_secrets(&before)?;
    let replayed = Plan::new(&before, &definitions).and_then(|plan| {
        let node = Node::solo(&plan.offer.config)?;
        let code = engine.drive(args, &node, &plan.offer, &plan.errand).and_then(|mut ended| {
            match ended.report.finish_reason {
                FinishReason::Finished => plan.complete(&mut ended.report, &before, &node)?,
                _ => ended.report.replay = Some(Replay::default()),
            }
            Ok(conclude(args, Which::Stored, &ended.report, *engine.stop.borrow(), &node))
        });
        node.close();
        plan.clear().and(code)
    });
    before.close();
    engine.runtime.shutdown_background();
    replayed
}

/// What a run is driven by.
struct Engine {
    runtime: tokio::runtime::Runtime,
    token: watch::Sender<Stop>,
    stop: watch::Receiver<Stop>,
    /// Says when nobody may ask the node any more.
    ended: watch::Sender<bool>,
}

impl Engine {
    fn start(ears: Ears) -> Result<Self, RunError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut builder = if cores <= FEW_CORES {
            tokio::runtime::Builder::new_current_thread()
        } else {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(cores.div_ceil(FEW_CORES).min(4));
            builder
        };
        let runtime = builder
            .enable_all()
            .build()
            .map_err(|error| RunError::Internal(format!("no async runtime: {error}")))?;
        let token = ears.begin();
        let (stop, ended) = (token.subscribe(), watch::Sender::new(false));
        Ok(Self { runtime, token, stop, ended })
    }

    /// Opens the node. One that waits for others can be stopped meanwhile: there is nothing to end.
    fn open(&self, config: &Config) -> Result<Node, RunError> {
        if !config.cluster.enable {
            return Ok(Node::open(config)?);
        }
        let (tell, told) = tokio::sync::oneshot::channel();
        let config = config.clone();
        let opening = std::thread::Builder::new().name("opening".to_owned());
        opening
            .spawn(move || drop(tell.send(Node::open(&config))))
            .map_err(|error| RunError::Internal(format!("no thread: {error}")))?;
        self.runtime.block_on(async {
            tokio::select! {
                node = told => match node {
                    Ok(node) => Ok(node?),
                    Err(_) => Err(RunError::Internal("the node could not be opened".to_owned())),
                },
                stopped = self.stopped() => Err(stopped),
            }
        })
    }

    /// A node without a vote knows nothing until one that has it answers; it, too, can be stopped
    /// meanwhile, and does not wait for ever.
    fn hear(&self, node: &Node) -> Result<(), RunError> {
        if node.place.votes {
            return Ok(());
        }
        self.runtime.block_on(async {
            let heard = tokio::time::timeout(node.place.patience, node.store.ask(Question::Run));
            tokio::select! {
                heard = heard => match heard {
                    Ok(answer) => Ok(answer.map(drop)?),
                    Err(_) => Err(node.not_formed().into()),
                },
                stopped = self.stopped() => Err(stopped),
            }
        })
    }

    /// Somebody asks to stop before there is anything to end.
    async fn stopped(&self) -> RunError {
        let mut stop = self.stop.clone();
        let asked = stop.wait_for(|stop| *stop != Stop::No).await.map(|asked| *asked);
        match asked {
            Ok(Stop::Drain(signal) | Stop::Now(signal)) => RunError::Stopped(signal),
            _ => std::future::pending().await,
        }
    }

    /// Runs to the end with progress shown; a run that could not go on has its report too.
    fn drive(
        &self,
        args: &RunArgs,
        node: &Node,
        offer: &Offer,
        errand: &Errand,
    ) -> Result<Ended, RunError> {
        let start = jiff::Timestamp::now();
        let token = self.token.clone();
        let control = node.control(move || shutdown::ask(&token, Signal::Interrupt));
        let (dir, ended) = (offer.config.store.data_dir.clone(), self.ended.subscribe());
        self.runtime.spawn(async move {
            let Some(control) = control else { return };
            // Nobody asks after a run that is over by then.
            tokio::time::sleep_until(tokio::time::Instant::now() + ASKED_AFTER).await;
            serve_control(&dir, control, ended).await;
        });
        let (store, mut stop) = (Arc::clone(&node.store), self.stop.clone());
        self.runtime.spawn(async move {
            if stop.wait_for(|stop| *stop != Stop::No).await.is_ok() {
                store.step_aside();
            }
        });
        self.runtime.spawn(async {
            let mut next = tokio::time::interval(NEXT_TIMER);
            loop {
                next.tick().await;
            }
        });
        let result = self.runtime.block_on(async {
            let running = crate::run::run(node, offer, errand, self.stop.clone());
            if args.logging.quiet {
                return running.await;
            }
            let (standing, stop) = (node.store.standing(), self.stop.clone());
            let interval = offer.config.run.progress_interval;
            tokio::select! {
                ended = running => ended,
                () = progress::show(standing, stop, node.place.alone, interval, &args.logging) => {
                    Err(RunError::Internal("progress ended".to_owned()))
                }
            }
        });
        // One that had ended before has its report.
        let has_failed =
            |error: &&RunError| !matches!(error, RunError::Store(StoreError::Ended(_)));
        if let (Some(error), Some(path)) = (result.as_ref().err().filter(has_failed), &args.report)
        {
            let standing = *node.store.standing().borrow();
            let failed = Report::failed(start, standing, &node.place, error.to_string());
            report_to(path, &failed);
        }
        result
    }
}

/// Prints and writes the report; its exit code.
fn conclude(args: &RunArgs, which: Which, report: &Report, stop: Stop, node: &Node) -> u8 {
    let cancelled = node.store.standing().borrow().cancelled;
    match (which, args.logging.quiet) {
        (_, true) => complain_of_failures(args, which, report),
        (Which::Stored, false) => args.logging.say("computed all rows anew from stored pages"),
        (Which::Failed, false) => args.logging.say("tried the failed jobs of the last run again"),
        (Which::All, false) if report.continued && node.place.votes => {
            args.logging.say("continued the unfinished run of this data directory");
        }
        (Which::All, false) => {}
    }
    if !args.logging.quiet {
        args.logging.tell(report);
    }
    if let Some(path) = &args.report
        && !report_to(path, report)
    {
        return 8;
    }
    match (report.finish_reason, stop) {
        (FinishReason::Cancelled, Stop::Drain(signal) | Stop::Now(signal)) => signal.exit_code(),
        // An operator asked for it, as with Ctrl-C but everywhere.
        (FinishReason::Cancelled, Stop::No) if cancelled => Signal::Interrupt.exit_code(),
        // Nobody asked for it: something is wrong with us.
        (FinishReason::Cancelled, Stop::No) if report.exit_code() == 0 => 1,
        _ => report.exit_code(),
    }
}

/// What even a quiet run has to say.
fn complain_of_failures(args: &RunArgs, which: Which, report: &Report) {
    if let (FinishReason::Halted, Some(why)) = (report.finish_reason, &report.error) {
        args.logging.say(&format!("error: halted, since {why}; run again to continue"));
    }
    if report.jobs.failed > 0 {
        let failed = counted(report.jobs.failed, "job");
        let why = if which == Which::Stored { "" } else { "; `spoonbill failed` tells why" };
        args.logging.say(&format!("error: {failed} failed{why}"));
    }
    for unmet in &report.unmet {
        args.logging.say(&format!("error: expectation not met: {}", unmet.text()));
    }
    for error in report.outputs.iter().filter_map(|output| output.error.as_ref()) {
        args.logging.say(&format!("error: {error}; its rows are kept, run again"));
    }
}

/// Writes the report as JSON; says so if it cannot.
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
