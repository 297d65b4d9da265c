//! The `roll` of a date roller sets calendar fields to an end of their range or to a number.

use jiff::civil::DateTime;
use spoonbill_defs::Text;

use crate::dates::{DayRule, LenientDateTime, week_of_month, week_of_year, weekday};
use crate::options::{OptionProblem, advice};

/// One `FIELD=value`, such as `DAY_OF_MONTH=ceil`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Roll {
    field: CalendarField,
    to: RollTarget,
}

/// A field of Java's `Calendar`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CalendarField {
    Era,
    Year,
    Month,
    DayOfMonth,
    DayOfYear,
    DayOfWeek,
    DayOfWeekInMonth,
    WeekOfYear,
    WeekOfMonth,
    AmPm,
    Hour,
    HourOfDay,
    Minute,
    Second,
    Millisecond,
}

const NAMES: &[(&str, CalendarField)] = &[
    ("ERA", CalendarField::Era),
    ("YEAR", CalendarField::Year),
    ("MONTH", CalendarField::Month),
    ("DATE", CalendarField::DayOfMonth),
    ("DAY_OF_MONTH", CalendarField::DayOfMonth),
    ("DAY_OF_YEAR", CalendarField::DayOfYear),
    ("DAY_OF_WEEK", CalendarField::DayOfWeek),
    ("DAY_OF_WEEK_IN_MONTH", CalendarField::DayOfWeekInMonth),
    ("WEEK_OF_YEAR", CalendarField::WeekOfYear),
    ("WEEK_OF_MONTH", CalendarField::WeekOfMonth),
    ("AM_PM", CalendarField::AmPm),
    ("HOUR", CalendarField::Hour),
    ("HOUR_OF_DAY", CalendarField::HourOfDay),
    ("MINUTE", CalendarField::Minute),
    ("SECOND", CalendarField::Second),
    ("MILLISECOND", CalendarField::Millisecond),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RollTarget {
    Ceil,
    Floor,
    Round,
    Set(i32),
}

impl Roll {
    /// Reads `FIELD=value FIELD=value ...`. They apply in this order.
    pub(super) fn read_all(text: &Text) -> Result<Vec<Self>, Vec<OptionProblem>> {
        let mut rolls = Vec::new();
        let mut problems = Vec::new();
        for word in text.text.split_whitespace() {
            match Self::read(word) {
                Ok(roll) => rolls.push(roll),
                Err((message, help)) => {
                    problems.push(OptionProblem::new(text.at, message).with_help(help));
                }
            }
        }
        if problems.is_empty() { Ok(rolls) } else { Err(problems) }
    }

    /// Reads one `FIELD=value`. The error holds a message and an advice.
    fn read(word: &str) -> Result<Self, (String, String)> {
        let Some((name, how)) = word.split_once('=') else {
            let help = "write `FIELD=value`, such as `DAY_OF_MONTH=ceil`".to_owned();
            return Err((format!("roll `{word}` has no `=`"), help));
        };
        let Some((_, field)) = NAMES.iter().find(|(known, _)| *known == name) else {
            let names: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
            return Err((format!("roll has no field `{name}`"), advice(name, &names)));
        };
        let how = match how {
            "ceil" => RollTarget::Ceil,
            "floor" => RollTarget::Floor,
            "round" => RollTarget::Round,
            number => RollTarget::Set(number.parse().map_err(|_| {
                let help = "use `ceil`, `floor`, `round` or a whole number".to_owned();
                (format!("roll `{name}` cannot be `{number}`"), help)
            })?),
        };
        if *field == CalendarField::Year && !matches!(how, RollTarget::Set(_)) {
            let help = "give the year as a number".to_owned();
            return Err((format!("roll `{word}`: years have no first or last value"), help));
        }
        Ok(Self { field: *field, to: how })
    }
}

/// Applies the rolls in order. `None` if the result is after the year 9999.
///
/// Year, month and day are normalized only at the end. So `MONTH=1 DAY_OF_MONTH=ceil` gives the
/// last day of February from any date, the 31st of January included.
pub(super) fn apply(rolls: &[Roll], at: DateTime) -> Option<DateTime> {
    let mut pending = LenientDateTime::of(at);
    for roll in rolls {
        let value = match roll.to {
            RollTarget::Set(value) => i64::from(value),
            RollTarget::Floor => roll.field.minimum(),
            RollTarget::Ceil => roll.field.maximum(pending)?,
            RollTarget::Round => {
                let maximum = roll.field.maximum(pending)?;
                if roll.field.value(pending)? <= maximum / 2 {
                    roll.field.minimum()
                } else {
                    maximum
                }
            }
        };
        pending = roll.field.set(pending, value)?;
    }
    pending.resolve()
}

impl CalendarField {
    fn minimum(self) -> i64 {
        match self {
            Self::Era
            | Self::Month
            | Self::AmPm
            | Self::Hour
            | Self::HourOfDay
            | Self::Minute
            | Self::Second
            | Self::Millisecond
            // 0 as in Java: in some locales a month begins before its first week.
            | Self::WeekOfMonth => 0,
            Self::Year
            | Self::DayOfMonth
            | Self::DayOfYear
            | Self::DayOfWeek
            | Self::DayOfWeekInMonth
            | Self::WeekOfYear => 1,
        }
    }

    /// The largest value in the current year and month.
    fn maximum(self, at: LenientDateTime) -> Option<i64> {
        let month = DayRule::OfMonth(1).find(at.year, at.month)?;
        Some(match self {
            Self::Era | Self::AmPm => 1,
            Self::Year => 9999,
            Self::Month | Self::Hour => 11,
            Self::DayOfMonth => i64::from(month.days_in_month()),
            Self::DayOfYear => i64::from(at.resolve()?.date().days_in_year()),
            Self::DayOfWeek => 7,
            Self::DayOfWeekInMonth => {
                let date = at.resolve()?.date();
                let first = (weekday(date) - weekday(date.first_of_month())).rem_euclid(7);
                (i64::from(date.days_in_month()) - first - 1) / 7 + 1
            }
            Self::WeekOfYear => weeks_in_year(at.resolve()?)?,
            Self::WeekOfMonth => week_of_month(at.resolve()?.date().last_of_month()),
            Self::HourOfDay => 23,
            Self::Minute | Self::Second => 59,
            Self::Millisecond => 999,
        })
    }

    fn value(self, at: LenientDateTime) -> Option<i64> {
        let now = at.resolve()?;
        let date = now.date();
        Some(match self {
            Self::Era => i64::from(now.year() > 0),
            Self::Year => i64::from(now.year()),
            Self::Month => i64::from(now.month()) - 1,
            Self::DayOfMonth => i64::from(now.day()),
            Self::DayOfYear => i64::from(now.day_of_year()),
            Self::DayOfWeek => weekday(date),
            Self::DayOfWeekInMonth => (i64::from(now.day()) - 1) / 7 + 1,
            Self::WeekOfYear => week_of_year(date)?.1,
            Self::WeekOfMonth => week_of_month(date),
            Self::AmPm => i64::from(now.hour() >= 12),
            Self::Hour => i64::from(now.hour()) % 12,
            Self::HourOfDay => i64::from(now.hour()),
            Self::Minute => i64::from(now.minute()),
            Self::Second => i64::from(now.second()),
            Self::Millisecond => i64::from(now.subsec_nanosecond()) / 1_000_000,
        })
    }

    fn set(self, at: LenientDateTime, value: i64) -> Option<LenientDateTime> {
        let on = |rule: DayRule| {
            let now = at.resolve()?;
            let date = rule.find(i64::from(now.year()), i64::from(now.month()) - 1)?;
            Some(LenientDateTime::of(now).on(date))
        };
        let day = weekday(at.resolve()?.date());
        match self {
            Self::Era => {
                let of_era = if at.year > 0 { at.year } else { 1 - at.year };
                let year = if value == 0 { 1 - of_era } else { of_era };
                Some(LenientDateTime { year, ..at })
            }
            Self::Year => Some(LenientDateTime { year: value, ..at }),
            Self::Month => Some(LenientDateTime { month: value, ..at }),
            Self::DayOfMonth => Some(LenientDateTime { day: value, ..at }),
            Self::DayOfYear => on(DayRule::OfYear(value)),
            Self::DayOfWeek => {
                let week = week_of_month(at.resolve()?.date());
                on(DayRule::WeekOfMonth(week, value))
            }
            Self::DayOfWeekInMonth => on(DayRule::WeekdayInMonth(value, day)),
            Self::WeekOfYear => on(DayRule::WeekOfYear(value, day)),
            Self::WeekOfMonth => on(DayRule::WeekOfMonth(value, day)),
            Self::AmPm => Some(LenientDateTime { hour: at.hour.rem_euclid(12) + 12 * value, ..at }),
            Self::Hour => Some(LenientDateTime { hour: at.hour.div_euclid(12) * 12 + value, ..at }),
            Self::HourOfDay => Some(LenientDateTime { hour: value, ..at }),
            Self::Minute => Some(LenientDateTime { minute: value, ..at }),
            Self::Second => Some(LenientDateTime { second: value, ..at }),
            Self::Millisecond => Some(LenientDateTime { nano: value * 1_000_000, ..at }),
        }
    }
}

/// 52 or 53. A week in December that belongs to the next year does not count.
fn weeks_in_year(at: DateTime) -> Option<i64> {
    let last = at.date().last_of_year();
    let (year, week) = week_of_year(last)?;
    if year == i64::from(last.year()) {
        return Some(week);
    }
    let before = DayRule::OfYear(i64::from(last.day_of_year()) - 7).find(last.year().into(), 0)?;
    Some(week_of_year(before)?.1)
}
