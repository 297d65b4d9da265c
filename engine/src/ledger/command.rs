//! What can be asked of the ledger, and its answers. Every command may be sent again: it changes
//! nothing the second time.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One life of one process: minted when it joins, never used again.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SessionId(pub u64);

/// A node's place in the cluster, as its operator numbers it; the only one of a solo node is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seat(pub u32);

impl Seat {
    /// Numbers from here on are drawn by workers, one for each life; operators give smaller ones.
    pub const DRAWN_FROM: u32 = 1_000_000_000;

    /// Whether one process alone has ever had it, and no other will.
    pub(super) fn is_drawn(self) -> bool {
        self.0 >= Self::DRAWN_FROM
    }
}

/// A job's number in its run, in the order of discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub u64);

/// Proof of the latest grant of a job: a result with an older token changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token(pub u64);

/// How often a barricade has been entered; fences a late release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Epoch(pub u64);

/// A job's name by content: the same work has the same key in solo and cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobKey(#[serde(with = "serde_bytes")] pub [u8; 16]);

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One thing asked of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants tell what their fields are for")]
pub enum Command {
    /// The first words of a cluster: its name, minted once.
    Found { cluster: u128 },
    /// A process starts, or starts over after it has lost its session.
    Join(JoinRequest),
    /// Renews sessions and expires those that are due.
    Beat { renewals: Vec<SessionId> },
    /// A process ends; what it holds is free at once.
    Leave { session: SessionId },
    /// Asks to cross a barricade.
    Claim { session: SessionId, name: String },
    /// Ends a crossing with its result, which every later claim gets.
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
    /// Asks for up to `limit` jobs, of a host without a pause up to `ahead` before their turn, if the
    /// policy allows as many; a resend with the same number gets the same jobs.
    Take { session: SessionId, number: u64, limit: u32, ahead: u32 },
    /// The page of a job in isolation is there and its tasks begin: from now on the death of its
    /// worker is held against the job.
    Begin { session: SessionId, job: JobId, token: Token },
    /// Ends a grant. `since_start_ms` is how long ago its host was last asked; it is not there if
    /// nobody was asked.
    Finish {
        session: SessionId,
        job: JobId,
        token: Token,
        since_start_ms: Option<u64>,
        outcome: Outcome,
    },
    /// Gives jobs back untouched.
    Return { session: SessionId, jobs: Vec<(JobId, Token)> },
    /// An appender has written everything up to a position, durably.
    Ack { appender: u32, position: Position },
    /// All output is written on that node. With the last of the seats the run is closed.
    Close { session: SessionId },
    /// The operator ends the run: no more jobs are granted until somebody opens it again.
    Cancel,
    /// A seat whose disk is new asks for a number that nobody has used; `nonce` makes a resend
    /// harmless. As long as another process lives on that seat there is none.
    Mint { seat: Seat, nonce: u64 },
    /// Keeps a seat out: its session ends, and it may not join.
    Fence { seat: Seat },
    /// Lets a fenced seat in again.
    Admit { seat: Seat },
    /// The connections of a session's process are gone. That is a hint and no proof: it may come
    /// back.
    Doubt { session: SessionId },
}

impl Command {
    /// The session that it acts for, if for any.
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
            // It is about a session, and the leader's own word.
            | Self::Doubt { .. } => None,
        }
    }
}

/// A process that asks for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    /// Makes a resend harmless.
    pub nonce: u64,
    /// The life of the process: the same in every session it asks for.
    pub life: u64,
    /// Its place. Any other session of that place ends at once, for the lock on its data directory
    /// proves that its process is dead.
    pub seat: Seat,
    /// Whether it has a vote: only such a node crosses barricades and writes files.
    pub votes: bool,
    /// No other process can be alive: every older session ends at once.
    pub alone: bool,
}

/// How a run is opened when the store holds another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenMode {
    /// Continue an unfinished run of the same identity, refuse one of another.
    Continue,
    /// Discard an unfinished run.
    Fresh,
    /// Put the failed jobs of the last run back, and nothing else.
    Retry,
    /// Continue an unfinished run, and open no other.
    Complete,
}

/// What a run is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// Hash of everything that decides the rows.
    pub identity: [u8; 32],
    /// Hash of the published definitions.
    pub defs: [u8; 32],
    /// Hash of the published settings.
    pub config: [u8; 32],
    /// Run date-time as text, to the second, with its zone.
    pub date: String,
    /// Folder of this run below the output directory.
    pub folder: String,
    /// Names of the locator groups to be seeded.
    pub groups: Vec<String>,
    /// How many appenders the run has.
    pub appenders: u32,
    /// The seats that write files: all of them have to be done before the run is closed.
    pub seats: Vec<Seat>,
    /// Whether a job waits until all jobs of a smaller depth have ended: then the first way to a
    /// page is a shortest one, whatever the timing.
    pub by_level: bool,
    /// Groups whose jobs wait until all jobs of groups with smaller numbers have ended. Numbers have
    /// no gaps; a group that is not named has 0.
    pub sequence: BTreeMap<String, u32>,
    /// Politeness and patience.
    pub policy: Policy,
}

/// What the elected node composed, for all nodes to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// The effective definitions.
    #[serde(with = "serde_bytes")]
    pub defs: Vec<u8>,
    /// The effective settings.
    #[serde(with = "serde_bytes")]
    pub config: Vec<u8>,
}

/// Politeness and patience of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Pause between two starts on one polite lane.
    pub delay_ms: u64,
    /// Jobs of one polite lane in flight; without a delay, on each node.
    pub slots: u32,
    /// Jobs of a lane without a delay that a node gets ahead of its slots, so that it need not wait
    /// for the others to agree each time it could start one; it keeps to the slots by itself.
    pub ahead: u32,
    /// Jobs of any one lane in flight on a node, so that no lane fills it.
    pub lane_share_max: u32,
    /// Tries of one job before it is failed.
    pub attempts_max: u32,
    /// How long a session lives without a beat.
    pub session_ttl_ms: u64,
    /// How long a session in doubt keeps what others could do as well.
    pub doubt_ms: u64,
    /// How long a job may be in hand from when its turn has come.
    pub task_timeout_ms: u64,
    /// Deaths of its worker before a job is granted only by itself.
    pub deaths_before_isolation: u32,
    /// Deaths in isolation before it is failed.
    pub poison_max: u32,
    /// How long the end of a run waits for seats that are not there.
    pub end_wait_ms: u64,
    /// Whether a seat whose session has expired stays out until it is admitted again.
    pub auto_fence: bool,
    /// What a failed job means for the others.
    pub on_error: OnError,
}

/// What a job that has failed, after all its tries, means for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnError {
    /// Nothing: the run goes on.
    Fail,
    /// Its host gets no more jobs: those that wait are failed too.
    Quarantine,
    /// The run stops; it can be continued.
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

/// A job to be added, unless its key is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewJob {
    /// Name by content.
    pub key: JobKey,
    /// Key of the seeded locator it descends from.
    pub root: JobKey,
    /// Politeness key: a host, or `local`.
    pub lane: String,
    /// Whether the lane is held to the policy's delay and slots.
    pub polite: bool,
    /// First column of its rows.
    pub name: String,
    /// Task group.
    pub group: String,
    /// Address.
    pub url: String,
    /// Links followed to reach it.
    pub depth: u32,
    /// Address of the start page it descends from, where its links are measured against that.
    pub origin: Option<String>,
    /// How many jobs the rule that found it may add.
    pub quota: Option<Quota>,
}

/// A bound on the jobs that one rule adds to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Number of the rule.
    pub rule: u32,
    /// Jobs it may add.
    pub max: u64,
}

/// A job handed to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its number.
    pub id: JobId,
    /// Proof of this grant.
    pub token: Token,
    /// What to do.
    pub job: NewJob,
    /// Names of the tasks to run; empty means all of the group.
    pub tasks: Vec<String>,
    /// Tries so far.
    pub attempts: u32,
    /// Address to load instead of the job's own: redirects have led there, to another host.
    pub at: Option<String>,
    /// Redirects followed to get there.
    pub redirects: u32,
    /// Whether it has to be worked on alone, and [`Command::Begin`] told before its tasks run.
    pub alone: bool,
}

/// How a grant ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants tell what their fields are for")]
pub enum Outcome {
    /// The page was worked on. Its rows and links are committed atomically with the end of the job.
    Done(Box<Harvest>),
    /// Worth another try after a pause; `hold_lane_ms` stops the whole lane as long.
    Retry { reason: String, pause_ms: u64, hold_lane_ms: Option<u64>, tally: Tally },
    /// Not worth another try.
    Failed { reason: String, tally: Tally },
    /// Redirected to a host of another lane, whose turn the job has to await; not a try. `redirects`
    /// counts all since the job's own address.
    Moved { url: String, lane: String, polite: bool, redirects: u32, tally: Tally },
}

/// What a page gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Harvest {
    /// Encoded rows, one block for each task and appender.
    pub blocks: Vec<Block>,
    /// Jobs its links led to.
    pub children: Vec<NewJob>,
    /// Tasks that failed, with their reasons; the others' rows count all the same.
    pub failures: Vec<(String, String)>,
    /// Figures for the report.
    pub tally: Tally,
}

/// Encoded rows for one appender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Which appender.
    pub appender: u32,
    /// Data definition of the rows.
    pub data_def: String,
    /// Place among the blocks of its job, the same in every run: canonical order rests on it.
    pub ordinal: u32,
    /// How many rows.
    pub rows: u32,
    /// The bytes to append.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

/// A block in the output, with the place that decides canonical order.
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

/// How far an appender has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The last block written; 0 before the first.
    pub seq: u64,
    /// Bytes of all blocks written.
    pub bytes: u64,
    /// The appender's own mark. The ledger keeps it and never reads it.
    #[serde(with = "serde_bytes")]
    pub mark: Vec<u8>,
}

/// Figures that add up to the report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Pages loaded over the network or from files.
    pub fetched: u64,
    /// Pages taken from the store.
    pub stored: u64,
    /// Pages given up.
    pub failed: u64,
    /// Bytes of loaded pages.
    pub bytes: u64,
    /// Retried loads.
    pub retries: u64,
    /// Answers by HTTP status.
    pub statuses: BTreeMap<u16, u64>,
    /// Rows by data definition.
    pub rows: BTreeMap<String, u64>,
    /// Locators not loaded, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Things worth telling that are not failures, by their words.
    pub notes: BTreeMap<String, u64>,
    /// What befell the fields of records.
    pub fields: FieldTallies,
}

/// What befell fields, by data definition and field; fields that nothing befell are not there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldTallies(pub BTreeMap<(String, String), FieldTally>);

/// What befell one field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldTally {
    /// Rows appended in which it has a value; counted where something is expected of it.
    pub filled: u64,
    /// Values that did not fit their type.
    pub misfits: u64,
    /// Rows dropped for want of it.
    pub dropped: u64,
    /// Values that the expected pattern does not fit.
    pub mismatches: u64,
    /// One of the misfits.
    pub example: Option<FieldExample>,
    /// One of the mismatches.
    pub mismatch: Option<FieldExample>,
}

/// A value that is told in the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldExample {
    /// Page it was found on.
    pub url: String,
    /// As found, cut if it is long.
    pub value: String,
    /// Why it does not fit.
    pub why: String,
}

impl FieldTallies {
    /// The tally of a field.
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
    /// Adds another tally to this one. The number of different notes is bounded.
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

/// The ledger's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants tell what their fields are for")]
pub enum Reply {
    /// Done.
    Ok,
    /// The session, token or epoch is no longer good; nothing was changed.
    Stale,
    /// A session was opened.
    Joined(SessionId),
    /// The seat is fenced: it stays out until an operator admits it.
    Fenced,
    /// Another process has taken the seat.
    Replaced,
    /// The number a seat's new disk goes by.
    Minted(u32),
    /// The caller may cross, and must release with this epoch.
    Cross(Epoch),
    /// Another node is crossing, or another process has just asked for the seat or lives on it.
    Wait,
    /// Somebody has crossed, with this result.
    Crossed(Result<(), String>),
    /// The run is open.
    Opened { continued: bool },
    /// An unfinished run of another identity is in the way; the hashes of its definitions and
    /// settings tell what differs.
    Unfinished { defs: [u8; 32], config: [u8; 32] },
    /// There is no finished run whose failed jobs could be retried, or no unfinished run to complete.
    NothingToRetry,
    /// The last run has jobs to go: there is no telling yet which of them fail.
    NotEnded,
    /// Jobs granted; with none, how long until one may be due.
    Granted { jobs: Vec<Grant>, wait_ms: Option<u64> },
    /// Some of a command that came in parts is not there; nothing was changed.
    Missing,
}
