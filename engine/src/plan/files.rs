//! Where files lie that definitions name: scripts and lists of addresses.

use std::path::{Path, PathBuf};

use crate::config::Config;

/// The paths to try for a name: as written, below `resources.dir`, and beside the definitions.
pub(crate) fn candidates(name: &str, dir: &Path, config: &Config) -> Vec<PathBuf> {
    let inner = name.trim_start_matches('/');
    let mut paths = vec![PathBuf::from(name)];
    paths.extend(config.fetch.resources_dir.iter().map(|resources| resources.join(inner)));
    paths.push(dir.join(inner));
    paths
}
