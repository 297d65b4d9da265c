//! The end-of-run report: what happened, in numbers and in words.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::bootstrap::Place;
use crate::error::counted;
use crate::ledger::Standing;
use crate::run::expectations::{FieldReport, Unmet};
use crate::run::jobs::Share;

/// Failed jobs that the text names.
const FAILURES_IN_WORDS: usize = 10;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FinishReason {
    /// All work is over.
    Finished,
    /// A signal ended it; it can be continued.
    Cancelled,
    /// A failed job ended it, as its settings want it; it can be continued.
    Halted,
    /// It could not go on; what was committed is kept.
    Failed,
}

/// The report of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// How it ended.
    pub finish_reason: FinishReason,
    /// Why, when it failed or was halted.
    pub error: Option<String>,
    /// Whether it went on with an unfinished run.
    pub continued: bool,
    /// When this process began to work on it.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// Seconds between the two.
    pub elapsed_seconds: f64,
    /// What became of pages.
    pub pages: Pages,
    /// Answers by HTTP status.
    pub http_status: BTreeMap<u16, u64>,
    /// Loads tried again.
    pub retries: u64,
    /// Bytes of loaded pages, decompressed.
    pub bytes: u64,
    /// Rows by data definition.
    pub rows: BTreeMap<String, u64>,
    /// What became of jobs.
    pub jobs: Jobs,
    /// The first failed jobs.
    pub failures: Vec<Failure>,
    /// Fields whose values did not fit or were missing.
    pub fields: Vec<FieldReport>,
    /// Expectations that were not met.
    pub unmet: Vec<Unmet>,
    /// Things worth telling that are not failures.
    pub notes: BTreeMap<String, u64>,
    /// Set for a replay: what has become of the rows of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Files written.
    pub outputs: Vec<Output>,
    /// Largest memory of the process.
    pub peak_memory_bytes: u64,
    /// Which node this is.
    pub node: u32,
    /// Whether other machines could reach the nodes of its cluster, and nobody had to prove anything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// Set for a node of a cluster: what it did itself; all other numbers are the cluster's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<NodeShare>,
    /// Whether this node was stopped alone: the others are enough to go on.
    #[serde(skip)]
    pub is_left_to_others: bool,
}

/// What one node of a cluster did itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeShare {
    /// Jobs that ended here.
    pub jobs: u64,
    /// Pages loaded here.
    pub fetched: u64,
    /// Pages taken from this node's store.
    pub from_store: u64,
    /// Loads tried again.
    pub retries: u64,
    /// Bytes of loaded pages.
    pub bytes: u64,
    /// Rows made here.
    pub rows: u64,
}

impl NodeShare {
    pub(crate) fn of(share: &Share) -> Self {
        let tally = &share.tally;
        Self {
            jobs: share.jobs,
            fetched: tally.fetched,
            from_store: tally.stored,
            retries: tally.retries,
            bytes: tally.bytes,
            rows: tally.rows.values().sum(),
        }
    }
}

/// What became of pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pages {
    /// Loaded over the network or from files.
    pub fetched: u64,
    /// Taken from the store.
    pub from_store: u64,
    /// Given up.
    pub failed: u64,
    /// Not loaded, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// What became of jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Jobs {
    /// Ended with all their rows.
    pub done: u64,
    /// Ended without.
    pub failed: u64,
    /// Still to be done.
    pub pending: u64,
}

/// How the rows of a replay differ from those of the last run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Replay {
    /// Pages that are not stored: their rows are missing.
    pub pages_missing: u64,
    /// Rows by data definition.
    pub data_defs: BTreeMap<String, Change>,
}

/// What has become of the rows of one data definition. On each page, rows that are gone and rows
/// that are new are paired up as changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    /// Not there before.
    pub added: u64,
    /// Not there any more.
    pub removed: u64,
    /// Another row in its place, on the same page.
    pub changed: u64,
    /// As before.
    pub same: u64,
}

/// A failed job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failure {
    /// Locator name.
    pub name: String,
    /// Group.
    pub group: String,
    /// Address.
    pub url: String,
    /// Why, one entry for each task or for the page.
    pub reasons: Vec<String>,
}

/// A file that rows went to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// Where.
    pub path: String,
    /// Why not all rows are in it.
    pub error: Option<String>,
}

impl Report {
    /// The report of a run that could not go on: what is known of it without its store.
    pub(crate) fn failed(
        start: Timestamp,
        standing: Standing,
        place: &Place,
        error: String,
    ) -> Self {
        let end = Timestamp::now();
        Self {
            finish_reason: FinishReason::Failed,
            error: Some(error),
            continued: false,
            start,
            end,
            elapsed_seconds: end.duration_since(start).as_secs_f64(),
            pages: Pages::default(),
            http_status: BTreeMap::new(),
            retries: 0,
            bytes: 0,
            rows: BTreeMap::new(),
            jobs: Jobs {
                done: standing.done,
                failed: standing.failed,
                pending: standing.pending + standing.taken,
            },
            failures: Vec::new(),
            fields: Vec::new(),
            unmet: Vec::new(),
            notes: BTreeMap::new(),
            replay: None,
            outputs: Vec::new(),
            peak_memory_bytes: peak_memory(),
            node: place.seat.0,
            insecure: place.exposed,
            share: None,
            is_left_to_others: false,
        }
    }

    /// The exit code of `cli.md`.
    pub(crate) fn exit_code(&self) -> u8 {
        if self.outputs.iter().any(|output| output.error.is_some()) {
            8
        } else if self.finish_reason == FinishReason::Halted {
            4
        } else if self.finish_reason != FinishReason::Finished {
            // A signal has its own code; whatever else kept jobs from being done is no success.
            1
        } else if !self.unmet.is_empty() {
            5
        } else if self.jobs.failed > 0 {
            4
        } else {
            0
        }
    }

    /// The report in words, for a terminal.
    pub(crate) fn text(&self) -> String {
        let mut lines = Vec::new();
        let mut line = |name: &str, words: String| lines.push(format!("{name:>10}  {words}\n"));
        let elapsed = Duration::try_from_secs_f64(self.elapsed_seconds).unwrap_or_default();
        line("run", self.ending(&seconds(elapsed)));
        line("jobs", self.job_words());
        line("pages", self.page_words());
        let statuses = self.http_status.iter().map(|(status, count)| format!("{status}: {count}"));
        let statuses = statuses.collect::<Vec<_>>();
        if !statuses.is_empty() {
            line("answers", statuses.join(", "));
        }
        for (reason, count) in &self.pages.skipped {
            line("skipped", format!("{count} {reason}"));
        }
        let total: u64 = self.rows.values().sum();
        line("rows", total.to_string());
        for (data_def, count) in &self.rows {
            line("", format!("{count} {data_def}"));
        }
        for field in &self.fields {
            line("field", field.text());
        }
        for unmet in &self.unmet {
            line("unmet", unmet.text());
        }
        for words in self.replay.iter().flat_map(replay_words) {
            line("replay", words);
        }
        for (note, count) in &self.notes {
            line("note", format!("{note} ({count})"));
        }
        for failure in self.failures.iter().take(FAILURES_IN_WORDS) {
            let words = failure.reasons.join("; ");
            // A page found through a link has no name of its own.
            let page = if failure.name.is_empty() { &failure.url } else { &failure.name };
            line("failed", format!("{page} ({}): {words}", failure.group));
        }
        let shown = self.failures.len().min(FAILURES_IN_WORDS);
        let hidden = self.jobs.failed.saturating_sub(shown as u64);
        if hidden > 0 {
            let more = match self.replay {
                None => "; `spoonbill failed` lists them",
                Some(_) => "",
            };
            line("failed", format!("and {hidden} more{more}"));
        }
        for output in &self.outputs {
            match &output.error {
                None => line("output", output.path.clone()),
                Some(error) => line("output", format!("{error}; its rows are kept, run again")),
            }
        }
        if let Some(share) = &self.share {
            let NodeShare { jobs, fetched, from_store, bytes, rows, .. } = share;
            line(
                "this node",
                format!(
                    "{}: {}, {fetched} fetched, {from_store} from store, {}, {rows} rows",
                    self.node,
                    counted(*jobs, "job"),
                    size(*bytes)
                ),
            );
        }
        if self.insecure {
            let words =
                "without a secret, whoever reached the nodes could read and change all this";
            line("insecure", words.to_owned());
        }
        line("memory", format!("{} MB at most", self.peak_memory_bytes / 1_000_000));
        lines.concat()
    }

    fn ending(&self, time: &str) -> String {
        let Jobs { failed, pending, .. } = self.jobs;
        match self.finish_reason {
            FinishReason::Finished if failed == 0 && !self.unmet.is_empty() => {
                let unmet = counted(self.unmet.len() as u64, "unmet expectation");
                format!("finished after {time}, with {unmet}")
            }
            FinishReason::Finished if failed == 0 => format!("finished after {time}"),
            FinishReason::Finished => {
                format!("finished after {time}, with {}", counted(failed, "failed job"))
            }
            FinishReason::Cancelled if self.replay.is_some() => {
                format!("cancelled after {time}; a replay begins anew, the last run is as it was")
            }
            FinishReason::Cancelled if self.is_left_to_others => {
                let left = counted(pending, "job");
                format!(
                    "this node has left after {time}, and the others go on with {left} to go; run \
                     again to take part"
                )
            }
            FinishReason::Cancelled if pending == 0 => format!("cancelled after {time}"),
            FinishReason::Cancelled => {
                let left = counted(pending, "job");
                format!("cancelled after {time} with {left} to go; run again to continue")
            }
            FinishReason::Halted => {
                let (left, why) = (counted(pending, "job"), self.error.as_deref().unwrap_or("?"));
                format!("halted after {time} with {left} to go, since {why}; run again to continue")
            }
            FinishReason::Failed => {
                let error = self.error.as_deref().unwrap_or("no reason known");
                format!("failed after {time}: {error}")
            }
        }
    }

    fn job_words(&self) -> String {
        let Jobs { done, failed, pending } = self.jobs;
        format!("{done} done, {failed} failed, {pending} pending")
    }

    fn page_words(&self) -> String {
        let Pages { fetched, from_store, failed, .. } = &self.pages;
        format!(
            "{fetched} fetched, {from_store} from store, {failed} failed, {}, {}",
            if self.retries == 1 {
                "1 retry".to_owned()
            } else {
                format!("{} retries", self.retries)
            },
            size(self.bytes)
        )
    }
}

fn replay_words(replay: &Replay) -> Vec<String> {
    let mut words: Vec<String> = replay
        .data_defs
        .iter()
        .map(|(data_def, change)| {
            let Change { added, removed, changed, same } = change;
            format!("{data_def}: {added} added, {removed} removed, {changed} changed, {same} same")
        })
        .collect();
    match replay.pages_missing {
        0 => {}
        1 => words.push("1 page is not stored".to_owned()),
        missing => words.push(format!("{missing} pages are not stored")),
    }
    words
}

fn seconds(time: Duration) -> String {
    if time < Duration::from_mins(1) {
        return format!("{:.2} s", time.as_secs_f64());
    }
    let whole = time.as_secs();
    format!("{} min {} s", whole / 60, whole % 60)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// The largest memory this process ever had, as the kernel counts it.
pub(crate) fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|words| words.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
