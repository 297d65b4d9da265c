//! Writing: the files of a run on one node, from their folder to the last row.

use std::sync::Arc;

use tokio::sync::watch;

use crate::bootstrap::Node;
use crate::error::RunError;
use crate::ledger::Run;
use crate::plan::prepare::Plan;
use crate::run::append::{self, AppendResult, AppenderMediator};
use crate::run::current::current_run;
use crate::run::folder::{self, OwnFolder};
use crate::run::request::RunRequest;
use crate::store::{Answer, Question, Store};

/// The files of a run while they are written.
pub(crate) struct Writing {
    appenders: AppenderMediator,
    /// The run they belong to.
    run_number: u64,
    /// The claim on the folder; none on a node that writes no files.
    folder: Option<OwnFolder>,
}

/// Files that hold all rows they will get from this process.
pub(crate) struct Written {
    /// The files.
    pub files: Vec<AppendResult>,
    /// The last run, as of the last row in the files.
    pub run: Run,
    /// The run that the files belong to.
    pub run_number: u64,
    /// The claim on their folder, given up when this is dropped.
    pub folder: Option<OwnFolder>,
}

impl Written {
    /// Whether every file holds all rows.
    pub(crate) fn is_complete(&self) -> bool {
        self.files.iter().all(|file| file.error.is_none())
    }
}

impl Writing {
    /// Starts the appenders where they stopped; a node without a vote has none.
    pub(crate) fn start(
        node: &Node,
        request: &RunRequest,
        plan: &Plan,
        run: &Run,
    ) -> Result<Self, RunError> {
        let output = &plan.config.output;
        let (mut orders, mut claimed) = (Vec::new(), None);
        if node.member.votes {
            let folder = folder::claim_own(&output.dir, &run.plan.folder, &node.member);
            if request.replay.is_none() {
                folder::point_latest(&output.dir, &folder.name);
            }
            orders = append::orders(plan, run, &folder.name);
            claimed = Some(folder);
        }
        let appenders = AppenderMediator::start(&node.store, orders)
            .map_err(|error| RunError::Internal(format!("no thread for an appender: {error}")))?;
        Ok(Self { appenders, run_number: run.number, folder: claimed })
    }

    /// Whether an appender has failed: its rows will not be written by this process.
    pub(crate) fn broken(&self) -> watch::Receiver<bool> {
        self.appenders.broken()
    }

    /// Writes what is committed, and ends the appenders.
    pub(crate) async fn finish(self, store: &Arc<dyn Store>) -> Result<Written, RunError> {
        let Self { appenders, run_number, folder } = self;
        let flushed = store.ask(Question::Flush).await;
        let asked = Arc::clone(store);
        let close = move || {
            let mut run = Ok(None);
            let files = appenders.close(|| {
                run = asked.ask_blocking(Question::Run).map(|answer| match answer {
                    Answer::Run(run) => run,
                    _ => None,
                });
                run.as_ref().ok().and_then(Option::as_ref).map_or(u64::MAX, |run| run.output_seq)
            });
            (files, run)
        };
        // Waiting for threads blocks.
        let (mut files, run) = tokio::task::spawn_blocking(close)
            .await
            .map_err(|error| RunError::Internal(format!("appenders ended: {error}")))?;
        flushed?;
        let run = run?.ok_or_else(|| RunError::Internal("the store has no run".to_owned()))?;
        if current_run(store).await?.number != run_number {
            // This node had no session when another run began, which removed the output of this one.
            for file in &mut files {
                file.error.get_or_insert_with(|| {
                    format!("`{}` is not complete: another run has begun", file.target)
                });
            }
        }
        Ok(Written { files, run: *run, run_number, folder })
    }
}
