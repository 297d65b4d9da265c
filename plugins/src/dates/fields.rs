//! The fields that a parser has read, and the date-time they stand for.
//!
//! Fields can contradict each other: a day of the month, a weekday and a week. As in Java's
//! calendar, the combination that was completed last decides.

use jiff::civil::DateTime;

use super::weeks::{DayRule, LenientDateTime};

/// A field of the calendar. Several pattern letters can set the same one.
#[derive(Debug, Clone, Copy)]
pub(super) enum CalendarField {
    /// 0 before the year 1, 1 from then on.
    Era,
    Year,
    Quarter,
    /// January is 0.
    Month,
    Day,
    DayOfYear,
    /// Sunday is 1.
    Weekday,
    WeekdayInMonth,
    WeekOfYear,
    WeekOfMonth,
    AmPm,
    Hour12,
    Hour24,
    Minute,
    Second,
    Nano,
}

const SLOTS: usize = CalendarField::Nano as usize + 1;

/// A value and its sequence number. A value that was set later has a greater stamp.
#[derive(Debug, Clone, Copy)]
struct StampedValue {
    value: i64,
    stamp: u32,
}

#[derive(Debug, Default)]
pub(super) struct ParsedFields {
    slots: [Option<StampedValue>; SLOTS],
    last: u32,
}

impl ParsedFields {
    pub(super) fn set(&mut self, slot: CalendarField, value: i64) {
        self.last += 1;
        self.slots[slot as usize] = Some(StampedValue { value, stamp: self.last });
    }

    fn slot(&self, slot: CalendarField) -> Option<StampedValue> {
        self.slots[slot as usize]
    }

    fn get(&self, slot: CalendarField) -> Option<i64> {
        self.slot(slot).map(|stamped| stamped.value)
    }

    fn stamp(&self, slot: CalendarField) -> Option<u32> {
        self.slot(slot).map(|stamped| stamped.stamp)
    }

    /// The date-time of the fields. Missing fields are those of 1970-01-01T00:00. `None` if it is
    /// out of range.
    pub(super) fn resolve(&self) -> Option<DateTime> {
        let year = match (self.get(CalendarField::Year), self.get(CalendarField::Era)) {
            (Some(year), Some(0)) => 1 - year,
            (Some(year), _) => year,
            (None, Some(0)) => -1969,
            (None, _) => 1970,
        };
        let quarter = self.get(CalendarField::Quarter).map_or(0, |quarter| (quarter - 1) * 3);
        let month = self.get(CalendarField::Month).unwrap_or(quarter);
        let time = LenientDateTime {
            year: 0,
            month: 0,
            day: 0,
            hour: self.hour(),
            minute: self.get(CalendarField::Minute).unwrap_or(0),
            second: self.get(CalendarField::Second).unwrap_or(0),
            nano: self.get(CalendarField::Nano).unwrap_or(0),
        };
        time.on(self.day_rule().find(year, month)?).resolve()
    }

    fn day_rule(&self) -> DayRule {
        let weekday = self.get(CalendarField::Weekday).unwrap_or(1);
        let rule = |slot, value| match slot {
            CalendarField::DayOfYear => DayRule::OfYear(value),
            CalendarField::WeekOfYear => DayRule::WeekOfYear(value, weekday),
            CalendarField::WeekOfMonth => DayRule::WeekOfMonth(value, weekday),
            CalendarField::WeekdayInMonth => DayRule::WeekdayInMonth(value, weekday),
            _ => DayRule::OfMonth(value),
        };
        let named = self.stamp(CalendarField::Weekday);
        let whole = [CalendarField::Day, CalendarField::DayOfYear]
            .into_iter()
            .filter_map(|slot| self.slot(slot).map(|it| ((it.stamp, it.stamp), slot, it.value)));
        let weekly =
            [CalendarField::WeekOfMonth, CalendarField::WeekdayInMonth, CalendarField::WeekOfYear];
        let by_week = weekly.into_iter().filter_map(|slot| {
            let it = self.slot(slot)?;
            Some(((it.stamp.max(named?), it.stamp), slot, it.value))
        });
        if let Some((_, slot, value)) = whole.chain(by_week).max_by_key(|(stamps, ..)| *stamps) {
            return rule(slot, value);
        }
        let lone = weekly.into_iter().filter_map(|slot| Some((self.slot(slot)?, slot)));
        match (lone.max_by_key(|(it, _)| it.stamp), named) {
            (Some((it, slot)), _) => rule(slot, it.value),
            (None, Some(_)) => DayRule::WeekdayInMonth(1, weekday),
            (None, None) => DayRule::OfMonth(1),
        }
    }

    fn hour(&self) -> i64 {
        let twelve = self.get(CalendarField::Hour12);
        let half = self.get(CalendarField::AmPm);
        let pair_stamp = match (self.stamp(CalendarField::Hour12), self.stamp(CalendarField::AmPm))
        {
            (Some(hour), Some(half)) => Some(hour.max(half)),
            _ => None,
        };
        match self.slot(CalendarField::Hour24) {
            Some(day) if pair_stamp.is_none_or(|pair| pair < day.stamp) => day.value,
            _ => twelve.unwrap_or(0) + 12 * half.unwrap_or(0),
        }
    }
}
