//! Replay: computes all rows again from saved pages with the current definitions, and compares them with
//! the rows of the last run. It uses a separate ledger, so the last run is not changed.

mod compare;

use std::path::{Path, PathBuf};

use crate::bootstrap::Node;
use crate::config::Config;
use crate::error::RunError;
use crate::ledger::{OpenMode, Run};
use crate::pages;
use crate::plan::load::Definitions;
use crate::plan::prepare::RunDate;
use crate::run::pages::NOT_STORED;
use crate::run::report::{ReplayChanges, Report};
use crate::run::request::{LocalSetup, ReplaySource, RunRequest};
use crate::store::{Answer, Question};

/// The folder of a replay's ledger, inside the data directory. It is removed at the end.
const SCRATCH: &str = "replay";

/// A replay that is ready to run.
#[derive(Debug)]
pub(crate) struct PlannedReplay {
    /// The definitions with settings for work without network.
    pub setup: LocalSetup,
    /// How it is run.
    pub request: RunRequest,
    scratch: PathBuf,
    last: Run,
}

impl PlannedReplay {
    /// Plans the replay of the last run, which must have ended.
    pub(crate) fn new(node: &Node, definitions: &Definitions) -> Result<Self, RunError> {
        let last = match node.store.ask_blocking(Question::Run)? {
            Answer::Run(Some(run)) if run.closed => *run,
            Answer::Run(Some(_)) => return Err(RunError::NotEnded),
            _ => return Err(RunError::NothingToReplay),
        };
        let pages_dir = definitions.plan.config.store.data_dir.clone();
        pages::check_usable(&pages_dir)?;
        let scratch = pages_dir.join(SCRATCH);
        clear(&scratch)?;
        let pattern = &definitions.plan.config.output.dir_timestamp_pattern;
        let folder = format!("{}-replay", definitions.plan.date.text(pattern));
        let definitions = offline(definitions, &scratch, &last)?;
        let replay = Some(ReplaySource { pages_dir, folder });
        let request = RunRequest { mode: OpenMode::Fresh, replay };
        Ok(Self { setup: LocalSetup::of(definitions), request, scratch, last })
    }

    /// Adds to the report of a replay how its rows differ from those of the last run.
    pub(crate) fn complete(
        &self,
        report: &mut Report,
        before: &Node,
        after: &Node,
    ) -> Result<(), RunError> {
        let missing = report.pages.skipped.remove(NOT_STORED).unwrap_or(0);
        let data_defs = compare::compare(&self.scratch, &self.last, before, after)?;
        report.replay = Some(ReplayChanges { pages_missing: missing, data_defs });
        Ok(())
    }

    /// Removes the ledger of the replay.
    pub(crate) fn clear(&self) -> Result<(), RunError> {
        clear(&self.scratch)
    }
}

fn clear(scratch: &Path) -> Result<(), RunError> {
    match std::fs::remove_dir_all(scratch) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(RunError::Internal(format!("`{}`: {error}", scratch.display())))
        }
        _ => Ok(()),
    }
}

/// The same definitions for work without network: another ledger, no delays, and the date of the last run.
/// Values that depend on the date then differ only if the definitions do.
fn offline(definitions: &Definitions, scratch: &Path, last: &Run) -> Result<Definitions, RunError> {
    let mut settings = definitions.plan.config.to_map();
    for (key, value) in [
        ("data.dir", scratch.display().to_string()),
        ("loader.fetch.delay", "0ms".to_owned()),
        ("loader.fetch.parallelism", "1000".to_owned()),
    ] {
        settings.insert(key.to_owned(), value);
    }
    let config = Config::from_map(&settings).map_err(RunError::Problems)?;
    let date = match (&config.dates.run_date_time_text, RunDate::parse(&last.plan.date)) {
        (None, Some(date)) => date,
        _ => definitions.plan.date.clone(),
    };
    definitions.with(&config, &date).map_err(RunError::Problems)
}
