//! The story of a run on one page: join, agree on the definitions, seed, work, watch, close.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spoonbill_defs::Sources;
use spoonbill_plugins::dates::Pattern;
use spoonbill_plugins::loader::LoadError;
use spoonbill_plugins::loader::file::FileLoader;
use spoonbill_plugins::loader::http::HttpLoader;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::append::{AppendOrder, Appended, AppenderMediator};
use crate::barricade::cross;
use crate::bootstrap::{Node, Place};
use crate::compose::{Composed, Published, encode, identity};
use crate::config::{Config, Durability, OutputOrder};
use crate::differ;
use crate::documents::{self, Documents};
use crate::error::RunError;
use crate::failpoint;
use crate::job::{Bounds, JobMediator, Share, Wires};
use crate::ledger::{
    Command, Epoch, OpenMode, Phase, Policy, Publication, Reply, Run, RunPlan, SessionId, Standing,
};
use crate::monitor::Monitor;
use crate::pace::Pace;
use crate::pool::Pool;
use crate::prepare::{Prepared, RunDate, prepare};
use crate::quality;
use crate::report::{Failure, FinishReason, Jobs, NodeShare, Output, Pages, Report, peak_memory};
use crate::seed::{Seeding, seed};
use crate::shutdown::{Signal, Stop};
use crate::steps::{Worker, Workshop};
use crate::store::{Answer, Question, Store, StoreError};
use crate::task::{Patience, Supply, TaskMediator};
use crate::tenancy::Tenancy;

/// How long a node whose set-up failed stays for the others to hear of it.
const FAREWELL: Duration = Duration::from_secs(5);
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
    /// The definitions as composed here, or what is wrong with them, in words.
    pub composed: Result<Composed, String>,
    /// The settings of this node.
    pub config: Config,
    /// Where the definitions lie on this machine, and files beside them.
    pub dir: PathBuf,
}

impl Offer {
    /// Good definitions.
    pub(crate) fn of(composed: Composed) -> Self {
        let (config, dir) = (composed.config.clone(), composed.dir.clone());
        Self { composed: Ok(composed), config, dir }
    }
}

/// A run that has come to its end: everything is written, but it is not closed yet.
pub(crate) struct Ended {
    /// What happened.
    pub report: Report,
    tenancy: Tenancy,
    renewing: JoinHandle<()>,
    whole: bool,
    alone: bool,
    /// The mark beside this node's folder.
    mark: Option<PathBuf>,
}

impl Ended {
    /// Closes the run, if all of it is done, and waits until every node has come so far. This is
    /// the last act, after the report is written: a process that dies before it has its run
    /// continued and ended by the next one, and one that dies after it has left nothing undone.
    pub(crate) async fn close(
        mut self,
        store: &Arc<dyn Store>,
        mut stop: watch::Receiver<Stop>,
    ) -> Result<(), RunError> {
        failpoint::pass("run.close.before");
        stop.mark_unchanged();
        let closed = async {
            if self.whole && self.alone {
                let session = self.tenancy.lease().await?.session;
                // Both are asked for before either is waited for: one commit has both.
                let close = store.submit(Command::Close { session });
                let _left = store.submit(Command::Leave { session });
                close.await?;
                return Ok(());
            }
            if self.whole {
                let mut standing = store.standing();
                let mut tenancy = self.tenancy.clone();
                // Known to be closed is closed, even if there is nobody left to agree with.
                tokio::select! {
                    biased;
                    told = tell_written(store, &mut tenancy) => told?,
                    _ = standing.wait_for(|now| now.closed) => {}
                }
            }
            if let Some(mark) = self.mark.as_ref().filter(|_| self.whole) {
                drop(std::fs::remove_file(mark));
            }
            self.tenancy.leave(store).await
        };
        let closed = tokio::select! {
            closed = closed => closed,
            // Whoever asks twice gets away, the others will not wait for ever.
            Ok(()) = stop.changed() => Ok(()),
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

/// Says that everything is written here, until it is closed everywhere.
async fn tell_written(store: &Arc<dyn Store>, tenancy: &mut Tenancy) -> Result<(), RunError> {
    let mut session = tenancy.lease().await?.session;
    let mut standing = store.standing();
    while !matches!(store.submit(Command::Close { session }).await?, Reply::Ok) {
        if standing.borrow().closed {
            return Ok(());
        }
        session = tenancy.replace(session).await?.session;
    }
    // Nobody tells any more: then nobody waits for us either.
    drop(standing.wait_for(|now| now.closed).await);
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
    let asked = asked_to_stop(node, stop.clone());
    let entered = tokio::select! {
        entered = Tenancy::enter(node) => entered,
        signal = asked => Err(RunError::Stopped(signal)),
    };
    let (mut tenancy, renewing) = entered?;
    let asked = asked_to_stop(node, stop.clone());
    let plan = tokio::select! {
        plan = agree(node, offer, errand, &mut tenancy) => plan,
        signal = asked => Err(RunError::Stopped(signal)),
    };
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            let stays = !matches!(error, RunError::Store(_) | RunError::Stopped(_));
            let mut standing = store.standing();
            if stays && !node.place.alone {
                // Whoever is still on its way has to find enough nodes to hear of it.
                let seats = node.place.seats.len() as u32;
                let all = standing.wait_for(|now| now.voters >= seats);
                drop(tokio::time::timeout(FAREWELL / 2, all).await);
            }
            // The others need not wait until the session expires.
            drop(tenancy.leave(store).await);
            renewing.abort();
            if stays {
                // And they may need this node's vote.
                let gone = standing.wait_for(|now| now.voters + now.workers == 0);
                drop(tokio::time::timeout(FAREWELL, gone).await);
            }
            return Err(error);
        }
    };

    // From here on the numbers that are watched are this run's.
    store.ask(Question::Flush).await?;
    let run = current(store).await?;
    let mut mark = None;
    let appenders = if node.place.votes {
        let folder = own_folder(&plan.config.output.dir, &run.plan.folder, &node.place);
        if errand.replay.is_none() {
            point_latest(&plan.config.output.dir, &folder);
        }
        let own = folder == run.plan.folder && !node.place.alone;
        mark = own.then(|| mark_of(&plan.config.output.dir, &folder));
        start_appenders(store, &plan, &run, &folder)?
    } else {
        AppenderMediator::start(store, Vec::new()).map_err(no_thread)?
    };
    let config = plan.config.clone();
    let expectations = plan.prepared.expectations();
    let tasks = Arc::new(task_mediator(plan, errand.replay.as_ref())?);
    let share = Arc::new(Mutex::new(Share::default()));
    let means = Means { tasks, broken: appenders.broken(), share: Arc::clone(&share) };
    let worked = work(store, &tenancy, &config, means, stop).await;
    let appended = close_appenders(store, appenders).await?;
    worked?;

    let over = store.standing().borrow().over;
    let whole = over && appended.iter().all(|end| end.error.is_none());
    let mut report = report(node, over, start, appended).await?;
    if over {
        report.unmet = quality::unmet(&expectations, &current(store).await?.tally);
    }
    if !node.place.alone {
        let share = share.lock().map(|share| share.clone()).unwrap_or_default();
        report.share = Some(NodeShare::of(&share));
    }
    let (whole, alone) = (whole && node.place.votes, node.place.alone);
    Ok(Ended { report, tenancy, renewing, whole, alone, mark })
}

/// What every node reads back from the store: nobody works from what it composed itself.
struct Agreed {
    published: Published,
    config: Config,
    prepared: Prepared,
    date: RunDate,
}

/// Has the run set up and seeded, by this node or another.
async fn agree(
    node: &Node,
    offer: &Offer,
    errand: &Errand,
    tenancy: &mut Tenancy,
) -> Result<Agreed, RunError> {
    let store = &node.store;
    let Answer::Run(last) = store.ask(Question::Run).await? else {
        return Err(RunError::Internal("the store does not tell its run".to_owned()));
    };
    let is_owed = last.as_ref().is_some_and(|run| run.is_owed(node.place.seat));
    if is_owed && errand.mode == OpenMode::Continue && errand.replay.is_none() {
        // The run ended while this node was away: its files and its end are still to be had here.
        return agreed(store, offer).await;
    }
    gather(node, last.is_some_and(|run| !run.closed)).await?;
    cross(store, tenancy, "setup", async |session, epoch| {
        let composed = offer.composed.as_ref();
        let composed = composed.map_err(|words| RunError::Broken(words.clone()))?;
        open_run(node, session, epoch, composed, errand).await
    })
    .await?;
    let plan = agreed(store, offer).await?;
    if let Ok(composed) = &offer.composed
        && identity(composed) != current(store).await?.plan.identity
    {
        tracing::warn!(
            "the definitions on this node differ from those of the run; it goes by the run's"
        );
    }
    let dir = offer.dir.as_path();
    cross(store, tenancy, "seed", async |session, epoch| {
        seed_once(store, session, epoch, &plan, dir).await
    })
    .await?;
    Ok(plan)
}

/// Waits until enough nodes are there; who comes to a run that is under way need not wait.
async fn gather(node: &Node, under_way: bool) -> Result<(), RunError> {
    if node.place.alone {
        return Ok(());
    }
    let mut standing = node.store.standing();
    let enough = |now: &Standing| {
        now.voters >= node.place.quorum || under_way && now.voters + now.workers > 1
    };
    match tokio::time::timeout(node.place.patience, standing.wait_for(enough)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => Err(StoreError::Closed.into()),
        Err(_) => {
            let there = node.store.standing().borrow().voters;
            Err(StoreError::NoQuorum(format!(
                "the cluster was not formed within {} s: {there} of {} nodes are there, {} are needed",
                node.place.patience.as_secs(),
                node.place.seats.len(),
                node.place.quorum
            ))
            .into())
        }
    }
}

/// Publishes the definitions and settings and opens the run.
async fn open_run(
    node: &Node,
    session: SessionId,
    epoch: Epoch,
    composed: &Composed,
    errand: &Errand,
) -> Result<(), RunError> {
    let (store, mode) = (&node.store, errand.mode);
    let publish = Publication {
        defs: encode(&composed.published),
        config: encode(&composed.config.shared()),
    };
    let config = &composed.config;
    let (take_limit, parallelism) = (config.job.take_limit as u32, config.fetch.parallelism as u32);
    let groups = &composed.published.defs.locator_groups;
    let prepared = prepared(composed)?;
    if mode == OpenMode::Retry {
        check_columns(store, composed, &prepared).await?;
    }
    let (appenders, by_level) = (prepared.appenders.len() as u32, prepared.by_level);
    let wanted = match &errand.replay {
        Some(replay) => replay.folder.clone(),
        None => composed.date.text(&config.output.dir_timestamp_pattern),
    };
    let begins = begins(store, mode).await?;
    failpoint::pass("run.folder.before");
    let folder = if begins { claim_folder(&config.output.dir, &wanted) } else { wanted };
    failpoint::pass("run.folder.after");
    let plan = RunPlan {
        identity: identity(composed),
        defs: *blake3::hash(&publish.defs).as_bytes(),
        config: *blake3::hash(&publish.config).as_bytes(),
        date: composed.date.0.to_string(),
        folder: folder.clone(),
        groups: groups.iter().map(|group| group.name.text.clone()).collect(),
        appenders,
        seats: node.place.seats.clone(),
        by_level,
        sequence: composed.published.defs.start_order(),
        policy: Policy {
            delay_ms: config.fetch.delay.as_millis() as u64,
            slots: parallelism,
            // One lane never fills the node, however parallel its host may be.
            lane_share_max: (take_limit / 4 * 3).max(1),
            attempts_max: config.job.attempts_max,
            session_ttl_ms: config.cluster.session_ttl.as_millis() as u64,
            end_wait_ms: config.cluster.end_wait.as_millis() as u64,
            auto_fence: config.cluster.auto_fence,
            on_error: config.job.on_error,
            ..Policy::default()
        },
    };
    let open = Command::OpenRun { session, epoch, plan, publish: publish.clone(), mode };
    let reply = store.submit(open).await;
    failpoint::pass("run.open.after");
    if begins && !matches!(reply, Ok(Reply::Opened { continued: false })) {
        // There is no run after all; only an empty folder goes.
        drop(std::fs::remove_dir(config.output.dir.join(&folder)));
    }
    match reply? {
        Reply::Opened { .. } => Ok(()),
        Reply::Stale => Err(RunError::Stale),
        Reply::NothingToRetry => Err(RunError::NothingToRetry),
        Reply::NotEnded => Err(RunError::NotEnded),
        Reply::Unfinished { defs, config } => {
            let (defs, config) = (blob(store, defs).await?, blob(store, config).await?);
            Err(RunError::OtherRun(differ::words(&defs, &config, composed, mode)))
        }
        other => Err(RunError::unexpected("run", &other)),
    }
}

fn prepared(composed: &Composed) -> Result<Prepared, RunError> {
    let Composed { published, config, date, .. } = composed;
    prepare(published, config, date, &Sources::default()).map_err(RunError::Problems)
}

/// Rows of a retry go to the files of the run: they have to have the same columns.
async fn check_columns(
    store: &Arc<dyn Store>,
    composed: &Composed,
    prepared: &Prepared,
) -> Result<(), RunError> {
    let Answer::Run(Some(run)) = store.ask(Question::Run).await? else { return Ok(()) };
    let bytes = blob(store, run.plan.defs).await?;
    let Ok(old) = postcard::from_bytes::<Published>(&bytes) else { return Ok(()) };
    let Ok(old) = prepare(&old, &composed.config, &composed.date, &Sources::default()) else {
        return Ok(());
    };
    let changed = prepared.appenders.iter().find(|new| {
        let known = old.appenders.iter().find(|known| known.file.file == new.file.file);
        known.is_none_or(|known| known.header != new.header)
    });
    match changed {
        None => Ok(()),
        Some(spec) => Err(RunError::OtherRun(format!(
            "`{}` has other columns than in the run whose failed jobs are to be tried again; undo \
             that, or begin anew with `spoonbill run`",
            spec.file.file.display()
        ))),
    }
}

/// Whether a new run will begin, which needs a folder, or an old one goes on in its own.
async fn begins(store: &Arc<dyn Store>, mode: OpenMode) -> Result<bool, RunError> {
    let Answer::Run(last) = store.ask(Question::Run).await? else { return Ok(true) };
    let unfinished = last.is_some_and(|run| !run.closed);
    Ok(mode == OpenMode::Fresh || mode == OpenMode::Continue && !unfinished)
}

/// Makes a folder of this run's own: nobody else can have made it. Where none can be made the name
/// stands all the same, and the appenders will tell why.
fn claim_folder(output: &Path, wanted: &str) -> String {
    let made = std::fs::create_dir_all(output);
    let mut name = wanted.to_owned();
    let mut number = 2;
    while made.is_ok() {
        match std::fs::create_dir(output.join(&name)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                name = format!("{wanted}-{number}");
                number += 1;
            }
            Ok(()) | Err(_) => break,
        }
    }
    name
}

async fn agreed(store: &Arc<dyn Store>, offer: &Offer) -> Result<Agreed, RunError> {
    let run = current(store).await?;
    let odd = |what: &str| RunError::Internal(format!("published {what} cannot be read back"));
    let published: Published =
        postcard::from_bytes(&blob(store, run.plan.defs).await?).map_err(|_| odd("definitions"))?;
    let settings: std::collections::BTreeMap<String, String> =
        postcard::from_bytes(&blob(store, run.plan.config).await?).map_err(|_| odd("settings"))?;
    let config = Config::from_map(&settings)
        .and_then(|shared| shared.on_machine_of(&offer.config))
        .map_err(RunError::Problems)?;
    let date = RunDate::parse(&run.plan.date).ok_or_else(|| odd("run date"))?;
    let prepared =
        prepare(&published, &config, &date, &Sources::default()).map_err(RunError::Problems)?;
    Ok(Agreed { published, config, prepared, date })
}

async fn current(store: &Arc<dyn Store>) -> Result<Run, RunError> {
    match store.ask(Question::Run).await? {
        Answer::Run(Some(run)) => Ok(*run),
        other => Err(RunError::Internal(format!("the store has no run: {other:?}"))),
    }
}

async fn blob(store: &Arc<dyn Store>, hash: [u8; 32]) -> Result<Vec<u8>, RunError> {
    match store.ask(Question::Blob(hash)).await? {
        Answer::Blob(Some(bytes)) => Ok(bytes),
        _ => Err(StoreError::Damaged("what the run was opened with is missing".to_owned()).into()),
    }
}

async fn seed_once(
    store: &Arc<dyn Store>,
    session: SessionId,
    epoch: Epoch,
    plan: &Agreed,
    dir: &Path,
) -> Result<(), RunError> {
    let run = current(store).await?;
    if run.seeded.len() < run.plan.groups.len() {
        let seeding = Seeding::new(&plan.published, &plan.prepared, &plan.config, dir);
        seed(store, session, epoch, &plan.published.defs, seeding).await?;
    }
    Ok(())
}

/// The folder of this node's files: that of the run, unless another node of the run writes there
/// already, on the same machine. Until the run is closed, a mark beside the folder names its node.
fn own_folder(output: &Path, folder: &str, place: &Place) -> String {
    if place.alone {
        return folder.to_owned();
    }
    let (mark, own) = (mark_of(output, folder), place.seat.0.to_string());
    let part = output.join(format!(".{folder}.node{own}"));
    let claim = || {
        std::fs::create_dir_all(output)?;
        std::fs::write(&part, &own)?;
        // Whole or not at all, and only if nobody else was first.
        let linked = std::fs::hard_link(&part, &mark);
        std::fs::remove_file(&part)?;
        linked
    };
    let taken = matches!(claim(), Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists);
    let owner =
        if taken { std::fs::read_to_string(&mark).unwrap_or_default() } else { own.clone() };
    // Where nothing can be written, the appenders will tell why.
    if owner == own { folder.to_owned() } else { format!("{folder}-node{own}") }
}

fn mark_of(output: &Path, folder: &str) -> PathBuf {
    output.join(format!(".{folder}.node"))
}

fn no_thread(error: std::io::Error) -> RunError {
    RunError::Internal(format!("no thread for an appender: {error}"))
}

fn start_appenders(
    store: &Arc<dyn Store>,
    plan: &Agreed,
    run: &Run,
    folder: &str,
) -> Result<AppenderMediator, RunError> {
    let output = &plan.config.output;
    let orders = plan.prepared.appenders.iter().zip(&run.positions).zip(0..);
    let orders = orders.map(|((spec, position), number)| AppendOrder {
        number,
        path: spec.file.path(&output.dir, folder),
        header: spec.header.clone(),
        position: *position,
        canonical: output.order == OutputOrder::Canonical,
        durable: plan.config.store.durability == Durability::Strict,
    });
    AppenderMediator::start(store, orders.collect()).map_err(no_thread)
}

/// Makes `latest` point at the folder of this run; a file system without links goes without.
fn point_latest(output: &Path, folder: &str) {
    let (latest, fresh) = (output.join("latest"), output.join(".latest"));
    failpoint::pass("latest.before");
    let made = std::fs::create_dir_all(output)
        .and_then(|()| std::fs::remove_file(&fresh).or(Ok(())))
        .and_then(|()| std::os::unix::fs::symlink(folder, &fresh))
        .and_then(|()| {
            failpoint::pass("latest.linked");
            std::fs::rename(&fresh, &latest)
        });
    failpoint::pass("latest.after");
    if let Err(error) = made {
        tracing::debug!(%error, "`latest` could not be made");
    }
}

fn open_documents(
    config: &Config,
    replay: Option<&Replaying>,
) -> Result<Option<Documents>, RunError> {
    let store = &config.store;
    if let Some(Replaying { pages_dir, .. }) = replay {
        let there = pages_dir.join(documents::FILE).exists();
        let open = || Documents::open(Some(pages_dir), u64::MAX);
        return Ok(there.then(open).transpose()?);
    }
    if !store.persist_pages {
        return Ok(None);
    }
    let dir = Some(store.data_dir.as_path()).filter(|_| store.durability == Durability::Strict);
    Ok(Some(Documents::open(dir, store.pages_bytes_max)?))
}

/// What jobs are worked on with.
struct Means {
    tasks: Arc<TaskMediator>,
    broken: watch::Receiver<bool>,
    share: Arc<Mutex<Share>>,
}

/// Jobs and tasks under the eye of the monitor, until it says that all is done.
async fn work(
    store: &Arc<dyn Store>,
    tenancy: &Tenancy,
    config: &Config,
    means: Means,
    stop: watch::Receiver<Stop>,
) -> Result<(), RunError> {
    let Means { tasks, broken, share } = means;
    let bounds = Bounds {
        jobs: config.job.take_limit,
        // Sorted output is written at the end alone: it may lag as far as the run goes.
        lag_bytes: match config.output.order {
            OutputOrder::Arrival => config.output.lag_bytes_max,
            OutputOrder::Canonical => u64::MAX,
        },
        drain_time: config.run.shutdown_timeout,
    };
    let (phase, phase_seen) = watch::channel(Phase::Ready);
    let (in_hand, in_hand_seen) = watch::channel(0);
    let monitor =
        Monitor { standing: store.standing(), stop: stop.clone(), in_hand: in_hand_seen, phase };
    let wires = Wires { phase: phase_seen, stop, in_hand, broken, share };
    let jobs = JobMediator::new(Arc::clone(store), tenancy.clone(), tasks, bounds, wires);
    let ((), worked) = tokio::join!(monitor.watch(), jobs.run());
    worked
}

fn task_mediator(plan: Agreed, replay: Option<&Replaying>) -> Result<TaskMediator, RunError> {
    let Agreed { config, prepared, date, .. } = plan;
    let fetch = &config.fetch;
    let internal = |what: String| RunError::Internal(what);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if config.parse.threads == 0 { cores } else { config.parse.threads };
    let pool = Pool::start(threads, config.job.take_limit, Worker::default)
        .map_err(|error| internal(format!("no worker threads: {error}")))?;
    let shop = Workshop::of(prepared, &config);
    Ok(TaskMediator {
        shop: Arc::new(shop),
        pool,
        http: HttpLoader::new(&fetch.http()).map_err(|error: LoadError| internal(error.message))?,
        files: Arc::new(FileLoader {
            resources_dir: fetch.resources_dir.clone(),
            body_max: fetch.body_bytes_max,
        }),
        supply: if replay.is_some() { Supply::Stored } else { Supply::World },
        documents: open_documents(&config, replay)?,
        keep_files: config.store.keep_files,
        patience: Patience { backoff: fetch.retry_backoff, backoff_max: fetch.retry_backoff_max },
        pace: Pace::new(fetch.delay),
        date,
        pattern: Pattern::compile(&config.dates.pattern)
            .map_err(|error| internal(error.to_string()))?,
    })
}

async fn close_appenders(
    store: &Arc<dyn Store>,
    appenders: AppenderMediator,
) -> Result<Vec<Appended>, RunError> {
    let flushed = store.ask(Question::Flush).await;
    // Joining threads blocks: off the async threads with it.
    let appended = tokio::task::spawn_blocking(|| appenders.close())
        .await
        .map_err(|error| RunError::Internal(format!("appenders ended: {error}")))?;
    flushed?;
    Ok(appended)
}

async fn report(
    node: &Node,
    over: bool,
    start: jiff::Timestamp,
    appended: Vec<Appended>,
) -> Result<Report, RunError> {
    let run = current(&node.store).await?;
    let failed = Question::Failed { after: None, limit: FAILURES_SHOWN };
    let failures = match node.store.ask(failed).await? {
        Answer::Failed(failed) => failed,
        _ => Vec::new(),
    };
    let taken = node.store.standing().borrow().taken;
    let fields = quality::fields(&run.tally);
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
        jobs: Jobs { done: run.done, failed: run.failed, pending: run.pending + taken },
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
            .map(|end| Output { path: end.path.display().to_string(), error: end.error })
            .collect(),
        peak_memory_bytes: peak_memory(),
        node: node.place.seat.0,
        share: None,
    })
}
