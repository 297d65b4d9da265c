//! The story of a run: join, agree with other nodes, seed, work and write, end.

mod agree;
mod append;
mod barricade;
mod current;
mod end;
pub(crate) mod exit_code;
pub(crate) mod exit_mark;
mod expectations;
mod folder;
mod jobs;
mod join;
mod monitor;
mod pace;
mod pages;
pub(crate) mod replay;
pub(crate) mod report;
mod request;
mod seed;
mod session;
pub(crate) mod shutdown;
mod takes;
mod totals;
mod work;
mod write;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::bootstrap::Node;
use crate::error::RunError;
use crate::ledger::Run;
use crate::plan::prepare::Plan;
use crate::run::agree::agree;
use crate::run::barricade::Barricades;
use crate::run::current::current_run;
use crate::run::join::{FirstStep, Joined, asked_to_stop, join};
use crate::run::report::{NodeFigures, Report};
use crate::run::seed::seed;
use crate::run::shutdown::Stop;
use crate::run::work::Work;
use crate::run::write::{Writing, Written};
use crate::store::Question;

pub(crate) use end::Reported;
pub(crate) use request::{LocalSetup, RunRequest};

/// How long a node without a vote waits for the figures of its report. Only other nodes have them, and
/// those may have left.
const WORKER_REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs definitions on a node until the work is over or `stop` ends it. The caller prints the report and
/// closes the run.
pub(crate) async fn run(
    node: &Node,
    setup: &LocalSetup,
    request: &RunRequest,
    stop: watch::Receiver<Stop>,
) -> Result<Reported, RunError> {
    let start = node.clock.now();
    let mut joined = join(node, request, &stop).await?;
    let begun = tokio::select! {
        begun = begin(node, setup, request, &mut joined) => begun,
        signal = asked_to_stop(node, stop.clone()) => Err(RunError::Stopped(signal)),
    };
    let (plan, run) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            joined.withdraw(node, &error).await;
            return Err(error);
        }
    };
    let writing = Writing::start(node, request, &plan, &run)?;
    let work = Work::new(node, &plan, run.plan.policy, request.replay.as_ref())?;
    let session = &joined.session;
    let worked = work.run(node, session, &plan.config, writing.broken(), stop.clone()).await;
    node.store.make_do();
    let is_over = node.store.standing().borrow().over;
    let ended = async {
        let written = writing.finish(&node.store).await?;
        worked?;
        end(node, &plan, &work, is_over, start, written, joined).await
    };
    if node.member.votes {
        return ended.await;
    }
    let ended = timeout(WORKER_REPORT_TIMEOUT, ended).await;
    ended.unwrap_or_else(|_| Err(RunError::no_report(stop.borrow().signal())))
}

/// Agrees with other nodes on the run and has it seeded, unless only its files are to be completed.
async fn begin(
    node: &Node,
    setup: &LocalSetup,
    request: &RunRequest,
    joined: &mut Joined,
) -> Result<(Arc<Plan>, Run), RunError> {
    let mut barricades = Barricades::before(node, joined.session.clone());
    let plan = agree(node, setup, request, joined, &mut barricades).await?;
    if joined.step != FirstStep::CompleteRun {
        seed(&node.store, &plan, &setup.dir, &mut barricades).await?;
        barricades.leave().await?;
    }
    // From here on the store publishes the numbers of this run.
    node.store.ask(Question::Flush).await?;
    Ok((plan, current_run(&node.store).await?))
}

/// Makes the report of files that are written.
async fn end(
    node: &Node,
    plan: &Plan,
    work: &Work,
    is_over: bool,
    start: jiff::Timestamp,
    written: Written,
    joined: Joined,
) -> Result<Reported, RunError> {
    let is_complete = is_over && written.is_complete() && node.member.votes;
    let Written { files, run, run_number, folder } = written;
    let mut report = Report::of(node, is_over, start, run, files).await?;
    if is_over {
        let tally = current_run(&node.store).await?.tally;
        report.unmet = expectations::unmet(&plan.expectations(), &tally);
    }
    report.share = (!node.member.is_exclusive).then(|| NodeFigures::of(&work.totals()));
    let exit_mark_dir = node.member.exit_mark_dir.clone();
    let session = joined.session;
    Ok(Reported { report, run_number, session, is_complete, folder, exit_mark_dir })
}
