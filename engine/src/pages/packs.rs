//! The packs: files `pages-000001.pack` and so on that only grow at their end, or the same in memory.
//! `pages.db` says what is where in them.
//!
//! No pack is synced. After a power cut, bytes may be missing or wrong; the marks in `pages.db` show it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bounds of the size at which a pack is full.
const FULL_MAX: u64 = 64 << 20;
const FULL_MIN: u64 = 64 << 10;
/// A full pack is this part of `pages.max`. The oldest packs are dropped whole, so a pack must be
/// a small part of all.
const PACKS_MIN: u64 = 8;
/// The last pack of an earlier process is continued if it has less than this part of a full one.
/// Larger ones are left, because pages that are saved again stay in them as waste.
const RESUME_PART: u64 = 64;

/// All packs of a data directory. At most one of them is being written.
pub(super) struct PackFiles {
    /// `None` keeps the packs in memory.
    dir: Option<PathBuf>,
    /// Bytes of each pack, by its number.
    sizes: BTreeMap<u64, u64>,
    in_memory: BTreeMap<u64, Vec<u8>>,
    current: Option<CurrentPack>,
    last_read: RefCell<Option<(u64, File)>>,
    /// Bytes at which a pack is full.
    full: u64,
}

/// The pack that is being written.
struct CurrentPack {
    number: u64,
    /// `None` in memory.
    file: Option<File>,
    /// Bytes that are added and not yet written.
    pending: Vec<u8>,
}

impl PackFiles {
    /// The packs in a directory, or none in memory. `bytes_max` bounds all packs together.
    pub(super) fn open(dir: Option<&Path>, bytes_max: u64) -> io::Result<Self> {
        Ok(Self {
            dir: dir.map(Path::to_owned),
            sizes: dir.map(sizes_in).transpose()?.unwrap_or_default(),
            in_memory: BTreeMap::new(),
            current: None,
            last_read: RefCell::default(),
            full: (bytes_max / PACKS_MIN).clamp(FULL_MIN, FULL_MAX),
        })
    }

    /// Bytes of all packs.
    pub(super) fn bytes(&self) -> u64 {
        self.sizes.values().sum()
    }

    /// Bytes of a pack; 0 if there is no such pack.
    pub(super) fn bytes_of(&self, pack: u64) -> u64 {
        self.sizes.get(&pack).copied().unwrap_or(0)
    }

    /// Numbers of all packs, the oldest first.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.sizes.keys().copied().collect()
    }

    /// Whether there is a pack with this number.
    pub(super) fn has(&self, pack: u64) -> bool {
        self.sizes.contains_key(&pack)
    }

    /// The pack that is being written.
    pub(super) fn current(&self) -> Option<u64> {
        self.current.as_ref().map(|current| current.number)
    }

    /// Whether there is a current pack that is not full.
    pub(super) fn has_room(&self) -> bool {
        self.current().is_some_and(|pack| self.bytes_of(pack) < self.full)
    }

    /// Begins a pack whose number is above `last` and above all others.
    pub(super) fn begin(&mut self, last: u64) -> io::Result<u64> {
        self.flush()?;
        let number = 1 + last.max(self.sizes.keys().last().copied().unwrap_or(0));
        let file = match &self.dir {
            Some(dir) => {
                let path = dir.join(name_of(number));
                Some(OpenOptions::new().append(true).create_new(true).open(path)?)
            }
            None => None,
        };
        self.sizes.insert(number, 0);
        self.current = Some(CurrentPack { number, file, pending: Vec::new() });
        Ok(number)
    }

    /// Continues the last pack of an earlier process, if that is small.
    pub(super) fn resume(&mut self, pack: u64) {
        let small = self.sizes.get(&pack).is_some_and(|size| *size < self.full / RESUME_PART);
        let last = self.sizes.keys().last() == Some(&pack);
        if let (true, Some(dir)) = (small && last, &self.dir)
            && let Ok(file) = OpenOptions::new().append(true).open(dir.join(name_of(pack)))
        {
            self.current =
                Some(CurrentPack { number: pack, file: Some(file), pending: Vec::new() });
        }
    }

    /// Writes no more to the current pack, not even what is pending.
    pub(super) fn leave(&mut self) {
        self.current = None;
    }

    /// Adds bytes at the end of the current pack.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        if let Some(current) = &mut self.current {
            *self.sizes.entry(current.number).or_default() += bytes.len() as u64;
            current.pending.extend_from_slice(bytes);
        }
    }

    /// Where the next bytes will be in the current pack.
    pub(super) fn end(&self) -> u64 {
        self.current().map_or(0, |pack| self.bytes_of(pack))
    }

    /// Writes everything added, with one call. After an error the pack is left, because nobody
    /// knows how much of it is written.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        let CurrentPack { number, ref mut file, ref mut pending } = *current;
        if pending.is_empty() {
            return Ok(());
        }
        let written = if let Some(file) = file {
            file.write_all(pending)
        } else {
            self.in_memory.entry(number).or_default().extend_from_slice(pending);
            Ok(())
        };
        pending.clear();
        written.map_err(|error| {
            self.current = None;
            io::Error::new(error.kind(), format!("`{}`: {error}", name_of(number)))
        })
    }

    /// Bytes of a pack; `None` if it has less.
    pub(super) fn read(&self, pack: u64, start: u64, length: u64) -> Option<Vec<u8>> {
        let end = start.checked_add(length)?;
        if end > *self.sizes.get(&pack)? {
            return None;
        }
        let Some(dir) = &self.dir else {
            let bytes = self.in_memory.get(&pack)?;
            return bytes.get(start as usize..end as usize).map(<[u8]>::to_vec);
        };
        let mut last = self.last_read.borrow_mut();
        if last.as_ref().is_none_or(|(known, _)| *known != pack) {
            *last = Some((pack, File::open(dir.join(name_of(pack))).ok()?));
        }
        let mut bytes = vec![0; length as usize];
        let (_, file) = last.as_ref()?;
        file.read_exact_at(&mut bytes, start).ok()?;
        Some(bytes)
    }

    /// Removes a pack that no row names any more.
    pub(super) fn remove(&mut self, pack: u64) {
        self.current.take_if(|current| current.number == pack);
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

    /// The path of a pack, for messages.
    pub(super) fn path_of(&self, pack: u64) -> String {
        self.path_beside(&name_of(pack))
    }

    /// The path of a file beside the packs, for messages.
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
