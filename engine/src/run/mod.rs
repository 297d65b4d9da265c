//! The story of a run on one page: join, agree on the definitions, seed, work, watch, close.

mod agree;
mod append;
mod barricade;
pub(crate) mod exit_mark;
mod expectations;
mod folder;
mod jobs;
mod monitor;
mod pace;
mod pages;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod seed;
mod session;
pub(crate) mod shutdown;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spoonbill_plugins::dates::DatePattern;
use spoonbill_plugins::loader::file::FileLoader;
use spoonbill_plugins::loader::http::HttpLoader;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use crate::bootstrap::{Node, Place};
use crate::config::{Config, Durability, OutputOrder, PagesKeep};
use crate::error::{RunError, Signal};
use crate::failpoint;
use crate::ledger::{Command, OpenMode, Phase, Policy, Reply, Run};
use crate::pages::{PAGES_FILE, PageStore};
use crate::plan::load::Definitions;
use crate::plan::prepare::Plan;
use crate::run::agree::{Before, agree, current, left_behind};
use crate::run::append::{AppendResult, AppenderMediator, orders};
use crate::run::jobs::{Bounds, JobMediator, Share, Wires};
use crate::run::monitor::Monitor;
use crate::run::pace::Pace;
use crate::run::pages::{Patience, Supply, TaskMediator};
use crate::run::report::{
    Failure, FinishReason, Jobs, NodeShare, Output, Pages, Report, peak_memory,
};
use crate::run::session::Tenancy;
use crate::run::shutdown::Stop;
use crate::steps::{Worker, Workshop};
use crate::store::{Answer, Question, Store, StoreError};
use crate::threads::pool::Pool;

/// How long a node whose set-up failed stays for the others to hear of it.
const FAREWELL: Duration = Duration::from_secs(5);
/// A node that waits for others at the end says so after this time.
const UNTOLD: Duration = Duration::from_secs(1);
/// Failed jobs named in a report; `spoonbill failed` lists them all.
const FAILURES_SHOWN: usize = 100;

/// What is to be done with definitions.
#[derive(Debug)]
pub(crate) struct Errand {
    /// How the run is opened.
    pub mode: OpenMode,
    /// Set to compute rows anew from saved pages.
    pub replay: Option<Replaying>,
}

/// Where a replay takes its pages from, and where its rows go.
#[derive(Debug)]
pub(crate) struct Replaying {
    /// The data directory that has the pages.
    pub pages_dir: PathBuf,
    /// The folder of its files; `latest` stays where it is.
    pub folder: String,
}

/// What a node brings along: its definitions, if they are good, and what belongs to its machine.
#[derive(Debug)]
pub(crate) struct Offer {
    /// The definitions of this node, or the problems with them as text.
    pub definitions: Result<Definitions, String>,
    /// The settings of this node.
    pub config: Config,
    /// Where the definitions lie on this machine, and files beside them.
    pub dir: PathBuf,
}

impl Offer {
    /// Good definitions.
    pub(crate) fn of(definitions: Definitions) -> Self {
        let (config, dir) = (definitions.plan.config.clone(), definitions.dir.clone());
        Self { definitions: Ok(definitions), config, dir }
    }
}

/// A run that has come to its end: everything is written, but it is not closed yet.
pub(crate) struct Ended {
    /// What happened.
    pub report: Report,
    /// Which run it was.
    number: u64,
    tenancy: Tenancy,
    renewing: JoinHandle<()>,
    whole: bool,
    /// The mark beside this node's folder.
    mark: Option<PathBuf>,
    /// The data directory of a node among others.
    parts_from: Option<PathBuf>,
}

impl Ended {
    /// Closes the run, if all of it is done, and waits until every node has come so far. This is
    /// the last act, after the report is written: a process that dies before it has its run
    /// continued and ended by the next one, and one that dies after it has left nothing undone.
    pub(crate) async fn close(
        mut self,
        store: &Arc<dyn Store>,
        mut stop: watch::Receiver<Stop>,
        code: u8,
    ) -> Result<(), RunError> {
        failpoint::pass("run.close.before");
        stop.mark_unchanged();
        let mut again = stop.clone();
        let closed = async {
            if self.whole {
                if let Some(dir) = &self.parts_from {
                    exit_mark::begin(dir, code);
                }
                let mut standing = store.standing();
                let mut tenancy = self.tenancy.clone();
                // Known to be closed is closed, even if there is nobody left to agree with.
                tokio::select! {
                    biased;
                    told = tell_written(store, &mut tenancy, self.number) => told?,
                    _ = standing.wait_for(|now| now.closed) => {}
                    // Everything is written and told: the others need not be waited for.
                    Ok(()) = stop.changed() => {}
                }
                if let Some(mark) = &self.mark {
                    drop(std::fs::remove_file(mark));
                }
            }
            self.tenancy.leave(store).await
        };
        let closed = tokio::select! {
            closed = closed => closed,
            // Whoever asks twice gets away, the others will not wait for ever.
            Ok(()) = again.changed(), if !self.whole => Ok(()),
        };
        self.renewing.abort();
        closed
    }
}

/// Waits until somebody asks a node to stop that may wait for others; alone, it is soon at work, and
/// the monitor sees to it.
async fn asked_to_stop(node: &Node, mut stop: watch::Receiver<Stop>) -> Signal {
    if !node.place.alone
        && let Ok(asked) = stop.wait_for(|stop| *stop != Stop::No).await
        && let Stop::Drain(signal) | Stop::Now(signal) = *asked
    {
        return signal;
    }
    std::future::pending().await
}

/// The run that a node without a vote comes to: it may end before the node is in.
async fn under_way(node: &Node) -> Option<u64> {
    if node.place.votes {
        return None;
    }
    let run = timeout(node.place.patience, node.store.ask(Question::Run)).await;
    match run {
        Ok(Ok(Answer::Run(Some(run)))) if !run.closed => Some(run.number),
        _ => None,
    }
}

/// Waits until those have gone who have ended the run that a node without a vote comes to.
async fn came_too_late(node: &Node) -> u8 {
    let last = if node.place.votes { None } else { node.store.ask(Question::Run).await.ok() };
    match last {
        Some(Answer::Run(Some(run))) if run.closed => nobody_is_left(node, Some(0)).await,
        _ => std::future::pending().await,
    }
}

/// Waits for as long as others may need to answer; then they have ended, as the process before this
/// one was about to.
async fn nobody_is_left(node: &Node, parting: Option<u8>) -> u8 {
    let Some(code) = parting else { return std::future::pending().await };
    loop {
        sleep_until(Instant::now() + FAREWELL).await;
        // Those who are there may need this node to agree with.
        if !node.hears_others() {
            return code;
        }
    }
}

/// Says that everything is written here, until it is closed everywhere: where another run has begun,
/// this one is.
async fn tell_written(
    store: &Arc<dyn Store>,
    tenancy: &mut Tenancy,
    number: u64,
) -> Result<(), RunError> {
    let mut session = tenancy.lease().await?.session;
    let mut standing = store.standing();
    if current(store).await?.number != number {
        return Ok(());
    }
    while !matches!(store.submit(Command::Close { session }).await?, Reply::Ok) {
        if standing.borrow().closed || current(store).await?.number != number {
            return Ok(());
        }
        session = tenancy.replace(session).await?.session;
    }
    if timeout(UNTOLD, standing.wait_for(|now| now.closed)).await.is_err() {
        tell_who_is_awaited(store).await?;
    }
    // Nobody tells any more: then nobody waits for us either.
    drop(standing.wait_for(|now| now.closed).await);
    Ok(())
}

/// Says for whom a node waits that has nothing left to do.
async fn tell_who_is_awaited(store: &Arc<dyn Store>) -> Result<(), RunError> {
    let run = current(store).await?;
    let missing = run.plan.seats.iter().filter(|seat| !run.written.contains(seat));
    let missing: Vec<String> = missing.map(|seat| seat.0.to_string()).collect();
    if !run.closed && !missing.is_empty() {
        tracing::warn!(
            "everything is written here; waiting for node {} to come back and write its files, {} s at \
             most (`cluster.end.wait`)",
            missing.join(", "),
            run.plan.policy.end_wait_ms / 1000
        );
    }
    Ok(())
}

/// Runs definitions on a wired node until the work is over or `stop` ends it.
pub(crate) async fn run(
    node: &Node,
    offer: &Offer,
    errand: &Errand,
    stop: watch::Receiver<Stop>,
) -> Result<Ended, RunError> {
    let start = node.clock.now();
    let store = &node.store;
    let (tenancy, renewing, plan) = enter(node, offer, errand, &stop).await?;

    // From here on the numbers that are watched are this run's.
    store.ask(Question::Flush).await?;
    let run = current(store).await?;
    let mut mark = None;
    let appenders = if node.place.votes {
        let folder = folder::own(&plan.config.output.dir, &run.plan.folder, &node.place);
        if errand.replay.is_none() {
            folder::point_latest(&plan.config.output.dir, &folder);
        }
        let own = folder == run.plan.folder && !node.place.alone;
        mark = own.then(|| folder::mark_of(&plan.config.output.dir, &folder));
        AppenderMediator::start(store, orders(&plan, &run, &folder))
            .map_err(|error| no_thread(&error))?
    } else {
        AppenderMediator::start(store, Vec::new()).map_err(|error| no_thread(&error))?
    };
    let config = plan.config.clone();
    let expectations = plan.expectations();
    let tasks = Arc::new(task_mediator(&plan, errand.replay.as_ref(), &node.place)?);
    let share = Arc::new(Mutex::new(Share::default()));
    let (broken, policy) = (appenders.broken(), run.plan.policy);
    let number = run.number;
    let means = Means { tasks, broken, share: Arc::clone(&share), policy };
    let asked = stop.clone();
    let worked = work(store, &tenancy, &config, means, stop).await;
    let over = store.standing().borrow().over;
    store.make_do();
    let told = async {
        let (appended, run) = close_appenders(store, appenders, number).await?;
        worked?;
        let whole = over && appended.iter().all(|end| end.error.is_none());
        let mut report = report(node, over, start, run, appended).await?;
        if over {
            report.unmet = expectations::unmet(&expectations, &current(store).await?.tally);
        }
        Ok::<_, RunError>((report, whole))
    };
    let (mut report, whole) = if node.place.votes {
        told.await?
    } else {
        // What it would tell lies with others, who may all be gone.
        let told = timeout(FAREWELL, told).await;
        told.unwrap_or_else(|_| Err(RunError::unheard(asked.borrow().signal())))?
    };
    if !node.place.alone {
        let share = share.lock().map(|share| share.clone()).unwrap_or_default();
        report.share = Some(NodeShare::of(&share));
    }
    let whole = whole && node.place.votes;
    let parts_from = (!node.place.alone).then(|| config.store.data_dir.clone());
    Ok(Ended { report, number, tenancy, renewing, whole, mark, parts_from })
}

/// Joins the ledger and agrees with the others on the run.
async fn enter(
    node: &Node,
    offer: &Offer,
    errand: &Errand,
    stop: &watch::Receiver<Stop>,
) -> Result<(Tenancy, JoinHandle<()>, Arc<Plan>), RunError> {
    let store = &node.store;
    let asked = asked_to_stop(node, stop.clone());
    let parting = exit_mark::code(&offer.config.store.data_dir).filter(|_| !node.place.alone);
    let left = left_behind(node, errand, parting).await?;
    let entering = async { tokio::join!(Tenancy::enter(node), under_way(node)) };
    let (entered, came_for) = tokio::select! {
        entered = entering => entered,
        signal = asked => (Err(RunError::Stopped(signal)), None),
        code = nobody_is_left(node, parting) => (Err(StoreError::Ended(code).into()), None),
        code = came_too_late(node) => (Err(StoreError::Ended(code).into()), None),
    };
    let (mut tenancy, renewing) = entered?;
    let asked = asked_to_stop(node, stop.clone());
    let plan = tokio::select! {
        plan = agree(node, offer, errand, &mut tenancy, Before { parting, came_for }) => plan,
        signal = asked => Err(RunError::Stopped(signal)),
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            let stays = !matches!(error, RunError::Store(_) | RunError::Stopped(_));
            let mut standing = store.standing();
            if stays && !node.place.alone {
                // Whoever is still on its way has to find enough nodes to hear of it; where one
                // leaves, all have come.
                let (seats, mut most) = (node.place.seats.len() as u32, node.place.quorum);
                let all = standing.wait_for(|now| {
                    most = most.max(now.voters);
                    now.voters >= seats || now.voters < most
                });
                drop(timeout(FAREWELL / 2, all).await);
            }
            // The others need not wait until the session expires.
            drop(tenancy.leave(store).await);
            renewing.abort();
            if stays {
                // And they may need this node's vote.
                let gone = standing.wait_for(|now| now.voters + now.workers == 0);
                drop(timeout(FAREWELL, gone).await);
            }
            return Err(error);
        }
    };
    if let Some(left) = left
        && current(store).await?.number != left.number
    {
        tracing::warn!(
            "the run in `{}` ended without this node, and another has begun since: the files of that \
             run are not complete here, the other nodes have them",
            left.plan.folder
        );
    }
    Ok((tenancy, renewing, plan))
}

fn no_thread(error: &std::io::Error) -> RunError {
    RunError::Internal(format!("no thread for an appender: {error}"))
}

fn open_documents(
    config: &Config,
    replay: Option<&Replaying>,
) -> Result<Option<PageStore>, RunError> {
    let store = &config.store;
    if let Some(Replaying { pages_dir, .. }) = replay {
        let there = pages_dir.join(PAGES_FILE).exists();
        let open = || PageStore::open(Some(pages_dir), u64::MAX);
        return Ok(there.then(open).transpose()?);
    }
    if !store.saves_pages() {
        return Ok(None);
    }
    let dir = Some(store.data_dir.as_path()).filter(|_| store.durability == Durability::Strict);
    Ok(Some(PageStore::open(dir, store.pages_bytes_max)?))
}

/// What jobs are worked on with.
struct Means {
    tasks: Arc<TaskMediator>,
    broken: watch::Receiver<bool>,
    share: Arc<Mutex<Share>>,
    policy: Policy,
}

/// Jobs and tasks under the eye of the monitor, until it says that all is done.
async fn work(
    store: &Arc<dyn Store>,
    tenancy: &Tenancy,
    config: &Config,
    means: Means,
    stop: watch::Receiver<Stop>,
) -> Result<(), RunError> {
    let Means { tasks, broken, share, policy } = means;
    let bounds = Bounds {
        jobs: config.job.take_limit,
        // Sorted output is written at the end alone: it may lag as far as the run goes.
        lag_bytes: match config.output.order {
            OutputOrder::Arrival => config.output.lag_bytes_max,
            OutputOrder::Canonical => u64::MAX,
        },
        drain_time: config.run.shutdown_timeout,
        ahead: if policy.delay_ms > 0 { 0 } else { policy.ahead as usize },
        at_once: policy.slots as usize,
    };
    let (phase, phase_seen) = watch::channel(Phase::Ready);
    let (in_hand, in_hand_seen) = watch::channel(0);
    let monitor =
        Monitor { standing: store.standing(), stop: stop.clone(), in_hand: in_hand_seen, phase };
    let wires = Wires { phase: phase_seen, stop, in_hand, broken, share };
    let jobs = JobMediator::new(Arc::clone(store), tenancy.clone(), tasks, bounds, wires);
    // A task of its own: it is woken with every page, and who runs the runtime is woken by a system
    // call.
    let mut working = JoinSet::new();
    working.spawn(async { tokio::join!(monitor.watch(), jobs.run()).1 });
    match working.join_next().await {
        Some(Ok(worked)) => worked,
        broken => Err(RunError::Internal(format!("work broke off: {broken:?}"))),
    }
}

fn task_mediator(
    plan: &Arc<Plan>,
    replay: Option<&Replaying>,
    place: &Place,
) -> Result<TaskMediator, RunError> {
    let (config, date) = (&plan.config, plan.date.clone());
    let fetch = &config.fetch;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if config.parse.threads == 0 { cores } else { config.parse.threads };
    let pool = Pool::start(threads, config.job.take_limit, Worker::default)
        .map_err(|error| RunError::Internal(format!("no worker threads: {error}")))?;
    let shop = Workshop::of(Arc::clone(plan));
    let pace = Pace::new(fetch.delay);
    let pace = if place.alone {
        pace
    } else {
        // Half of the time in which a job has to end is left for the page.
        pace.with_places(fetch.parallelism).with_patience(config.job.task_timeout / 2)
    };
    Ok(TaskMediator {
        shop: Arc::new(shop),
        pool,
        http: HttpLoader::new(&fetch.http()).map_err(|error| RunError::Internal(error.message))?,
        files: Arc::new(FileLoader {
            resources_dir: fetch.resources_dir.clone(),
            body_max: fetch.body_bytes_max,
        }),
        supply: if replay.is_some() { Supply::Stored } else { Supply::World },
        documents: open_documents(config, replay)?,
        keep_files: config.store.pages_keep == PagesKeep::All,
        patience: Patience { backoff: fetch.retry_backoff, backoff_max: fetch.retry_backoff_max },
        pace,
        date_text: date.0.to_string(),
        date,
        pattern: DatePattern::compile(&config.dates.pattern)
            .map_err(|error| RunError::Internal(error.to_string()))?,
    })
}

async fn close_appenders(
    store: &Arc<dyn Store>,
    appenders: AppenderMediator,
    number: u64,
) -> Result<(Vec<AppendResult>, Run), RunError> {
    let flushed = store.ask(Question::Flush).await;
    let asked = Arc::clone(store);
    let close = move || {
        let mut run = Ok(None);
        let appended = appenders.close(|| {
            run = asked.ask_blocking(Question::Run).map(|answer| match answer {
                Answer::Run(run) => run,
                _ => None,
            });
            run.as_ref().ok().and_then(Option::as_ref).map_or(u64::MAX, |run| run.output_seq)
        });
        (appended, run)
    };
    // Joining threads blocks: off the async threads with it.
    let (mut appended, run) = tokio::task::spawn_blocking(close)
        .await
        .map_err(|error| RunError::Internal(format!("appenders ended: {error}")))?;
    flushed?;
    let run = run?.ok_or_else(|| RunError::Internal("there is no run to tell of".to_owned()))?;
    if current(store).await?.number != number {
        // A node that had no session for a while; the output it wrote from has gone.
        for end in &mut appended {
            end.error.get_or_insert_with(|| {
                format!("`{}` is not complete: another run has begun", end.target)
            });
        }
    }
    Ok((appended, *run))
}

async fn report(
    node: &Node,
    over: bool,
    start: jiff::Timestamp,
    run: Run,
    appended: Vec<AppendResult>,
) -> Result<Report, RunError> {
    let failed = Question::Failed { after: None, limit: FAILURES_SHOWN };
    let failures = match node.store.ask(failed).await? {
        Answer::Failed(failed) => failed,
        _ => Vec::new(),
    };
    let fields = expectations::fields(&run.tally);
    let is_left_to_others = !over && !run.cancelled && are_others_enough(node);
    let end = node.clock.now();
    let finish_reason = match &run.halted {
        _ if over => FinishReason::Finished,
        Some(_) => FinishReason::Halted,
        None => FinishReason::Cancelled,
    };
    Ok(Report {
        finish_reason,
        error: run.halted.filter(|_| !over),
        continued: run.opened.1,
        start,
        end,
        elapsed_seconds: end.duration_since(start).as_secs_f64(),
        pages: Pages {
            fetched: run.tally.fetched,
            from_store: run.tally.stored,
            failed: run.tally.failed,
            skipped: run.tally.skipped,
        },
        http_status: run.tally.statuses,
        retries: run.tally.retries,
        bytes: run.tally.bytes,
        rows: run.tally.rows,
        jobs: Jobs {
            done: run.done,
            failed: run.failed,
            pending: run.known - run.done - run.failed,
        },
        failures: failures
            .into_iter()
            .map(|(_, failed)| Failure {
                name: failed.job.new.name,
                group: failed.job.new.group,
                url: failed.job.new.url,
                reasons: failed.reasons,
            })
            .collect(),
        fields,
        unmet: Vec::new(),
        notes: run.tally.notes,
        replay: None,
        outputs: appended
            .into_iter()
            .map(|end| Output { path: end.target, error: end.error })
            .collect(),
        peak_memory_bytes: peak_memory(),
        node: node.place.seat.0,
        insecure: node.place.exposed,
        share: None,
        is_left_to_others,
    })
}

/// Whether nodes with a vote are there without this one that can go on. Sessions tell of nodes that were
/// there a moment ago, or longer ago where nobody is left to end them.
fn are_others_enough(node: &Node) -> bool {
    let Place { alone, votes, seats, .. } = &node.place;
    let others = node.store.standing().borrow().voters.saturating_sub(u32::from(*votes));
    !alone && others as usize > seats.len() / 2 && node.is_led()
}
