//! Text that remembers where it was written.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A place in a definition file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Index into [`Sources`].
    pub file: u32,
    /// Line, from 1; 0 means "nowhere" (a default, not written by anyone).
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Characters the text covers on its first line, at least 1.
    pub width: u32,
}

/// A scalar of a definition and its place. Two texts are equal when their words are.
#[derive(Debug, Clone, Default, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text {
    /// The words.
    pub text: String,
    /// Where they stand.
    #[serde(skip)]
    pub at: Span,
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Text {
    /// A text that no file holds, for defaults and tests.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), at: Span::default() }
    }

    /// The words as a slice.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The files that were read, so that a problem can show its line.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<(PathBuf, Arc<str>)>,
}

impl Sources {
    /// Adds a file and gives its index.
    pub fn add(&mut self, path: impl Into<PathBuf>, text: impl Into<Arc<str>>) -> u32 {
        self.files.push((path.into(), text.into()));
        self.files.len() as u32 - 1
    }

    /// The whole text of a file.
    pub fn text(&self, file: u32) -> Option<&str> {
        self.files.get(file as usize).map(|(_, text)| &**text)
    }

    /// The path of a file.
    pub fn path(&self, file: u32) -> Option<&std::path::Path> {
        self.files.get(file as usize).map(|(path, _)| path.as_path())
    }

    /// One line of a file, without its end.
    pub fn line(&self, file: u32, line: u32) -> Option<&str> {
        let (_, text) = self.files.get(file as usize)?;
        text.lines().nth(line.checked_sub(1)? as usize)
    }
}
