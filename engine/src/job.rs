//! The job mediator: takes jobs, bounds those in hand, reports their end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use crate::error::RunError;
use crate::failpoint;
use crate::ledger::{
    Command, Grant, JobId, Outcome, Phase, Reply, SessionId, Standing, Tally, Token,
};
use crate::shutdown::Stop;
use crate::store::{Question, Store, StoreError};
use crate::task::{TaskMediator, Worked};
use crate::tenancy::Tenancy;

/// Takes jobs and sees them to their end.
pub(crate) struct JobMediator {
    store: Arc<dyn Store>,
    tenancy: Tenancy,
    session: SessionId,
    tasks: Arc<TaskMediator>,
    bounds: Bounds,
    share: Arc<Mutex<Share>>,
    broken: watch::Receiver<bool>,
    phase: watch::Receiver<Phase>,
    stop: watch::Receiver<Stop>,
    in_hand: watch::Sender<usize>,
    standing: watch::Receiver<Standing>,
    takes: u64,
    running: JoinSet<Result<(), StoreError>>,
    held: HashMap<Id, (JobId, Token)>,
}

/// What the mediator watches and tells.
pub(crate) struct Wires {
    /// The node's phase.
    pub phase: watch::Receiver<Phase>,
    /// Whether somebody asks to stop.
    pub stop: watch::Receiver<Stop>,
    /// Jobs in hand.
    pub in_hand: watch::Sender<usize>,
    /// Whether an appender has given up.
    pub broken: watch::Receiver<bool>,
    /// What this node has done.
    pub share: Arc<Mutex<Share>>,
}

/// What one node has done of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Share {
    /// Jobs that ended here, well or badly.
    pub jobs: u64,
    /// Their figures.
    pub tally: Tally,
}

impl Share {
    fn count(&mut self, outcome: &Outcome) {
        self.jobs += u64::from(!matches!(outcome, Outcome::Retry { .. } | Outcome::Moved { .. }));
        match outcome {
            Outcome::Done(harvest) => {
                self.tally.add(&harvest.tally);
                for block in &harvest.blocks {
                    let rows = self.tally.rows.entry(block.data_def.clone()).or_default();
                    *rows += u64::from(block.rows);
                }
            }
            Outcome::Retry { tally, .. } => {
                self.tally.add(tally);
                self.tally.retries += 1;
            }
            Outcome::Failed { tally, .. } | Outcome::Moved { tally, .. } => self.tally.add(tally),
        }
    }
}

/// Longest wait for a job that waits for its time. Ledger time passes with commands and by a second
/// each at most, so somebody has to ask now and then.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Patience with giving jobs back at the end.
const RETURN_PATIENCE: Duration = Duration::from_secs(3);

/// What a mediator may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Jobs in hand.
    pub jobs: usize,
    /// Bytes committed and not yet written: above it nothing is taken.
    pub lag_bytes: u64,
    /// Wait for what is in hand, once asked to stop.
    pub drain_time: Duration,
}

/// Once it is asked to stop, a node does not wait much longer for others that do not answer.
async fn patience_ends(mut phase: watch::Receiver<Phase>) {
    if phase.wait_for(|phase| *phase >= Phase::Shutdown).await.is_err() {
        std::future::pending::<()>().await;
    }
    sleep_until(Instant::now() + RETURN_PATIENCE).await;
}

impl JobMediator {
    /// A mediator within its bounds.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        tenancy: Tenancy,
        tasks: Arc<TaskMediator>,
        bounds: Bounds,
        wires: Wires,
    ) -> Self {
        Self {
            standing: store.standing(),
            store,
            tenancy,
            session: SessionId(0),
            tasks,
            bounds,
            share: wires.share,
            broken: wires.broken,
            phase: wires.phase,
            stop: wires.stop,
            in_hand: wires.in_hand,
            takes: 0,
            running: JoinSet::new(),
            held: HashMap::new(),
        }
    }

    /// Takes and works until the monitor says shutdown, then drains.
    pub(crate) async fn run(mut self) -> Result<(), RunError> {
        let result = self.work().await;
        self.tasks.pace.close();
        let drained = self.drain().await;
        self.in_hand.send_replace(0);
        result.and(drained)
    }

    async fn work(&mut self) -> Result<(), RunError> {
        self.session = self.tenancy.lease().await?.session;
        loop {
            let lag = self.standing.borrow().lag_bytes > self.bounds.lag_bytes;
            if *self.phase.borrow_and_update() >= Phase::Shutdown || lag && *self.broken.borrow() {
                return Ok(());
            }
            let next_due = self.take().await?;
            self.in_hand.send_if_modified(|known| {
                std::mem::replace(known, self.running.len()) != self.running.len()
            });
            let timer = next_due.unwrap_or_else(|| Instant::now() + Duration::from_hours(1));
            tokio::select! {
                biased;
                () = self.tenancy.lost(self.session) => self.start_over().await?,
                Some(ended) = self.running.join_next_with_id() => self.reap(ended).await?,
                changed = self.phase.changed() => if changed.is_err() { return Ok(()) },
                changed = self.standing.changed() => if changed.is_err() {
                    // A store that tells nothing more still tells why.
                    self.store.ask(Question::Flush).await?;
                    return Err(StoreError::Closed.into());
                },
                Ok(()) = self.broken.changed() => {}
                () = sleep_until(timer), if next_due.is_some() => {}
            }
            while let Some(ended) = self.running.try_join_next_with_id() {
                self.reap(ended).await?;
            }
        }
    }

    /// The session is lost: what is under way is dropped, for others may be at it already. A result
    /// that is complete is offered all the same; its token decides.
    async fn start_over(&mut self) -> Result<(), RunError> {
        self.running.abort_all();
        while self.running.join_next().await.is_some() {}
        self.held.clear();
        tokio::select! {
            biased;
            lease = self.tenancy.replace(self.session) => self.session = lease?.session,
            () = patience_ends(self.phase.clone()) => {}
        }
        self.takes = 0;
        Ok(())
    }

    /// Fills the free places; tells when the next job may be due, if one waits for its time.
    async fn take(&mut self) -> Result<Option<Instant>, RunError> {
        let free = self.bounds.jobs.max(1).saturating_sub(self.running.len());
        let standing = *self.standing.borrow_and_update();
        if free == 0 || standing.pending == 0 || standing.lag_bytes > self.bounds.lag_bytes {
            return Ok(None);
        }
        self.takes += 1;
        let take = Command::Take { session: self.session, number: self.takes, limit: free as u32 };
        failpoint::pass("job.take.before");
        let taken = tokio::select! {
            biased;
            reply = self.store.submit(take) => reply?,
            // Nobody answers, and the jobs in hand may be in other hands by now.
            () = self.tenancy.lost(self.session) => Reply::Stale,
            () = patience_ends(self.phase.clone()) => return Ok(None),
        };
        match taken {
            Reply::Granted { jobs, wait_ms } => {
                failpoint::pass("job.take.after");
                for grant in jobs {
                    self.start(grant);
                }
                Ok(wait_ms.map(|wait| Instant::now() + Duration::from_millis(wait).min(LOOK_AGAIN)))
            }
            Reply::Stale => {
                self.start_over().await?;
                Ok(Some(Instant::now()))
            }
            other => Err(RunError::unexpected("take", &other)),
        }
    }

    fn start(&mut self, grant: Grant) {
        let (store, tasks, session) =
            (Arc::clone(&self.store), Arc::clone(&self.tasks), self.session);
        let (job, token, alone) = (grant.id, grant.token, grant.alone);
        let (tenancy, share) = (self.tenancy.clone(), Arc::clone(&self.share));
        let task = self.running.spawn(async move {
            if !tenancy.holds(session) {
                // Too late to begin: the ledger will give it to somebody else.
                return Ok(());
            }
            let begin = async || {
                if alone {
                    // A store that is gone tells so when the job is finished.
                    drop(store.submit(Command::Begin { session, job, token }).await);
                }
            };
            let Worked { outcome, started } = tasks.work(grant, begin).await;
            let Some(outcome) = outcome else {
                let jobs = vec![(job, token)];
                return store.submit(Command::Return { session, jobs }).await.map(drop);
            };
            failpoint::pass("job.finish.before");
            if let Ok(mut share) = share.lock() {
                share.count(&outcome);
            }
            // Rounded down: a start may look later than it was, never earlier.
            let since_start_ms = started.map(|at| at.elapsed().as_millis() as u64);
            let finish = Command::Finish { session, job, token, since_start_ms, outcome };
            // On its own from here: a result is offered even if this session ends meanwhile.
            let finished = tokio::spawn(store.submit(finish)).await;
            failpoint::pass("job.finish.after");
            finished.unwrap_or(Err(StoreError::Closed)).map(drop)
        });
        self.held.insert(task.id(), (job, token));
    }

    async fn reap(
        &mut self,
        ended: Result<(Id, Result<(), StoreError>), JoinError>,
    ) -> Result<(), RunError> {
        match ended {
            Ok((id, result)) => {
                self.held.remove(&id);
                Ok(result?)
            }
            Err(error) => {
                let Some((job, token)) = self.held.remove(&error.id()) else {
                    return Ok(());
                };
                if error.is_cancelled() {
                    return Ok(());
                }
                let reason = format!("internal error while loading the page: {error}");
                let outcome = Outcome::Failed { reason, tally: Tally::default() };
                // Nobody knows when it asked its host: as late as now, perhaps.
                let (session, since_start_ms) = (self.session, Some(0));
                let finish = Command::Finish { session, job, token, since_start_ms, outcome };
                self.store.submit(finish).await?;
                Ok(())
            }
        }
    }

    /// Lets what is in hand end; past the deadline or at a second signal, gives the rest back.
    async fn drain(&mut self) -> Result<(), RunError> {
        let deadline = Instant::now() + self.bounds.drain_time;
        while !self.running.is_empty() {
            if matches!(*self.stop.borrow_and_update(), Stop::Now(_)) {
                break;
            }
            self.in_hand.send_replace(self.running.len());
            tokio::select! {
                Some(ended) = self.running.join_next_with_id() => self.reap(ended).await?,
                Ok(()) = self.stop.changed() => {}
                () = sleep_until(deadline) => break,
            }
        }
        self.running.abort_all();
        let jobs: Vec<_> = self.held.drain().map(|(_, held)| held).collect();
        if !jobs.is_empty() {
            let give_back = Command::Return { session: self.session, jobs };
            // If nobody can be told, the session will expire.
            if let Ok(told) = timeout(RETURN_PATIENCE, self.store.submit(give_back)).await {
                told?;
            }
        }
        Ok(())
    }
}
