//! The job mediator: takes jobs, bounds those in hand, reports their end.

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
use crate::run::session::Tenancy;
use crate::run::shutdown::Stop;
use crate::store::{Question, Store, StoreError};

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
    running: JoinSet<Result<Option<Command>, StoreError>>,
    held: HashMap<Id, (JobId, Token)>,
    ended: Ended,
    /// Ends that are on their way, so many each.
    telling: JoinSet<Result<usize, StoreError>>,
    appetite: Appetite,
    /// How long a page takes from the start of its request to its end, more or less.
    page_time: Option<Duration>,
}

/// Ends of jobs that wait to be told together.
#[derive(Default)]
struct Ended {
    waiting: Vec<Command>,
    /// When the first of them has waited long enough.
    until: Option<Instant>,
    /// Whether one of them led to other jobs, or did not go well.
    leads_on: bool,
    /// All that are not known to be told, those on their way included.
    untold: usize,
}

/// When to ask for jobs.
struct Appetite {
    /// The request that is on its way.
    asking: Option<BoxFuture<'static, Result<Reply, StoreError>>>,
    /// Whether a job has ended here since the last one.
    news: bool,
    /// Since when the others may have done something that is good for a job.
    heard: Option<Instant>,
    /// The numbers that were seen last.
    seen: Standing,
    /// Jobs in hand when the last answer came.
    full: usize,
    /// Whether jobs were found here that are not asked for yet.
    keen: bool,
    /// When a job that waits for its time may be due.
    due: Option<Instant>,
    /// Asks that were in vain, one after the other, and when the next makes sense.
    vain: u32,
    not_before: Instant,
}

impl Appetite {
    /// Looks at the numbers: whether there may be jobs that the last answer could not know. Jobs that
    /// were only handed out are nothing new.
    fn look(&mut self, now: Standing) {
        let seen = std::mem::replace(&mut self.seen, now);
        if now.pending > seen.pending
            || now.taken < seen.taken
            || now.done + now.failed != seen.done + seen.failed
        {
            self.heard.get_or_insert_with(Instant::now);
        }
        if now.pending == 0 {
            // Whoever found them has them.
            self.heard = None;
        }
    }

    /// An answer came: so many jobs, `full` are in hand now.
    fn fed(&mut self, jobs: usize, full: usize) {
        (self.asking, self.full) = (None, full);
        self.vain = if jobs == 0 { self.vain + 1 } else { 0 };
        let pause = if self.vain == 0 { Duration::ZERO } else { VAIN * (1 << self.vain.min(5)) };
        self.not_before = Instant::now() + pause;
    }
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

/// Longest time that the end of a job waits for others to be told with it, where there are jobs ahead
/// to go on with.
const COMPANY: Duration = Duration::from_millis(20);

/// Jobs that are granted ahead of their turn are begun within this time.
const MOMENT: Duration = Duration::from_millis(150);

/// How long jobs that others have found are left to them.
const COURTESY: Duration = Duration::from_millis(15);

/// Half the pause after an ask in vain; doubled some times while others make jobs that are not for us.
const VAIN: Duration = Duration::from_millis(2);

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
    /// Jobs of a host that are granted ahead of their turn. With some of them in hand there is no
    /// hurry to ask for more, nor to tell what has ended.
    pub ahead: usize,
    /// Jobs of a host that are worked on at once.
    pub at_once: usize,
}

/// Once it is asked to stop, a node does not wait much longer for others that do not answer.
async fn patience_ends(mut phase: watch::Receiver<Phase>) {
    if phase.wait_for(|phase| *phase >= Phase::Shutdown).await.is_err() {
        std::future::pending::<()>().await;
    }
    sleep_until(Instant::now() + RETURN_PATIENCE).await;
}

/// Whether a job ended well and led to no others: nobody waits to hear of it.
fn is_lone(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done(harvest) if harvest.children.is_empty())
}

/// The answer to a request, if one is on its way.
async fn answered(
    asking: &mut Option<BoxFuture<'static, Result<Reply, StoreError>>>,
) -> Result<Reply, StoreError> {
    match asking {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}

/// Waits until a time, if there is one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
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
            ended: Ended::default(),
            telling: JoinSet::new(),
            page_time: None,
            appetite: Appetite {
                asking: None,
                news: true,
                heard: None,
                seen: Standing::default(),
                full: 0,
                keen: false,
                due: None,
                vain: 0,
                not_before: Instant::now(),
            },
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
                return self.await_grants().await;
            }
            let timer = self.move_on();
            self.tell_in_hand();
            tokio::select! {
                biased;
                () = self.tenancy.lost(self.session) => self.start_over().await?,
                Some(ended) = self.running.join_next_with_id() => self.gather(ended)?,
                reply = answered(&mut self.appetite.asking) => self.granted(reply?).await?,
                Some(told) = self.telling.join_next() => self.told(told)?,
                changed = self.phase.changed() => if changed.is_err() { return Ok(()) },
                changed = self.standing.changed() => if changed.is_err() {
                    // A store that tells nothing more still tells why.
                    self.store.ask(Question::Flush).await?;
                    return Err(StoreError::Closed.into());
                },
                Ok(()) = self.broken.changed() => {}
                () = at(timer) => {}
            }
            while let Some(ended) = self.running.try_join_next_with_id() {
                self.gather(ended)?;
            }
        }
    }

    /// Tells what has ended and asks for more, each when it is time; tells when to look again.
    fn move_on(&mut self) -> Option<Instant> {
        let standing = *self.standing.borrow_and_update();
        self.appetite.look(standing);
        let free = self.bounds.jobs.max(1).saturating_sub(self.running.len());
        let room = free > 0
            && standing.lag_bytes <= self.bounds.lag_bytes
            && self.appetite.asking.is_none();
        let now = Instant::now();
        let due = self.appetite.due.is_some_and(|due| due <= now);
        let left = self.left_to_others(standing);
        let news = self.appetite.news || left.is_some_and(|left| left <= now);
        let called = due || self.appetite.keen || news && self.is_hungry();
        let mut asks = room && (self.ended.leads_on || standing.pending > 0 && called);
        // While a request is on its way there can be no other, so nothing is lost by waiting for it.
        let calm =
            self.appetite.asking.is_some() || !self.ended.leads_on && !self.running.is_empty();
        let tells = !self.ended.waiting.is_empty()
            && (asks
                || self.bounds.ahead == 0
                || !calm
                || self.ended.until.is_some_and(|until| until <= now));
        let vain = self.appetite.not_before > now && self.bounds.ahead > 0;
        let pause = (asks && vain && !tells && !due).then_some(self.appetite.not_before);
        asks &= pause.is_none();
        // It costs next to nothing in the company of what is told.
        asks |= tells && room && standing.pending > 0;
        self.appetite.keen |= self.ended.leads_on;
        let take = asks.then(|| self.next_take(free));
        if tells || asks {
            self.tell(take);
        }
        let due = self.appetite.due.filter(|_| room && !asks && standing.pending > 0);
        let left = left.filter(|left| room && *left > now && standing.pending > 0);
        [due, pause, left, self.ended.until].into_iter().flatten().min()
    }

    /// Until when jobs that this node has not found itself are left to those who did: they are about
    /// to ask, too, and a job that moves to another node costs an agreement more.
    fn left_to_others(&self, standing: Standing) -> Option<Instant> {
        let busy = self.bounds.ahead > 0 && standing.taken > 0;
        self.appetite.heard.map(|heard| if busy { heard + COURTESY } else { heard })
    }

    /// Whether so few jobs are in hand, or so many of them have ended, that others are wanted.
    fn is_hungry(&self) -> bool {
        let (ahead, at_once) = (self.ahead(), self.bounds.at_once);
        let (working, full) = (self.running.len(), self.appetite.full);
        ahead == 0 || working < at_once + ahead / 2 || working + ahead / 2 <= full
    }

    /// How many jobs of a host to have ahead of their turn: as many as are begun in a moment. Slow pages
    /// leave time to ask, and another node may be idle. Before anything is known there are none.
    fn ahead(&self) -> usize {
        let Bounds { ahead, at_once, .. } = self.bounds;
        let begun = |page: Duration| {
            MOMENT.as_millis() as usize * at_once / page.as_millis().max(1) as usize
        };
        self.page_time.map_or(0, begun).min(ahead)
    }

    fn tell_in_hand(&self) {
        let in_hand = self.running.len() + self.ended.untold;
        self.in_hand.send_if_modified(|known| std::mem::replace(known, in_hand) != in_hand);
    }

    /// The session is lost: what is under way is dropped, for others may be at it already. A result
    /// that is complete is offered all the same; its token decides.
    async fn start_over(&mut self) -> Result<(), RunError> {
        self.running.abort_all();
        while let Some(ended) = self.running.join_next_with_id().await {
            if ended.is_ok() {
                self.gather(ended)?;
            }
        }
        self.held.clear();
        self.tell(None);
        self.telling.detach_all();
        self.ended.untold = 0;
        self.appetite.asking = None;
        tokio::select! {
            biased;
            lease = self.tenancy.replace(self.session) => self.session = lease?.session,
            () = patience_ends(self.phase.clone()) => {}
        }
        self.takes = 0;
        self.appetite.fed(1, 0);
        self.appetite.news = true;
        Ok(())
    }

    /// Asks for so many jobs. One request at a time: they are numbered, and the ledger takes one that
    /// is overtaken for a ghost.
    fn next_take(&mut self, limit: usize) -> Command {
        self.takes += 1;
        failpoint::pass("job.take.before");
        (self.appetite.news, self.appetite.keen) = (false, false);
        (self.appetite.heard, self.appetite.due) = (None, None);
        let (session, number, ahead) = (self.session, self.takes, self.ahead() as u32);
        Command::Take { session, number, limit: limit as u32, ahead }
    }

    async fn granted(&mut self, reply: Reply) -> Result<(), RunError> {
        match reply {
            Reply::Granted { jobs, wait_ms } => {
                failpoint::pass("job.take.after");
                let count = jobs.len();
                for grant in jobs {
                    self.start(grant);
                }
                self.appetite.fed(count, self.running.len());
                let wait = wait_ms.map(|wait| Duration::from_millis(wait).min(LOOK_AGAIN));
                self.appetite.due = wait.map(|wait| Instant::now() + wait);
                Ok(())
            }
            Reply::Stale => self.start_over().await,
            other => Err(RunError::unexpected("take", &other)),
        }
    }

    /// Waits for the answer to a request that is on its way: what it grants is in hand.
    async fn await_grants(&mut self) -> Result<(), RunError> {
        if self.appetite.asking.is_none() {
            return Ok(());
        }
        let reply = tokio::select! {
            biased;
            reply = answered(&mut self.appetite.asking) => reply?,
            // Nobody answers, and the jobs in hand may be in other hands by now.
            () = self.tenancy.lost(self.session) => Reply::Stale,
            () = patience_ends(self.phase.clone()) => return Ok(()),
        };
        self.granted(reply).await
    }

    fn start(&mut self, grant: Grant) {
        let (store, tasks, session) =
            (Arc::clone(&self.store), Arc::clone(&self.tasks), self.session);
        let (job, token, alone) = (grant.id, grant.token, grant.alone);
        let (tenancy, share) = (self.tenancy.clone(), Arc::clone(&self.share));
        // Nothing is gained by telling it in company.
        let hasty = self.bounds.ahead == 0;
        let task = self.running.spawn(async move {
            // Later the ledger gives it to somebody else.
            let may_ask = || tenancy.holds(session);
            if !may_ask() {
                return Ok(None);
            }
            let begin = async || {
                if alone {
                    // A store that is gone tells so when the job is finished.
                    drop(store.submit(Command::Begin { session, job, token }).await);
                }
            };
            let Worked { outcome, started } = tasks.work(grant, may_ask, begin).await;
            let Some(outcome) = outcome else {
                return Ok(Some(Command::Return { session, jobs: vec![(job, token)] }));
            };
            failpoint::pass("job.finish.before");
            if let Ok(mut share) = share.lock() {
                share.count(&outcome);
            }
            // Rounded down: a start may look later than it was, never earlier.
            let since_start_ms = started.map(|at| at.elapsed().as_millis() as u64);
            let lone = is_lone(&outcome);
            let finish = Command::Finish { session, job, token, since_start_ms, outcome };
            if !(hasty && lone) {
                return Ok(Some(finish));
            }
            // On its own from here: a result is offered even if this session ends meanwhile.
            let told = tokio::spawn(store.submit(finish)).await;
            failpoint::pass("job.finish.after");
            told.unwrap_or(Err(StoreError::Closed)).map(|_| None)
        });
        self.held.insert(task.id(), (job, token));
    }

    /// A job has ended here; the ledger is to be told.
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
                    // Nobody knows when it asked its host: as late as now, perhaps.
                    let (session, since_start_ms) = (self.session, Some(0));
                    Command::Finish { session, job, token, since_start_ms, outcome }
                },
            ),
        };
        self.appetite.news = true;
        let Some(end) = end else { return Ok(()) };
        if let Command::Finish { since_start_ms: Some(ms), .. } = &end {
            let took = Duration::from_millis(*ms);
            self.page_time = Some(self.page_time.map_or(took, |known| (known * 3 + took) / 4));
        }
        let lone = matches!(&end, Command::Finish { outcome, .. } if is_lone(outcome));
        self.ended.leads_on |= !lone;
        self.ended.until.get_or_insert_with(|| Instant::now() + COMPANY);
        self.ended.waiting.push(end);
        self.ended.untold += 1;
        Ok(())
    }

    /// Tells what has ended, and asks for jobs right behind: what these ends led to is granted in the
    /// same breath. Their answers are awaited elsewhere: a result is offered even if this session ends
    /// meanwhile.
    fn tell(&mut self, take: Option<Command>) {
        (self.ended.until, self.ended.leads_on) = (None, false);
        let mut commands = std::mem::take(&mut self.ended.waiting);
        let asks = take.is_some();
        commands.extend(take);
        let mut on_their_way = self.store.submit_all(commands);
        if asks {
            self.appetite.asking = on_their_way.pop();
        }
        if on_their_way.is_empty() {
            return;
        }
        self.telling.spawn(async move {
            let count = on_their_way.len();
            for told in on_their_way {
                let told = told.await;
                failpoint::pass("job.finish.after");
                told?;
            }
            Ok(count)
        });
    }

    fn told(&mut self, told: Result<Result<usize, StoreError>, JoinError>) -> Result<(), RunError> {
        self.ended.untold -= told.unwrap_or(Err(StoreError::Closed))?;
        Ok(())
    }

    /// Lets what is in hand end; past the deadline or at a second signal, gives the rest back.
    async fn drain(&mut self) -> Result<(), RunError> {
        let deadline = Instant::now() + self.bounds.drain_time;
        loop {
            self.tell(None);
            let in_hand = self.running.len() + self.ended.untold;
            if in_hand == 0 || matches!(*self.stop.borrow_and_update(), Stop::Now(_)) {
                break;
            }
            self.in_hand.send_replace(in_hand);
            tokio::select! {
                Some(ended) = self.running.join_next_with_id() => self.gather(ended)?,
                Some(told) = self.telling.join_next() => self.told(told)?,
                Ok(()) = self.stop.changed() => {}
                () = sleep_until(deadline) => break,
            }
        }
        self.running.abort_all();
        while let Some(ended) = self.running.try_join_next_with_id() {
            self.gather(ended)?;
        }
        self.tell(None);
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
