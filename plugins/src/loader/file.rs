//! Loads pages from files.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use super::{BODY_MAX, FetchedPage, LoadError, too_large};

/// Loads a file from its path, or from below the resources directory.
#[derive(Debug)]
pub struct FileLoader {
    /// The setting `resources.dir`: second place for a path that does not exist.
    pub resources_dir: Option<PathBuf>,
    /// Largest file, in bytes.
    pub body_max: u64,
}

impl Default for FileLoader {
    fn default() -> Self {
        Self { resources_dir: None, body_max: BODY_MAX }
    }
}

impl FileLoader {
    /// Loads a file. No error is worth a retry.
    pub fn read(&self, path: &str) -> Result<FetchedPage, LoadError> {
        let mut missed = Vec::new();
        for place in self.places(path)? {
            match open(&place) {
                Ok(file) => return self.take(path, &place, file),
                Err(OpenError::Absent) => missed.push(format!("no file `{}`", place.display())),
                Err(OpenError::Directory) => {
                    missed.push(format!("`{}` is a directory", place.display()));
                }
                Err(OpenError::Other(cause)) => {
                    let cause = format!("`{}` {cause}", place.display());
                    return Err(LoadError::never(path, cause));
                }
            }
        }
        Err(LoadError::never(path, missed.join(", ")))
    }

    /// The paths to try, in order.
    fn places(&self, path: &str) -> Result<Vec<PathBuf>, LoadError> {
        if path.is_empty() || path.contains('\0') {
            return Err(LoadError::never(path, "the address has no path"));
        }
        let mut places = vec![PathBuf::from(path)];
        if let Some(dir) = &self.resources_dir {
            let below = Path::new(path.trim_start_matches('/'));
            if leaves_its_directory(below) {
                // The path itself may have `..`, because the user wrote it.
                if !places[0].is_file() {
                    let cause = format!("the path leaves resources.dir `{}`", dir.display());
                    return Err(LoadError::never(path, cause));
                }
            } else {
                places.push(dir.join(below));
            }
        }
        Ok(places)
    }

    fn take(&self, path: &str, place: &Path, file: File) -> Result<FetchedPage, LoadError> {
        let mut body = Vec::new();
        // Reads one byte more than allowed in order to detect files that are too large.
        file.take(self.body_max.saturating_add(1))
            .read_to_end(&mut body)
            .map_err(|e| LoadError::never(path, unreadable(&e)))?;
        if body.is_empty() {
            return Err(LoadError::never(path, "the file is empty"));
        }
        if body.len() as u64 > self.body_max {
            return Err(LoadError::never(path, too_large(self.body_max)));
        }
        Ok(FetchedPage {
            wire_bytes: body.len() as u64,
            body: Bytes::from(body),
            status: 0,
            final_url: place.to_string_lossy().into_owned(),
            content_type: None,
            headers: String::new(),
        })
    }
}

enum OpenError {
    Absent,
    Directory,
    Other(String),
}

fn open(place: &Path) -> Result<File, OpenError> {
    // Checked before opening, because opening a pipe waits for a writer.
    let kind = std::fs::metadata(place).map_err(|e| miss(&e))?;
    if kind.is_dir() {
        return Err(OpenError::Directory);
    }
    if !kind.is_file() {
        return Err(OpenError::Other("is not a regular file".to_owned()));
    }
    File::open(place).map_err(|e| miss(&e))
}

fn miss(error: &std::io::Error) -> OpenError {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => OpenError::Absent,
        _ => OpenError::Other(unreadable(error)),
    }
}

fn unreadable(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => "cannot be read, permission denied".to_owned(),
        _ => format!("cannot be read, {error}"),
    }
}

/// Whether a path leaves its directory, even if it returns.
fn leaves_its_directory(path: &Path) -> bool {
    let mut depth = 0_i64;
    path.components().any(|part| {
        match part {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return true,
        }
        depth < 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::RetryAdvice;

    struct Disk {
        dir: tempfile::TempDir,
        loader: FileLoader,
    }

    fn disk() -> Disk {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("out.html", "outside");
        put("res/defs/x.html", "resource");
        put("res/empty.html", "");
        put("res/exact.html", &"x".repeat(64));
        put("res/large.html", &"x".repeat(65));
        let loader = FileLoader { resources_dir: Some(dir.path().join("res")), body_max: 64 };
        Disk { dir, loader }
    }

    impl Disk {
        fn check(&self, path: &str, expect: &str) {
            let dir = self.dir.path().to_string_lossy();
            let path = path.replace("DIR", &dir);
            let found = match self.loader.read(&path) {
                Ok(page) => format!("{} from {}", page.body.len(), page.final_url),
                Err(error) => {
                    assert_eq!(error.retry, RetryAdvice::Never);
                    error.message
                }
            };
            assert_eq!(found.replace(&*dir, "DIR"), expect);
        }
    }

    #[test]
    fn a_path_is_tried_as_it_is_and_then_below_resources() {
        let disk = disk();
        disk.check("DIR/out.html", "7 from DIR/out.html");
        disk.check("/defs/x.html", "8 from DIR/res/defs/x.html");
        disk.check("defs/x.html", "8 from DIR/res/defs/x.html");
        disk.check(
            "//defs/./y/../x.html",
            "cannot load `//defs/./y/../x.html`: no file \
            `//defs/./y/../x.html`, no file `DIR/res/defs/./y/../x.html`",
        );
        disk.check(
            "Cargo.toml/x",
            "cannot load `Cargo.toml/x`: no file `Cargo.toml/x`, \
            no file `DIR/res/Cargo.toml/x`",
        );
        // The working directory comes first.
        let here = FileLoader { body_max: 1 << 20, ..disk.loader };
        assert_eq!(here.read("Cargo.toml").unwrap().final_url, "Cargo.toml");
    }

    #[test]
    fn the_error_for_a_missing_file_lists_the_paths() {
        let disk = disk();
        disk.check(
            "/no.html",
            "cannot load `/no.html`: no file `/no.html`, \
            no file `DIR/res/no.html`",
        );
        disk.check(
            "DIR/res/defs",
            "cannot load `DIR/res/defs`: `DIR/res/defs` is a directory, \
            no file `DIR/resDIR/res/defs`",
        );
        let alone = FileLoader::default();
        let error = alone.read("/no.html").unwrap_err();
        assert_eq!(error.message, "cannot load `/no.html`: no file `/no.html`");
    }

    #[test]
    fn empty_and_too_large_files_are_refused() {
        let disk = disk();
        disk.check("empty.html", "cannot load `empty.html`: the file is empty");
        disk.check("exact.html", "64 from DIR/res/exact.html");
        disk.check("large.html", "cannot load `large.html`: body larger than 64 bytes");
    }

    #[test]
    fn a_path_cannot_leave_the_resources_directory() {
        let disk = disk();
        let refused = "the path leaves resources.dir `DIR/res`";
        disk.check("../out.html", &format!("cannot load `../out.html`: {refused}"));
        disk.check("/../out.html", &format!("cannot load `/../out.html`: {refused}"));
        disk.check(
            "/defs/../../out.html",
            &format!("cannot load `/defs/../../out.html`: {refused}"),
        );
        disk.check("/defs/../defs/x.html", "8 from DIR/res/defs/../defs/x.html");
        disk.check("DIR/res/../out.html", "7 from DIR/res/../out.html");
        disk.check("a\0b", "cannot load `a\0b`: the address has no path");
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_loaded() {
        disk().check("/dev/zero", "cannot load `/dev/zero`: `/dev/zero` is not a regular file");
    }
}
