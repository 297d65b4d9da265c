//! New projects: the files of a starter, or a definition written from a proposal.
//!
//! The definition was read back and tried on the page before it is written.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file of a new project.
#[derive(Debug, Clone)]
pub(crate) struct NewFile {
    /// Path below the project.
    pub path: String,
    /// The content.
    pub text: String,
}

impl NewFile {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }
}

/// Why a project was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// A file exists, so nothing was written.
    #[error("{} {} already; `init` does not overwrite files", list(.0), if .0.len() == 1 { "exists" } else { "exist" })]
    Exists(Vec<PathBuf>),
    /// A file could not be written.
    #[error("`{}` cannot be written: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    names.join(", ")
}

/// Writes all files below `dir`, or none if one of them exists.
pub(crate) fn write(dir: &Path, files: &[NewFile]) -> Result<(), WriteError> {
    let there: Vec<PathBuf> =
        files.iter().map(|file| dir.join(&file.path)).filter(|path| path.exists()).collect();
    if !there.is_empty() {
        return Err(WriteError::Exists(there));
    }
    for file in files {
        let path = dir.join(&file.path);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            // Another process may have written it since the check.
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)?
                .write_all(file.text.as_bytes())
        });
        written.map_err(|source| WriteError::Io { path, source })?;
    }
    Ok(())
}
