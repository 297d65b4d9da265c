//! Encoders: rows in, bytes out. They know no files and cannot fail.

mod csv;

use spoonbill_defs::PluginDef;

use crate::data::Data;
use crate::options::OptionProblem;

pub use csv::Csv;

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

    /// Adds the rows of `data` to `out`; gives how many there were.
    fn encode(&self, data: &Data, page: PageTags, out: &mut Vec<u8>) -> usize;
}

/// Whether a class string or alias means an encoder.
pub fn is_encoder(class: &str) -> bool {
    csv::CLASSES.contains(&class)
}

/// Builds the encoder of a plugin, or tells everything that is wrong with it.
pub fn from_def(def: &PluginDef) -> Result<Box<dyn Encoder>, Vec<OptionProblem>> {
    Ok(Box::new(Csv::from_def(def)?))
}
