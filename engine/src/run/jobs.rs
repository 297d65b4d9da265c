//! The job mediator: takes jobs from the ledger, has their pages worked on, and reports how they ended.
//! [`Takes`] decides when to ask and when to report.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use crate::error::RunError;
use crate::failpoint;
use crate::ledger::{
    Command, Grant, JobId, Outcome, Phase, Reply, SessionId, Standing, Tally, Token,
};
use crate::run::pages::{TaskMediator, Worked};
use crate::run::session::NodeSession;
use crate::run::shutdown::Stop;
use crate::run::takes::{Event, TakeDecision, TakeLimits, Takes};
use crate::run::totals::NodeTotals;
use crate::store::{Question, Store, StoreError};
use crate::threads::ignore::ignore_closed;
use crate::threads::pause::pause;

/// How long a node that was asked to stop waits for an answer of the ledger.
const STOP_ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Takes jobs and sees them to their end.
pub(crate) struct JobMediator {
    store: Arc<dyn Store>,
    session: NodeSession,
    session_id: SessionId,
    tasks: Arc<TaskMediator>,
    limits: TakeLimits,
    drain_time: Duration,
    channels: JobChannels,
    standing: watch::Receiver<Standing>,
    takes: Takes,
    /// The number of the last take in this session.
    take_number: u64,
    /// The answer to the take in flight.
    answer: Option<BoxFuture<'static, Result<Reply, StoreError>>>,
    running: JoinSet<Result<Option<Command>, StoreError>>,
    held: HashMap<Id, (JobId, Token)>,
    /// Jobs that have ended and are not reported.
    ended: Vec<Command>,
    /// Reports in flight; each returns its number of jobs.
    reports: JoinSet<Result<usize, StoreError>>,
    /// Ended jobs that the ledger has not confirmed: those in `ended` and in `reports`.
    unconfirmed: usize,
}

/// The channels that the mediator watches and publishes to.
pub(crate) struct JobChannels {
    /// The node's phase.
    pub phase: watch::Receiver<Phase>,
    /// Whether the node was asked to stop.
    pub stop: watch::Receiver<Stop>,
    /// Jobs in flight.
    pub in_flight: watch::Sender<usize>,
    /// Whether an appender has failed.
    pub broken: watch::Receiver<bool>,
    /// The totals of this node.
    pub totals: Arc<Mutex<NodeTotals>>,
}

/// Ends when the node has been asked to stop and has waited long enough for an answer.
async fn stop_timeout(mut phase: watch::Receiver<Phase>) {
    if phase.wait_for(|phase| *phase >= Phase::Shutdown).await.is_err() {
        std::future::pending::<()>().await;
    }
    pause(STOP_ANSWER_TIMEOUT).await;
}

/// Whether other jobs depend on this end: it led to new ones, failed, or is to be tried again.
fn has_effects(end: &Command) -> bool {
    let Command::Finish { outcome, .. } = end else { return true };
    !matches!(outcome, Outcome::Done(harvest) if harvest.children.is_empty())
}

/// The answer to a take, if one is in flight.
async fn answered(
    answer: &mut Option<BoxFuture<'static, Result<Reply, StoreError>>>,
) -> Result<Reply, StoreError> {
    match answer {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}

/// Waits until a time, if there is one.
async fn wake(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl JobMediator {
    /// A mediator within its limits. `drain_time` is how long jobs in flight may take to end after the
    /// node was asked to stop.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        session: NodeSession,
        tasks: Arc<TaskMediator>,
        limits: TakeLimits,
        drain_time: Duration,
        channels: JobChannels,
    ) -> Self {
        Self {
            standing: store.standing(),
            store,
            session,
            session_id: SessionId(0),
            tasks,
            limits,
            drain_time,
            channels,
            takes: Takes::new(limits),
            take_number: 0,
            answer: None,
            running: JoinSet::new(),
            held: HashMap::new(),
            ended: Vec::new(),
            reports: JoinSet::new(),
            unconfirmed: 0,
        }
    }

    /// Takes and works on jobs until the phase is `Shutdown`, then waits for the jobs in flight.
    pub(crate) async fn run(mut self) -> Result<(), RunError> {
        let result = self.work().await;
        self.tasks.pace.close();
        let drained = self.drain().await;
        self.channels.in_flight.send_replace(0);
        result.and(drained)
    }

    async fn work(&mut self) -> Result<(), RunError> {
        self.session_id = self.session.lease().await?.session;
        loop {
            let lags = self.standing.borrow().lag_bytes > self.limits.lag_bytes;
            let stops = *self.channels.phase.borrow_and_update() >= Phase::Shutdown;
            if stops || lags && *self.channels.broken.borrow() {
                return self.await_grants().await;
            }
            let wake_at = self.move_on();
            self.publish_in_flight();
            tokio::select! {
                biased;
                () = self.session.lost(self.session_id) => self.start_over().await?,
                Some(ended) = self.running.join_next_with_id() => self.gather(ended)?,
                reply = answered(&mut self.answer) => self.granted(reply?).await?,
                Some(reported) = self.reports.join_next() => self.confirmed(reported)?,
                changed = self.channels.phase.changed() => if changed.is_err() { return Ok(()) },
                changed = self.standing.changed() => if changed.is_err() {
                    // The store has ended. It answers with the reason.
                    self.store.ask(Question::Flush).await?;
                    return Err(StoreError::Closed.into());
                },
                Ok(()) = self.channels.broken.changed() => {}
                () = wake(wake_at) => {}
            }
            while let Some(ended) = self.running.try_join_next_with_id() {
                self.gather(ended)?;
            }
        }
    }

    /// Performs what is to be done now; returns when to look again.
    fn move_on(&mut self) -> Option<Instant> {
        let (standing, now) = (*self.standing.borrow_and_update(), Instant::now());
        self.takes.on(Event::Standing(standing), now);
        let TakeDecision { take, report, wake_at } = self.takes.decide(now);
        let take = take.map(|take| {
            failpoint::pass("job.take.before");
            self.take_number += 1;
            Command::Take {
                session: self.session_id,
                number: self.take_number,
                limit: take.limit as u32,
                ahead: take.ahead as u32,
            }
        });
        if report || take.is_some() {
            self.report(take);
        }
        wake_at
    }

    fn publish_in_flight(&self) {
        let in_flight = self.running.len() + self.unconfirmed;
        self.channels
            .in_flight
            .send_if_modified(|known| std::mem::replace(known, in_flight) != in_flight);
    }

    /// Continues with another session. Jobs in flight are dropped, because other nodes may have them by
    /// now. Complete results are still sent: the ledger accepts each if its token is valid.
    async fn start_over(&mut self) -> Result<(), RunError> {
        self.running.abort_all();
        while let Some(ended) = self.running.join_next_with_id().await {
            if ended.is_ok() {
                self.gather(ended)?;
            }
        }
        self.held.clear();
        self.report(None);
        self.reports.detach_all();
        self.unconfirmed = 0;
        self.answer = None;
        tokio::select! {
            biased;
            lease = self.session.replace(self.session_id) => self.session_id = lease?.session,
            () = stop_timeout(self.channels.phase.clone()) => {}
        }
        self.take_number = 0;
        self.takes.on(Event::NewSession, Instant::now());
        Ok(())
    }

    async fn granted(&mut self, reply: Reply) -> Result<(), RunError> {
        self.answer = None;
        match reply {
            Reply::Granted { jobs, wait_ms } => {
                failpoint::pass("job.take.after");
                let due_in = wait_ms.map(Duration::from_millis);
                self.takes.on(Event::Granted { jobs: jobs.len(), due_in }, Instant::now());
                for grant in jobs {
                    self.start(grant);
                }
                Ok(())
            }
            Reply::Stale => self.start_over().await,
            other => Err(RunError::unexpected("take", &other)),
        }
    }

    /// Waits for the answer to the take in flight, because this node holds the jobs it grants.
    async fn await_grants(&mut self) -> Result<(), RunError> {
        if !self.takes.is_asking() {
            return Ok(());
        }
        let reply = tokio::select! {
            biased;
            reply = answered(&mut self.answer) => reply?,
            // The jobs in flight may have been granted to other nodes by now.
            () = self.session.lost(self.session_id) => Reply::Stale,
            () = stop_timeout(self.channels.phase.clone()) => return Ok(()),
        };
        self.granted(reply).await
    }

    fn start(&mut self, grant: Grant) {
        let (store, tasks, session_id) =
            (Arc::clone(&self.store), Arc::clone(&self.tasks), self.session_id);
        let (job, token, alone) = (grant.id, grant.token, grant.alone);
        let (session, totals) = (self.session.clone(), Arc::clone(&self.channels.totals));
        // Where reports are not batched, a job sends its own.
        let reports_itself = self.limits.ahead == 0;
        let task = self.running.spawn(async move {
            // The ledger gives the job to another node when this session has ended.
            let may_ask = || session.holds(session_id);
            if !may_ask() {
                return Ok(None);
            }
            let begin = async || {
                if alone {
                    // If the store has ended, the report of the job fails and tells why.
                    let begin = Command::Begin { session: session_id, job, token };
                    ignore_closed(store.submit(begin).await);
                }
            };
            let Worked { outcome, started } = tasks.work(grant, may_ask, begin).await;
            let Some(outcome) = outcome else {
                return Ok(Some(Command::Return { session: session_id, jobs: vec![(job, token)] }));
            };
            failpoint::pass("job.finish.before");
            if let Ok(mut totals) = totals.lock() {
                totals.count(&outcome);
            }
            // Rounded down: the start may be taken for later than it was, never for earlier.
            let since_start_ms = started.map(|at| at.elapsed().as_millis() as u64);
            let finish =
                Command::Finish { session: session_id, job, token, since_start_ms, outcome };
            if !reports_itself || has_effects(&finish) {
                return Ok(Some(finish));
            }
            // In a separate task, the result is sent even if this session ends meanwhile.
            let reported = tokio::spawn(store.submit(finish)).await;
            failpoint::pass("job.finish.after");
            reported.unwrap_or(Err(StoreError::Closed)).map(|_| None)
        });
        self.held.insert(task.id(), (job, token));
    }

    /// Notes a job that has ended here.
    fn gather(
        &mut self,
        ended: Result<(Id, Result<Option<Command>, StoreError>), JoinError>,
    ) -> Result<(), RunError> {
        let end = match ended {
            Ok((id, end)) => {
                self.held.remove(&id);
                end?
            }
            Err(error) => self.held.remove(&error.id()).filter(|_| !error.is_cancelled()).map(
                |(job, token)| {
                    let reason = format!("internal error while loading the page: {error}");
                    let outcome = Outcome::Failed { reason, tally: Tally::default() };
                    // The time of the request is lost; the latest possible one is now.
                    let (session, since_start_ms) = (self.session_id, Some(0));
                    Command::Finish { session, job, token, since_start_ms, outcome }
                },
            ),
        };
        let Some(end) = end else {
            self.takes.on(Event::Dropped, Instant::now());
            return Ok(());
        };
        let took = match &end {
            Command::Finish { since_start_ms, .. } => since_start_ms.map(Duration::from_millis),
            _ => None,
        };
        self.takes.on(Event::Ended { has_effects: has_effects(&end), took }, Instant::now());
        self.ended.push(end);
        self.unconfirmed += 1;
        Ok(())
    }

    /// Reports the jobs that have ended. A take goes in the same batch, behind them, so that it can be
    /// granted jobs that these ends led to. A separate task waits for the answers: results are sent even if
    /// this session ends meanwhile.
    fn report(&mut self, take: Option<Command>) {
        let mut commands = std::mem::take(&mut self.ended);
        let asks = take.is_some();
        commands.extend(take);
        let mut answers = self.store.submit_all(commands);
        if asks {
            self.answer = answers.pop();
        }
        if answers.is_empty() {
            return;
        }
        self.reports.spawn(async move {
            let count = answers.len();
            for answer in answers {
                let answer = answer.await;
                failpoint::pass("job.finish.after");
                answer?;
            }
            Ok(count)
        });
    }

    fn confirmed(
        &mut self,
        reported: Result<Result<usize, StoreError>, JoinError>,
    ) -> Result<(), RunError> {
        self.unconfirmed -= reported.unwrap_or(Err(StoreError::Closed))?;
        Ok(())
    }

    /// Lets the jobs in flight end. After the drain time, or at a second signal, the rest is returned to
    /// the ledger.
    async fn drain(&mut self) -> Result<(), RunError> {
        let deadline = Instant::now() + self.drain_time;
        loop {
            self.report(None);
            let in_flight = self.running.len() + self.unconfirmed;
            let stops_now = matches!(*self.channels.stop.borrow_and_update(), Stop::Now(_));
            if in_flight == 0 || stops_now {
                break;
            }
            self.channels.in_flight.send_replace(in_flight);
            tokio::select! {
                Some(ended) = self.running.join_next_with_id() => self.gather(ended)?,
                Some(reported) = self.reports.join_next() => self.confirmed(reported)?,
                Ok(()) = self.channels.stop.changed() => {}
                () = sleep_until(deadline) => break,
            }
        }
        self.running.abort_all();
        while let Some(ended) = self.running.try_join_next_with_id() {
            self.gather(ended)?;
        }
        self.report(None);
        let jobs: Vec<_> = self.held.drain().map(|(_, held)| held).collect();
        if !jobs.is_empty() {
            let give_back = Command::Return { session: self.session_id, jobs };
            // Without an answer the session expires, and the ledger takes the jobs back.
            if let Ok(returned) = timeout(STOP_ANSWER_TIMEOUT, self.store.submit(give_back)).await {
                returned?;
            }
        }
        Ok(())
    }
}
