//! The folders of output files: one for each run, and one for each node that writes to the same place.

use std::path::{Path, PathBuf};

use crate::bootstrap::Membership;
use crate::failpoint;
use crate::threads::ignore::ignore_leftover;

/// Makes a folder for a new run and returns its name: `wanted`, or `wanted-2` and so on if that exists.
/// If no folder can be made, the appenders report why.
pub(crate) fn make(output: &Path, wanted: &str) -> String {
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

/// The folder of one node's files, claimed for this process.
#[derive(Debug)]
pub(crate) struct OwnFolder {
    /// Its name.
    pub name: String,
    /// The file beside the folder that holds the claim: `.NAME.node`, with the number of the node.
    mark: Option<PathBuf>,
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        if let Some(mark) = &self.mark {
            ignore_leftover(std::fs::remove_file(mark));
        }
    }
}

/// Claims the folder of the run. If another node on this machine writes there, this node uses
/// `FOLDER-nodeN`. A node that has such a folder keeps it when it continues the run.
pub(crate) fn claim_own(output: &Path, folder: &str, member: &Membership) -> OwnFolder {
    let (own, mark) = (member.seat.0.to_string(), output.join(format!(".{folder}.node")));
    let apart = format!("{folder}-node{own}");
    if !member.has_peers() {
        return OwnFolder { name: folder.to_owned(), mark: None };
    }
    if output.join(&apart).is_dir() {
        return OwnFolder { name: apart, mark: None };
    }
    let part = output.join(format!(".{folder}.node{own}"));
    let claim = || {
        std::fs::create_dir_all(output)?;
        std::fs::write(&part, &own)?;
        // The link makes the mark with its content in one step, and fails if another node has it.
        let linked = std::fs::hard_link(&part, &mark);
        std::fs::remove_file(&part)?;
        linked
    };
    let is_taken =
        matches!(claim(), Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists);
    let owner =
        if is_taken { std::fs::read_to_string(&mark).unwrap_or_default() } else { own.clone() };
    // If nothing can be written, the appenders report why.
    if owner == own {
        OwnFolder { name: folder.to_owned(), mark: Some(mark) }
    } else {
        OwnFolder { name: apart, mark: None }
    }
}

/// Makes `latest` point at the folder of this run. A file system without links has no `latest`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Membership;
    use crate::ledger::Seat;

    fn member(number: u32) -> Membership {
        Membership { seat: Seat(number), seats: vec![Seat(1), Seat(2)], ..Membership::alone(0) }
    }

    #[test]
    fn nodes_with_the_same_output_folder_keep_theirs_and_leave_no_marks() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path();
        let first = claim_own(output, "run", &member(1));
        let second = claim_own(output, "run", &member(2));
        assert_eq!((first.name.as_str(), second.name.as_str()), ("run", "run-node2"));
        std::fs::create_dir(output.join(&second.name)).unwrap();
        drop((first, second));
        let names = std::fs::read_dir(output).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["run-node2"]);
        // The run is continued, and node 2 is the first to come.
        let second = claim_own(output, "run", &member(2));
        let first = claim_own(output, "run", &member(1));
        assert_eq!((first.name.as_str(), second.name.as_str()), ("run", "run-node2"));
    }
}
