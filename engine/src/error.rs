//! Why a run ended with an error. `run/exit_code.rs` has the exit code for each.

use spoonbill_defs::Problems;

use crate::ledger::Reply;
use crate::store::StoreError;

/// A signal that asks the process to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// `kill`, or Kubernetes when it stops a pod.
    Terminate,
}

/// Why a node without a vote has no report.
const NO_REPORT: &str =
    "no node with a vote answers, so there is no report; finished jobs of this node are kept";

/// Why a run ended with an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RunError {
    /// Definitions or settings are invalid.
    #[error("definitions or settings are invalid")]
    Problems(Problems),
    /// This node's definitions are invalid. The problems were printed before.
    #[error("{0}")]
    Broken(String),
    /// Another node could not set the run up.
    #[error("the node that set up the run failed:\n{0}")]
    Elsewhere(String),
    /// The session was lost meanwhile. The caller starts again with another.
    #[error("this node has lost its session")]
    Stale,
    /// A signal came while the node waited for other nodes.
    #[error("stopped while waiting for other nodes; nothing was changed")]
    Stopped(Signal),
    /// A signal stopped a node without a vote, and no other node answers.
    #[error("{NO_REPORT}")]
    NoReport(Signal),
    /// The data directory holds another run.
    #[error("{0}")]
    OtherRun(String),
    /// The last run is not finished.
    #[error("the last run in this data directory is not finished: `spoonbill run` continues it")]
    NotEnded,
    /// There is nothing to retry.
    #[error("nothing to retry: no job of the last run in this data directory failed")]
    NothingToRetry,
    /// There is no run to complete on this node.
    #[error(
        "nothing to complete: this node has all files of the last run, and no run is unfinished"
    )]
    NothingToComplete,
    /// There is no run to replay.
    #[error("nothing to replay: this data directory holds no run")]
    NothingToReplay,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A defect of this program, or a failure of the machine.
    #[error("{0}")]
    Internal(String),
}

impl RunError {
    /// No node with a vote answers a node without one.
    pub(crate) fn no_report(asked: Option<Signal>) -> Self {
        asked.map_or_else(|| StoreError::NoQuorum(NO_REPORT.to_owned()).into(), Self::NoReport)
    }

    /// The text for other nodes, when this one fails for all.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Problems(problems) => {
                let lines = problems.0.iter().map(|problem| match &problem.place {
                    Some(place) => {
                        let file = place.file.display();
                        format!("{file}:{}:{}: {}", place.line, place.column, problem.message)
                    }
                    None => problem.message.clone(),
                });
                lines.collect::<Vec<_>>().join("\n")
            }
            other => other.to_string(),
        }
    }

    /// The failure of another node's crossing, from its text. That there is nothing to do is no failure.
    pub(crate) fn elsewhere(words: String) -> Self {
        let nothing_to_do = [Self::NothingToRetry, Self::NothingToComplete];
        let same = nothing_to_do.into_iter().find(|error| error.words() == words);
        same.unwrap_or(Self::Elsewhere(words))
    }

    /// The ledger gave an answer that does not belong to the command.
    pub(crate) fn unexpected(asked: &str, reply: &Reply) -> Self {
        Self::Internal(format!("the ledger answered a {asked} with {reply:?}"))
    }
}

/// A count with its noun: `1 job`, `2 jobs`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}
