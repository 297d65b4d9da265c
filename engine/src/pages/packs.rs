//! The bodies of saved pages, straight after each other in files that only grow:
//! `pages-000001.pack` and so on, or in memory. What lies where is written in `pages.db`.
//!
//! Nothing here is synced: after a power cut a body may be missing or be something else, and its
//! mark tells.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes after which a pack is full: at most, and at least.
const FULL: u64 = 64 << 20;
const FULL_MIN: u64 = 64 << 10;
/// Packs that fit into the bound, so that one of them is a small part of all.
const PARTS: u64 = 8;
/// The last pack of another process is gone on with if it is smaller than one part in so many: few
/// files, and little that nobody needs any more in those that stay.
const SMALL: u64 = 64;

/// All packs of a data directory, one of which may be written.
pub(super) struct Packs {
    dir: Option<PathBuf>,
    /// Bytes of each pack.
    sizes: BTreeMap<u64, u64>,
    /// Packs that are in no directory.
    in_memory: BTreeMap<u64, Vec<u8>>,
    writing: Option<Writing>,
    /// Why something could not be written since the last [`Packs::flush`].
    failed: Option<String>,
    last_read: RefCell<Option<(u64, File)>>,
    full: u64,
}

struct Writing {
    number: u64,
    /// None in memory.
    file: Option<File>,
    /// What is not yet written.
    pending: Vec<u8>,
}

impl Packs {
    /// The packs in a directory, or none in memory; all together may have so many bytes.
    pub(super) fn open(dir: Option<&Path>, bytes_max: u64) -> io::Result<Self> {
        Ok(Self {
            dir: dir.map(Path::to_owned),
            sizes: dir.map(sizes_in).transpose()?.unwrap_or_default(),
            in_memory: BTreeMap::new(),
            writing: None,
            failed: None,
            last_read: RefCell::default(),
            full: (bytes_max / PARTS).clamp(FULL_MIN, FULL),
        })
    }

    /// Bytes of all packs.
    pub(super) fn bytes(&self) -> u64 {
        self.sizes.values().sum()
    }

    /// Bytes of a pack.
    pub(super) fn bytes_of(&self, pack: u64) -> u64 {
        self.sizes.get(&pack).copied().unwrap_or(0)
    }

    /// Bytes after which a pack is full.
    pub(super) fn full(&self) -> u64 {
        self.full
    }

    /// Numbers of all packs, the oldest first.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.sizes.keys().copied().collect()
    }

    /// The pack that is written, if there is one with room.
    pub(super) fn current(&mut self) -> Option<u64> {
        let number = self.writing.as_ref()?.number;
        if self.bytes_of(number) >= self.full {
            self.leave();
            return None;
        }
        Some(number)
    }

    /// Begins a pack with a number beyond all others.
    pub(super) fn begin(&mut self, beyond: u64) -> io::Result<u64> {
        self.leave();
        let number = 1 + beyond.max(self.sizes.keys().last().copied().unwrap_or(0));
        let file = match &self.dir {
            Some(dir) => {
                let path = dir.join(name_of(number));
                Some(OpenOptions::new().append(true).create_new(true).open(path)?)
            }
            None => None,
        };
        self.sizes.insert(number, 0);
        self.writing = Some(Writing { number, file, pending: Vec::new() });
        Ok(number)
    }

    /// Goes on with the last pack of an earlier process, if it is still small.
    pub(super) fn resume(&mut self, pack: u64) {
        let small = self.sizes.get(&pack).is_some_and(|size| *size < self.full / SMALL);
        let last = self.sizes.keys().last() == Some(&pack);
        if let (true, Some(dir)) = (small && last, &self.dir)
            && let Ok(file) = OpenOptions::new().append(true).open(dir.join(name_of(pack)))
        {
            self.writing = Some(Writing { number: pack, file: Some(file), pending: Vec::new() });
        }
    }

    /// Writes no more to the current pack.
    pub(super) fn leave(&mut self) {
        self.write();
        self.writing = None;
    }

    /// Adds bytes to the current pack, and says where they will be.
    pub(super) fn add(&mut self, bytes: &[u8]) -> u64 {
        let Some(writing) = &mut self.writing else { return 0 };
        let end = self.sizes.entry(writing.number).or_default();
        let place = *end;
        *end += bytes.len() as u64;
        writing.pending.extend_from_slice(bytes);
        place
    }

    /// Where the next bytes will be.
    pub(super) fn end(&self) -> u64 {
        self.writing.as_ref().map_or(0, |writing| self.bytes_of(writing.number))
    }

    /// Sees to it that everything added is written, with one call for all of it.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        self.write();
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Writes everything added; [`Packs::flush`] tells whether it went well.
    pub(super) fn write(&mut self) {
        let Some(Writing { number, file, pending }) = &mut self.writing else { return };
        if pending.is_empty() {
            return;
        }
        let written = if let Some(file) = file {
            file.write_all(pending)
        } else {
            self.in_memory.entry(*number).or_default().extend_from_slice(pending);
            Ok(())
        };
        pending.clear();
        if let Err(error) = written {
            self.failed = Some(format!("`{}`: {error}", name_of(*number)));
            // Nobody knows how much of it is there.
            self.writing = None;
        }
    }

    /// Bytes of a pack; nothing if they are not there.
    pub(super) fn read(&self, pack: u64, place: u64, length: u64) -> Option<Vec<u8>> {
        let end = place.checked_add(length)?;
        // A length that is a lie must not cost memory.
        if end > *self.sizes.get(&pack)? {
            return None;
        }
        let Some(dir) = &self.dir else {
            let bytes = self.in_memory.get(&pack)?;
            return bytes.get(place as usize..end as usize).map(<[u8]>::to_vec);
        };
        let mut last = self.last_read.borrow_mut();
        if last.as_ref().is_none_or(|(known, _)| *known != pack) {
            *last = Some((pack, File::open(dir.join(name_of(pack))).ok()?));
        }
        let mut bytes = vec![0; length as usize];
        let (_, file) = last.as_ref()?;
        file.read_exact_at(&mut bytes, place).ok()?;
        Some(bytes)
    }

    /// Whether a pack is there.
    pub(super) fn has(&self, pack: u64) -> bool {
        self.sizes.contains_key(&pack)
    }

    /// Throws a pack away, once no page is in it any more.
    pub(super) fn remove(&mut self, pack: u64) {
        if self.writing.as_ref().is_some_and(|writing| writing.number == pack) {
            self.writing = None;
        }
        self.last_read.take();
        self.in_memory.remove(&pack);
        self.sizes.remove(&pack);
        if let Some(dir) = &self.dir
            && let Err(error) = fs::remove_file(dir.join(name_of(pack)))
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!("`{}` could not be removed: {error}", self.path_of(pack));
        }
    }

    /// How a pack is called in messages.
    pub(super) fn path_of(&self, pack: u64) -> String {
        self.path_beside(&name_of(pack))
    }

    /// How a file beside the packs is called in messages.
    pub(super) fn path_beside(&self, name: &str) -> String {
        self.dir
            .as_ref()
            .map_or_else(|| name.to_owned(), |dir| dir.join(name).display().to_string())
    }
}

fn name_of(pack: u64) -> String {
    format!("pages-{pack:06}.pack")
}

fn sizes_in(dir: &Path) -> io::Result<BTreeMap<u64, u64>> {
    let mut sizes = BTreeMap::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        let number = name.strip_prefix("pages-").and_then(|name| name.strip_suffix(".pack"));
        if let Some(number) = number.and_then(|number| number.parse().ok())
            && name_of(number) == name
        {
            sizes.insert(number, entry.metadata()?.len());
        }
    }
    Ok(sizes)
}
