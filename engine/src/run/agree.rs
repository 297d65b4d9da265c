//! How the nodes of a run agree: enough of them come together, one sets the run up and one seeds it,
//! and all read back what was published.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use spoonbill_defs::Sources;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::bootstrap::{Node, Place};
use crate::error::RunError;
use crate::failpoint;
use crate::ledger::{
    Command, Epoch, OpenMode, Policy, Publication, Reply, Run, RunPlan, SessionId, Standing,
    completion,
};
use crate::plan::changes;
use crate::plan::identity::identity;
use crate::plan::load::Definitions;
use crate::plan::prepare::{Plan, RunDate, prepare};
use crate::plan::publish::{PublishedPlan, encode};
use crate::run::barricade::Barricades;
use crate::run::seed::{Seeding, seed};
use crate::run::session::Tenancy;
use crate::run::{Errand, Offer, folder};
use crate::store::{Answer, Question, Store, StoreError};

/// Pause before what has to wait for a node that completes its files is asked for again.
const COMPLETION_LOOK: Duration = Duration::from_millis(200);
/// Jobs of one host that a node of a cluster gets ahead at most.
const AHEAD_MAX: u32 = 32;

/// What a node knew before it was in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    /// The exit code of the process before this one, if that was killed in its last moments: the
    /// others may have ended its run.
    pub parting: Option<u8>,
    /// The run that it came to, and that may have ended meanwhile.
    pub came_for: Option<u64>,
}

/// Has the run set up and seeded, by this node or another.
pub(crate) async fn agree(
    node: &Node,
    offer: &Offer,
    errand: &Errand,
    tenancy: &mut Tenancy,
    before: Before,
) -> Result<Arc<Plan>, RunError> {
    let store = &node.store;
    let Answer::Run(last) = store.ask(Question::Run).await? else {
        return Err(RunError::Internal("the store does not tell its run".to_owned()));
    };
    let is_owed = last.as_ref().is_some_and(|run| run.lacks_end_report(node.place.seat));
    let has_missed = |run: &Run| run.closed && Some(run.number) == before.came_for;
    let is_owed = is_owed || last.as_ref().is_some_and(|run| has_missed(run));
    let completes = is_owed && errand.mode == OpenMode::Continue && errand.replay.is_none();
    if let Some(run) = last.as_ref().filter(|_| completes) {
        // The run ended while this node was away: its files and its end are still to be had here.
        if !node.place.votes || node.place.alone {
            return agreed(store, offer).await;
        }
        if keep_the_next_away(node, tenancy, run).await? {
            tracing::warn!(
                "the last run ended without this node: it completes the files of that run now, and has \
                 to be started again to take part in the next one"
            );
            return agreed(store, offer).await;
        }
    }
    if let Some(code) = before.parting.filter(|_| !is_owed)
        && last.as_ref().is_some_and(|run| run.closed)
    {
        return Err(StoreError::Ended(code).into());
    }
    let mut barricades = Barricades::before(node, tenancy);
    let has_ended = last.as_ref().is_some_and(|run| run.closed);
    tokio::select! {
        gathered = gather(node, &mut barricades, last.is_some() && !has_ended) => gathered?,
        () = voters_leave(store.standing()), if has_ended && !node.place.votes => {
            return Err(StoreError::Ended(0).into());
        }
    }
    let set_up = barricades.cross("setup", async |session, epoch| {
        let definitions = offer.definitions.as_ref();
        let definitions = definitions.map_err(|words| RunError::Broken(words.clone()))?;
        open_run(node, session, epoch, &definitions.plan, errand).await.map(|()| Vec::new())
    });
    set_up.await?;
    let plan = agreed(store, offer).await?;
    if !node.place.alone {
        warn_of_differences(offer, errand, &current(store).await?);
    }
    let dir = offer.dir.as_path();
    let seeded = barricades
        .cross("seed", async |session, epoch| seed_once(store, session, epoch, &plan, dir).await);
    seeded.await?;
    barricades.leave().await?;
    Ok(plan)
}

/// The last run that a node which writes files among others knows of, if it had not written all of it.
pub(crate) async fn left_behind(
    node: &Node,
    errand: &Errand,
    parting: Option<u8>,
) -> Result<Option<Run>, RunError> {
    let Place { votes, alone, seat, .. } = &node.place;
    if !votes || *alone || errand.mode == OpenMode::Fresh || parting.is_some() {
        return Ok(None);
    }
    match node.store.ask(Question::Run).await? {
        Answer::Run(Some(run)) if !run.written.contains(seat) => Ok(Some(*run)),
        _ => Ok(None),
    }
}

/// Has no other run begin while this node completes its files of the last one; false if that has gone.
async fn keep_the_next_away(
    node: &Node,
    tenancy: &mut Tenancy,
    last: &Run,
) -> Result<bool, RunError> {
    let name = completion(node.place.seat);
    let mut session = tenancy.lease().await?.session;
    loop {
        let claim = Command::Claim { session, name: name.clone() };
        match node.store.submit(claim).await? {
            Reply::Cross(_) => break,
            Reply::Stale => session = tenancy.replace(session).await?.session,
            // A session before this one has it until it is over.
            Reply::Wait => sleep_until(Instant::now() + COMPLETION_LOOK).await,
            other => return Err(RunError::unexpected("claim", &other)),
        }
    }
    Ok(current(&node.store).await?.number == last.number)
}

/// Waits until those with a vote who are there have left: they had ended the run, and nobody has come
/// for the next one.
async fn voters_leave(mut standing: watch::Receiver<Standing>) {
    let came = standing.wait_for(|now| now.voters > 0).await.is_ok();
    if !came || standing.wait_for(|now| now.voters == 0).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Says where this node was told otherwise than the one that set the run up.
fn warn_of_differences(offer: &Offer, errand: &Errand, run: &Run) {
    match &offer.definitions {
        Ok(own) if identity(&own.plan) == run.plan.identity => {}
        Ok(_) => tracing::warn!(
            "the definitions on this node, or settings that decide the rows, differ from those of the run; \
             it goes by the run's"
        ),
        Err(_) => tracing::warn!(
            "the definitions on this node cannot be used; it goes by those of the run, which another node \
             has set up"
        ),
    }
    if errand.mode == OpenMode::Fresh && run.opened.1 {
        tracing::warn!(
            "the node that set up the run goes on with the unfinished one: `--fresh` has to be given on \
             all nodes"
        );
    }
}

/// Waits until enough nodes are there; who comes to a run that is under way need not wait.
async fn gather(
    node: &Node,
    barricades: &mut Barricades<'_>,
    under_way: bool,
) -> Result<(), RunError> {
    if node.place.alone {
        return Ok(());
    }
    let mut standing = node.store.standing();
    let enough = |now: &Standing| {
        now.voters >= node.place.quorum || under_way && now.voters + now.workers > 1
    };
    let gathered = async {
        loop {
            let has_come = enough(&standing.borrow_and_update());
            // They may have come, failed and gone before this node saw them.
            if has_come || barricades.is_crossed("setup").await? {
                return Ok(());
            }
            standing.changed().await.map_err(|_| StoreError::Closed)?;
        }
    };
    if let Ok(gathered) = tokio::time::timeout(node.place.patience, gathered).await {
        return gathered;
    }
    let there = node.store.standing().borrow().voters;
    Err(StoreError::NoQuorum(format!(
        "the cluster was not formed within {} s: {there} of {} nodes are there, {} are needed; {}",
        node.place.patience.as_secs(),
        node.place.seats.len(),
        node.place.quorum,
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
    errand: &Errand,
) -> Result<(), RunError> {
    let (store, mode) = (&node.store, errand.mode);
    let publish =
        Publication { defs: encode(&*own.published), config: encode(&own.config.shared()) };
    let config = &own.config;
    let (take_limit, parallelism) = (config.job.take_limit as u32, config.fetch.parallelism as u32);
    let groups = &own.published.defs.locator_groups;
    if mode == OpenMode::Retry {
        check_columns(store, own).await?;
    }
    let wanted = match &errand.replay {
        Some(replay) => replay.folder.clone(),
        None => own.date.text(&config.output.dir_timestamp_pattern),
    };
    let begins = begins(store, mode).await?;
    failpoint::pass("run.folder.before");
    let folder = if begins { folder::claim(&config.output.dir, &wanted) } else { wanted };
    failpoint::pass("run.folder.after");
    let plan = RunPlan {
        identity: identity(own),
        defs: *blake3::hash(&publish.defs).as_bytes(),
        config: *blake3::hash(&publish.config).as_bytes(),
        date: own.date.0.to_string(),
        folder: folder.clone(),
        groups: groups.iter().map(|group| group.name.text.clone()).collect(),
        appenders: own.appenders.len() as u32,
        seats: node.place.seats.clone(),
        by_level: own.by_level,
        sequence: own.published.defs.start_order(),
        policy: Policy {
            delay_ms: config.fetch.delay.as_millis() as u64,
            slots: parallelism,
            ahead: if node.place.alone { 0 } else { parallelism.saturating_mul(2).min(AHEAD_MAX) },
            // One lane never fills the node, however parallel its host may be.
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
            Err(RunError::OtherRun(changes::explain(&defs, &config, own, mode)))
        }
        other => Err(RunError::unexpected("run", &other)),
    }
}

/// Opens a run as soon as no node is about to complete its files of the last one.
async fn submit_when_possible(store: &Arc<dyn Store>, open: Command) -> Result<Reply, StoreError> {
    let mut said = false;
    loop {
        let reply = store.submit(open.clone()).await?;
        if !matches!(reply, Reply::Wait) {
            return Ok(reply);
        }
        if !std::mem::replace(&mut said, true) {
            tracing::warn!(
                "the last run ended without a node: if it is back, it completes its files before the \
                 next run begins"
            );
        }
        sleep_until(Instant::now() + COMPLETION_LOOK).await;
    }
}

/// Rows of a retry go to the files of the run: they have to have the same columns.
async fn check_columns(store: &Arc<dyn Store>, own: &Plan) -> Result<(), RunError> {
    let Answer::Run(Some(run)) = store.ask(Question::Run).await? else { return Ok(()) };
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
            "`{}` has other columns than in the run whose failed jobs are to be tried again; undo \
             that, or begin anew with `spoonbill run`",
            spec.target.name()
        ))),
    }
}

/// Whether a new run will begin, which needs a folder, or an old one goes on in its own.
async fn begins(store: &Arc<dyn Store>, mode: OpenMode) -> Result<bool, RunError> {
    let Answer::Run(last) = store.ask(Question::Run).await? else { return Ok(true) };
    let unfinished = last.is_some_and(|run| !run.closed);
    Ok(mode == OpenMode::Fresh || mode == OpenMode::Continue && !unfinished)
}

/// The plan as the store has it. A node compiles it only if its own definitions, settings or date differ.
async fn agreed(store: &Arc<dyn Store>, offer: &Offer) -> Result<Arc<Plan>, RunError> {
    let run = current(store).await?;
    let odd = |what: &str| RunError::Internal(format!("published {what} cannot be read back"));
    let defs = blob(store, run.plan.defs).await?;
    let settings: std::collections::BTreeMap<String, String> =
        postcard::from_bytes(&blob(store, run.plan.config).await?).map_err(|_| odd("settings"))?;
    let config = offer.config.with_published(settings).map_err(RunError::Problems)?;
    let date = RunDate::parse(&run.plan.date).ok_or_else(|| odd("run date"))?;
    if let Ok(Definitions { plan, .. }) = &offer.definitions
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

/// The run of now.
pub(crate) async fn current(store: &Arc<dyn Store>) -> Result<Run, RunError> {
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

/// Has all locators in the ledger but the last of each group, whose commands are returned.
async fn seed_once(
    store: &Arc<dyn Store>,
    session: SessionId,
    epoch: Epoch,
    plan: &Plan,
    dir: &Path,
) -> Result<Vec<Command>, RunError> {
    let run = current(store).await?;
    if run.seeded.len() == run.plan.groups.len() {
        return Ok(Vec::new());
    }
    let seeding = Seeding::new(plan, dir);
    seed(store, session, epoch, &plan.published.defs, seeding).await
}
