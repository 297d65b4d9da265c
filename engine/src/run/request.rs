//! The request for a run, and the definitions and settings of this machine.

use std::path::PathBuf;

use crate::config::Config;
use crate::ledger::OpenMode;
use crate::plan::load::Definitions;

/// How the definitions are run.
#[derive(Debug)]
pub(crate) struct RunRequest {
    /// How the run is opened.
    pub mode: OpenMode,
    /// Set to compute rows again from saved pages.
    pub replay: Option<ReplaySource>,
}

/// Where a replay reads its pages and writes its rows.
#[derive(Debug)]
pub(crate) struct ReplaySource {
    /// The data directory with the pages.
    pub pages_dir: PathBuf,
    /// The folder of its files; `latest` is not changed.
    pub folder: String,
}

/// The part of a run that lies on this machine.
#[derive(Debug)]
pub(crate) struct LocalSetup {
    /// The definitions, or the problems with them as text.
    pub definitions: Result<Definitions, String>,
    /// The settings.
    pub config: Config,
    /// The folder of the definitions. Files that they name may lie beside it.
    pub dir: PathBuf,
}

impl LocalSetup {
    /// The setup with valid definitions.
    pub(crate) fn of(definitions: Definitions) -> Self {
        let (config, dir) = (definitions.plan.config.clone(), definitions.dir.clone());
        Self { definitions: Ok(definitions), config, dir }
    }
}
