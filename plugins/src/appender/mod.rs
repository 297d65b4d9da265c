//! Appenders: where encoded rows go. An appender writes to one target and reports how far it has come
//! as an [`AppenderMark`]. The engine feeds it committed blocks only and keeps the mark, so after a crash
//! the appender continues exactly where the mark says. A new kind is one file and one row of [`KINDS`];
//! `appender_suite!` is the test that every kind passes.

mod file;
#[cfg(test)]
mod suite;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use spoonbill_defs::PluginDef;

use crate::options::{OptionProblem, advice};

/// A position in a target. Only the appender that made it can read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppenderMark(pub Vec<u8>);

/// Whether a target continued at its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenedAt {
    /// The target holds what was written up to the mark, and nothing after it.
    Mark,
    /// The target starts without rows: there was no mark, or the target is not the one that was marked.
    Start,
}

/// Writes blocks of encoded rows to one target.
pub trait Appender: Send {
    /// Opens the target and removes what was written after `mark`. Without a mark it starts from the beginning.
    fn open(&mut self, mark: Option<&AppenderMark>) -> io::Result<OpenedAt>;

    /// Appends a block.
    fn append(&mut self, block: &[u8]) -> io::Result<()>;

    /// Makes all appended blocks durable and returns the position.
    fn sync(&mut self) -> io::Result<AppenderMark>;

    /// Makes appended blocks visible to readers of the target, if the kind supports it.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether the target still holds what was synced last: other programs may have changed it.
    fn is_intact(&self) -> bool {
        true
    }

    /// Called once, after the last `sync`: the target is complete.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Called when writing failed: leaves whole blocks only. `mark` is the last position that was kept.
    fn abandon(&mut self, _mark: Option<&AppenderMark>) -> io::Result<()> {
        Ok(())
    }
}

/// The settings of a run for its appenders.
#[derive(Debug, Clone, Copy)]
pub struct RunOutput<'a> {
    /// The base directory of local targets.
    pub dir: &'a Path,
    /// The run's folder below it.
    pub folder: &'a str,
    /// Whether the target appears only when it is complete, instead of growing.
    pub is_whole: bool,
    /// Whether `sync` waits for the disk.
    pub is_durable: bool,
}

/// A target as a definition describes it.
pub trait OutputTarget: Debug + Send + Sync {
    /// The target's name in messages. Definitions with the same name share one appender.
    fn name(&self) -> String;

    /// The target's full name in one run.
    fn name_in(&self, run: RunOutput<'_>) -> String;

    /// The appender for one run. `header` stands before the first row.
    fn appender(&self, run: RunOutput<'_>, header: &[u8]) -> Box<dyn Appender>;
}

type FromDef = fn(&PluginDef) -> Result<Arc<dyn OutputTarget>, Vec<OptionProblem>>;

/// A kind of appender: its names in definitions, the short one first, and its reader.
struct AppenderKind {
    names: &'static [&'static str],
    from_def: FromDef,
}

const KINDS: [AppenderKind; 1] =
    [AppenderKind { names: &file::CLASSES, from_def: file::FileTarget::from_def }];

/// The kind of a class; Scoopi's classes may lack their package.
fn kind(class: &str) -> Option<&'static AppenderKind> {
    let full = |name: &str| name.strip_prefix("org.codetab.scoopi.") == Some(class);
    KINDS.iter().find(|kind| kind.names.iter().any(|name| *name == class || full(name)))
}

/// Whether a class names an appender.
pub fn is_appender(class: &str) -> bool {
    kind(class).is_some()
}

/// The target of a plugin definition, or all problems with it.
pub fn from_def(def: &PluginDef) -> Result<Arc<dyn OutputTarget>, Vec<OptionProblem>> {
    let class = def.class.text.as_str();
    if let Some(kind) = kind(class) {
        return (kind.from_def)(def);
    }
    let known: Vec<&str> = KINDS.iter().flat_map(|kind| kind.names).copied().collect();
    let problem = OptionProblem::new(def.class.at, format!("there is no appender `{class}`"));
    Err(vec![problem.with_help(advice(class, &known))])
}
