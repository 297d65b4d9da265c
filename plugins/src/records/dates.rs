//! Dates by patterns, or by ISO 8601.

use jiff::Zoned;
use jiff::fmt::temporal::{DateTimeParser, PiecesOffset};
use jiff::tz::TimeZone;

use crate::dates::{DatePattern, DateSetup};

/// How a date is read and written.
#[derive(Debug, Clone)]
pub(super) struct DateForm {
    input: Vec<DatePattern>,
    /// `yyyy-MM-dd` when absent.
    output: Option<DatePattern>,
    setup: DateSetup,
}

impl DateForm {
    pub(super) fn new(
        input: Vec<DatePattern>,
        output: Option<DatePattern>,
        setup: &DateSetup,
    ) -> Self {
        Self { input, output, setup: setup.clone() }
    }

    /// Whether no pattern says how to read a date.
    pub(super) fn is_iso(&self) -> bool {
        self.input.is_empty()
    }

    /// Whether a text is a date as it is written.
    pub(super) fn is_written(&self, text: &str) -> bool {
        match &self.output {
            Some(pattern) => pattern.parse(text, &self.setup).is_some(),
            None => self.iso(text).is_some(),
        }
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

/// A slip in a pattern that would be read without complaint: where, what, and the way out.
pub(super) fn slip(pattern: &str, reads: bool) -> Option<(usize, String, &'static str)> {
    const MONTHS: &str = "months are `MM`, minutes `mm`";
    let mut quoted = false;
    let mut letters: Vec<(usize, char)> = Vec::new();
    for (at, letter) in pattern.chars().enumerate() {
        if letter == '\'' {
            quoted = !quoted;
        } else if !quoted {
            letters.push((at, letter));
        }
    }
    let find = |wanted: &[char]| letters.iter().find(|(_, it)| wanted.contains(it)).copied();
    let has = |wanted: &[char]| find(wanted).is_some();
    let told = |(at, _): (usize, char), words: &str, help| Some((at, words.to_owned(), help));
    let month = has(&['M', 'L']);
    if let Some(percent) = find(&['%']) {
        let help = "patterns are Java's: `dd.MM.yyyy HH:mm`, not `%d.%m.%Y`";
        return told(percent, "`%` has no meaning", help);
    }
    if let (Some(day), true) = (find(&['D']), month) {
        let help = "days of the month are `dd`, years `yyyy`";
        return told(day, "`D` is the day of the year and stands beside a month", help);
    }
    if let (Some(year), true, false) = (find(&['Y']), month || has(&['d']), has(&['w'])) {
        return told(year, "`Y` is the year of a week and no week is told", "years are `yyyy`");
    }
    if let (Some(minute), false) = (find(&['m']), has(&['H', 'h', 'K', 'k'])) {
        return told(minute, "there are minutes without an hour", MONTHS);
    }
    // To write nothing but the day is as good as any other part.
    if let (Some(day), false) = (find(&['d']), month)
        && (reads || has(&['y', 'm']))
    {
        return told(day, "there is a day without a month", MONTHS);
    }
    None
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
