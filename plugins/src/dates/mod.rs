//! Java date patterns: compiled once, then used to format and to parse.
//!
//! Names are English and weeks are those of the United States, whatever the machine's locale: they
//! begin on Sunday, and week 1 contains 1 January. Years before 1582 are Gregorian, which differs
//! from Java's calendar. Only `system` reads the clock.

mod fields;
mod format;
mod live;
mod moment;
mod names;
mod parse;
mod system;
mod weeks;
mod zones;

#[cfg(test)]
mod tests;

use jiff::Zoned;
use jiff::tz::TimeZone;

pub use live::{LiveUntil, live_until};
pub(crate) use moment::Moment;
pub use system::{now, read_zoned, system_zone};
pub(crate) use weeks::{DayRule, LenientDateTime, week_of_month, week_of_year, weekday};

/// The context of a pattern: settings of the run that decide what a text means.
#[derive(Debug, Clone)]
pub struct DateSetup {
    /// The zone of texts without a zone, and of rolled dates.
    pub zone: TimeZone,
    /// The year of the run. Two-digit years mean years from 80 before it to 19 after it.
    pub run_year: i16,
}

/// The two pattern languages of Java. They differ in a few letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateDialect {
    /// `SimpleDateFormat`: `u` is the day of the week (Monday is 1), `S` is milliseconds.
    Calendar,
    /// `DateTimeFormatter`: `u` is the year, `S` is a decimal fraction, and five letters mean the
    /// narrow form.
    Time,
}

/// Why a pattern is invalid. Offsets count characters from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// A letter that is not a pattern letter.
    #[error("`{letter}` at offset {offset} is not a pattern letter; put plain text in '...'")]
    UnknownLetter {
        /// The letter.
        letter: char,
        /// Its position.
        offset: usize,
    },
    /// A character that Java reserves for future use.
    #[error("`{mark}` at offset {offset} is reserved; put plain text in '...'")]
    Reserved {
        /// The character.
        mark: char,
        /// Its position.
        offset: usize,
    },
    /// A quote that is not closed.
    #[error("the quote ' at offset {offset} is never closed; write '' for an apostrophe")]
    OpenQuote {
        /// Its position.
        offset: usize,
    },
    /// A letter repeated more than 64 times.
    #[error("`{letter}` at offset {offset} is repeated more than {} times", COUNT_MAX)]
    TooLong {
        /// The letter.
        letter: char,
        /// Position of the first one.
        offset: usize,
    },
}

/// Maximum number of repetitions of a letter. It limits the zeros that formatting adds.
const COUNT_MAX: usize = 64;

/// A compiled pattern.
///
/// ```
/// use spoonbill_plugins::dates::{DateSetup, DatePattern};
/// let setup = DateSetup { zone: jiff::tz::TimeZone::UTC, run_year: 2026 };
/// let date = DatePattern::compile("MMM ''YY")?.parse("Dec '16", &setup).unwrap();
/// assert_eq!(DatePattern::compile("yyyy-MM-dd")?.format(&date), "2016-12-01");
/// # Ok::<(), spoonbill_plugins::dates::PatternError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatePattern {
    source: String,
    dialect: DateDialect,
    parts: Vec<PatternPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternPart {
    Literal(String),
    Field { field: PatternField, count: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternField {
    Era,
    Year,
    WeekYear,
    Quarter,
    Month,
    Day,
    DayOfYear,
    WeekdayName,
    /// 1 is Monday.
    WeekdayIso,
    /// 1 is Sunday.
    WeekdayLocal,
    WeekdayInMonth,
    WeekOfYear,
    WeekOfMonth,
    AmPm,
    /// 0 to 23.
    Hour23,
    /// 1 to 24.
    Hour24,
    /// 0 to 11.
    Hour11,
    /// 1 to 12.
    Hour12,
    Minute,
    Second,
    Milli,
    Fraction,
    Nano,
    ZoneName,
    ZoneRfc,
    ZoneIso,
    /// Like [`PatternField::ZoneIso`], but prints zero as digits instead of `Z`.
    ZoneIsoDigits,
    ZoneGmt,
    ZoneId,
}

impl DatePattern {
    /// Compiles a pattern of `SimpleDateFormat`.
    pub fn compile(pattern: &str) -> Result<Self, PatternError> {
        Self::compile_as(DateDialect::Calendar, pattern)
    }

    /// Compiles a pattern of the given dialect.
    pub(crate) fn compile_as(dialect: DateDialect, pattern: &str) -> Result<Self, PatternError> {
        let chars: Vec<char> = pattern.chars().collect();
        let mut parts = Vec::new();
        let mut offset = 0;
        while let Some(&first) = chars.get(offset) {
            if first == '\'' {
                let (text, next) = quoted(&chars, offset)?;
                push_literal(&mut parts, &text);
                offset = next;
            } else if first.is_ascii_alphabetic() {
                let count = chars[offset..].iter().take_while(|&&c| c == first).count();
                if count > COUNT_MAX {
                    return Err(PatternError::TooLong { letter: first, offset });
                }
                let field = field(dialect, first, count)
                    .ok_or(PatternError::UnknownLetter { letter: first, offset })?;
                parts.push(PatternPart::Field { field, count });
                offset += count;
            } else if dialect == DateDialect::Time && "[]{}#".contains(first) {
                return Err(PatternError::Reserved { mark: first, offset });
            } else {
                push_literal(&mut parts, first.encode_utf8(&mut [0; 4]));
                offset += 1;
            }
        }
        Ok(Self { source: pattern.to_owned(), dialect, parts })
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Formats a date-time in its own zone.
    pub fn format(&self, date: &Zoned) -> String {
        self.print(&Moment::of(date))
    }

    /// Parses the whole of `text`. Fields out of range carry over: 32 January is 1 February. Fields
    /// that the pattern does not have are those of 1970-01-01T00:00.
    ///
    /// The result is in the zone named in the text, or else in the zone of `setup`. `Y` is parsed
    /// like `y`, because a week-year without a week would change the date.
    pub fn parse(&self, text: &str, setup: &DateSetup) -> Option<Zoned> {
        self.read(text, setup)?.zoned()
    }

    /// Like [`DatePattern::format`], but works up to the end of the year 9999 in all zones.
    pub(crate) fn print(&self, moment: &Moment) -> String {
        format::format(self, moment)
    }

    /// Like [`DatePattern::parse`], but works up to the end of the year 9999 in all zones.
    pub(crate) fn read(&self, text: &str, setup: &DateSetup) -> Option<Moment> {
        parse::parse(self, text, setup)
    }
}

/// Reads quoted text that begins at `open`. Returns the text and the offset after it.
fn quoted(chars: &[char], open: usize) -> Result<(String, usize), PatternError> {
    if chars.get(open + 1) == Some(&'\'') {
        return Ok(("'".to_owned(), open + 2));
    }
    let mut text = String::new();
    let mut at = open + 1;
    loop {
        match (chars.get(at), chars.get(at + 1)) {
            (Some('\''), Some('\'')) => {
                text.push('\'');
                at += 2;
            }
            (Some('\''), _) => return Ok((text, at + 1)),
            (Some(&other), _) => {
                text.push(other);
                at += 1;
            }
            (None, _) => return Err(PatternError::OpenQuote { offset: open }),
        }
    }
}

/// Adds text, joined with a literal directly before it. A field needs to see all of the literal
/// after it.
fn push_literal(parts: &mut Vec<PatternPart>, text: &str) {
    if let Some(PatternPart::Literal(last)) = parts.last_mut() {
        last.push_str(text);
    } else if !text.is_empty() {
        parts.push(PatternPart::Literal(text.to_owned()));
    }
}

fn field(dialect: DateDialect, letter: char, count: usize) -> Option<PatternField> {
    Some(match (letter, dialect) {
        ('G', _) => PatternField::Era,
        ('y', _) | ('u', DateDialect::Time) => PatternField::Year,
        ('u', DateDialect::Calendar) => PatternField::WeekdayIso,
        ('Y', _) => PatternField::WeekYear,
        ('Q' | 'q', _) => PatternField::Quarter,
        ('M' | 'L', _) => PatternField::Month,
        ('d', _) => PatternField::Day,
        ('D', _) => PatternField::DayOfYear,
        ('E', _) => PatternField::WeekdayName,
        ('e' | 'c', _) if count >= 3 => PatternField::WeekdayName,
        ('e' | 'c', _) => PatternField::WeekdayLocal,
        ('F', _) => PatternField::WeekdayInMonth,
        ('w', _) => PatternField::WeekOfYear,
        ('W', _) => PatternField::WeekOfMonth,
        ('a', _) => PatternField::AmPm,
        ('H', _) => PatternField::Hour23,
        ('k', _) => PatternField::Hour24,
        ('K', _) => PatternField::Hour11,
        ('h', _) => PatternField::Hour12,
        ('m', _) => PatternField::Minute,
        ('s', _) => PatternField::Second,
        ('S', DateDialect::Calendar) => PatternField::Milli,
        ('S', DateDialect::Time) => PatternField::Fraction,
        ('n', _) => PatternField::Nano,
        ('z', _) => PatternField::ZoneName,
        ('Z', _) => PatternField::ZoneRfc,
        ('X', _) => PatternField::ZoneIso,
        ('x', _) => PatternField::ZoneIsoDigits,
        ('O', _) => PatternField::ZoneGmt,
        ('V', _) => PatternField::ZoneId,
        _ => return None,
    })
}
