//! The folders that rows are written to: one for each run, and for each node of it.

use std::path::{Path, PathBuf};

use crate::bootstrap::Place;
use crate::failpoint;

/// Makes a folder of this run's own: nobody else can have made it. Where none can be made the name
/// stands all the same, and the appenders will tell why.
pub(crate) fn claim(output: &Path, wanted: &str) -> String {
    let made = std::fs::create_dir_all(output);
    let mut name = wanted.to_owned();
    let mut number = 2;
    while made.is_ok() {
        match std::fs::create_dir(output.join(&name)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                name = format!("{wanted}-{number}");
                number += 1;
            }
            Ok(()) | Err(_) => break,
        }
    }
    name
}

/// The folder of this node's files: that of the run, unless another node of the run writes there
/// already, on the same machine. Until the run is closed, a mark beside the folder names its node.
pub(crate) fn own(output: &Path, folder: &str, place: &Place) -> String {
    if place.alone {
        return folder.to_owned();
    }
    let (mark, own) = (mark_of(output, folder), place.seat.0.to_string());
    let part = output.join(format!(".{folder}.node{own}"));
    let claim = || {
        std::fs::create_dir_all(output)?;
        std::fs::write(&part, &own)?;
        // Whole or not at all, and only if nobody else was first.
        let linked = std::fs::hard_link(&part, &mark);
        std::fs::remove_file(&part)?;
        linked
    };
    let taken = matches!(claim(), Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists);
    let owner =
        if taken { std::fs::read_to_string(&mark).unwrap_or_default() } else { own.clone() };
    // Where nothing can be written, the appenders will tell why.
    if owner == own { folder.to_owned() } else { format!("{folder}-node{own}") }
}

pub(crate) fn mark_of(output: &Path, folder: &str) -> PathBuf {
    output.join(format!(".{folder}.node"))
}

/// Makes `latest` point at the folder of this run; a file system without links goes without.
pub(crate) fn point_latest(output: &Path, folder: &str) {
    let (latest, fresh) = (output.join("latest"), output.join(".latest"));
    failpoint::pass("latest.before");
    let made = std::fs::create_dir_all(output)
        .and_then(|()| std::fs::remove_file(&fresh).or(Ok(())))
        .and_then(|()| std::os::unix::fs::symlink(folder, &fresh))
        .and_then(|()| {
            failpoint::pass("latest.linked");
            std::fs::rename(&fresh, &latest)
        });
    failpoint::pass("latest.after");
    if let Err(error) = made {
        tracing::debug!(%error, "`latest` could not be made");
    }
}
