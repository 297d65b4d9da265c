//! Encoders turn rows into bytes. They use no files and cannot fail. A new kind is one file and one row of
//! [`KINDS`].

mod csv;
mod jsonl;

use spoonbill_defs::PluginDef;

use crate::data::{CellType, Data};
use crate::options::{OptionProblem, advice};

pub use csv::Csv;
pub use jsonl::JsonLines;

/// Facts about the page that an encoder may add to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageTags {
    /// How many pages have been parsed with the same label, this one included.
    pub page: u32,
}

/// Turns data into bytes.
pub trait Encoder: Send + Sync + std::fmt::Debug {
    /// Whether it prints [`PageTags`]. If not, pages are not counted, which saves memory.
    fn prints_tags(&self) -> bool;

    /// The bytes at the start of a file with these columns, which may be empty.
    fn header(&self, columns: &[&str]) -> Vec<u8>;

    /// Sets the types of a record's columns, for formats that have types.
    fn set_types(&mut self, _types: &[CellType]) {}

    /// Adds the rows of `data` to `out`, and returns their number.
    fn encode(&self, data: &Data, page: PageTags, out: &mut Vec<u8>) -> usize;
}

type FromDef = fn(&PluginDef) -> Result<Box<dyn Encoder>, Vec<OptionProblem>>;

/// A kind of encoder: its names in definitions, and its reader.
struct EncoderKind {
    names: &'static [&'static str],
    from_def: FromDef,
}

const KINDS: [EncoderKind; 2] = [
    EncoderKind { names: &csv::CLASSES, from_def: |def| Ok(Box::new(Csv::from_def(def)?)) },
    EncoderKind { names: &jsonl::CLASSES, from_def: |def| Ok(Box::new(JsonLines::from_def(def)?)) },
];

fn kind(class: &str) -> Option<&'static EncoderKind> {
    KINDS.iter().find(|kind| kind.names.contains(&class))
}

/// Whether a class string or alias names an encoder.
pub fn is_encoder(class: &str) -> bool {
    kind(class).is_some()
}

/// The encoder of a plugin definition, or all problems with it.
pub fn from_def(def: &PluginDef) -> Result<Box<dyn Encoder>, Vec<OptionProblem>> {
    let class = def.class.text.as_str();
    if let Some(kind) = kind(class) {
        return (kind.from_def)(def);
    }
    let known: Vec<&str> = KINDS.iter().flat_map(|kind| kind.names).copied().collect();
    let problem = OptionProblem::new(def.class.at, format!("there is no encoder `{class}`"));
    Err(vec![problem.with_help(advice(class, &known))])
}
