//! The story of a run on one page: join, agree on the definitions, seed, work, watch, close.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spoonbill_defs::Sources;
use spoonbill_plugins::dates::Pattern;
use spoonbill_plugins::loader::LoadError;
use spoonbill_plugins::loader::file::FileLoader;
use spoonbill_plugins::loader::http::HttpLoader;
use tokio::sync::watch;

use crate::append::{AppendOrder, Appended, AppenderMediator};
use crate::barricade::cross;
use crate::bootstrap::Node;
use crate::compose::{Composed, Published, encode, identity};
use crate::config::{Config, Durability, OutputOrder};
use crate::differ;
use crate::documents::{self, Documents};
use crate::error::RunError;
use crate::failpoint;
use crate::job::{Bounds, JobMediator, Wires};
use crate::ledger::{
    Command, Epoch, OpenMode, Phase, Policy, Publication, Reply, Run, RunPlan, SessionId,
};
use crate::monitor::Monitor;
use crate::pool::Pool;
use crate::prepare::{Prepared, RunDate, prepare};
use crate::quality;
use crate::report::{Failure, FinishReason, Jobs, Output, Pages, Report, peak_memory};
use crate::seed::{Seeding, seed};
use crate::shutdown::Stop;
use crate::steps::{Worker, Workshop};
use crate::store::{Answer, Question, Store, StoreError};
use crate::task::{Patience, Supply, TaskMediator};

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

/// A run that has come to its end: everything is written, but it is not closed yet.
#[derive(Debug)]
pub(crate) struct Ended {
    /// What happened.
    pub report: Report,
    session: SessionId,
    whole: bool,
}

impl Ended {
    /// Closes the run, if all of it is done. This is the last act, after the report is written: a
    /// process that dies before it has its run continued and ended by the next one, and one that
    /// dies after it has left nothing undone.
    pub(crate) async fn close(&self, store: &Arc<dyn Store>) -> Result<(), RunError> {
        let session = self.session;
        failpoint::pass("run.close.before");
        // Both are asked for before either is waited for: one commit has both.
        let close = self.whole.then(|| store.submit(Command::Close { session }));
        let leave = store.submit(Command::Leave { session });
        if let Some(close) = close {
            close.await?;
        }
        leave.await?;
        Ok(())
    }
}

/// Runs composed definitions on a wired node until the work is over or `stop` ends it.
pub(crate) async fn run(
    node: &Node,
    composed: &Composed,
    errand: &Errand,
    stop: watch::Receiver<Stop>,
) -> Result<Ended, RunError> {
    let start = node.clock.now();
    let store = &node.store;
    let session = join(node).await?;

    let mut continued = false;
    let opened = &mut continued;
    cross(store, session, "setup", |epoch| async move {
        *opened = open_run(store, session, epoch, composed, errand).await?;
        Ok(())
    })
    .await?;
    let plan = agreed(store).await?;

    let dir = composed.dir.as_path();
    cross(store, session, "seed", |epoch| seed_once(store, session, epoch, &plan, dir)).await?;

    // From here on the numbers that are watched are this run's.
    store.ask(Question::Flush).await?;
    let run = current(store).await?;
    let appenders = start_appenders(store, &plan, &run)?;
    if errand.replay.is_none() {
        point_latest(&plan.config.output.dir, &run.plan.folder);
    }
    let config = plan.config.clone();
    let expectations = plan.prepared.expectations();
    let tasks = Arc::new(task_mediator(plan, errand.replay.as_ref())?);
    let broken = appenders.broken();
    let worked = work(store, session, &config, tasks, stop, broken).await;
    let appended = close_appenders(store, appenders).await?;
    worked?;

    let over = store.standing().borrow().over;
    let whole = over && appended.iter().all(|end| end.error.is_none());
    let reason = if over { FinishReason::Finished } else { FinishReason::Cancelled };
    let mut report = report(node, reason, continued, start, appended).await?;
    if over {
        report.unmet = quality::unmet(&expectations, &current(store).await?.tally);
    }
    Ok(Ended { report, session, whole })
}

/// What every node reads back from the store: nobody works from what it composed itself.
struct Agreed {
    published: Published,
    config: Config,
    prepared: Prepared,
    date: RunDate,
}

async fn join(node: &Node) -> Result<SessionId, RunError> {
    let nonce = node.clock.now().as_nanosecond() as u64 ^ (u64::from(std::process::id()) << 32);
    match node.store.submit(Command::Join { nonce, alone: node.alone }).await? {
        Reply::Joined(session) => Ok(session),
        other => Err(RunError::unexpected("join", &other)),
    }
}

/// Publishes the definitions and settings and opens the run; tells whether it goes on with one.
async fn open_run(
    store: &Arc<dyn Store>,
    session: SessionId,
    epoch: Epoch,
    composed: &Composed,
    errand: &Errand,
) -> Result<bool, RunError> {
    let mode = errand.mode;
    let publish = Publication {
        defs: encode(&composed.published),
        config: encode(&composed.config.to_map()),
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
        by_level,
        policy: Policy {
            delay_ms: config.fetch.delay.as_millis() as u64,
            slots: parallelism,
            // One lane never fills the node, however parallel its host may be.
            lane_share_max: (take_limit / 4 * 3).max(1),
            attempts_max: config.job.attempts_max,
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
        Reply::Opened { continued } => Ok(continued),
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

async fn agreed(store: &Arc<dyn Store>) -> Result<Agreed, RunError> {
    let run = current(store).await?;
    let odd = |what: &str| RunError::Internal(format!("published {what} cannot be read back"));
    let published: Published =
        postcard::from_bytes(&blob(store, run.plan.defs).await?).map_err(|_| odd("definitions"))?;
    let settings: std::collections::BTreeMap<String, String> =
        postcard::from_bytes(&blob(store, run.plan.config).await?).map_err(|_| odd("settings"))?;
    let config = Config::from_map(&settings).map_err(RunError::Problems)?;
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

fn start_appenders(
    store: &Arc<dyn Store>,
    plan: &Agreed,
    run: &Run,
) -> Result<AppenderMediator, RunError> {
    let output = &plan.config.output;
    let orders = plan.prepared.appenders.iter().zip(&run.positions).zip(0..);
    let orders = orders.map(|((spec, position), number)| AppendOrder {
        number,
        path: spec.file.path(&output.dir, &run.plan.folder),
        header: spec.header.clone(),
        position: *position,
        canonical: output.order == OutputOrder::Canonical,
        durable: plan.config.store.durability == Durability::Strict,
    });
    let started = AppenderMediator::start(store, orders.collect());
    started.map_err(|error| RunError::Internal(format!("no thread for an appender: {error}")))
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

/// Jobs and tasks under the eye of the monitor, until it says that all is done.
async fn work(
    store: &Arc<dyn Store>,
    session: SessionId,
    config: &Config,
    tasks: Arc<TaskMediator>,
    stop: watch::Receiver<Stop>,
    broken: watch::Receiver<bool>,
) -> Result<(), RunError> {
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
    let wires = Wires { phase: phase_seen, stop, in_hand, broken };
    let jobs = JobMediator::new(Arc::clone(store), session, tasks, bounds, wires);
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
    finish_reason: FinishReason,
    continued: bool,
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
    Ok(Report {
        finish_reason,
        error: None,
        continued,
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
        node: 1,
    })
}
