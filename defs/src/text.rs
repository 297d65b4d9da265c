//! Texts with their position in a file.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A position in a definition file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Index into [`Sources`].
    pub file: u32,
    /// Line, from 1. 0 means that the text is a default and stands in no file.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Number of characters on the first line, at least 1.
    pub width: u32,
}

/// A scalar of a definition and its position. Equality ignores the position.
#[derive(Debug, Clone, Default, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Its position.
    #[serde(skip)]
    pub at: Span,
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Text {
    /// A text without a position, for defaults and tests.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), at: Span::default() }
    }

    /// The text as a slice.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The files that were read. A problem shows its line from here.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<(PathBuf, Arc<str>)>,
}

impl Sources {
    /// Adds a file and returns its index.
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

    /// One line of a file, without its line end. Lines count from 1.
    pub fn line(&self, file: u32, line: u32) -> Option<&str> {
        let (_, text) = self.files.get(file as usize)?;
        text.lines().nth(line.checked_sub(1)? as usize)
    }
}
