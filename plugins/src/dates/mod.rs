//! Java date patterns: compiled once, then used to format and to parse.
//!
//! Names are English and weeks are those of the United States (they begin on Sunday, and week 1
//! holds 1 January), whatever the machine's locale. Years before 1582 are Gregorian too, unlike
//! Java's calendar. Nothing here reads a clock.

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

/// What a pattern cannot know by itself.
#[derive(Debug, Clone)]
pub struct DateSetup {
    /// Zone of texts that name none, and of rolled dates.
    pub zone: TimeZone,
    /// Year of the run: two-digit years lie from 80 years before it to 19 after it.
    pub run_year: i16,
}

/// Which of Java's two readings of a pattern is meant. They differ in few letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateDialect {
    /// `SimpleDateFormat`: `u` is the day of the week (Monday is 1), `S` counts milliseconds.
    Calendar,
    /// `DateTimeFormatter`: `u` is the year, `S` is a decimal fraction, five letters are narrow.
    Time,
}

/// Why a pattern makes no sense. Offsets count characters from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// A letter that is no field.
    #[error("`{letter}` at offset {offset} is no pattern letter; plain text stands in '...'")]
    UnknownLetter {
        /// The letter.
        letter: char,
        /// Where it stands.
        offset: usize,
    },
    /// A character that Java keeps for itself.
    #[error("`{mark}` at offset {offset} has no meaning here; as plain text it stands in '...'")]
    Reserved {
        /// The character.
        mark: char,
        /// Where it stands.
        offset: usize,
    },
    /// A quote without its end.
    #[error("the quote ' at offset {offset} is never closed; a plain apostrophe is ''")]
    OpenQuote {
        /// Where it stands.
        offset: usize,
    },
    /// A run of one letter that no text could need.
    #[error("`{letter}` at offset {offset} is repeated more than {} times", COUNT_MAX)]
    TooLong {
        /// The letter.
        letter: char,
        /// Where the run begins.
        offset: usize,
    },
}

/// Longest run of one letter; it bounds what a format can pad.
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
    /// Like [`PatternField::ZoneIso`], but zero is digits and not `Z`.
    ZoneIsoDigits,
    ZoneGmt,
    ZoneId,
}

impl DatePattern {
    /// Compiles a pattern in the `SimpleDateFormat` reading.
    pub fn compile(pattern: &str) -> Result<Self, PatternError> {
        Self::compile_as(DateDialect::Calendar, pattern)
    }

    /// Compiles a pattern in the given reading.
    pub fn compile_as(dialect: DateDialect, pattern: &str) -> Result<Self, PatternError> {
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

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Writes a date-time in its own zone.
    pub fn format(&self, date: &Zoned) -> String {
        self.print(&Moment::of(date))
    }

    /// Reads the whole of `text`, leniently: fields out of range roll over, so that 32 January is
    /// 1 February. Fields that the pattern lacks are those of 1970-01-01T00:00.
    ///
    /// The result is in the zone that the text names, else in the zone of `setup`. `Y` reads as
    /// `y`: a week-year without a week would move the date.
    pub fn parse(&self, text: &str, setup: &DateSetup) -> Option<Zoned> {
        self.read(text, setup)?.zoned()
    }

    /// Like [`DatePattern::format`], to the end of the year 9999.
    pub(crate) fn print(&self, moment: &Moment) -> String {
        format::format(self, moment)
    }

    /// Like [`DatePattern::parse`], to the end of the year 9999.
    pub(crate) fn read(&self, text: &str, setup: &DateSetup) -> Option<Moment> {
        parse::parse(self, text, setup)
    }
}

/// Reads quoted text that begins at `open`; gives the text and the offset behind it.
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

/// Neighbouring literals become one, so that a number knows what follows it.
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
