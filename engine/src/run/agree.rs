//! Agreeing: enough nodes gather, one of them opens the run, and all read back what it published.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use spoonbill_defs::Sources;
use tokio::sync::watch;

use crate::bootstrap::Node;
use crate::error::RunError;
use crate::failpoint;
use crate::ledger::{
    Command, Epoch, OpenMode, Policy, Publication, Reply, Run, RunPlan, SessionId, Standing,
};
use crate::plan::changes;
use crate::plan::identity::identity;
use crate::plan::load::Definitions;
use crate::plan::prepare::{Plan, RunDate, prepare};
use crate::plan::publish::{PublishedPlan, encode};
use crate::run::barricade::Barricades;
use crate::run::current::{blob, current_run, last_run};
use crate::run::folder;
use crate::run::join::{FirstStep, Joined};
use crate::run::request::{LocalSetup, RunRequest};
use crate::store::{Store, StoreError};
use crate::threads::ignore::ignore_leftover;
use crate::threads::pause::pause;

/// Pause before a run is opened again that had to wait for a node which completes its files.
const OPEN_RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Takes the first step of a node that has joined; returns the plan of the run it works on.
pub(crate) async fn agree(
    node: &Node,
    setup: &LocalSetup,
    request: &RunRequest,
    joined: &mut Joined,
    barricades: &mut Barricades<'_>,
) -> Result<Arc<Plan>, RunError> {
    let store = &node.store;
    if joined.step == FirstStep::CompleteRun {
        if joined.holds_last_run(node).await? {
            if node.member.votes && node.member.has_peers() {
                warn_of_completion(request.mode);
            }
            return published_plan(store, setup).await;
        }
        joined.step = FirstStep::after_another_run(request.mode);
    }
    match joined.step {
        FirstStep::CompleteRun => {}
        FirstStep::HasEnded(code) => return Err(StoreError::Ended(code).into()),
        FirstStep::NothingToComplete => return Err(RunError::NothingToComplete),
        FirstStep::AwaitCompletion => {
            joined.await_completion(node).await?;
            return Err(RunError::NothingToComplete);
        }
        FirstStep::Gather { is_under_way, leaves_with_voters } => tokio::select! {
            gathered = gather(node, barricades, is_under_way) => gathered?,
            () = voters_leave(store.standing()), if leaves_with_voters => {
                return Err(StoreError::Ended(0).into());
            }
        },
    }
    let set_up = barricades.cross("setup", async |session, epoch| {
        let definitions = setup.definitions.as_ref();
        let definitions = definitions.map_err(|words| RunError::Broken(words.clone()))?;
        open_run(node, session, epoch, &definitions.plan, request).await.map(|()| Vec::new())
    });
    set_up.await?;
    let plan = published_plan(store, setup).await?;
    if node.member.has_peers() {
        warn_of_differences(setup, request, &current_run(store).await?);
    }
    joined.report_missed_run(store).await?;
    Ok(plan)
}

fn warn_of_completion(mode: OpenMode) {
    let next = match mode {
        OpenMode::Complete => "",
        _ => "; start it again to take part in the next run",
    };
    tracing::warn!(
        "the last run ended without this node: it completes the files of that run now{next}"
    );
}

/// Waits until the connected nodes with a vote have left: they had ended the run, and no node has come
/// for the next one.
async fn voters_leave(mut standing: watch::Receiver<Standing>) {
    let came = standing.wait_for(|now| now.voters > 0).await.is_ok();
    if !came || standing.wait_for(|now| now.voters == 0).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Warns if this node was started with other definitions or options than the node that opened the run.
fn warn_of_differences(setup: &LocalSetup, request: &RunRequest, run: &Run) {
    match &setup.definitions {
        Ok(own) if identity(&own.plan) == run.plan.identity => {}
        Ok(_) => tracing::warn!(
            "the definitions on this node, or settings that decide the rows, differ from those of the run; \
             this node uses those of the run"
        ),
        Err(_) => tracing::warn!(
            "the definitions on this node are invalid; it uses those of the run, which another node has \
             opened"
        ),
    }
    if request.mode == OpenMode::Fresh && run.opened.1 {
        tracing::warn!(
            "the node that opened the run continues the unfinished one: give `--fresh` on all nodes"
        );
    }
}

/// Waits until enough nodes are connected. A node that comes to an unfinished run needs one other.
async fn gather(
    node: &Node,
    barricades: &mut Barricades<'_>,
    is_under_way: bool,
) -> Result<(), RunError> {
    let mut standing = node.store.standing();
    let gathered = async {
        loop {
            let now = *standing.borrow_and_update();
            let is_enough =
                now.voters >= node.member.quorum || is_under_way && now.voters + now.workers > 1;
            // They may have come, failed and left before this node saw them.
            if is_enough || barricades.is_crossed("setup").await? {
                return Ok(());
            }
            standing.changed().await.map_err(|_| StoreError::Closed)?;
        }
    };
    let Some(limit) = node.member.join_timeout else { return gathered.await };
    if let Ok(gathered) = tokio::time::timeout(limit, gathered).await {
        return gathered;
    }
    let connected = node.store.standing().borrow().voters;
    Err(StoreError::NoQuorum(format!(
        "the cluster was not formed within {} s: {connected} of {} nodes are connected, {} are needed; {}",
        limit.as_secs(),
        node.member.seats.len(),
        node.member.quorum,
        node.absent()
    ))
    .into())
}

/// Publishes the definitions and settings and opens the run.
async fn open_run(
    node: &Node,
    session: SessionId,
    epoch: Epoch,
    own: &Plan,
    request: &RunRequest,
) -> Result<(), RunError> {
    let (store, mode) = (&node.store, request.mode);
    let publish =
        Publication { defs: encode(&*own.published), config: encode(&own.config.shared()) };
    let config = &own.config;
    let (take_limit, parallelism) = (config.job.take_limit as u32, config.fetch.parallelism as u32);
    let groups = &own.published.defs.locator_groups;
    if mode == OpenMode::Retry {
        check_columns(store, own).await?;
    }
    let wanted = match &request.replay {
        Some(replay) => replay.folder.clone(),
        None => own.date.text(&config.output.dir_timestamp_pattern),
    };
    let begins = begins(store, mode).await?;
    failpoint::pass("run.folder.before");
    let folder = if begins { folder::make(&config.output.dir, &wanted) } else { wanted };
    failpoint::pass("run.folder.after");
    let plan = RunPlan {
        identity: identity(own),
        defs: *blake3::hash(&publish.defs).as_bytes(),
        config: *blake3::hash(&publish.config).as_bytes(),
        date: own.date.0.to_string(),
        folder: folder.clone(),
        groups: groups.iter().map(|group| group.name.text.clone()).collect(),
        appenders: own.appenders.len() as u32,
        seats: node.member.seats.clone(),
        by_level: own.by_level,
        sequence: own.published.defs.start_order(),
        policy: Policy {
            delay_ms: config.fetch.delay.as_millis() as u64,
            slots: parallelism,
            ahead: parallelism.saturating_mul(2).min(node.member.ahead_max),
            // One host never takes all places of a node, however many requests it allows at a time.
            lane_share_max: (take_limit / 4 * 3).max(1),
            attempts_max: config.job.attempts_max,
            session_ttl_ms: config.cluster.session_ttl.as_millis() as u64,
            task_timeout_ms: config.job.task_timeout.as_millis() as u64,
            end_wait_ms: config.cluster.end_wait.as_millis() as u64,
            auto_fence: config.cluster.auto_fence,
            on_error: config.job.on_error,
            ..Policy::default()
        },
    };
    let open = Command::OpenRun { session, epoch, plan, publish: publish.clone(), mode };
    let reply = submit_when_possible(store, open).await;
    failpoint::pass("run.open.after");
    if begins && !matches!(reply, Ok(Reply::Opened { continued: false })) {
        // No run was opened. The call removes the folder only if it is empty.
        ignore_leftover(std::fs::remove_dir(config.output.dir.join(&folder)));
    }
    match reply? {
        Reply::Opened { .. } => Ok(()),
        Reply::Stale => Err(RunError::Stale),
        Reply::NothingToRetry if mode == OpenMode::Complete => Err(RunError::NothingToComplete),
        Reply::NothingToRetry => Err(RunError::NothingToRetry),
        Reply::NotEnded => Err(RunError::NotEnded),
        Reply::Unfinished { defs, config } => {
            let (defs, config) = (blob(store, defs).await?, blob(store, config).await?);
            Err(RunError::OtherRun(changes::explain(&defs, &config, own, mode)))
        }
        other => Err(RunError::unexpected("run", &other)),
    }
}

/// Opens a run. Waits while another node may complete its files of the last one.
async fn submit_when_possible(store: &Arc<dyn Store>, open: Command) -> Result<Reply, StoreError> {
    let mut has_reported = false;
    loop {
        let reply = store.submit(open.clone()).await?;
        if !matches!(reply, Reply::Wait) {
            return Ok(reply);
        }
        if !std::mem::replace(&mut has_reported, true) {
            tracing::warn!(
                "the last run ended without a node: if that node comes back, it completes its files \
                 before the next run begins"
            );
        }
        pause(OPEN_RETRY_INTERVAL).await;
    }
}

/// Checks that a retry writes the columns of the run, because its rows go to the same files.
async fn check_columns(store: &Arc<dyn Store>, own: &Plan) -> Result<(), RunError> {
    let Some(run) = last_run(store).await? else { return Ok(()) };
    let bytes = blob(store, run.plan.defs).await?;
    let Ok(old) = postcard::from_bytes::<PublishedPlan>(&bytes) else { return Ok(()) };
    let Ok((old, _)) = prepare(&Arc::new(old), &own.config, &own.date, &Sources::default()) else {
        return Ok(());
    };
    let changed = own.appenders.iter().find(|new| {
        let known = old.appenders.iter().find(|known| known.target.name() == new.target.name());
        known.is_none_or(|known| known.header != new.header)
    });
    match changed {
        None => Ok(()),
        Some(spec) => Err(RunError::OtherRun(format!(
            "`{}` has other columns than in the run to be retried: undo that change, or start a new \
             run with `spoonbill run`",
            spec.target.name()
        ))),
    }
}

/// Whether a new run will begin, which needs a folder. A continued run has one.
async fn begins(store: &Arc<dyn Store>, mode: OpenMode) -> Result<bool, RunError> {
    let is_unfinished = last_run(store).await?.is_some_and(|run| !run.closed);
    Ok(mode == OpenMode::Fresh || mode == OpenMode::Continue && !is_unfinished)
}

/// The plan that was published. A node compiles it only if its own definitions, settings or date differ.
async fn published_plan(store: &Arc<dyn Store>, setup: &LocalSetup) -> Result<Arc<Plan>, RunError> {
    let run = current_run(store).await?;
    let odd = |what: &str| RunError::Internal(format!("published {what} cannot be read back"));
    let defs = blob(store, run.plan.defs).await?;
    let settings: BTreeMap<String, String> =
        postcard::from_bytes(&blob(store, run.plan.config).await?).map_err(|_| odd("settings"))?;
    let config = setup.config.with_published(settings).map_err(RunError::Problems)?;
    let date = RunDate::parse(&run.plan.date).ok_or_else(|| odd("run date"))?;
    if let Ok(Definitions { plan, .. }) = &setup.definitions
        && encode(&*plan.published) == defs
        && plan.config.to_map() == config.to_map()
        && plan.date == date
    {
        return Ok(Arc::clone(plan));
    }
    let published: PublishedPlan = postcard::from_bytes(&defs).map_err(|_| odd("definitions"))?;
    let (plan, _) = prepare(&Arc::new(published), &config, &date, &Sources::default())
        .map_err(RunError::Problems)?;
    Ok(Arc::new(plan))
}
