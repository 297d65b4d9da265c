//! The end-of-run report, as JSON and as text.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::bootstrap::{Membership, Node};
use crate::error::{RunError, counted};
use crate::ledger::{Run, Standing};
use crate::run::append::AppendResult;
use crate::run::expectations::{self, FieldReport, Unmet};
use crate::run::totals::NodeTotals;
use crate::store::{Answer, Question};

/// Failed jobs in the JSON report. `spoonbill failed` lists all of them.
const FAILURES_MAX: usize = 100;
/// Failed jobs in the text.
const FAILURES_IN_TEXT: usize = 10;

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FinishReason {
    /// All work is over.
    #[default]
    Finished,
    /// A signal or an operator ended it; it can be continued.
    Cancelled,
    /// A failed job ended it (`job.onError`); it can be continued.
    Halted,
    /// An error ended it; committed rows and jobs are kept.
    Failed,
}

/// The report of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// How it ended.
    pub finish_reason: FinishReason,
    /// Why, when it failed or was halted.
    pub error: Option<String>,
    /// Whether it continued an unfinished run.
    pub continued: bool,
    /// When this process joined it.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// Seconds between the two.
    pub elapsed_seconds: f64,
    /// Pages by outcome.
    pub pages: PageCounts,
    /// Answers by HTTP status.
    pub http_status: BTreeMap<u16, u64>,
    /// Retried loads.
    pub retries: u64,
    /// Bytes of loaded pages, decompressed.
    pub bytes: u64,
    /// Rows by data definition.
    pub rows: BTreeMap<String, u64>,
    /// Jobs by state.
    pub jobs: JobCounts,
    /// The first failed jobs.
    pub failures: Vec<FailedPage>,
    /// Fields with missing values, or values that do not match.
    pub fields: Vec<FieldReport>,
    /// Expectations that were not met.
    pub unmet: Vec<Unmet>,
    /// Notes that are no failures, with their count.
    pub notes: BTreeMap<String, u64>,
    /// Set for a replay: how its rows differ from those of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayChanges>,
    /// Files written.
    pub outputs: Vec<OutputFile>,
    /// Largest memory of the process.
    pub peak_memory_bytes: u64,
    /// Which node this is.
    pub node: u32,
    /// Whether the nodes of the cluster were reachable from other machines without a secret.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// Set for a node of a cluster: what this node did. All other numbers are those of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<NodeFigures>,
    /// Whether only this node was stopped, and enough other nodes continue.
    #[serde(skip)]
    pub is_left_to_others: bool,
}

/// The figures of one node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeFigures {
    /// Jobs that ended here.
    pub jobs: u64,
    /// Pages loaded here.
    pub fetched: u64,
    /// Pages taken from this node's store.
    pub from_store: u64,
    /// Loads retried here.
    pub retries: u64,
    /// Bytes of loaded pages.
    pub bytes: u64,
    /// Rows made here.
    pub rows: u64,
}

impl NodeFigures {
    pub(crate) fn of(totals: &NodeTotals) -> Self {
        let tally = &totals.tally;
        Self {
            jobs: totals.jobs,
            fetched: tally.fetched,
            from_store: tally.stored,
            retries: tally.retries,
            bytes: tally.bytes,
            rows: tally.rows.values().sum(),
        }
    }
}

/// Pages by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageCounts {
    /// Loaded over the network or from files.
    pub fetched: u64,
    /// Taken from the store.
    pub from_store: u64,
    /// Not loaded after all attempts.
    pub failed: u64,
    /// Skipped, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// Jobs by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobCounts {
    /// Done, with all their rows.
    pub done: u64,
    /// Failed.
    pub failed: u64,
    /// Not done yet.
    pub pending: u64,
}

/// How the rows of a replay differ from those of the last run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplayChanges {
    /// Pages that are not stored, so their rows are missing.
    pub pages_missing: u64,
    /// Rows by data definition.
    pub data_defs: BTreeMap<String, RowChanges>,
}

/// How the rows of one data definition differ. On each page, a removed row and an added row count
/// together as one changed row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RowChanges {
    /// Only in the replay.
    pub added: u64,
    /// Only in the last run.
    pub removed: u64,
    /// Replaced by another row of the same page.
    pub changed: u64,
    /// In both.
    pub same: u64,
}

/// A failed job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailedPage {
    /// Locator name.
    pub name: String,
    /// Group.
    pub group: String,
    /// Address.
    pub url: String,
    /// The reasons, one for each task or one for the page.
    pub reasons: Vec<String>,
}

/// An output file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutputFile {
    /// Its path.
    pub path: String,
    /// Why it does not hold all rows, if it does not.
    pub error: Option<String>,
}

impl Report {
    /// The report of a run that has ended here. `is_over` tells whether all its work is over.
    pub(super) async fn of(
        node: &Node,
        is_over: bool,
        start: Timestamp,
        run: Run,
        files: Vec<AppendResult>,
    ) -> Result<Self, RunError> {
        let failures = failed_pages(node).await?;
        let fields = expectations::fields(&run.tally);
        let is_left_to_others = !is_over && !run.cancelled && are_others_enough(node);
        let end = node.clock.now();
        let finish_reason = match &run.halted {
            _ if is_over => FinishReason::Finished,
            Some(_) => FinishReason::Halted,
            None => FinishReason::Cancelled,
        };
        let output = |file: AppendResult| OutputFile { path: file.target, error: file.error };
        Ok(Self {
            finish_reason,
            error: run.halted.filter(|_| !is_over),
            continued: run.opened.1,
            start,
            end,
            elapsed_seconds: end.duration_since(start).as_secs_f64(),
            pages: PageCounts {
                fetched: run.tally.fetched,
                from_store: run.tally.stored,
                failed: run.tally.failed,
                skipped: run.tally.skipped,
            },
            http_status: run.tally.statuses,
            retries: run.tally.retries,
            bytes: run.tally.bytes,
            rows: run.tally.rows,
            jobs: JobCounts {
                done: run.done,
                failed: run.failed,
                pending: run.known - run.done - run.failed,
            },
            failures,
            fields,
            notes: run.tally.notes,
            outputs: files.into_iter().map(output).collect(),
            is_left_to_others,
            ..Self::of_member(&node.member)
        })
    }

    /// The report of a run that an error has ended: what is known of it without its store.
    pub(crate) fn failed(
        start: Timestamp,
        standing: Standing,
        member: &Membership,
        error: String,
    ) -> Self {
        let end = Timestamp::now();
        Self {
            finish_reason: FinishReason::Failed,
            error: Some(error),
            start,
            end,
            elapsed_seconds: end.duration_since(start).as_secs_f64(),
            jobs: JobCounts {
                done: standing.done,
                failed: standing.failed,
                pending: standing.pending + standing.taken,
            },
            ..Self::of_member(member)
        }
    }

    fn of_member(member: &Membership) -> Self {
        let (peak_memory_bytes, node) = (peak_memory(), member.seat.0);
        Self { peak_memory_bytes, node, insecure: member.is_insecure, ..Self::default() }
    }

    /// The report as text, for a terminal.
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
        for failure in self.failures.iter().take(FAILURES_IN_TEXT) {
            let words = failure.reasons.join("; ");
            // A page found through a link has no name.
            let page = if failure.name.is_empty() { &failure.url } else { &failure.name };
            line("failed", format!("{page} ({}): {words}", failure.group));
        }
        let shown = self.failures.len().min(FAILURES_IN_TEXT);
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
            let NodeFigures { jobs, fetched, from_store, bytes, rows, .. } = share;
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
                "without a secret, anyone who reached the nodes could read and change this run";
            line("insecure", words.to_owned());
        }
        line("memory", format!("{} MB at most", self.peak_memory_bytes / 1_000_000));
        lines.concat()
    }

    fn ending(&self, time: &str) -> String {
        let JobCounts { failed, pending, .. } = self.jobs;
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
                format!("cancelled after {time}; the last run is not changed")
            }
            FinishReason::Cancelled if self.is_left_to_others => {
                let left = counted(pending, "job");
                format!(
                    "this node has left after {time}, and other nodes continue with {left} to go; run \
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
                let error = self.error.as_deref().unwrap_or("the reason is not known");
                format!("failed after {time}: {error}")
            }
        }
    }

    fn job_words(&self) -> String {
        let JobCounts { done, failed, pending } = self.jobs;
        format!("{done} done, {failed} failed, {pending} pending")
    }

    fn page_words(&self) -> String {
        let PageCounts { fetched, from_store, failed, .. } = &self.pages;
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

async fn failed_pages(node: &Node) -> Result<Vec<FailedPage>, RunError> {
    let failed = Question::Failed { after: None, limit: FAILURES_MAX };
    let Answer::Failed(failed) = node.store.ask(failed).await? else { return Ok(Vec::new()) };
    let failed = failed.into_iter().map(|(_, failed)| FailedPage {
        name: failed.job.new.name,
        group: failed.job.new.group,
        url: failed.job.new.url,
        reasons: failed.reasons,
    });
    Ok(failed.collect())
}

/// Whether enough other nodes with a vote continue without this one. Sessions show nodes that were
/// connected a moment ago, so a leader must have been heard lately, too.
fn are_others_enough(node: &Node) -> bool {
    let Membership { votes, seats, .. } = &node.member;
    let others = node.store.standing().borrow().voters.saturating_sub(u32::from(*votes));
    others as usize > seats.len() / 2 && node.is_led()
}

fn replay_words(replay: &ReplayChanges) -> Vec<String> {
    let mut words: Vec<String> = replay
        .data_defs
        .iter()
        .map(|(data_def, change)| {
            let RowChanges { added, removed, changed, same } = change;
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
