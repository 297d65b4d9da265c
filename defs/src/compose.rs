//! Many files to one effective [`Defs`]: merge, inherit, resolve names.

use std::path::Path;

use crate::Defs;
use crate::problem::{Problem, Problems};
use crate::text::Sources;

/// Settings that composing depends on.
#[derive(Debug, Clone)]
pub struct Options {
    /// Chain of tasks without `steps` (setting `defs.defaultSteps`).
    pub default_steps: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            default_steps: "jsoupDefault".to_owned(),
        }
    }
}

/// Definitions that are whole, and what was noticed on the way.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The effective definitions.
    pub defs: Defs,
    /// The files they came from, for later problems with a place.
    pub sources: Sources,
    /// Warnings; never errors.
    pub warnings: Vec<Problem>,
}

/// Reads every definition file below `dir` and resolves every name in them.
pub fn load(dir: &Path, options: &Options) -> Result<Loaded, Problems> {
    let _ = (dir, options);
    Err(Problems::default())
}

/// Reads definitions from text, as if it were the only file of a directory.
pub fn from_str(name: &str, text: &str, options: &Options) -> Result<Loaded, Problems> {
    let _ = (name, text, options);
    Err(Problems::default())
}
