//! Calendar arithmetic in which every field may be out of range, like Java's lenient calendar.

use jiff::civil::{Date, DateTime};
use jiff::{Span, ToSpan};

/// Day of the week; Sunday is 1.
pub(crate) fn weekday(date: Date) -> i64 {
    i64::from(date.weekday().to_sunday_one_offset())
}

/// The Sunday on or before a date.
pub(super) fn week_start(date: Date) -> Option<Date> {
    days_after(date, 1 - weekday(date))
}

/// The week of the year, with its year. The last days of December can be in week 1 of the next
/// year.
pub(crate) fn week_of_year(date: Date) -> Option<(i64, i64)> {
    let saturday = days_after(date, 7 - weekday(date))?;
    let year = i64::from(saturday.year());
    let days = i64::from(saturday.day_of_year());
    Some((year, (days - 1) / 7 + 1))
}

/// The week of the month. Week 1 contains the first day of the month.
pub(crate) fn week_of_month(date: Date) -> i64 {
    let first = weekday(date.first_of_month());
    (i64::from(date.day()) + first - 2) / 7 + 1
}

/// The first day of a month. January is 0, and `month0` may be outside the year.
pub(super) fn month_start(year: i64, month0: i64) -> Option<Date> {
    let year = year.checked_add(month0.div_euclid(12))?;
    let month = month0.rem_euclid(12) as i8 + 1;
    Date::new(i16::try_from(year).ok()?, month, 1).ok()
}

pub(super) fn days_after(date: Date, days: i64) -> Option<Date> {
    date.checked_add(Span::new().try_days(days).ok()?).ok()
}

/// A date-time whose fields may be out of range until [`LenientDateTime::resolve`] carries them
/// over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LenientDateTime {
    pub(crate) year: i64,
    /// January is 0.
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) nano: i64,
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

impl LenientDateTime {
    /// Carries over fields that are out of range. `None` if the date is not within the years -9999
    /// to 9999.
    pub(crate) fn resolve(self) -> Option<DateTime> {
        let date = days_after(month_start(self.year, self.month)?, self.day.checked_sub(1)?)?;
        let seconds = self
            .hour
            .checked_mul(3600)?
            .checked_add(self.minute.checked_mul(60)?)?
            .checked_add(self.second)?
            .checked_add(self.nano.div_euclid(NANOS_PER_SECOND))?;
        let date = days_after(date, seconds.div_euclid(SECONDS_PER_DAY))?;
        date.at(0, 0, 0, 0)
            .checked_add(
                seconds
                    .rem_euclid(SECONDS_PER_DAY)
                    .seconds()
                    .nanoseconds(self.nano.rem_euclid(NANOS_PER_SECOND)),
            )
            .ok()
    }

    /// The fields of a date-time.
    pub(crate) fn of(at: DateTime) -> Self {
        Self {
            year: i64::from(at.year()),
            month: i64::from(at.month()) - 1,
            day: i64::from(at.day()),
            hour: i64::from(at.hour()),
            minute: i64::from(at.minute()),
            second: i64::from(at.second()),
            nano: i64::from(at.subsec_nanosecond()),
        }
    }

    /// The same time on another date.
    pub(crate) fn on(self, date: Date) -> Self {
        Self {
            year: i64::from(date.year()),
            month: i64::from(date.month()) - 1,
            day: i64::from(date.day()),
            ..self
        }
    }
}

/// How fields select a day of a year or month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DayRule {
    OfMonth(i64),
    OfYear(i64),
    /// The week, and the day of the week.
    WeekOfYear(i64, i64),
    /// The week, and the day of the week.
    WeekOfMonth(i64, i64),
    /// Which occurrence of a day of the week in the month, and that day.
    WeekdayInMonth(i64, i64),
}

impl DayRule {
    /// The selected day. January is 0, and `month0` may be outside the year.
    pub(crate) fn find(self, year: i64, month0: i64) -> Option<Date> {
        match self {
            Self::OfMonth(day) => days_after(month_start(year, month0)?, day.checked_sub(1)?),
            Self::OfYear(day) => days_after(month_start(year, 0)?, day.checked_sub(1)?),
            Self::WeekOfYear(week, day) => in_week(month_start(year, 0)?, week, day),
            Self::WeekOfMonth(week, day) => in_week(month_start(year, month0)?, week, day),
            Self::WeekdayInMonth(nth, day) => {
                let first = month_start(year, month0)?;
                let to_first = (day - weekday(first)).rem_euclid(7);
                days_after(first, nth.checked_sub(1)?.checked_mul(7)?.checked_add(to_first)?)
            }
        }
    }
}

fn in_week(first: Date, week: i64, day: i64) -> Option<Date> {
    let weeks = week.checked_sub(1)?.checked_mul(7)?;
    days_after(week_start(first)?, weeks.checked_add(day)?.checked_sub(1)?)
}
