//! Dates by patterns, or by ISO 8601.

use jiff::Zoned;
use jiff::fmt::temporal::{DateTimeParser, PiecesOffset};
use jiff::tz::TimeZone;

use crate::dates::{DateSetup, Pattern};

/// How a date is read and written.
#[derive(Debug, Clone)]
pub(super) struct DateForm {
    input: Vec<Pattern>,
    /// `yyyy-MM-dd` when absent.
    output: Option<Pattern>,
    setup: DateSetup,
}

impl DateForm {
    pub(super) fn new(input: Vec<Pattern>, output: Option<Pattern>, setup: &DateSetup) -> Self {
        Self { input, output, setup: setup.clone() }
    }

    /// Whether no pattern says how to read a date.
    pub(super) fn is_iso(&self) -> bool {
        self.input.is_empty()
    }

    /// The date as it is to be written, or nothing if the text is no such date.
    pub(super) fn read(&self, text: &str) -> Option<String> {
        let date = if self.is_iso() {
            self.iso(text)
        } else {
            self.input.iter().find_map(|pattern| {
                let date = pattern.parse(text, &self.setup)?;
                is_same(&pattern.format(&date), text).then_some(date)
            })
        }?;
        Some(match &self.output {
            Some(pattern) => pattern.format(&date),
            None => date.date().to_string(),
        })
    }

    fn iso(&self, text: &str) -> Option<Zoned> {
        let pieces = DateTimeParser::new().parse_pieces(text).ok()?;
        let zone = match pieces.offset() {
            Some(PiecesOffset::Numeric(offset)) => TimeZone::fixed(offset.offset()),
            Some(PiecesOffset::Zulu) => TimeZone::UTC,
            _ => self.setup.zone.clone(),
        };
        pieces.date().to_datetime(pieces.time().unwrap_or_default()).to_zoned(zone).ok()
    }
}

/// Whether two texts hold the same numbers: patterns read leniently, and the 31st of February must
/// not pass for a day of March.
fn is_same(written: &str, read: &str) -> bool {
    fn numbers(text: &str) -> impl Iterator<Item = &str> {
        text.split(|c: char| !c.is_ascii_digit())
            .filter(|number| !number.is_empty())
            .map(|number| number.trim_start_matches('0'))
    }
    let (mut ours, mut theirs) = (numbers(written), numbers(read));
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return true,
            (Some(ours), Some(theirs)) if ours == theirs => {}
            // `yy` reads 2016 too, and writes 16.
            (Some(ours), Some(theirs))
                if ours.len() <= 2 && theirs.len() == 4 && theirs.ends_with(ours) => {}
            _ => return false,
        }
    }
}
