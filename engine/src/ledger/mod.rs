//! THE PURE CORE: one deterministic state machine that knows what is to be done, who does it and
//! what has come of it. No clock, no dice, no I/O: time comes stamped on each command, and the
//! large state lies in [`Tables`] that only keep what they are given.

mod barricades;
mod command;
mod failing;
mod flipper;
mod invariants;
mod jobs;
mod lanes;
mod levels;
mod returns;
mod seats;
mod sessions;
mod tables;

#[cfg(test)]
#[allow(clippy::large_enum_variant, clippy::match_same_arms, clippy::needless_pass_by_value)]
#[allow(clippy::semicolon_if_nothing_returned)]
mod sim;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use barricades::Barricade;
pub use command::{
    Block, Command, Epoch, FieldExample, FieldTallies, FieldTally, Grant, Harvest, JobId, JobKey,
    JoinRequest, NewJob, OnError, OpenMode, Outcome, OutputBlock, Policy, Position, Publication,
    Quota, Reply, RunPlan, Seat, SessionId, Tally, Token,
};
pub use flipper::{Phase, PhaseInput, flip};
pub use invariants::violations;
pub use jobs::ALREADY_KNOWN;
pub use lanes::Lane;
pub use seats::{SeatRecord, completion};
pub use sessions::Session;
pub use tables::{FailedJob, Job, LaneId, MemoryTables, TableError, TableResult, Tables};

use jobs::OpenGrant;
use lanes::Lanes;

/// When a command was accepted: milliseconds since the current leadership (in solo: the process)
/// began. Ledger time only adds up differences, so a restart or a new leader never jumps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Which leadership.
    pub leadership: u64,
    /// Milliseconds since it began.
    pub ms: u64,
}

/// How far one command may move ledger time.
const ADVANCE_MAX_MS: u64 = 1000;

/// A run and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Which run of this ledger it is.
    pub number: u64,
    /// What it is made of.
    pub plan: RunPlan,
    /// Groups whose locators are all in.
    pub seeded: Vec<String>,
    /// Jobs queued.
    pub pending: u64,
    /// Jobs ended with all their rows.
    pub done: u64,
    /// Jobs ended without.
    pub failed: u64,
    /// Keys known.
    pub known: u64,
    /// Last block of the output.
    pub output_seq: u64,
    /// Bytes of the output, for each appender.
    pub output_bytes: Vec<u64>,
    /// How far each appender has come.
    pub positions: Vec<Position>,
    /// Everything is written; the next run may begin.
    pub closed: bool,
    /// Seats that have written everything.
    pub written: BTreeSet<Seat>,
    /// Seats whose process has told the end of the run; the others are owed it.
    pub end_reported: BTreeSet<Seat>,
    /// When the work was over.
    pub over_since: Option<u64>,
    /// An operator or a failed job has ended it; it can be continued.
    pub cancelled: bool,
    /// The failed job that has ended it, in words.
    pub halted: Option<String>,
    /// The crossing it was opened in, and whether it was continued then.
    pub opened: (Epoch, bool),
    /// Figures for the report.
    pub tally: Tally,
    /// Whether it was closed before and its failed jobs are being tried again.
    pub retried: bool,
    /// Jobs of each level that have not ended; kept by a run that goes level by level.
    pub open: BTreeMap<u32, u64>,
    /// Jobs that each rule with a quota has added.
    pub added: BTreeMap<u32, u64>,
}

impl Run {
    /// Whether the end of this run is still to be told on that seat.
    pub fn lacks_end_report(&self, seat: Seat) -> bool {
        self.closed && self.plan.seats.contains(&seat) && !self.end_reported.contains(&seat)
    }

    /// Bytes committed that the appender furthest behind has not written.
    pub fn lag_bytes(&self, positions: &[Position]) -> u64 {
        let behind = self.output_bytes.iter().zip(positions);
        behind.map(|(all, written)| all.saturating_sub(written.bytes)).max().unwrap_or(0)
    }
}

/// The ledger's small state, kept in memory and stored whole with every commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// Ledger time in milliseconds.
    pub clock: u64,
    stamp: Stamp,
    /// Counters that only grow.
    next_job: u64,
    next_token: u64,
    next_session: u64,
    next_epoch: u64,
    next_run: u64,
    grants: u64,
    /// When a process last found that the one before it had died.
    gap_from: Option<u64>,
    /// The name of the cluster, once it has one.
    pub cluster: Option<u128>,
    /// The current or last run.
    pub run: Option<Run>,
    /// Who has ever joined, by seat.
    pub seats: BTreeMap<Seat, SeatRecord>,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    pub(crate) barricades: BTreeMap<String, Barricade>,
    pub(crate) taken: BTreeMap<JobId, OpenGrant>,
}

impl Core {
    /// Jobs granted and not ended.
    pub fn taken_count(&self) -> u64 {
        self.taken.len() as u64
    }

    /// The newest session there ever was.
    pub fn last_session(&self) -> SessionId {
        SessionId(self.next_session)
    }

    /// Jobs that each session holds.
    pub fn held(&self) -> BTreeMap<SessionId, u64> {
        let mut held = BTreeMap::new();
        for taken in self.taken.values() {
            *held.entry(taken.session).or_default() += 1;
        }
        held
    }
}

/// The few numbers others watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Jobs queued.
    pub pending: u64,
    /// Jobs granted.
    pub taken: u64,
    /// Jobs ended well.
    pub done: u64,
    /// Jobs ended badly.
    pub failed: u64,
    /// Rows committed.
    pub rows: u64,
    /// Last block of the committed output.
    pub output_seq: u64,
    /// Bytes committed and not yet written by the appender that is furthest behind.
    pub lag_bytes: u64,
    /// Everything seeded, nothing pending, nothing taken.
    pub over: bool,
    /// Everything is written wherever it has to be.
    pub closed: bool,
    /// An operator or a failed job has ended the run.
    pub cancelled: bool,
    /// Nodes with a vote that have a session.
    pub voters: u32,
    /// Nodes without a vote that have one.
    pub workers: u32,
    /// Barricades that a node is crossing.
    pub crossings: u32,
}

/// The state machine.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct Ledger<T> {
    core: Core,
    lanes: Lanes,
    tables: T,
}

impl<T: Tables> Ledger<T> {
    /// A ledger over empty or stored state.
    pub fn new(core: Core, lanes: impl IntoIterator<Item = (LaneId, Lane)>, tables: T) -> Self {
        let gap_from = core.gap_from;
        let lanes = Lanes::restore(lanes, &core.taken, gap_from);
        let mut ledger = Self { core, lanes, tables };
        let policy = ledger.policy();
        ledger.lanes.open_level(ledger.core.level());
        ledger.lanes.arrange_all(&policy);
        ledger
    }

    /// Applies one command. An error means the tables failed: the state is then undefined and
    /// the caller must throw this ledger away without storing it.
    pub fn apply(&mut self, stamp: Stamp, command: Command) -> TableResult<Reply> {
        self.advance(stamp);
        match command {
            Command::Found { cluster } => Ok(self.found(cluster)),
            Command::Join(arrival) => self.join(arrival),
            Command::Beat { renewals } => self.beat(&renewals),
            Command::Leave { session } => self.leave(session),
            Command::Claim { session, name } => Ok(self.claim(session, &name)),
            Command::Release { session, name, epoch, result } => {
                Ok(self.release(session, &name, epoch, result))
            }
            Command::OpenRun { session, epoch, plan, publish, mode } => {
                self.open_run(session, epoch, plan, &publish, mode)
            }
            Command::Seed { session, epoch, group, jobs, last } => {
                self.seed(session, epoch, group, jobs, last)
            }
            Command::Take { session, number, limit, ahead } => {
                self.take(session, number, limit, ahead)
            }
            Command::Begin { job, token, .. } => Ok(self.begin(job, token)),
            Command::Finish { job, token, since_start_ms, outcome, .. } => {
                self.finish(job, token, since_start_ms, outcome)
            }
            Command::Return { session, jobs } => self.give_back(session, &jobs),
            Command::Ack { appender, position } => Ok(self.ack(appender, position)),
            Command::Close { session } => Ok(self.close(session)),
            Command::Cancel => Ok(self.cancel()),
            Command::Mint { seat, nonce } => Ok(self.mint(seat, nonce)),
            Command::Fence { seat } => self.fence(seat),
            Command::Admit { seat } => Ok(self.admit(seat)),
            Command::Doubt { session } => Ok(self.doubt(session)),
        }
    }

    fn advance(&mut self, stamp: Stamp) {
        let last = std::mem::replace(&mut self.core.stamp, stamp);
        if last.leadership == stamp.leadership {
            // A machine that slept, or a store that stood still, expires nobody when it wakes.
            self.core.clock += stamp.ms.saturating_sub(last.ms).min(ADVANCE_MAX_MS);
        }
    }

    /// The small state.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The large state.
    pub fn tables(&self) -> &T {
        &self.tables
    }

    /// The large state, for reading what needs `&mut` (a cached statement, a buffer).
    pub fn tables_mut(&mut self) -> &mut T {
        &mut self.tables
    }

    /// The small state and the large, for storing the one beside the other.
    pub fn parts(&mut self) -> (&Core, &mut T) {
        (&self.core, &mut self.tables)
    }

    /// Gives the tables every changed lane; the caller stores the core beside them.
    pub fn save_lanes(&mut self) -> TableResult<()> {
        for (id, lane) in self.lanes.take_dirty() {
            let bytes = postcard::to_stdvec(lane).map_err(|error| TableError {
                message: format!("lane {} could not be encoded: {error}", lane.name),
                full: false,
            })?;
            self.tables.put_lane(id, &bytes)?;
        }
        Ok(())
    }

    /// All lanes.
    pub fn lanes(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.lanes.iter()
    }

    /// The few numbers others watch.
    pub fn standing(&self) -> Standing {
        let votes = |wanted| self.core.sessions.values().filter(|one| one.votes == wanted).count();
        let (voters, workers) = (votes(true) as u32, votes(false) as u32);
        let crossings = self.crossings();
        let Some(run) = &self.core.run else {
            return Standing { voters, workers, crossings, ..Standing::default() };
        };
        Standing {
            pending: run.pending,
            taken: self.core.taken.len() as u64,
            done: run.done,
            failed: run.failed,
            rows: run.tally.rows.values().sum(),
            output_seq: run.output_seq,
            lag_bytes: run.lag_bytes(&run.positions),
            over: self.over(),
            closed: run.closed,
            cancelled: run.cancelled,
            voters,
            workers,
            crossings,
        }
    }

    /// The one fact that ends a run.
    fn over(&self) -> bool {
        self.core.run.as_ref().is_some_and(|run| {
            run.seeded.len() == run.plan.groups.len()
                && run.pending == 0
                && self.core.taken.is_empty()
        })
    }

    fn lanes_are_indexed(&self) -> bool {
        self.lanes.are_indexed(&self.policy())
    }

    fn holders_are_consistent(&self) -> bool {
        self.lanes.holders_are_consistent(&self.policy())
    }

    fn policy(&self) -> Policy {
        self.core.run.as_ref().map_or_else(Policy::default, |run| run.plan.policy)
    }

    fn open_run(
        &mut self,
        session: SessionId,
        epoch: Epoch,
        plan: RunPlan,
        publish: &Publication,
        mode: OpenMode,
    ) -> TableResult<Reply> {
        if !self.is_crossing(session, epoch) {
            return Ok(Reply::Stale);
        }
        if let Some(run) = self.core.run.as_ref().filter(|run| run.opened.0 == epoch) {
            return Ok(Reply::Opened { continued: run.opened.1 });
        }
        if self.must_report_last_run(session, &plan, mode) {
            return Ok(Reply::Opened { continued: true });
        }
        let unfinished = self.core.run.as_ref().filter(|run| !run.closed);
        match (mode, unfinished) {
            (OpenMode::Retry, None) => return self.retry_failed(epoch, plan, publish),
            (OpenMode::Retry, Some(run)) if !run.retried => return Ok(Reply::NotEnded),
            (OpenMode::Complete, None) => return Ok(Reply::NothingToRetry),
            (OpenMode::Continue | OpenMode::Complete | OpenMode::Retry, Some(run)) => {
                if run.plan.identity == plan.identity {
                    self.adopt(epoch, plan, publish)?;
                    return Ok(Reply::Opened { continued: true });
                }
                return Ok(Reply::Unfinished { defs: run.plan.defs, config: run.plan.config });
            }
            (OpenMode::Fresh, _) | (OpenMode::Continue, None) => {}
        }
        if self.must_wait_for_last_run(session) {
            return Ok(Reply::Wait);
        }
        self.tables.clear()?;
        self.tables.put_blob(plan.defs, &publish.defs)?;
        self.tables.put_blob(plan.config, &publish.config)?;
        self.core.taken.clear();
        self.lanes = Lanes::restore([], &self.core.taken, self.core.gap_from);
        let positions = vec![Position::default(); plan.appenders as usize];
        let output_bytes = vec![0; plan.appenders as usize];
        self.core.next_run += 1;
        self.core.run = Some(Run {
            number: self.core.next_run,
            plan,
            seeded: Vec::new(),
            pending: 0,
            done: 0,
            failed: 0,
            known: 0,
            output_seq: 0,
            output_bytes,
            positions,
            closed: false,
            written: BTreeSet::new(),
            end_reported: BTreeSet::new(),
            over_since: None,
            cancelled: false,
            halted: None,
            opened: (epoch, false),
            tally: Tally::default(),
            retried: false,
            open: BTreeMap::new(),
            added: BTreeMap::new(),
        });
        Ok(Reply::Opened { continued: false })
    }

    /// Goes on with the definitions and settings of now. The run keeps its date, its folder and its
    /// groups; politeness, limits and places may change from start to start.
    fn adopt(&mut self, epoch: Epoch, plan: RunPlan, publish: &Publication) -> TableResult<()> {
        self.tables.put_blob(plan.defs, &publish.defs)?;
        self.tables.put_blob(plan.config, &publish.config)?;
        if let Some(run) = &mut self.core.run {
            let old = std::mem::replace(&mut run.plan, plan);
            (run.plan.date, run.plan.folder, run.plan.groups) = (old.date, old.folder, old.groups);
            (run.plan.by_level, run.plan.sequence) = (old.by_level, old.sequence);
            (run.opened, run.cancelled, run.halted) = ((epoch, true), false, None);
        }
        let policy = self.policy();
        if policy.on_error != OnError::Quarantine {
            self.lanes.reopen();
        }
        self.lanes.arrange_all(&policy);
        Ok(())
    }

    fn ack(&mut self, appender: u32, position: Position) -> Reply {
        let Some(run) = &mut self.core.run else {
            return Reply::Stale;
        };
        match run.positions.get_mut(appender as usize) {
            Some(known) if known.seq <= position.seq && position.seq <= run.output_seq => {
                *known = position;
                Reply::Ok
            }
            _ => Reply::Stale,
        }
    }
}
