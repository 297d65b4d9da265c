//! Writing a date-time by a pattern.

use std::fmt::Write as _;

use jiff::civil::DateTime;

use super::names::{ERAS, HALVES, MONTHS, SHORT, WEEKDAYS};
use super::{Dialect, Field, Moment, Part, Pattern, weeks, zones};

pub(super) fn format(pattern: &Pattern, moment: &Moment) -> String {
    let mut out = String::new();
    for part in &pattern.parts {
        match part {
            Part::Literal(text) => out.push_str(text),
            Part::Field { field, count } => write_field(&mut out, pattern, *field, *count, moment),
        }
    }
    out
}

fn write_field(out: &mut String, pattern: &Pattern, field: Field, count: usize, moment: &Moment) {
    let at = moment.at;
    let day = at.date();
    let hour = i64::from(at.hour());
    let nano = at.subsec_nanosecond();
    match field {
        Field::Era => out.push_str(era(pattern.dialect, count, at.year())),
        Field::Year => year(out, count, i64::from(at.year())),
        Field::WeekYear => year(out, count, week_year(at)),
        Field::Quarter => quarter(out, count, (i64::from(at.month()) - 1) / 3),
        Field::Month if count >= SHORT => {
            out.push_str(name(&MONTHS, at.month() as usize - 1, count, pattern.dialect));
        }
        Field::Month => pad(out, count, i64::from(at.month())),
        Field::Day => pad(out, count, i64::from(at.day())),
        Field::DayOfYear => pad(out, count, i64::from(at.day_of_year())),
        Field::WeekdayName => {
            let index = weeks::weekday(day) as usize - 1;
            out.push_str(name(&WEEKDAYS, index, count, pattern.dialect));
        }
        Field::WeekdayIso => pad(out, count, (weeks::weekday(day) + 5) % 7 + 1),
        Field::WeekdayLocal => pad(out, count, weeks::weekday(day)),
        Field::WeekdayInMonth => pad(out, count, (i64::from(at.day()) - 1) / 7 + 1),
        Field::WeekOfYear => pad(out, count, weeks::week_of_year(day).map_or(1, |it| it.1)),
        Field::WeekOfMonth => pad(out, count, weeks::week_of_month(day)),
        Field::AmPm => out.push_str(HALVES[usize::from(hour >= 12)]),
        Field::Hour23 => pad(out, count, hour),
        Field::Hour24 => pad(out, count, if hour == 0 { 24 } else { hour }),
        Field::Hour11 => pad(out, count, hour % 12),
        Field::Hour12 => pad(out, count, (hour + 11) % 12 + 1),
        Field::Minute => pad(out, count, i64::from(at.minute())),
        Field::Second => pad(out, count, i64::from(at.second())),
        Field::Milli => pad(out, count, i64::from(nano) / 1_000_000),
        Field::Fraction => fraction(out, count, nano),
        Field::Nano => pad(out, count, i64::from(nano)),
        Field::ZoneName => out.push_str(&zones::name(moment, count >= 4)),
        Field::ZoneRfc => out.push_str(&zones::rfc(moment, pattern.dialect, count)),
        // Java's calendar drops the minutes here; java.time does not.
        Field::ZoneIso if count == 1 && pattern.dialect == Dialect::Calendar => {
            out.push_str(&zones::iso_hours(moment));
        }
        Field::ZoneIso => out.push_str(&zones::iso(moment, count, true)),
        Field::ZoneIsoDigits => out.push_str(&zones::iso(moment, count, false)),
        Field::ZoneGmt => out.push_str(&zones::gmt(moment, count >= 4)),
        Field::ZoneId => out.push_str(&zones::id(moment)),
    }
}

fn pad(out: &mut String, width: usize, value: i64) {
    // Writing to a string cannot fail.
    write!(out, "{value:0width$}").unwrap_or_default();
}

fn year(out: &mut String, count: usize, year: i64) {
    let of_era = if year > 0 { year } else { 1 - year };
    pad(out, count, if count == 2 { of_era % 100 } else { of_era });
}

fn week_year(at: DateTime) -> i64 {
    weeks::week_of_year(at.date()).map_or_else(|| i64::from(at.year()), |it| it.0)
}

fn era(dialect: Dialect, count: usize, year: i16) -> &'static str {
    let forms = ERAS[usize::from(year > 0)];
    match (dialect, count) {
        (Dialect::Time, 4) => forms[2],
        (Dialect::Time, 5..) => forms[0],
        _ => forms[1],
    }
}

fn quarter(out: &mut String, count: usize, index: i64) {
    const ORDINALS: [&str; 4] = ["1st", "2nd", "3rd", "4th"];
    match count {
        3 => out.push('Q'),
        4 => {
            out.push_str(ORDINALS[index as usize]);
            out.push_str(" quarter");
            return;
        }
        _ => {}
    }
    pad(out, if count == 2 { 2 } else { 1 }, index + 1);
}

fn name(names: &'static [&str], index: usize, count: usize, dialect: Dialect) -> &'static str {
    let full = names[index];
    match (dialect, count) {
        (Dialect::Time, 5..) => &full[..1],
        (_, 4..) => full,
        _ => &full[..SHORT],
    }
}

fn fraction(out: &mut String, count: usize, nano: i32) {
    let digits = format!("{nano:09}");
    for index in 0..count {
        out.push(digits.as_bytes().get(index).map_or('0', |&digit| char::from(digit)));
    }
}
