//! Reads what the store knows of the current run.

use std::sync::Arc;

use crate::error::RunError;
use crate::ledger::Run;
use crate::store::{Answer, Question, Store, StoreError};

/// The current or last run, if there is one.
pub(crate) async fn last_run(store: &Arc<dyn Store>) -> Result<Option<Run>, RunError> {
    match store.ask(Question::Run).await? {
        Answer::Run(run) => Ok(run.map(|run| *run)),
        other => Err(RunError::Internal(format!("the store answered with {other:?}, not a run"))),
    }
}

/// The current run, which the caller has opened.
pub(crate) async fn current_run(store: &Arc<dyn Store>) -> Result<Run, RunError> {
    let run = last_run(store).await?;
    run.ok_or_else(|| RunError::Internal("the store has no run".to_owned()))
}

/// Definitions or settings that the run was opened with.
pub(crate) async fn blob(store: &Arc<dyn Store>, hash: [u8; 32]) -> Result<Vec<u8>, RunError> {
    match store.ask(Question::Blob(hash)).await? {
        Answer::Blob(Some(bytes)) => Ok(bytes),
        _ => Err(StoreError::Damaged("what the run was opened with is missing".to_owned()).into()),
    }
}
