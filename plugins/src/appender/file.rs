//! Appends to one file, and goes on after a crash exactly where its mark says.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use spoonbill_defs::PluginDef;

use super::Mark;
use crate::options::{OptionProblem, advice};

/// Bytes at the end of the file that a mark vouches for.
const TAIL: u64 = 4096;

/// Whether a class string or alias names the file appender.
pub fn is_file_appender(class: &str) -> bool {
    let class = class.strip_prefix("org.codetab.scoopi.").unwrap_or(class);
    matches!(class, "plugin.appender.FileAppender" | "file")
}

/// Properties of a file appender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOptions {
    /// Path as defined, relative to the run's folder unless absolute.
    pub file: PathBuf,
}

impl FileOptions {
    /// Reads the properties of a plugin definition.
    pub fn from_def(def: &PluginDef) -> Result<Self, Vec<OptionProblem>> {
        const KNOWN: [&str; 2] = ["file", "queueSize"];
        let mut problems = Vec::new();
        for (key, _) in &def.options {
            if !KNOWN.contains(&key.as_str()) {
                let message = format!("a file appender knows no property `{}`", key.text);
                let help = advice(&key.text, &KNOWN);
                problems.push(OptionProblem::new(key.at, message).with_help(help));
            }
        }
        let file = def.option("file").filter(|file| !file.text.trim().is_empty());
        if let Some(size) = def.option("queueSize")
            && size.text.trim().parse::<u32>().map_or(true, |size| size == 0)
        {
            let message = format!("`queueSize` is a whole number above 0, not `{}`", size.text);
            problems.push(OptionProblem::new(size.at, message));
        }
        if let Some(file) = file
            && Path::new(file.text.trim()).components().any(|part| part == Component::ParentDir)
        {
            let problem = OptionProblem::new(file.at, "`file` must not climb out with `..`");
            problems
                .push(problem.with_help("name a file below the output directory, or a full path"));
        }
        match file {
            Some(file) if problems.is_empty() => Ok(Self { file: PathBuf::from(file.text.trim()) }),
            Some(_) => Err(problems),
            None => {
                let message = format!("file appender `{}` has no `file`", def.name.text);
                let problem = OptionProblem::new(def.name.at, message);
                problems.push(problem.with_help("add `file: output/data.txt`"));
                Err(problems)
            }
        }
    }

    /// Where the file of one run lies: `<output>/<folder>/<file>`. A leading `output/` of the
    /// definition stands for the output directory itself; an absolute path keeps its directory.
    pub fn path(&self, output: &Path, folder: &str) -> PathBuf {
        if self.file.is_absolute() {
            let parent = self.file.parent().unwrap_or(Path::new("/"));
            return parent.join(folder).join(self.file.file_name().unwrap_or_default());
        }
        let inner = self.file.strip_prefix("output").unwrap_or(&self.file);
        output.join(folder).join(inner)
    }
}

/// A file being appended to.
#[derive(Debug)]
pub struct FileAppender {
    writer: BufWriter<File>,
    length: u64,
    /// The last bytes written, at most [`TAIL`].
    tail: Vec<u8>,
}

impl FileAppender {
    /// Starts an empty file, with its directories.
    pub fn create(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Self { writer: BufWriter::new(file), length: 0, tail: Vec::new() })
    }

    /// Starts a file with these bytes in it. They are part of the length that a mark tells.
    pub fn create_with(path: &Path, header: &[u8]) -> io::Result<Self> {
        let mut file = Self::create(path)?;
        file.append(header)?;
        Ok(file)
    }

    /// Goes on at a mark: cuts what was written after it. `None` if the file is not the one that
    /// was marked.
    pub fn resume(path: &Path, mark: Mark) -> io::Result<Option<Self>> {
        let mut file = match File::options().read(true).write(true).open(path) {
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
        if hash(&tail) != mark.tail {
            return Ok(None);
        }
        file.set_len(mark.length)?;
        file.seek(SeekFrom::Start(mark.length))?;
        Ok(Some(Self { writer: BufWriter::new(file), length: mark.length, tail }))
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)?;
        self.length += bytes.len() as u64;
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL as usize)..]);
        let extra = self.tail.len().saturating_sub(TAIL as usize);
        self.tail.drain(..extra);
        Ok(())
    }

    /// Hands everything to the operating system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Hands everything to the operating system and, if asked, to the disk.
    pub fn sync(&mut self, durable: bool) -> io::Result<Mark> {
        self.writer.flush()?;
        if durable {
            self.writer.get_ref().sync_data()?;
        }
        Ok(Mark { length: self.length, tail: hash(&self.tail) })
    }
}

/// FNV-1a: short, stable, and only asked whether two tails are the same.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_on_at_its_mark_and_cuts_what_came_after() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/data.csv");
        let mut file = FileAppender::create(&path).unwrap();
        file.append(b"one\n").unwrap();
        let mark = file.sync(true).unwrap();
        file.append(b"tw").unwrap();
        drop(file);
        let mut file = FileAppender::resume(&path, mark).unwrap().unwrap();
        file.append(b"two\n").unwrap();
        file.sync(false).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn a_header_is_written_once_and_counts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.csv");
        let mut file = FileAppender::create_with(&path, b"a,b\n").unwrap();
        let empty = file.sync(false).unwrap();
        assert_eq!(empty.length, 4);
        file.append(b"1,2\n").unwrap();
        let mark = file.sync(false).unwrap();
        drop(file);
        let mut file = FileAppender::resume(&path, mark).unwrap().unwrap();
        file.append(b"3,4\n").unwrap();
        file.flush().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"a,b\n1,2\n3,4\n");
        drop(FileAppender::resume(&path, empty).unwrap().unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"a,b\n");
    }

    #[test]
    fn a_file_that_is_missing_shorter_or_edited_is_not_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.csv");
        let mut file = FileAppender::create(&path).unwrap();
        file.append(&[b'x'; 9000]).unwrap();
        let mark = file.sync(false).unwrap();
        std::fs::write(&path, [b'y'; 9000]).unwrap();
        assert!(FileAppender::resume(&path, mark).unwrap().is_none());
        std::fs::write(&path, [b'x'; 100]).unwrap();
        assert!(FileAppender::resume(&path, mark).unwrap().is_none());
        std::fs::remove_file(&path).unwrap();
        assert!(FileAppender::resume(&path, mark).unwrap().is_none());
    }

    #[test]
    fn a_run_gets_its_own_folder() {
        let at = |file: &str| {
            let options = FileOptions { file: PathBuf::from(file) };
            options.path(Path::new("out"), "2020Jul01").display().to_string()
        };
        assert_eq!(at("output/data.txt"), "out/2020Jul01/data.txt");
        assert_eq!(at("a/b.csv"), "out/2020Jul01/a/b.csv");
        assert_eq!(at("/var/rows/c.csv"), "/var/rows/2020Jul01/c.csv");
    }
}
