//! Encoders: rows in, bytes out. They know no files and cannot fail.

mod csv;
mod jsonl;

use spoonbill_defs::PluginDef;

use crate::data::{CellType, Data};
use crate::options::{OptionProblem, advice};

pub use csv::Csv;
pub use jsonl::JsonLines;

/// What an encoder may add to a row beside its axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageTags {
    /// How many pages have been parsed with the same label, this one included.
    pub page: u32,
}

/// Turns data into bytes.
pub trait Encoder: Send + Sync + std::fmt::Debug {
    /// Whether it prints [`PageTags`]: counting pages costs memory.
    fn prints_tags(&self) -> bool;

    /// The bytes at the start of a file with these columns; none if it wants none.
    fn header(&self, columns: &[&str]) -> Vec<u8>;

    /// Tells the types of a record's columns, for formats that have types.
    fn set_types(&mut self, _types: &[CellType]) {}

    /// Adds the rows of `data` to `out`; gives how many there were.
    fn encode(&self, data: &Data, page: PageTags, out: &mut Vec<u8>) -> usize;
}

/// Whether a class string or alias means an encoder.
pub fn is_encoder(class: &str) -> bool {
    csv::CLASSES.contains(&class) || jsonl::CLASSES.contains(&class)
}

/// Builds the encoder of a plugin, or tells everything that is wrong with it.
pub fn from_def(def: &PluginDef) -> Result<Box<dyn Encoder>, Vec<OptionProblem>> {
    let class = def.class.text.as_str();
    if jsonl::CLASSES.contains(&class) {
        return Ok(Box::new(JsonLines::from_def(def)?));
    }
    if csv::CLASSES.contains(&class) {
        return Ok(Box::new(Csv::from_def(def)?));
    }
    let known = [&csv::CLASSES[..], &jsonl::CLASSES[..]].concat();
    let problem = OptionProblem::new(def.class.at, format!("`{class}` is no encoder"));
    Err(vec![problem.with_help(advice(class, &known))])
}
