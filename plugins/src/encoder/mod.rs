//! Encoders: rows in, bytes out. They know no files and cannot fail.

mod csv;

use crate::data::Data;

pub use csv::Csv;

/// What an encoder may add to a row beside its axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageTags {
    /// How many pages have been parsed with the same label, this one included.
    pub page: u32,
}

/// Turns data into bytes.
pub trait Encoder: Send + Sync + std::fmt::Debug {
    /// Adds the rows of `data` to `out`; gives how many there were.
    fn encode(&self, data: &Data, page: PageTags, out: &mut Vec<u8>) -> usize;
}

/// Whether a class string or alias means an encoder.
pub fn is_encoder(class: &str) -> bool {
    csv::CLASSES.contains(&class)
}
