//! Why a run could not go on, and the exit code that tells it.

use spoonbill_defs::Problems;

use crate::ledger::Reply;
use crate::store::StoreError;

/// Which signal asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// `kill`, or Kubernetes.
    Terminate,
}

impl Signal {
    /// The exit code of a run that it ended.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// Why a node without a vote has no report.
const NOBODY: &str =
    "no node with a vote answers, so there is no report; what this node did is kept";

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RunError {
    /// Definitions or settings are invalid.
    #[error("definitions or settings are invalid")]
    Problems(Problems),
    /// This node's definitions are invalid, in words that were shown already.
    #[error("{0}")]
    Broken(String),
    /// Another node could not compose the definitions.
    #[error("the node that set up the run failed:\n{0}")]
    Elsewhere(String),
    /// The session was lost on the way; to be begun again with another.
    #[error("the session of this node has ended")]
    Stale,
    /// Somebody asked to stop before there was any work.
    #[error("stopped before the nodes had come together")]
    Stopped(Signal),
    /// Somebody asked to stop, and nobody is left who could tell how the run is.
    #[error("{NOBODY}")]
    Unheard(Signal),
    /// The data directory holds another run.
    #[error("{0}")]
    OtherRun(String),
    /// The last run is to be ended first.
    #[error("the last run in this data directory is not finished: `spoonbill run` continues it")]
    NotEnded,
    /// There is nothing to try again.
    #[error("nothing to try again: no job of the last run in this data directory failed")]
    NothingToRetry,
    /// There is nothing to compare with.
    #[error("nothing to replay: this data directory holds no run")]
    NothingToReplay,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Our own mistake, or the machine's.
    #[error("{0}")]
    Internal(String),
}

impl RunError {
    /// No node with a vote answers one that has none.
    pub(crate) fn unheard(asked: Option<Signal>) -> Self {
        asked.map_or_else(|| StoreError::NoQuorum(NOBODY.to_owned()).into(), Self::Unheard)
    }

    /// What other nodes are told when this one fails for all.
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

    /// What another node's crossing failed with, from its words; that there is nothing to do is no
    /// failure.
    pub(crate) fn elsewhere(words: String) -> Self {
        if words == Self::NothingToRetry.words() {
            return Self::NothingToRetry;
        }
        Self::Elsewhere(words)
    }

    /// The ledger gave an answer that fits no question of ours.
    pub(crate) fn unexpected(asked: &str, reply: &Reply) -> Self {
        Self::Internal(format!("the ledger answered a {asked} with {reply:?}"))
    }

    /// The exit code of `cli.md`.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Problems(_)
            | Self::Broken(_)
            | Self::Elsewhere(_)
            | Self::OtherRun(_)
            | Self::NotEnded => 3,
            Self::Store(StoreError::Unfit(_)) => 2,
            Self::Store(StoreError::NoQuorum(_)) => 75,
            Self::Store(
                StoreError::InUse(_)
                | StoreError::Newer { .. }
                | StoreError::Older { .. }
                | StoreError::Excluded(_),
            ) => 10,
            Self::Store(StoreError::Full(_)) => 9,
            Self::Store(StoreError::Ended(code)) => *code,
            Self::NothingToRetry => 0,
            Self::Stopped(signal) | Self::Unheard(signal) => signal.exit_code(),
            Self::NothingToReplay | Self::Stale | Self::Store(_) | Self::Internal(_) => 1,
        }
    }
}

/// A number of things: `1 job`, `2 jobs`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}
