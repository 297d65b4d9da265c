//! What a parser has read so far, and which date-time that means.
//!
//! Fields may contradict each other (a day of the month, a weekday, a week). As in Java's
//! calendar, the combination that was completed last decides.

use jiff::civil::DateTime;

use super::weeks::{DayRule, Lenient};

/// A field as the calendar keeps it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Slot {
    /// 0 before the year 1, else 1.
    Era,
    Year,
    Quarter,
    /// From 0.
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

const SLOTS: usize = Slot::Nano as usize + 1;

/// A value and when it was set: a later one has a greater stamp.
#[derive(Debug, Clone, Copy)]
struct Stamped {
    value: i64,
    stamp: u32,
}

#[derive(Debug, Default)]
pub(super) struct Fields {
    slots: [Option<Stamped>; SLOTS],
    last: u32,
}

impl Fields {
    pub(super) fn set(&mut self, slot: Slot, value: i64) {
        self.last += 1;
        self.slots[slot as usize] = Some(Stamped { value, stamp: self.last });
    }

    fn slot(&self, slot: Slot) -> Option<Stamped> {
        self.slots[slot as usize]
    }

    fn get(&self, slot: Slot) -> Option<i64> {
        self.slot(slot).map(|stamped| stamped.value)
    }

    fn stamp(&self, slot: Slot) -> Option<u32> {
        self.slot(slot).map(|stamped| stamped.stamp)
    }

    /// The date-time that the fields mean; what is missing is that of 1970-01-01T00:00.
    pub(super) fn resolve(&self) -> Option<DateTime> {
        let year = match (self.get(Slot::Year), self.get(Slot::Era)) {
            (Some(year), Some(0)) => 1 - year,
            (Some(year), _) => year,
            (None, Some(0)) => -1969,
            (None, _) => 1970,
        };
        let quarter = self.get(Slot::Quarter).map_or(0, |quarter| (quarter - 1) * 3);
        let month = self.get(Slot::Month).unwrap_or(quarter);
        let time = Lenient {
            year: 0,
            month: 0,
            day: 0,
            hour: self.hour(),
            minute: self.get(Slot::Minute).unwrap_or(0),
            second: self.get(Slot::Second).unwrap_or(0),
            nano: self.get(Slot::Nano).unwrap_or(0),
        };
        time.on(self.day_rule().find(year, month)?).resolve()
    }

    fn day_rule(&self) -> DayRule {
        let weekday = self.get(Slot::Weekday).unwrap_or(1);
        let rule = |slot, value| match slot {
            Slot::DayOfYear => DayRule::OfYear(value),
            Slot::WeekOfYear => DayRule::WeekOfYear(value, weekday),
            Slot::WeekOfMonth => DayRule::WeekOfMonth(value, weekday),
            Slot::WeekdayInMonth => DayRule::WeekdayInMonth(value, weekday),
            _ => DayRule::OfMonth(value),
        };
        let named = self.stamp(Slot::Weekday);
        let whole = [Slot::Day, Slot::DayOfYear]
            .into_iter()
            .filter_map(|slot| self.slot(slot).map(|it| ((it.stamp, it.stamp), slot, it.value)));
        let weekly = [Slot::WeekOfMonth, Slot::WeekdayInMonth, Slot::WeekOfYear];
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
        let twelve = self.get(Slot::Hour12);
        let half = self.get(Slot::AmPm);
        let pair_stamp = match (self.stamp(Slot::Hour12), self.stamp(Slot::AmPm)) {
            (Some(hour), Some(half)) => Some(hour.max(half)),
            _ => None,
        };
        match self.slot(Slot::Hour24) {
            Some(day) if pair_stamp.is_none_or(|pair| pair < day.stamp) => day.value,
            _ => twelve.unwrap_or(0) + 12 * half.unwrap_or(0),
        }
    }
}
