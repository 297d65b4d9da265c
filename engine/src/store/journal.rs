//! An append-only file of numbered records: a record is durable after one write and one sync.
//!
//! The file is extended with zeros in advance. A sync then writes data only and leaves the size of the
//! file alone, which halves its cost. Each record has a checksum and the next number. The journal ends
//! before the first record without either. Once its records are stored elsewhere, the journal starts
//! over at the beginning of the file. Older records behind its end have smaller numbers and are ignored.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::StoreError;
use super::seal::{CHECKSUM_BYTES, checksum, unseal_numbered};

/// First bytes of the file; the last one is the format. The id of the journal follows.
const MAGIC: [u8; 8] = *b"journal\x03";
const HEAD: usize = MAGIC.len() + 8;
/// Size of the header of a record: the length of checksum and bytes (`u32`), and the number (`u64`).
const LEAD: usize = 4 + 8;
/// Bounds of the zeros written in advance; between them, as many as the file has bytes.
const AHEAD: (u64, u64) = (64 << 10, 1 << 20);
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A journal. The first record creates the file.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: Option<File>,
    /// Random number of this journal. The tables store it too, so that they recognize their journal.
    id: u64,
    /// The number of the next record.
    next: u64,
    /// Offset of the next record.
    end: u64,
    /// Size of the file, including zeros.
    ahead: u64,
    /// Buffer for the next record.
    buffer: Vec<u8>,
    /// Whether the folder must be synced, because the file was created.
    is_new: bool,
    /// Whether records of an earlier process may follow the end.
    is_read: bool,
}

/// A record that was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalRecord<'a> {
    pub number: u64,
    pub bytes: &'a [u8],
    /// Offset in the file.
    pub place: u64,
}

impl Journal {
    /// Opens the journal in a file, which need not exist. Call [`Journal::read`] before appending.
    pub(crate) fn of(path: &Path) -> Result<Self, StoreError> {
        let mut journal = Self {
            path: path.to_owned(),
            file: None,
            id: RandomState::new().build_hasher().finish(),
            next: 1,
            end: HEAD as u64,
            ahead: 0,
            buffer: Vec::new(),
            is_new: false,
            is_read: false,
        };
        match File::options().read(true).write(true).open(path) {
            Ok(file) => {
                journal.ahead = file.metadata().map_err(|error| journal.error(&error))?.len();
                journal.file = Some(file);
                if let Some(id) = journal.head()? {
                    journal.id = id;
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(journal.error(&error)),
        }
        Ok(journal)
    }

    /// The number of the first record, if there is one.
    pub(crate) fn first(&self) -> Result<Option<u64>, StoreError> {
        let mut first = None;
        self.walk(|record| {
            first = Some(record.number);
            Ok(false)
        })?;
        Ok(first)
    }

    /// Reads all records, oldest first. Later appends follow them and overwrite anything else.
    pub(crate) fn read(
        &mut self,
        mut each: impl FnMut(JournalRecord<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (end, next) = self.walk(|record| each(record).map(|()| true))?;
        (self.end, self.next, self.is_read) = (end, next.unwrap_or(self.next), true);
        Ok(())
    }

    /// Reads records while `each` returns true. Returns offset and number of the next record.
    fn walk(
        &self,
        mut each: impl FnMut(JournalRecord<'_>) -> Result<bool, StoreError>,
    ) -> Result<(u64, Option<u64>), StoreError> {
        let (mut end, mut next) = (HEAD as u64, None);
        let Some(file) = &self.file else { return Ok((end, next)) };
        let mut reader =
            JournalReader { file: BufReader::with_capacity(256 << 10, file), left: self.ahead };
        if self.head()?.is_none() {
            return Ok((end, next));
        }
        reader.begin().map_err(|error| self.error(&error))?;
        let mut record = Vec::new();
        loop {
            let read = reader.record(end, &mut record).map_err(|error| self.error(&error))?;
            let Some(record) = read.filter(|record| next.is_none_or(|next| next == record.number))
            else {
                return Ok((end, next));
            };
            end += (LEAD + CHECKSUM_BYTES + record.bytes.len()) as u64;
            next = Some(record.number + 1);
            if !each(record)? {
                return Ok((end, next));
            }
        }
    }

    /// The id in the file, if it has one. A file that was never synced may begin with zeros.
    fn head(&self) -> Result<Option<u64>, StoreError> {
        let mut head = [0; HEAD];
        let read = match &self.file {
            Some(file) if self.ahead >= HEAD as u64 => file.read_exact_at(&mut head, 0),
            _ => return Ok(None),
        };
        read.map_err(|error| self.error(&error))?;
        if head == [0; HEAD] {
            return Ok(None);
        }
        let (word, id) = head.split_at(MAGIC.len());
        if word[..MAGIC.len() - 1] != MAGIC[..MAGIC.len() - 1] {
            return Err(self.damaged(
                "it is no journal; restore the right file, or remove the data directory to start over",
            ));
        }
        let (format, known) = (i64::from(head[MAGIC.len() - 1]), i64::from(MAGIC[MAGIC.len() - 1]));
        match StoreError::of_format(format, known, &self.path.display().to_string()) {
            Some(error) => Err(error),
            None if format == 0 => Err(self.damaged("its format is damaged")),
            None => Ok(id.try_into().ok().map(u64::from_le_bytes)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The random number of this journal.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Checks that the journal belongs to the tables in `beside`. A journal without an id gets theirs.
    pub(crate) fn belong_to(&mut self, owner: u64, beside: &str) -> Result<(), StoreError> {
        if self.head()?.is_some_and(|id| id != owner) {
            return Err(self.damaged(&format!(
                "it belongs to another data directory than `{beside}`; restore the right file, or \
                 remove the data directory to start over"
            )));
        }
        self.id = owner;
        Ok(())
    }

    /// The number of the next record.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Size of all records in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.end
    }

    /// Whether it has no record.
    pub(crate) fn is_empty(&self) -> bool {
        self.end == HEAD as u64
    }

    /// Reads the record at an offset.
    pub(crate) fn read_at(&self, place: u64) -> Result<Vec<u8>, StoreError> {
        let file = self.file.as_ref().ok_or_else(|| self.damaged("it is missing"))?;
        let mut reader =
            JournalReader { file: BufReader::new(file), left: self.end.saturating_sub(place) };
        let mut record = Vec::new();
        let read = reader.file.seek(SeekFrom::Start(place));
        let read = read.and_then(|_| reader.record(place, &mut record).map(|read| read.is_some()));
        if read.map_err(|error| self.error(&error))? {
            record.drain(..CHECKSUM_BYTES);
            return Ok(record);
        }
        Err(self.damaged(&format!("the record at offset {place} is damaged")))
    }

    /// Appends a record and returns its offset. The record survives the death of the process, and after
    /// [`Journal::sync`] a power failure.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<u64, StoreError> {
        let mut record = std::mem::take(&mut self.buffer);
        record.clear();
        // The head is written with the first record.
        let (at, place) = (if self.is_empty() { 0 } else { self.end }, self.end);
        if at == 0 {
            record.extend_from_slice(&MAGIC);
            record.extend_from_slice(&self.id.to_le_bytes());
        }
        record.extend_from_slice(&((CHECKSUM_BYTES + bytes.len()) as u32).to_le_bytes());
        record.extend_from_slice(&self.next.to_le_bytes());
        record.extend_from_slice(&checksum(self.next as i64, bytes));
        record.extend_from_slice(bytes);
        self.write_at(&record, at).map_err(|error| self.error(&error))?;
        (self.end, self.next) = (at + record.len() as u64, self.next + 1);
        self.buffer = record;
        Ok(place)
    }

    /// Waits until all records are on disk.
    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        let Some(file) = &self.file else { return Ok(()) };
        file.sync_data().map_err(|error| self.error(&error))?;
        if std::mem::take(&mut self.is_new) {
            sync_name(&self.path).map_err(|error| self.error(&error))?;
        }
        Ok(())
    }

    fn write_at(&mut self, record: &[u8], at: u64) -> std::io::Result<()> {
        let file = if let Some(file) = &self.file {
            file
        } else {
            self.is_new = true;
            let made = File::options().read(true).write(true).create_new(true).open(&self.path)?;
            self.file.insert(made)
        };
        if std::mem::take(&mut self.is_read) {
            // An old record behind the end must never follow a new one.
            file.set_len(at)?;
            self.ahead = at;
        }
        let end = at + record.len() as u64;
        if end > self.ahead {
            let ahead = end + end.clamp(AHEAD.0, AHEAD.1);
            let mut from = self.ahead.max(at);
            while from < ahead {
                let length = (ahead - from).min(ZEROS.len() as u64);
                file.write_all_at(&ZEROS[..length as usize], from)?;
                from += length;
            }
            self.ahead = ahead;
        }
        file.write_all_at(record, at)
    }

    /// Starts over at the beginning of the file, after all records were stored elsewhere. The next record
    /// gets this number.
    pub(crate) fn begin_at(&mut self, next: u64) {
        (self.end, self.next) = (HEAD as u64, next);
    }

    fn damaged(&self, problem: &str) -> StoreError {
        StoreError::Damaged(format!("`{}`: {problem}", self.path.display()))
    }

    fn error(&self, error: &std::io::Error) -> StoreError {
        let words = format!("`{}`: {error}", self.path.display());
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full(words),
            _ => StoreError::Failed(words),
        }
    }
}

/// Syncs the folder of a file, so that the file's name survives a power failure.
pub(crate) fn sync_name(path: &Path) -> std::io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

/// Reads records up to the known size of the file.
struct JournalReader<'a> {
    file: BufReader<&'a File>,
    left: u64,
}

impl JournalReader<'_> {
    /// Seeks to the first record.
    fn begin(&mut self) -> std::io::Result<()> {
        self.left = self.left.saturating_sub(HEAD as u64);
        self.file.seek(SeekFrom::Start(HEAD as u64)).map(drop)
    }

    /// Fills `bytes`; false if the file is too short.
    fn exact(&mut self, bytes: &mut [u8]) -> std::io::Result<bool> {
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else { return Ok(false) };
        self.left = left;
        match self.file.read_exact(bytes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The record at the current offset, if its checksum matches.
    fn record<'a>(
        &mut self,
        place: u64,
        buffer: &'a mut Vec<u8>,
    ) -> std::io::Result<Option<JournalRecord<'a>>> {
        let mut lead = [0; LEAD];
        if !self.exact(&mut lead)? {
            return Ok(None);
        }
        let (length, number) = lead.split_at(4);
        let length = length.try_into().map_or(0, u32::from_le_bytes);
        let number = number.try_into().map_or(0, u64::from_le_bytes);
        if (length as usize) < CHECKSUM_BYTES || u64::from(length) > self.left {
            return Ok(None);
        }
        buffer.resize(length as usize, 0);
        if !self.exact(buffer)? {
            return Ok(None);
        }
        let bytes = unseal_numbered(number as i64, buffer);
        Ok(bytes.map(|bytes| JournalRecord { number, bytes, place }))
    }
}

#[cfg(test)]
mod tests;
