//! Why a run could not go on, and the exit code that tells it.

use spoonbill_defs::Problems;

use crate::ledger::Reply;
use crate::store::StoreError;

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RunError {
    /// Definitions or settings are invalid.
    #[error("definitions or settings are invalid")]
    Problems(Problems),
    /// Another node could not compose the definitions.
    #[error("another node failed: {0}")]
    Elsewhere(String),
    /// The data directory holds another run.
    #[error("{0}")]
    OtherRun(String),
    /// The last run is to be ended first.
    #[error("the last run in this data directory is not finished: `spoonbill run` continues it")]
    NotEnded,
    /// There is nothing to try again.
    #[error("nothing to try again: no job of the last run in this data directory failed")]
    NothingToRetry,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Our own mistake, or the machine's.
    #[error("{0}")]
    Internal(String),
}

impl RunError {
    /// The ledger gave an answer that fits no question of ours.
    pub(crate) fn unexpected(asked: &str, reply: &Reply) -> Self {
        Self::Internal(format!("the ledger answered a {asked} with {reply:?}"))
    }

    /// The exit code of `cli.md`.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Problems(_) | Self::Elsewhere(_) | Self::OtherRun(_) | Self::NotEnded => 3,
            Self::Store(
                StoreError::InUse(_) | StoreError::Newer { .. } | StoreError::Older { .. },
            ) => 10,
            Self::Store(StoreError::Full(_)) => 9,
            Self::NothingToRetry => 0,
            Self::Store(_) | Self::Internal(_) => 1,
        }
    }
}
