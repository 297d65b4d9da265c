//! Keeps damaged files aside, so that the node can begin with a new disk. This happens only after the
//! cluster has agreed on a number for the new disk. Without a cluster, the files stay where they are.

use std::path::{Path, PathBuf};

use crate::store::StoreError;
use crate::store::journal::sync_name;

/// Prefixes of the files that are kept aside. Saved pages stay: no other node has them.
const OWN: [&str; 4] = ["raft-", "raft.", "snapshot.", "state."];

/// Moves the files of a node to a new folder and returns it. After a crash in between, the log is either
/// recognized as incomplete or gone: its oldest file is moved first, and its mark last.
pub(crate) fn put_aside(dir: &Path) -> Result<PathBuf, StoreError> {
    let failed = |error: std::io::Error| {
        StoreError::Failed(format!(
            "`{}`: the damaged files could not be moved and stay where they are: {error}",
            dir.display()
        ))
    };
    let aside = (1_u32..).map(|number| dir.join(format!("damaged-{number}")));
    let Some(aside) = aside.into_iter().find(|aside| !aside.exists()) else {
        return Err(StoreError::Closed);
    };
    std::fs::create_dir(&aside).map_err(failed)?;
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if OWN.iter().any(|own| name.to_string_lossy().starts_with(own)) {
            names.push(name);
        }
    }
    names.sort();
    for name in names {
        let to = aside.join(&name);
        std::fs::rename(dir.join(&name), &to).map_err(failed)?;
        // Synced one by one, so that the order also holds after a power cut.
        sync_name(&to).and_then(|()| sync_name(&aside)).map_err(failed)?;
    }
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_hold_the_ledger_are_moved() {
        let dir = tempfile::tempdir().unwrap();
        let own = ["raft-000001.journal", "raft.mark", "snapshot.db", "state.db", "state.db-wal"];
        let others = ["lock", "pages.db", "pages-000001.pack"];
        for round in 1..=2 {
            for name in own.iter().chain(&others) {
                std::fs::write(dir.path().join(name), name).unwrap();
            }
            let aside = put_aside(dir.path()).unwrap();
            assert_eq!(aside, dir.path().join(format!("damaged-{round}")));
            assert!(own.iter().all(|name| !dir.path().join(name).exists()));
            assert!(
                own.iter().all(|name| std::fs::read(aside.join(name)).unwrap() == name.as_bytes())
            );
            assert!(others.iter().all(|name| dir.path().join(name).exists()));
        }
    }
}
