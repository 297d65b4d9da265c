//! Replay: all rows anew from saved pages, with the definitions of now, beside those of the last
//! run. It works in a ledger of its own, so nothing of the last run is touched.

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
use crate::run::report::{Replay, Report};
use crate::run::{Errand, Offer, Replaying};
use crate::store::{Answer, Question};

/// The folder of a replay's own ledger, inside the data directory; gone when it ends.
const SCRATCH: &str = "replay";

/// A replay about to be run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The definitions with settings for work without network.
    pub offer: Offer,
    /// What to do with them.
    pub errand: Errand,
    scratch: PathBuf,
    last: Run,
}

impl Plan {
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
        let definitions = indoors(definitions, &scratch, &last)?;
        let replay = Some(Replaying { pages_dir, folder });
        let errand = Errand { mode: OpenMode::Fresh, replay };
        Ok(Self { offer: Offer::of(definitions), errand, scratch, last })
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
        report.replay = Some(Replay { pages_missing: missing, data_defs });
        Ok(())
    }

    /// Takes the ledger of the replay away.
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

/// The same with a ledger elsewhere, no politeness towards nobody, and the date of the last run:
/// what depends on the date differs only if the definitions do.
fn indoors(definitions: &Definitions, scratch: &Path, last: &Run) -> Result<Definitions, RunError> {
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
