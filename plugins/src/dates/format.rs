//! Formats a date-time by a pattern.

use std::fmt::Write as _;

use jiff::civil::DateTime;

use super::names::{ERAS, HALVES, MONTHS, SHORT, WEEKDAYS};
use super::{DateDialect, DatePattern, Moment, PatternField, PatternPart, weeks, zones};

pub(super) fn format(pattern: &DatePattern, moment: &Moment) -> String {
    let mut out = String::new();
    for part in &pattern.parts {
        match part {
            PatternPart::Literal(text) => out.push_str(text),
            PatternPart::Field { field, count } => {
                write_field(&mut out, pattern, *field, *count, moment);
            }
        }
    }
    out
}

fn write_field(
    out: &mut String,
    pattern: &DatePattern,
    field: PatternField,
    count: usize,
    moment: &Moment,
) {
    let at = moment.at;
    let day = at.date();
    let hour = i64::from(at.hour());
    let nano = at.subsec_nanosecond();
    match field {
        PatternField::Era => out.push_str(era(pattern.dialect, count, at.year())),
        PatternField::Year => year(out, count, i64::from(at.year())),
        PatternField::WeekYear => year(out, count, week_year(at)),
        PatternField::Quarter => quarter(out, count, (i64::from(at.month()) - 1) / 3),
        PatternField::Month if count >= SHORT => {
            out.push_str(name(&MONTHS, at.month() as usize - 1, count, pattern.dialect));
        }
        PatternField::Month => pad(out, count, i64::from(at.month())),
        PatternField::Day => pad(out, count, i64::from(at.day())),
        PatternField::DayOfYear => pad(out, count, i64::from(at.day_of_year())),
        PatternField::WeekdayName => {
            let index = weeks::weekday(day) as usize - 1;
            out.push_str(name(&WEEKDAYS, index, count, pattern.dialect));
        }
        PatternField::WeekdayIso => pad(out, count, (weeks::weekday(day) + 5) % 7 + 1),
        PatternField::WeekdayLocal => pad(out, count, weeks::weekday(day)),
        PatternField::WeekdayInMonth => pad(out, count, (i64::from(at.day()) - 1) / 7 + 1),
        PatternField::WeekOfYear => pad(out, count, weeks::week_of_year(day).map_or(1, |it| it.1)),
        PatternField::WeekOfMonth => pad(out, count, weeks::week_of_month(day)),
        PatternField::AmPm => out.push_str(HALVES[usize::from(hour >= 12)]),
        PatternField::Hour23 => pad(out, count, hour),
        PatternField::Hour24 => pad(out, count, if hour == 0 { 24 } else { hour }),
        PatternField::Hour11 => pad(out, count, hour % 12),
        PatternField::Hour12 => pad(out, count, (hour + 11) % 12 + 1),
        PatternField::Minute => pad(out, count, i64::from(at.minute())),
        PatternField::Second => pad(out, count, i64::from(at.second())),
        PatternField::Milli => pad(out, count, i64::from(nano) / 1_000_000),
        PatternField::Fraction => fraction(out, count, nano),
        PatternField::Nano => pad(out, count, i64::from(nano)),
        PatternField::ZoneName => out.push_str(&zones::name(moment, count >= 4)),
        PatternField::ZoneRfc => out.push_str(&zones::rfc(moment, pattern.dialect, count)),
        // `SimpleDateFormat` prints no minutes for a single `X`, `DateTimeFormatter` does.
        PatternField::ZoneIso if count == 1 && pattern.dialect == DateDialect::Calendar => {
            out.push_str(&zones::iso_hours(moment));
        }
        PatternField::ZoneIso => out.push_str(&zones::iso(moment, count, true)),
        PatternField::ZoneIsoDigits => out.push_str(&zones::iso(moment, count, false)),
        PatternField::ZoneGmt => out.push_str(&zones::gmt(moment, count >= 4)),
        PatternField::ZoneId => out.push_str(&zones::id(moment)),
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

fn era(dialect: DateDialect, count: usize, year: i16) -> &'static str {
    let forms = ERAS[usize::from(year > 0)];
    match (dialect, count) {
        (DateDialect::Time, 4) => forms[2],
        (DateDialect::Time, 5..) => forms[0],
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

fn name(names: &'static [&str], index: usize, count: usize, dialect: DateDialect) -> &'static str {
    let full = names[index];
    match (dialect, count) {
        (DateDialect::Time, 5..) => &full[..1],
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
