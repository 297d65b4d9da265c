//! The pure core: a deterministic state machine for one run. It knows the jobs, the sessions that hold
//! them and the results.
//!
//! Commands go in, replies come out: [`Ledger::apply`] takes a [`Command`] with a [`Stamp`] and returns a
//! [`Reply`]. There is no clock, no random number and no I/O. Time arrives in the stamp, so the same
//! commands lead to the same state on every node and after every restart. Each command may be sent
//! again: the second time it changes nothing.
//!
//! The state has two parts. [`Core`] is small: it is kept in memory and stored whole with each commit.
//! [`Tables`] hold the large part (jobs, queues, known keys, failed jobs, output) and may be on disk.
//! The ledger decides, and the tables only store.
//!
//! `invariants.rs` lists the invariants that hold after every command. The unit tests, the simulation,
//! the model check and `spoonbill fsck` all use that list.

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

/// When a command was accepted: milliseconds since the current leadership began (on one machine: since
/// the process started). Ledger time adds up differences, so a restart or a new leader causes no jump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Number of the leadership.
    pub leadership: u64,
    /// Milliseconds since it began.
    pub ms: u64,
}

/// The most that one command may advance ledger time.
const ADVANCE_MAX_MS: u64 = 1000;

/// A run and its progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Number of the run in this ledger.
    pub number: u64,
    /// Definitions, settings and policy.
    pub plan: RunPlan,
    /// Groups whose locators have all been added.
    pub seeded: Vec<String>,
    /// Jobs queued.
    pub pending: u64,
    /// Jobs that ended with all their rows.
    pub done: u64,
    /// Jobs that ended without some or all of their rows.
    pub failed: u64,
    /// Number of known keys.
    pub known: u64,
    /// Last block of the output.
    pub output_seq: u64,
    /// Bytes of the output, for each appender.
    pub output_bytes: Vec<u64>,
    /// The progress of each appender.
    pub positions: Vec<Position>,
    /// All output is written, and the next run may begin.
    pub closed: bool,
    /// Seats that have written all output.
    pub written: BTreeSet<Seat>,
    /// Seats whose process has reported the end of the run.
    pub end_reported: BTreeSet<Seat>,
    /// Ledger time at which the work was found to be over.
    pub over_since: Option<u64>,
    /// An operator or a failed job has ended the run. It can be continued.
    pub cancelled: bool,
    /// Message about the failed job that has ended the run.
    pub halted: Option<String>,
    /// Epoch in which the run was opened, and whether that continued it.
    pub opened: (Epoch, bool),
    /// Figures for the report.
    pub tally: Tally,
    /// Whether the run was closed before and its failed jobs are being retried.
    pub retried: bool,
    /// Number of jobs of each level that have not ended. Empty in a run without levels.
    pub open: BTreeMap<u32, u64>,
    /// Number of jobs that each rule with a quota has added.
    pub added: BTreeMap<u32, u64>,
}

impl Run {
    /// Whether the process on `seat` has yet to report the end of this closed run.
    pub fn lacks_end_report(&self, seat: Seat) -> bool {
        self.closed && self.plan.seats.contains(&seat) && !self.end_reported.contains(&seat)
    }

    /// Committed bytes that the slowest appender has not written.
    pub fn lag_bytes(&self, positions: &[Position]) -> u64 {
        let behind = self.output_bytes.iter().zip(positions);
        behind.map(|(all, written)| all.saturating_sub(written.bytes)).max().unwrap_or(0)
    }
}

/// The small state: kept in memory and stored whole with every commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// Ledger time in milliseconds.
    pub clock: u64,
    stamp: Stamp,
    // Counters that only grow.
    next_job: u64,
    next_token: u64,
    next_session: u64,
    next_epoch: u64,
    next_run: u64,
    grants: u64,
    /// Ledger time at which a process last found that its predecessor had died.
    gap_from: Option<u64>,
    /// Identity of the cluster, once it is founded.
    pub cluster: Option<u128>,
    /// The current or last run.
    pub run: Option<Run>,
    /// The record of each seat that has ever joined.
    pub seats: BTreeMap<Seat, SeatRecord>,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    pub(crate) barricades: BTreeMap<String, Barricade>,
    pub(crate) taken: BTreeMap<JobId, OpenGrant>,
}

impl Core {
    /// Number of jobs in flight.
    pub fn taken_count(&self) -> u64 {
        self.taken.len() as u64
    }

    /// The session that was created last.
    pub fn last_session(&self) -> SessionId {
        SessionId(self.next_session)
    }

    /// Number of jobs that each session holds.
    pub fn held(&self) -> BTreeMap<SessionId, u64> {
        let mut held = BTreeMap::new();
        for taken in self.taken.values() {
            *held.entry(taken.session).or_default() += 1;
        }
        held
    }
}

/// Figures that the rest of the engine watches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Jobs queued.
    pub pending: u64,
    /// Jobs in flight.
    pub taken: u64,
    /// Jobs that ended with all their rows.
    pub done: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Rows committed.
    pub rows: u64,
    /// Last block of the committed output.
    pub output_seq: u64,
    /// Committed bytes that the slowest appender has not written.
    pub lag_bytes: u64,
    /// Every group is seeded, and no job is queued or in flight.
    pub over: bool,
    /// All output is written on every seat that must write it.
    pub closed: bool,
    /// An operator or a failed job has ended the run early.
    pub cancelled: bool,
    /// Nodes with a vote that have a session.
    pub voters: u32,
    /// Nodes without a vote that have a session.
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

    /// Applies one command. After an error of the tables the state is undefined, and the caller must
    /// drop this ledger without storing it.
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
            // The limit keeps sessions alive when a machine was suspended or a store was blocked.
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

    /// The large state, for reads that need `&mut` (a cached statement, a buffer).
    pub fn tables_mut(&mut self) -> &mut T {
        &mut self.tables
    }

    /// Both parts of the state, so that they can be stored together.
    pub fn parts(&mut self) -> (&Core, &mut T) {
        (&self.core, &mut self.tables)
    }

    /// Writes every changed lane to the tables. The caller stores the core.
    pub fn save_lanes(&mut self) -> TableResult<()> {
        for (id, lane) in self.lanes.take_dirty() {
            let bytes = postcard::to_stdvec(lane).map_err(|error| {
                TableError::new(format!("cannot encode lane {}: {error}", lane.name))
            })?;
            self.tables.put_lane(id, &bytes)?;
        }
        Ok(())
    }

    /// All lanes.
    pub fn lanes(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        self.lanes.iter()
    }

    /// Figures that the rest of the engine watches.
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

    /// Whether the work of the run is over.
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
        self.put_publication(&plan, publish)?;
        self.core.taken.clear();
        self.lanes = Lanes::restore([], &self.core.taken, self.core.gap_from);
        self.core.next_run += 1;
        self.core.run = Some(Run {
            number: self.core.next_run,
            output_bytes: vec![0; plan.appenders as usize],
            positions: vec![Position::default(); plan.appenders as usize],
            opened: (epoch, false),
            plan,
            ..Run::default()
        });
        Ok(Reply::Opened { continued: false })
    }

    /// Continues the run with the definitions and settings of this start. The run keeps its date, folder
    /// and groups; politeness, limits and seats may change.
    fn adopt(&mut self, epoch: Epoch, plan: RunPlan, publish: &Publication) -> TableResult<()> {
        self.put_publication(&plan, publish)?;
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

    fn put_publication(&mut self, plan: &RunPlan, publish: &Publication) -> TableResult<()> {
        self.tables.put_blob(plan.defs, &publish.defs)?;
        self.tables.put_blob(plan.config, &publish.config)
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
