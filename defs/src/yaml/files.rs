//! Finds and reads the definition files of a directory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::problem::Problem;
use crate::text::{Sources, Span};

/// Largest definition file, in bytes.
const FILE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Largest total size of the definition files of a directory, in bytes.
const TOTAL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Maximum number of directory entries to visit. It stops the search early in a wrong directory such
/// as `/`.
const ENTRIES_MAX: usize = 100_000;

/// Reads every definition file below a directory. Returns the indexes of the readable ones.
pub(crate) fn read_dir(dir: &Path, sources: &mut Sources, problems: &mut Vec<Problem>) -> Vec<u32> {
    let mut paths = Vec::new();
    if let Some((message, help)) = root_problem(dir) {
        problems.push(without_position(sources, message, help));
        return Vec::new();
    }
    find(dir, &mut paths, sources, problems);
    paths.sort();
    if paths.is_empty() && problems.is_empty() {
        problems.push(without_position(
            sources,
            format!("no definition file in `{}`", dir.display()),
            "definition files end in `.yml` or `.yaml`; subfolders are searched too",
        ));
    }
    let mut files = Vec::new();
    let mut total = 0;
    for path in paths {
        match read(&path) {
            Ok(bytes) => {
                total += bytes.len();
                if total > TOTAL_BYTES_MAX {
                    problems.push(without_position(
                        sources,
                        format!(
                            "the definition files have more than {TOTAL_BYTES_MAX} bytes together"
                        ),
                        "pass a directory that contains only definitions",
                    ));
                    break;
                }
                files.extend(add_bytes(path, bytes, sources, problems));
            }
            Err(error) => problems.push(without_position(
                sources,
                format!("cannot read `{}`: {error}", path.display()),
                "check the file's permissions",
            )),
        }
    }
    files
}

fn root_problem(dir: &Path) -> Option<(String, &'static str)> {
    let shown = dir.display();
    match fs::metadata(dir) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some((
            format!("`{shown}` is a file, not a directory of definitions"),
            "pass the directory that contains it",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some((
            format!("no directory `{shown}` with definition files"),
            "check the path; a relative path starts at the current directory",
        )),
        Err(error) => Some((
            format!("cannot read the directory `{shown}`: {error}"),
            "check the path and its permissions",
        )),
    }
}

/// Finds the definition files. It follows links to files, but not to directories, which may form a
/// cycle.
fn find(dir: &Path, paths: &mut Vec<PathBuf>, sources: &Sources, problems: &mut Vec<Problem>) {
    let mut waiting = vec![dir.to_path_buf()];
    let mut seen = 0;
    while let Some(folder) = waiting.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                problems.push(without_position(
                    sources,
                    format!("cannot read the directory `{}`: {error}", folder.display()),
                    "check its permissions",
                ));
                continue;
            }
        };
        for entry in entries.filter_map(Result::ok) {
            seen += 1;
            if seen > ENTRIES_MAX {
                problems.push(without_position(
                    sources,
                    format!("more than {ENTRIES_MAX} files below `{}`", dir.display()),
                    "pass a directory that contains only definitions",
                ));
                return;
            }
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
            } else if is_definition(&path) && fs::metadata(&path).is_ok_and(|meta| meta.is_file()) {
                paths.push(path);
            }
        }
    }
}

fn is_definition(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yml" || extension == "yaml")
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn add_bytes(
    path: PathBuf,
    bytes: Vec<u8>,
    sources: &mut Sources,
    problems: &mut Vec<Problem>,
) -> Option<u32> {
    match String::from_utf8(bytes) {
        Ok(text) => add_text(path, &text, sources, problems),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let lossy = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let before = lossy.get(..good).unwrap_or_default();
            let line = before.rsplit('\n').next().unwrap_or_default();
            let message = format!("`{}` is not UTF-8", path.display());
            let at = Span {
                line: before.matches('\n').count() as u32 + 1,
                column: line.chars().count() as u32 + 1,
                width: 1,
                file: sources.add(path, lossy),
            };
            let problem = Problem::error(sources, at, message);
            problems.push(problem.with_help("save the file as UTF-8"));
            None
        }
    }
}

/// Adds a text as a file. Converts line ends to `\n` and removes a byte order mark.
pub(crate) fn add_text(
    path: PathBuf,
    text: &str,
    sources: &mut Sources,
    problems: &mut Vec<Problem>,
) -> Option<u32> {
    if text.len() > FILE_BYTES_MAX {
        problems.push(without_position(
            sources,
            format!("`{}` is larger than {FILE_BYTES_MAX} bytes", path.display()),
            "split it into several files",
        ));
        return None;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.contains('\r') {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        return Some(sources.add(path, text));
    }
    Some(sources.add(path, text))
}

fn without_position(sources: &Sources, message: String, help: &str) -> Problem {
    Problem::error(sources, Span::default(), message).with_help(help)
}
