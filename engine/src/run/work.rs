//! Working: jobs, pages and threads of one node, until the monitor ends the work.

use std::sync::{Arc, Mutex};

use spoonbill_plugins::dates::DatePattern;
use spoonbill_plugins::loader::file::FileLoader;
use spoonbill_plugins::loader::http::HttpLoader;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::bootstrap::Node;
use crate::config::{Config, Durability, OutputOrder, PagesKeep};
use crate::error::RunError;
use crate::ledger::{Phase, Policy};
use crate::pages::{PAGES_FILE, PageStore};
use crate::plan::prepare::Plan;
use crate::run::jobs::{JobChannels, JobMediator};
use crate::run::monitor::Monitor;
use crate::run::pace::Pace;
use crate::run::pages::{Patience, Supply, TaskMediator};
use crate::run::request::ReplaySource;
use crate::run::session::NodeSession;
use crate::run::shutdown::Stop;
use crate::run::takes::TakeLimits;
use crate::run::totals::NodeTotals;
use crate::steps::{PageWorker, Worker};
use crate::threads::pool::Pool;

/// A node that is ready to work.
pub(crate) struct Work {
    tasks: Arc<TaskMediator>,
    limits: TakeLimits,
    totals: Arc<Mutex<NodeTotals>>,
}

impl Work {
    /// Starts the threads and loaders of a plan.
    pub(crate) fn new(
        node: &Node,
        plan: &Arc<Plan>,
        policy: Policy,
        replay: Option<&ReplaySource>,
    ) -> Result<Self, RunError> {
        let config = &plan.config;
        let limits = TakeLimits {
            jobs: config.job.take_limit,
            // Sorted output is written at the end, so all of it may lag behind until then.
            lag_bytes: match config.output.order {
                OutputOrder::Arrival => config.output.lag_bytes_max,
                OutputOrder::Canonical => u64::MAX,
            },
            ahead: if policy.delay_ms > 0 { 0 } else { policy.ahead as usize },
            at_once: policy.slots as usize,
        };
        let tasks = Arc::new(task_mediator(node, plan, replay)?);
        Ok(Self { tasks, limits, totals: Arc::default() })
    }

    /// The totals of this node until now.
    pub(crate) fn totals(&self) -> NodeTotals {
        self.totals.lock().map(|totals| totals.clone()).unwrap_or_default()
    }

    /// Takes jobs and works on them until the run is over, cancelled or stopped. `broken` is set when an
    /// appender has failed.
    pub(crate) async fn run(
        &self,
        node: &Node,
        session: &NodeSession,
        config: &Config,
        broken: watch::Receiver<bool>,
        stop: watch::Receiver<Stop>,
    ) -> Result<(), RunError> {
        let (phase, phase_seen) = watch::channel(Phase::Ready);
        let (in_flight, in_flight_seen) = watch::channel(0);
        let monitor = Monitor {
            standing: node.store.standing(),
            stop: stop.clone(),
            in_flight: in_flight_seen,
            phase,
        };
        let totals = Arc::clone(&self.totals);
        let channels = JobChannels { phase: phase_seen, stop, in_flight, broken, totals };
        let (store, tasks) = (Arc::clone(&node.store), Arc::clone(&self.tasks));
        let drain_time = config.run.shutdown_timeout;
        let jobs =
            JobMediator::new(store, session.clone(), tasks, self.limits, drain_time, channels);
        // A separate task, because each page wakes it: waking the thread that blocks on the runtime takes a
        // system call.
        let mut working = JoinSet::new();
        working.spawn(async { tokio::join!(monitor.watch(), jobs.run()).1 });
        match working.join_next().await {
            Some(Ok(worked)) => worked,
            broken => Err(RunError::Internal(format!("work broke off: {broken:?}"))),
        }
    }
}

fn task_mediator(
    node: &Node,
    plan: &Arc<Plan>,
    replay: Option<&ReplaySource>,
) -> Result<TaskMediator, RunError> {
    let (config, date) = (&plan.config, plan.date.clone());
    let fetch = &config.fetch;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if config.parse.threads == 0 { cores } else { config.parse.threads };
    let pool = Pool::start(threads, config.job.take_limit, Worker::default)
        .map_err(|error| RunError::Internal(format!("no worker threads: {error}")))?;
    let pace = Pace::new(fetch.delay);
    let pace = if node.member.ahead_max == 0 {
        pace
    } else {
        // Jobs granted ahead of their turn wait here. Half of the time in which a job has to end is left
        // for the page.
        pace.with_places(fetch.parallelism).with_patience(config.job.task_timeout / 2)
    };
    Ok(TaskMediator {
        page_worker: Arc::new(PageWorker::of(Arc::clone(plan))),
        pool,
        http: HttpLoader::new(&fetch.http()).map_err(|error| RunError::Internal(error.message))?,
        files: Arc::new(FileLoader {
            resources_dir: fetch.resources_dir.clone(),
            body_max: fetch.body_bytes_max,
        }),
        supply: if replay.is_some() { Supply::Stored } else { Supply::World },
        documents: open_page_store(config, replay)?,
        keep_files: config.store.pages_keep == PagesKeep::All,
        patience: Patience { backoff: fetch.retry_backoff, backoff_max: fetch.retry_backoff_max },
        pace,
        date_text: date.0.to_string(),
        date,
        pattern: DatePattern::compile(&config.dates.pattern)
            .map_err(|error| RunError::Internal(error.to_string()))?,
    })
}

fn open_page_store(
    config: &Config,
    replay: Option<&ReplaySource>,
) -> Result<Option<PageStore>, RunError> {
    let store = &config.store;
    if let Some(ReplaySource { pages_dir, .. }) = replay {
        let is_there = pages_dir.join(PAGES_FILE).exists();
        let open = || PageStore::open(Some(pages_dir), u64::MAX);
        return Ok(is_there.then(open).transpose()?);
    }
    if !store.saves_pages() {
        return Ok(None);
    }
    let dir = Some(store.data_dir.as_path()).filter(|_| store.durability == Durability::Strict);
    Ok(Some(PageStore::open(dir, store.pages_bytes_max)?))
}
