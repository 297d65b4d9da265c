//! The commands of the ledger and its replies. Every command may be sent again: the second time it
//! changes nothing.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Number of a session. Each join of a process gets a new one.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SessionId(pub u64);

/// A node's number in the cluster, chosen by its operator. A node that runs alone has 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seat(pub u32);

impl Seat {
    /// The first number of workers. Each worker process draws its number at random from here on;
    /// operators choose smaller ones.
    pub const DRAWN_FROM: u32 = 1_000_000_000;

    /// Whether a worker drew this number, so that no other process ever uses it.
    pub(super) fn is_drawn(self) -> bool {
        self.0 >= Self::DRAWN_FROM
    }
}

/// Number of a job, in the order of discovery. Later runs continue the count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub u64);

/// Proof of the latest grant of a job: a result with an older token changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token(pub u64);

/// Number of a crossing. A late release carries an old number and is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Epoch(pub u64);

/// Identity of a job, derived from its content: the same work has the same key on one machine and in a
/// cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobKey(#[serde(with = "serde_bytes")] pub [u8; 16]);

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A command to the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum Command {
    /// Founds the cluster: sets its identity once.
    Found { cluster: u128 },
    /// A process asks for a session: at its start, or after it has lost one.
    Join(JoinRequest),
    /// Renews these sessions and ends those whose deadline has passed.
    Beat { renewals: Vec<SessionId> },
    /// A process leaves. The jobs it holds are queued again at once.
    Leave { session: SessionId },
    /// Asks for permission to cross a barricade.
    Claim { session: SessionId, name: String },
    /// Ends a crossing. Every later claim gets its result.
    Release { session: SessionId, name: String, epoch: Epoch, result: Result<(), String> },
    /// Opens a run with its definitions and settings, or continues the unfinished one with the
    /// same identity.
    OpenRun {
        session: SessionId,
        epoch: Epoch,
        plan: RunPlan,
        publish: Publication,
        mode: OpenMode,
    },
    /// Adds jobs of a locator group; `last` closes the group.
    Seed { session: SessionId, epoch: Epoch, group: String, jobs: Vec<NewJob>, last: bool },
    /// Asks for up to `limit` jobs. On a lane without a delay, up to `ahead` of them may exceed the
    /// session's slots, if the policy allows that. A resend with the same number gets the same jobs.
    Take { session: SessionId, number: u64, limit: u32, ahead: u32 },
    /// The page of an isolated job is loaded and its tasks begin. From now on a death of its worker
    /// counts against the job.
    Begin { session: SessionId, job: JobId, token: Token },
    /// Ends a grant. `since_start_ms` is how long ago the worker sent the last request to the host;
    /// `None` if it sent none.
    Finish {
        session: SessionId,
        job: JobId,
        token: Token,
        since_start_ms: Option<u64>,
        outcome: Outcome,
    },
    /// Returns jobs that the worker has not started.
    Return { session: SessionId, jobs: Vec<(JobId, Token)> },
    /// An appender has durably written everything up to a position.
    Ack { appender: u32, position: Position },
    /// The node has written all output. The last seat to report this closes the run.
    Close { session: SessionId },
    /// The operator ends the run: no job is granted until a node opens it again.
    Cancel,
    /// A seat with a new disk asks for an unused number. `nonce` identifies a resend. The ledger refuses
    /// while another process lives on that seat.
    Mint { seat: Seat, nonce: u64 },
    /// Fences a seat: its session ends, and it may not join.
    Fence { seat: Seat },
    /// Admits a fenced seat again.
    Admit { seat: Seat },
    /// The connections of a session's process are closed. That is a hint, no proof: the process may
    /// reconnect.
    Doubt { session: SessionId },
}

impl Command {
    /// The session on whose behalf the command acts, if any.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Self::Leave { session }
            | Self::Claim { session, .. }
            | Self::Release { session, .. }
            | Self::OpenRun { session, .. }
            | Self::Seed { session, .. }
            | Self::Take { session, .. }
            | Self::Begin { session, .. }
            | Self::Finish { session, .. }
            | Self::Return { session, .. }
            | Self::Close { session } => Some(*session),
            Self::Found { .. }
            | Self::Join(_)
            | Self::Beat { .. }
            | Self::Ack { .. }
            | Self::Cancel
            | Self::Mint { .. }
            | Self::Fence { .. }
            | Self::Admit { .. }
            // The leader itself sends this about a session.
            | Self::Doubt { .. } => None,
        }
    }
}

/// A process that asks for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    /// Identifies a resend.
    pub nonce: u64,
    /// Identifies the process: the same in every session it asks for.
    pub life: u64,
    /// The seat of the node. Every other session of that seat ends at once: the lock on the data
    /// directory proves that its process is dead.
    pub seat: Seat,
    /// Whether the node has a vote. Only such a node crosses barricades and writes files.
    pub votes: bool,
    /// Whether no other process can be alive. If so, every older session ends at once.
    pub alone: bool,
}

/// How to treat the run that the ledger holds when a run is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenMode {
    /// Continue an unfinished run with the same identity; refuse if it has another.
    Continue,
    /// Discard an unfinished run.
    Fresh,
    /// Queue the failed jobs of the last run again, and nothing else.
    Retry,
    /// Continue an unfinished run, and open no other.
    Complete,
}

/// Definitions, settings and policy of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// Hash of everything that determines the rows.
    pub identity: [u8; 32],
    /// Hash of the published definitions.
    pub defs: [u8; 32],
    /// Hash of the published settings.
    pub config: [u8; 32],
    /// Date and time of the run with its zone, to the second.
    pub date: String,
    /// Folder of this run below the output directory.
    pub folder: String,
    /// Names of the locator groups to seed.
    pub groups: Vec<String>,
    /// Number of appenders.
    pub appenders: u32,
    /// The seats that write files. The run is closed once all of them have written everything.
    pub seats: Vec<Seat>,
    /// Whether a job waits until all jobs of a smaller depth have ended. The first path to a page is
    /// then a shortest one, independent of timing.
    pub by_level: bool,
    /// Order of groups: a job waits until all jobs of groups with smaller numbers have ended. Numbers
    /// have no gaps; a group that is missing here has 0.
    pub sequence: BTreeMap<String, u32>,
    /// Politeness, timeouts and limits.
    pub policy: Policy,
}

/// The definitions and settings that one node composed for all nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// The effective definitions.
    #[serde(with = "serde_bytes")]
    pub defs: Vec<u8>,
    /// The effective settings.
    #[serde(with = "serde_bytes")]
    pub config: Vec<u8>,
}

/// Politeness, timeouts and limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Shortest time between two starts on one polite lane.
    pub delay_ms: u64,
    /// Most jobs in flight on one polite lane. Without a delay, the limit applies to each node.
    pub slots: u32,
    /// Jobs that a node may hold beyond its slots on a polite lane without a delay. They spare a round
    /// of consensus for each start. The node itself keeps to the slots.
    pub ahead: u32,
    /// Most jobs of any one lane in flight on a node, so that no lane takes all its capacity.
    pub lane_share_max: u32,
    /// Attempts before a job fails.
    pub attempts_max: u32,
    /// How long a session lives without a renewal.
    pub session_ttl_ms: u64,
    /// How long a session whose connections are closed keeps jobs that any node could do.
    pub doubt_ms: u64,
    /// How long a job may be in flight, counted from when its turn on the lane has come.
    pub task_timeout_ms: u64,
    /// Deaths of its worker after which a job is isolated.
    pub deaths_before_isolation: u32,
    /// Deaths in isolation after which a job fails.
    pub poison_max: u32,
    /// How long the end of a run waits for seats that are disconnected.
    pub end_wait_ms: u64,
    /// Whether a seat whose session has expired is fenced until an operator admits it.
    pub auto_fence: bool,
    /// The consequence of a failed job.
    pub on_error: OnError,
}

/// The consequence of a job that has failed after all its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnError {
    /// The run continues.
    Fail,
    /// Its host is quarantined: queued jobs of that host fail too.
    Quarantine,
    /// The run stops. It can be continued.
    Halt,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            delay_ms: 1000,
            slots: 1,
            ahead: 0,
            lane_share_max: 32,
            attempts_max: 4,
            session_ttl_ms: 5000,
            doubt_ms: 1000,
            task_timeout_ms: 30 * 60 * 1000,
            deaths_before_isolation: 3,
            poison_max: 5,
            end_wait_ms: 20_000,
            auto_fence: false,
            on_error: OnError::Fail,
        }
    }
}

/// A job to add, unless its key is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewJob {
    /// Identity by content.
    pub key: JobKey,
    /// Key of the seeded locator it descends from.
    pub root: JobKey,
    /// Politeness key: a host, or `local`.
    pub lane: String,
    /// Whether the policy's delay and slots apply to the lane.
    pub polite: bool,
    /// First column of its rows.
    pub name: String,
    /// Task group.
    pub group: String,
    /// Address.
    pub url: String,
    /// Number of links followed to reach it.
    pub depth: u32,
    /// Address of its start page, if a rule compares links with it.
    pub origin: Option<String>,
    /// Limit of the rule that found it.
    pub quota: Option<Quota>,
}

/// Limit on the jobs that one rule adds to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Number of the rule.
    pub rule: u32,
    /// Most jobs that the rule may add.
    pub max: u64,
}

/// A job granted to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its number.
    pub id: JobId,
    /// Proof of this grant.
    pub token: Token,
    /// The job itself.
    pub job: NewJob,
    /// Names of the tasks to run; empty means all of the group.
    pub tasks: Vec<String>,
    /// Earlier attempts.
    pub attempts: u32,
    /// Address on another host to which redirects have led; loaded instead of the job's own.
    pub at: Option<String>,
    /// Redirects followed to reach `at`.
    pub redirects: u32,
    /// Whether the worker must hold nothing else and send [`Command::Begin`] before the tasks run.
    pub alone: bool,
}

/// How a grant ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum Outcome {
    /// The page was worked on. Its rows and links are committed atomically with the end of the job.
    Done(Box<Harvest>),
    /// Retry after `pause_ms`; `hold_lane_ms` pauses the whole lane for that time.
    Retry { reason: String, pause_ms: u64, hold_lane_ms: Option<u64>, tally: Tally },
    /// Failed, and a retry would not help.
    Failed { reason: String, tally: Tally },
    /// Redirected to a host of another lane, where the job is queued. It does not count as an attempt.
    /// `redirects` counts all redirects since the job's own address.
    Moved { url: String, lane: String, polite: bool, redirects: u32, tally: Tally },
}

/// The result of a page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Harvest {
    /// Encoded rows, one block for each task and appender.
    pub blocks: Vec<Block>,
    /// Jobs for its links.
    pub children: Vec<NewJob>,
    /// Tasks that failed, with reasons. Rows of the remaining tasks are kept.
    pub failures: Vec<(String, String)>,
    /// Figures for the report.
    pub tally: Tally,
}

/// Encoded rows for one appender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Number of the appender.
    pub appender: u32,
    /// Data definition of the rows.
    pub data_def: String,
    /// Position among the blocks of its job. It is the same in every run, and the canonical order
    /// depends on it.
    pub ordinal: u32,
    /// Number of rows.
    pub rows: u32,
    /// The bytes to append.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

/// A block in the output, with the values that determine the canonical order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputBlock {
    /// Position in the output.
    pub seq: u64,
    /// Group of the job.
    pub group: String,
    /// Locator name of the job.
    pub name: String,
    /// Key of the job.
    pub key: JobKey,
    /// The rows.
    pub block: Block,
}

/// The progress of an appender.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Number of the last block written; 0 before the first.
    pub seq: u64,
    /// Bytes of all blocks written.
    pub bytes: u64,
    /// Opaque data of the appender. The ledger stores it and never reads it.
    #[serde(with = "serde_bytes")]
    pub mark: Vec<u8>,
}

/// Figures that are summed for the report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Pages loaded over the network or from files.
    pub fetched: u64,
    /// Pages taken from the store.
    pub stored: u64,
    /// Pages that failed.
    pub failed: u64,
    /// Bytes of loaded pages.
    pub bytes: u64,
    /// Retries.
    pub retries: u64,
    /// Responses by HTTP status.
    pub statuses: BTreeMap<u16, u64>,
    /// Rows by data definition.
    pub rows: BTreeMap<String, u64>,
    /// Locators not loaded, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Notes that are not failures, by their text.
    pub notes: BTreeMap<String, u64>,
    /// Problems and counts of record fields.
    pub fields: FieldTallies,
}

/// Problems and counts by data definition and field. Fields without any are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldTallies(pub BTreeMap<(String, String), FieldTally>);

/// Problems and counts of one field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldTally {
    /// Appended rows in which the field has a value. Counted only if an expectation names the field.
    pub filled: u64,
    /// Values that did not fit their type.
    pub misfits: u64,
    /// Rows dropped because a required value was missing.
    pub dropped: u64,
    /// Values that do not match the expected pattern.
    pub mismatches: u64,
    /// One of the misfits.
    pub example: Option<FieldExample>,
    /// One of the mismatches.
    pub mismatch: Option<FieldExample>,
}

/// A value shown in the report as an example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldExample {
    /// Page it was found on.
    pub url: String,
    /// The value as found, shortened if it is long.
    pub value: String,
    /// Why it is wrong.
    pub why: String,
}

impl FieldTallies {
    /// The counts of a field; added if missing.
    pub fn of(&mut self, data_def: &str, field: &str) -> &mut FieldTally {
        self.0.entry((data_def.to_owned(), field.to_owned())).or_default()
    }

    /// Adds other tallies to these.
    pub fn add(&mut self, other: &Self) {
        for ((data_def, field), more) in &other.0 {
            let tally = self.of(data_def, field);
            tally.filled += more.filled;
            tally.misfits += more.misfits;
            tally.dropped += more.dropped;
            tally.mismatches += more.mismatches;
            tally.example = tally.example.take().or_else(|| more.example.clone());
            tally.mismatch = tally.mismatch.take().or_else(|| more.mismatch.clone());
        }
    }
}

impl Tally {
    /// Adds another tally. At most `NOTES_MAX` different notes are kept.
    pub fn add(&mut self, other: &Tally) {
        const NOTES_MAX: usize = 100;
        self.fetched += other.fetched;
        self.stored += other.stored;
        self.failed += other.failed;
        self.bytes += other.bytes;
        self.retries += other.retries;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (name, count) in &other.rows {
            *self.rows.entry(name.clone()).or_default() += count;
        }
        for (reason, count) in &other.skipped {
            *self.skipped.entry(reason.clone()).or_default() += count;
        }
        self.fields.add(&other.fields);
        for (note, count) in &other.notes {
            if self.notes.len() < NOTES_MAX || self.notes.contains_key(note) {
                *self.notes.entry(note.clone()).or_default() += count;
            }
        }
    }
}

/// The ledger's reply to a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum Reply {
    /// Done.
    Ok,
    /// The session, token or epoch is no longer valid. Nothing was changed.
    Stale,
    /// A session was opened.
    Joined(SessionId),
    /// The seat is fenced until an operator admits it.
    Fenced,
    /// Another process has taken the seat.
    Replaced,
    /// The number for a seat's new disk.
    Minted(u32),
    /// The caller may cross and must release with this epoch.
    Cross(Epoch),
    /// Not now: another node is crossing, or another process holds or has just asked for the seat.
    Wait,
    /// A node has crossed, with this result.
    Crossed(Result<(), String>),
    /// The run is open.
    Opened { continued: bool },
    /// There is an unfinished run with another identity. The hashes of its definitions and settings
    /// let the caller show the difference.
    Unfinished { defs: [u8; 32], config: [u8; 32] },
    /// There is no finished run whose failed jobs could be retried, or no unfinished run to complete.
    NothingToRetry,
    /// The last run still has jobs, so it is not known yet which of them fail.
    NotEnded,
    /// The granted jobs, and how long until a job may be due if there are none.
    Granted { jobs: Vec<Grant>, wait_ms: Option<u64> },
    /// A part of a command that was sent in parts is missing. Nothing was changed.
    Missing,
}
