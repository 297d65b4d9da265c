//! Appends to one file. The mark of a file is its length and a hash of its last bytes.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use spoonbill_defs::PluginDef;

use super::{Appender, AppenderMark, OpenedAt, OutputTarget, RunOutput};
use crate::options::{OptionProblem, advice};

pub(super) const CLASSES: [&str; 2] = ["file", "org.codetab.scoopi.plugin.appender.FileAppender"];

/// How many of the last bytes the hash of a mark covers.
const TAIL: u64 = 4096;

/// How many folders above a file a run may have created: two in the definition's path, the run's own,
/// and the output directory.
const FOLDERS: usize = 4;

/// A file as a definition names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileTarget {
    /// The path as written, relative to the run's folder unless absolute.
    file: PathBuf,
}

impl FileTarget {
    /// Reads the properties of a plugin definition.
    pub(super) fn from_def(def: &PluginDef) -> Result<Arc<dyn OutputTarget>, Vec<OptionProblem>> {
        const KNOWN: [&str; 2] = ["file", "queueSize"];
        let mut problems = Vec::new();
        for (key, _) in &def.options {
            if !KNOWN.contains(&key.as_str()) {
                let message = format!("a file appender has no property `{}`", key.text);
                let help = advice(&key.text, &KNOWN);
                problems.push(OptionProblem::new(key.at, message).with_help(help));
            }
        }
        let file = def.option("file").filter(|file| !file.text.trim().is_empty());
        if let Some(size) = def.option("queueSize")
            && size.text.trim().parse::<u32>().map_or(true, |size| size == 0)
        {
            let message =
                format!("`queueSize` must be a whole number above 0, not `{}`", size.text);
            problems.push(OptionProblem::new(size.at, message));
        }
        if let Some(file) = file
            && Path::new(file.text.trim()).components().any(|part| part == Component::ParentDir)
        {
            let problem = OptionProblem::new(file.at, "`file` must not contain `..`");
            problems
                .push(problem.with_help("name a file below the output directory, or a full path"));
        }
        match file {
            Some(file) if problems.is_empty() => {
                Ok(Arc::new(Self { file: PathBuf::from(file.text.trim()) }))
            }
            Some(_) => Err(problems),
            None => {
                let message = format!("file appender `{}` has no `file`", def.name.text);
                let problem = OptionProblem::new(def.name.at, message);
                problems.push(problem.with_help("add `file: output/data.txt`"));
                Err(problems)
            }
        }
    }

    /// The file of one run: `<output>/<folder>/<file>`. A leading `output/` in the definition stands
    /// for the output directory; an absolute path keeps its directory.
    fn path(&self, output: &Path, folder: &str) -> PathBuf {
        if self.file.is_absolute() {
            let parent = self.file.parent().unwrap_or(Path::new("/"));
            return parent.join(folder).join(self.file.file_name().unwrap_or_default());
        }
        let inner = self.file.strip_prefix("output").unwrap_or(&self.file);
        output.join(folder).join(inner)
    }
}

impl OutputTarget for FileTarget {
    fn name(&self) -> String {
        self.file.display().to_string()
    }

    fn name_in(&self, run: RunOutput<'_>) -> String {
        self.path(run.dir, run.folder).display().to_string()
    }

    fn appender(&self, run: RunOutput<'_>, header: &[u8]) -> Box<dyn Appender> {
        let path = self.path(run.dir, run.folder);
        let written = if run.is_whole { part_of(&path) } else { path.clone() };
        let header = header.to_vec();
        Box::new(FileAppender { path, written, header, is_durable: run.is_durable, open: None })
    }
}

/// The file beside `path` that is written until it is complete.
fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    path.with_file_name(name)
}

struct FileAppender {
    path: PathBuf,
    /// The file that is written: `path`, or the one that becomes `path` when it is complete.
    written: PathBuf,
    header: Vec<u8>,
    is_durable: bool,
    open: Option<OpenFile>,
}

struct OpenFile {
    writer: BufWriter<File>,
    length: u64,
    /// The last bytes written, at most [`TAIL`].
    tail: Vec<u8>,
    /// The length at the last `sync`.
    synced: u64,
}

/// The content of a mark.
struct FileMark {
    length: u64,
    tail_hash: u64,
}

impl FileMark {
    fn encode(&self) -> AppenderMark {
        AppenderMark([self.length.to_le_bytes(), self.tail_hash.to_le_bytes()].concat())
    }

    fn decode(mark: &AppenderMark) -> Option<Self> {
        let (length, tail_hash) = mark.0.split_first_chunk()?;
        let tail_hash = u64::from_le_bytes(tail_hash.try_into().ok()?);
        Some(Self { length: u64::from_le_bytes(*length), tail_hash })
    }
}

impl FileAppender {
    fn create(&self) -> io::Result<OpenFile> {
        if let Some(parent) = self.written.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let mut options = File::options();
        let file =
            options.read(true).write(true).create(true).truncate(true).open(&self.written)?;
        let mut open =
            OpenFile { writer: BufWriter::new(file), length: 0, tail: Vec::new(), synced: 0 };
        open.append(&self.header)?;
        Ok(open)
    }

    /// Opens the file at a mark and cuts the rest. `None` if it is not the file that was marked.
    fn resume(&self, mark: &FileMark) -> io::Result<Option<OpenFile>> {
        let mut file = match File::options().read(true).write(true).open(&self.written) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if file.metadata()?.len() < mark.length {
            return Ok(None);
        }
        let from = mark.length.saturating_sub(TAIL);
        file.seek(SeekFrom::Start(from))?;
        let mut tail = vec![0; (mark.length - from) as usize];
        file.read_exact(&mut tail)?;
        if hash(&tail) != mark.tail_hash {
            return Ok(None);
        }
        file.set_len(mark.length)?;
        file.seek(SeekFrom::Start(mark.length))?;
        let (length, synced) = (mark.length, mark.length);
        Ok(Some(OpenFile { writer: BufWriter::new(file), length, tail, synced }))
    }

    fn opened(&mut self) -> io::Result<&mut OpenFile> {
        self.open.as_mut().ok_or_else(|| io::Error::other("the file is not open"))
    }
}

impl OpenFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)?;
        self.length += bytes.len() as u64;
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL as usize)..]);
        let extra = self.tail.len().saturating_sub(TAIL as usize);
        self.tail.drain(..extra);
        Ok(())
    }
}

impl Appender for FileAppender {
    fn open(&mut self, mark: Option<&AppenderMark>) -> io::Result<OpenedAt> {
        self.open = None;
        if let Some(mark) = mark.and_then(FileMark::decode) {
            self.open = self.resume(&mark)?;
        }
        if self.open.is_some() {
            return Ok(OpenedAt::Mark);
        }
        self.open = Some(self.create()?);
        Ok(OpenedAt::Start)
    }

    fn append(&mut self, block: &[u8]) -> io::Result<()> {
        self.opened()?.append(block)
    }

    fn sync(&mut self) -> io::Result<AppenderMark> {
        let is_durable = self.is_durable;
        let open = self.opened()?;
        open.writer.flush()?;
        if is_durable {
            open.writer.get_ref().sync_data()?;
        }
        open.synced = open.length;
        Ok(FileMark { length: open.length, tail_hash: hash(&open.tail) }.encode())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.opened()?.writer.flush()
    }

    /// Writing to a removed file succeeds, so the name is what counts. A device or pipe has no length.
    fn is_intact(&self) -> bool {
        let synced = self.open.as_ref().map_or(0, |open| open.synced);
        std::fs::metadata(&self.written).is_ok_and(|data| !data.is_file() || data.len() == synced)
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.written != self.path {
            std::fs::rename(&self.written, &self.path)?;
        }
        if self.is_durable { sync_folders(&self.path) } else { Ok(()) }
    }

    fn abandon(&mut self, mark: Option<&AppenderMark>) -> io::Result<()> {
        // Dropping the writer flushes its buffer, so it must happen before the file is cut.
        self.open = None;
        if self.written != self.path {
            return std::fs::remove_file(&self.written);
        }
        let length = mark.and_then(FileMark::decode).map_or(0, |mark| mark.length);
        File::options().write(true).open(&self.path)?.set_len(length)
    }
}

/// Makes the names of a file and of its folders durable, so that a closed run has its files after a
/// power cut too.
fn sync_folders(path: &Path) -> io::Result<()> {
    for folder in path.ancestors().skip(1).take(FOLDERS) {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        // A folder that cannot be opened was not created by this run.
        if let Ok(folder) = File::open(folder) {
            folder.sync_all()?;
        }
    }
    Ok(())
}

/// FNV-1a. It only decides whether two tails are equal.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::appender::suite::appender_suite;

    appender_suite!(file, |dir: &Path| -> Box<dyn OutputTarget> {
        Box::new(FileTarget { file: dir.join("rows/data.csv") })
    });

    fn target(file: &str) -> FileTarget {
        FileTarget { file: PathBuf::from(file) }
    }

    #[test]
    fn each_run_has_its_own_folder() {
        let cases = [
            ("output/data.txt", "out/2020Jul01/data.txt"),
            ("a/b.csv", "out/2020Jul01/a/b.csv"),
            ("/var/rows/c.csv", "/var/rows/2020Jul01/c.csv"),
        ];
        for (file, expected) in cases {
            let path = target(file).path(Path::new("out"), "2020Jul01");
            assert_eq!(path.display().to_string(), expected);
        }
    }

    #[test]
    fn an_edited_file_is_not_continued() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunOutput { dir: dir.path(), folder: "run", is_whole: false, is_durable: false };
        let path = dir.path().join("run/data.csv");
        let mut appender = target("data.csv").appender(run, b"");
        appender.open(None).unwrap();
        appender.append(&[b'x'; 9000]).unwrap();
        let mark = appender.sync().unwrap();
        for edited in [vec![b'y'; 9000], vec![b'x'; 100], Vec::new()] {
            std::fs::write(&path, &edited).unwrap();
            assert_eq!(appender.open(Some(&mark)).unwrap(), OpenedAt::Start);
        }
    }

    #[test]
    fn a_whole_file_appears_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunOutput { dir: dir.path(), folder: "run", is_whole: true, is_durable: true };
        let path = dir.path().join("run/data.csv");
        let mut appender = target("data.csv").appender(run, b"a,b\n");
        appender.open(None).unwrap();
        appender.append(b"1,2\n").unwrap();
        appender.sync().unwrap();
        assert!(!path.exists());
        appender.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"a,b\n1,2\n");
        assert!(!part_of(&path).exists());
    }
}
