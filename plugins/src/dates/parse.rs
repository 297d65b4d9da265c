//! Reading a text by a pattern, leniently.

use jiff::tz::TimeZone;

use super::fields::{Fields, Slot};
use super::names::{ERAS, HALVES, MONTHS, WEEKDAYS, strip_long_or_short, strip_name};
use super::{DateSetup, Field, Moment, Part, Pattern, zones};

/// Largest number a field holds; Java reads an `int`.
const NUMBER_MAX: i64 = i32::MAX as i64;

pub(super) fn parse(pattern: &Pattern, text: &str, setup: &DateSetup) -> Option<Moment> {
    let mut reader = Reader { rest: text, fields: Fields::default(), zone: None, setup };
    for (index, part) in pattern.parts.iter().enumerate() {
        match part {
            Part::Literal(literal) => reader.rest = reader.rest.strip_prefix(literal.as_str())?,
            Part::Field { field, count } => {
                let abuts = pattern.parts.get(index + 1).is_some_and(is_number);
                reader.field(*field, *count, abuts)?;
            }
        }
    }
    if !reader.rest.is_empty() {
        return None;
    }
    let zone = reader.zone.unwrap_or_else(|| setup.zone.clone());
    Some(Moment::settle(reader.fields.resolve()?, &zone, pattern.dialect))
}

struct Reader<'t> {
    rest: &'t str,
    fields: Fields,
    zone: Option<TimeZone>,
    setup: &'t DateSetup,
}

impl Reader<'_> {
    fn field(&mut self, field: Field, count: usize, abuts: bool) -> Option<()> {
        if !abuts {
            self.rest = self.rest.trim_start();
        }
        match field {
            Field::Month if count >= 3 => self.name(Slot::Month, &MONTHS, 0),
            Field::WeekdayName => self.name(Slot::Weekday, &WEEKDAYS, 1),
            Field::AmPm => self.name(Slot::AmPm, &HALVES, 0),
            Field::Era => self.era(),
            Field::Fraction => self.fraction(count, abuts),
            Field::ZoneName
            | Field::ZoneRfc
            | Field::ZoneIso
            | Field::ZoneIsoDigits
            | Field::ZoneGmt
            | Field::ZoneId => {
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

    fn numeric(&mut self, field: Field, count: usize, value: i64) {
        let (slot, value) = match field {
            Field::Year | Field::WeekYear if count <= 2 && value < 100 => {
                (Slot::Year, full_year(value, self.setup.run_year))
            }
            Field::Year | Field::WeekYear => (Slot::Year, value),
            Field::Quarter => (Slot::Quarter, value),
            Field::Month => (Slot::Month, value - 1),
            Field::DayOfYear => (Slot::DayOfYear, value),
            Field::WeekdayIso => (Slot::Weekday, value % 7 + 1),
            Field::WeekdayLocal => (Slot::Weekday, value),
            Field::WeekdayInMonth => (Slot::WeekdayInMonth, value),
            Field::WeekOfYear => (Slot::WeekOfYear, value),
            Field::WeekOfMonth => (Slot::WeekOfMonth, value),
            Field::Hour23 => (Slot::Hour24, value),
            Field::Hour24 => (Slot::Hour24, if value == 24 { 0 } else { value }),
            Field::Hour11 => (Slot::Hour12, value),
            Field::Hour12 => (Slot::Hour12, if value == 12 { 0 } else { value }),
            Field::Minute => (Slot::Minute, value),
            Field::Second => (Slot::Second, value),
            Field::Milli => (Slot::Nano, value * 1_000_000),
            Field::Nano | Field::Fraction => (Slot::Nano, value),
            Field::Day => (Slot::Day, value),
            Field::Era
            | Field::WeekdayName
            | Field::AmPm
            | Field::ZoneName
            | Field::ZoneRfc
            | Field::ZoneIso
            | Field::ZoneIsoDigits
            | Field::ZoneGmt
            | Field::ZoneId => return,
        };
        self.fields.set(slot, value);
    }

    /// A number; `width` bounds its digits when another number follows at once.
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
        self.fields.set(Slot::Nano, nanos);
        Some(())
    }

    fn name(&mut self, slot: Slot, names: &[&str], base: i64) -> Option<()> {
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
        self.fields.set(Slot::Era, era as i64);
        Some(())
    }
}

/// The year that two digits mean: within 80 years before and 19 after the run.
fn full_year(two_digits: i64, run_year: i16) -> i64 {
    let first = i64::from(run_year) - 80;
    first + (two_digits - first).rem_euclid(100)
}

/// Whether a part begins with digits, so that a number before it must stop at its width.
fn is_number(part: &Part) -> bool {
    match part {
        Part::Literal(text) => text.starts_with(|c: char| c.is_ascii_digit()),
        Part::Field { field, count } => match field {
            Field::Month => *count < 3,
            Field::Era
            | Field::WeekdayName
            | Field::AmPm
            | Field::ZoneName
            | Field::ZoneRfc
            | Field::ZoneIso
            | Field::ZoneIsoDigits
            | Field::ZoneGmt
            | Field::ZoneId => false,
            _ => true,
        },
    }
}
