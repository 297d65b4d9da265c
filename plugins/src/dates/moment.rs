//! A date-time with its zone and offset.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

use super::DateDialect;

/// Like [`Zoned`], but it can also be on the last day of the year 9999. Many pages print that day
/// for "no end", and a timestamp cannot represent it in every zone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moment {
    pub(crate) at: DateTime,
    pub(crate) zone: TimeZone,
    pub(crate) offset: Offset,
}

impl Moment {
    pub(crate) fn of(zoned: &Zoned) -> Self {
        Self { at: zoned.datetime(), zone: zoned.time_zone().clone(), offset: zoned.offset() }
    }

    /// Interprets a local time in a zone. A time that the clocks skip moves forward by the gap. A
    /// time that occurs twice is the second for `SimpleDateFormat` and the first for
    /// `DateTimeFormatter`.
    pub(crate) fn at_local_time(at: DateTime, zone: &TimeZone, dialect: DateDialect) -> Self {
        let ambiguous = zone.to_ambiguous_zoned(at);
        let zoned = match dialect {
            DateDialect::Calendar => ambiguous.later(),
            DateDialect::Time => ambiguous.compatible(),
        };
        match zoned {
            Ok(zoned) => Self::of(&zoned),
            Err(_) => Self { at, zone: zone.clone(), offset: zone.to_offset(Timestamp::MAX) },
        }
    }

    /// The same instant in another zone.
    pub(crate) fn in_zone(self, zone: &TimeZone) -> Self {
        match self.zoned() {
            Some(zoned) if self.zone != *zone => Self::of(&zoned.with_time_zone(zone.clone())),
            _ => self,
        }
    }

    pub(crate) fn zoned(&self) -> Option<Zoned> {
        let instant = self.offset.to_timestamp(self.at).ok()?;
        Some(instant.to_zoned(self.zone.clone()))
    }

    /// The abbreviation of the zone at this time.
    pub(crate) fn abbreviation(&self) -> String {
        let instant = self.offset.to_timestamp(self.at).unwrap_or(Timestamp::MAX);
        let info = self.zone.to_offset_info(instant);
        info.abbreviation().to_owned()
    }
}
