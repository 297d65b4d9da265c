//! Parses a text by a pattern.

use jiff::tz::TimeZone;

use super::fields::{CalendarField, ParsedFields};
use super::names::{ERAS, HALVES, MONTHS, WEEKDAYS, strip_long_or_short, strip_name};
use super::{DatePattern, DateSetup, Moment, PatternField, PatternPart, zones};

/// Largest value of a field; Java uses an `int`.
const NUMBER_MAX: i64 = i32::MAX as i64;

pub(super) fn parse(pattern: &DatePattern, text: &str, setup: &DateSetup) -> Option<Moment> {
    let mut reader = DateReader { rest: text, fields: ParsedFields::default(), zone: None, setup };
    for (index, part) in pattern.parts.iter().enumerate() {
        match part {
            PatternPart::Literal(literal) => {
                reader.rest = reader.rest.strip_prefix(literal.as_str())?;
            }
            PatternPart::Field { field, count } => {
                let abuts = pattern.parts.get(index + 1).is_some_and(is_number);
                reader.field(*field, *count, abuts)?;
            }
        }
    }
    if !reader.rest.is_empty() {
        return None;
    }
    let zone = reader.zone.unwrap_or_else(|| setup.zone.clone());
    Some(Moment::at_local_time(reader.fields.resolve()?, &zone, pattern.dialect))
}

struct DateReader<'t> {
    rest: &'t str,
    fields: ParsedFields,
    zone: Option<TimeZone>,
    setup: &'t DateSetup,
}

impl DateReader<'_> {
    fn field(&mut self, field: PatternField, count: usize, abuts: bool) -> Option<()> {
        if !abuts {
            self.rest = self.rest.trim_start();
        }
        match field {
            PatternField::Month if count >= 3 => self.name(CalendarField::Month, &MONTHS, 0),
            PatternField::WeekdayName => self.name(CalendarField::Weekday, &WEEKDAYS, 1),
            PatternField::AmPm => self.name(CalendarField::AmPm, &HALVES, 0),
            PatternField::Era => self.era(),
            PatternField::Fraction => self.fraction(count, abuts),
            PatternField::ZoneName
            | PatternField::ZoneRfc
            | PatternField::ZoneIso
            | PatternField::ZoneIsoDigits
            | PatternField::ZoneGmt
            | PatternField::ZoneId => {
                let (zone, rest) = zones::strip_zone(self.rest, &self.setup.zone)?;
                self.zone = Some(zone);
                self.rest = rest;
                Some(())
            }
            _ => {
                let value = self.number(abuts.then_some(count))?;
                self.numeric(field, count, value);
                Some(())
            }
        }
    }

    fn numeric(&mut self, field: PatternField, count: usize, value: i64) {
        let (slot, value) = match field {
            PatternField::Year | PatternField::WeekYear if count <= 2 && value < 100 => {
                (CalendarField::Year, full_year(value, self.setup.run_year))
            }
            PatternField::Year | PatternField::WeekYear => (CalendarField::Year, value),
            PatternField::Quarter => (CalendarField::Quarter, value),
            PatternField::Month => (CalendarField::Month, value - 1),
            PatternField::DayOfYear => (CalendarField::DayOfYear, value),
            PatternField::WeekdayIso => (CalendarField::Weekday, value % 7 + 1),
            PatternField::WeekdayLocal => (CalendarField::Weekday, value),
            PatternField::WeekdayInMonth => (CalendarField::WeekdayInMonth, value),
            PatternField::WeekOfYear => (CalendarField::WeekOfYear, value),
            PatternField::WeekOfMonth => (CalendarField::WeekOfMonth, value),
            PatternField::Hour23 => (CalendarField::Hour24, value),
            PatternField::Hour24 => (CalendarField::Hour24, if value == 24 { 0 } else { value }),
            PatternField::Hour11 => (CalendarField::Hour12, value),
            PatternField::Hour12 => (CalendarField::Hour12, if value == 12 { 0 } else { value }),
            PatternField::Minute => (CalendarField::Minute, value),
            PatternField::Second => (CalendarField::Second, value),
            PatternField::Milli => (CalendarField::Nano, value * 1_000_000),
            PatternField::Nano | PatternField::Fraction => (CalendarField::Nano, value),
            PatternField::Day => (CalendarField::Day, value),
            PatternField::Era
            | PatternField::WeekdayName
            | PatternField::AmPm
            | PatternField::ZoneName
            | PatternField::ZoneRfc
            | PatternField::ZoneIso
            | PatternField::ZoneIsoDigits
            | PatternField::ZoneGmt
            | PatternField::ZoneId => return,
        };
        self.fields.set(slot, value);
    }

    /// Reads a number. `width` limits its digits if another number follows directly.
    fn number(&mut self, width: Option<usize>) -> Option<i64> {
        let digits = self.digits(width.unwrap_or(usize::MAX));
        let value: i64 = digits.parse().ok()?;
        (value <= NUMBER_MAX).then_some(value)
    }

    fn digits(&mut self, width: usize) -> &str {
        let count = self.rest.bytes().take(width).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits
    }

    fn fraction(&mut self, count: usize, abuts: bool) -> Option<()> {
        let digits = self.digits(if abuts { count } else { usize::MAX });
        let nanos = format!("{digits:0<9}");
        let nanos = (!digits.is_empty()).then(|| nanos[..9].parse().ok())??;
        self.fields.set(CalendarField::Nano, nanos);
        Some(())
    }

    fn name(&mut self, slot: CalendarField, names: &[&str], base: i64) -> Option<()> {
        let (index, rest) = if names.len() == HALVES.len() {
            (0..names.len()).find_map(|it| Some((it, strip_name(self.rest, names[it])?)))?
        } else {
            strip_long_or_short(self.rest, names)?
        };
        self.rest = rest;
        self.fields.set(slot, index as i64 + base);
        Some(())
    }

    fn era(&mut self) -> Option<()> {
        let (era, rest) = ERAS.iter().enumerate().find_map(|(era, forms)| {
            let rest = forms.iter().rev().find_map(|form| strip_name(self.rest, form));
            Some((era, rest?))
        })?;
        self.rest = rest;
        self.fields.set(CalendarField::Era, era as i64);
        Some(())
    }
}

/// The year that two digits mean: from 80 years before the run to 19 after it.
fn full_year(two_digits: i64, run_year: i16) -> i64 {
    let first = i64::from(run_year) - 80;
    first + (two_digits - first).rem_euclid(100)
}

/// Whether a part starts with a digit, so that a number directly before it must stop at its width.
fn is_number(part: &PatternPart) -> bool {
    match part {
        PatternPart::Literal(text) => text.starts_with(|c: char| c.is_ascii_digit()),
        PatternPart::Field { field, count } => match field {
            PatternField::Month => *count < 3,
            PatternField::Era
            | PatternField::WeekdayName
            | PatternField::AmPm
            | PatternField::ZoneName
            | PatternField::ZoneRfc
            | PatternField::ZoneIso
            | PatternField::ZoneIsoDigits
            | PatternField::ZoneGmt
            | PatternField::ZoneId => false,
            _ => true,
        },
    }
}
