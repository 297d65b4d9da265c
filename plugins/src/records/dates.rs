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

    /// Whether dates are read as ISO 8601, because the field has no pattern.
    pub(super) fn is_iso(&self) -> bool {
        self.input.is_empty()
    }

    /// Whether a text is a date in the output format.
    pub(super) fn is_written(&self, text: &str) -> bool {
        match &self.output {
            Some(pattern) => pattern.parse(text, &self.setup).is_some(),
            None => self.iso(text).is_some(),
        }
    }

    /// Converts a date to the output format. `None` if the text is not a date.
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

/// Finds a valid pattern that hardly means what it says: its offset, the mistake and the remedy.
pub(super) fn mistake(pattern: &str, reads: bool) -> Option<(usize, String, &'static str)> {
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
    let found = |(at, _): (usize, char), words: &str, help| Some((at, words.to_owned(), help));
    let month = has(&['M', 'L']);
    if let Some(percent) = find(&['%']) {
        let help = "patterns are Java's: `dd.MM.yyyy HH:mm`, not `%d.%m.%Y`";
        return found(percent, "`%` has no meaning", help);
    }
    if let (Some(day), true) = (find(&['D']), month) {
        let help = "days of the month are `dd`, years `yyyy`";
        return found(day, "`D` is the day of the year, but the pattern has a month", help);
    }
    if let (Some(year), true, false) = (find(&['Y']), month || has(&['d']), has(&['w'])) {
        return found(
            year,
            "`Y` is the year of a week, but the pattern has no week",
            "years are `yyyy`",
        );
    }
    if let (Some(minute), false) = (find(&['m']), has(&['H', 'h', 'K', 'k'])) {
        return found(minute, "the pattern has minutes without an hour", MONTHS);
    }
    // An output may consist of the day alone.
    if let (Some(day), false) = (find(&['d']), month)
        && (reads || has(&['y', 'm']))
    {
        return found(day, "the pattern has a day without a month", MONTHS);
    }
    None
}

/// Whether two texts have the same numbers. Patterns accept the 31st of February as a day of March,
/// and this check rejects it.
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
            // `yy` also reads 2016, and writes it as 16.
            (Some(ours), Some(theirs))
                if ours.len() <= 2 && theirs.len() == 4 && theirs.ends_with(ours) => {}
            _ => return false,
        }
    }
}
