//! Zones in texts: offsets, identifiers and common English names.

use jiff::tz::{Offset, TimeZone};

use super::names::strip_name;
use super::{DateDialect, Moment};

/// A name that pages print instead of an offset.
struct KnownZone {
    short: &'static str,
    minutes: i32,
    long: &'static str,
}

const fn known(short: &'static str, minutes: i32, long: &'static str) -> KnownZone {
    KnownZone { short, minutes, long }
}

/// Common names. If several share an abbreviation, it means the one that the home zone uses, or
/// else the first.
const KNOWN: &[KnownZone] = &[
    known("UTC", 0, "Coordinated Universal Time"),
    known("GMT", 0, "Greenwich Mean Time"),
    known("EST", -300, "Eastern Standard Time"),
    known("EDT", -240, "Eastern Daylight Time"),
    known("CST", -360, "Central Standard Time"),
    known("CDT", -300, "Central Daylight Time"),
    known("MST", -420, "Mountain Standard Time"),
    known("MDT", -360, "Mountain Daylight Time"),
    known("PST", -480, "Pacific Standard Time"),
    known("PDT", -420, "Pacific Daylight Time"),
    known("AKST", -540, "Alaska Standard Time"),
    known("AKDT", -480, "Alaska Daylight Time"),
    known("HST", -600, "Hawaii-Aleutian Standard Time"),
    known("AST", -240, "Atlantic Standard Time"),
    known("ADT", -180, "Atlantic Daylight Time"),
    known("WET", 0, "Western European Standard Time"),
    known("WEST", 60, "Western European Summer Time"),
    known("BST", 60, "British Summer Time"),
    known("CET", 60, "Central European Standard Time"),
    known("CEST", 120, "Central European Summer Time"),
    known("EET", 120, "Eastern European Standard Time"),
    known("EEST", 180, "Eastern European Summer Time"),
    known("MSK", 180, "Moscow Standard Time"),
    known("IST", 330, "India Standard Time"),
    known("IST", 60, "Irish Standard Time"),
    known("IST", 120, "Israel Standard Time"),
    known("IDT", 180, "Israel Daylight Time"),
    known("SAST", 120, "South Africa Standard Time"),
    known("PKT", 300, "Pakistan Standard Time"),
    known("CST", 480, "China Standard Time"),
    known("HKT", 480, "Hong Kong Standard Time"),
    known("JST", 540, "Japan Standard Time"),
    known("KST", 540, "Korean Standard Time"),
    known("AWST", 480, "Australian Western Standard Time"),
    known("ACST", 570, "Australian Central Standard Time"),
    known("ACDT", 630, "Australian Central Daylight Time"),
    known("AEST", 600, "Australian Eastern Standard Time"),
    known("AEDT", 660, "Australian Eastern Daylight Time"),
    known("NZST", 720, "New Zealand Standard Time"),
    known("NZDT", 780, "New Zealand Daylight Time"),
];

/// Removes a zone from the start of a text: `Z`, an offset, `GMT+1`, `Europe/Paris`, `PST` or a
/// long name. All zone letters accept all forms, because pages mix them.
pub(super) fn strip_zone<'t>(text: &'t str, home: &TimeZone) -> Option<(TimeZone, &'t str)> {
    if let Some((offset, rest)) = strip_offset(text) {
        return Some((offset.to_time_zone(), rest));
    }
    for zero in ["GMT", "UTC", "UT"] {
        if let Some((offset, rest)) = strip_name(text, zero).and_then(strip_offset) {
            return Some((offset.to_time_zone(), rest));
        }
    }
    for it in KNOWN {
        if let Some(rest) = strip_name(text, it.long) {
            return Some((fixed(it.minutes)?, rest));
        }
    }
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || "/_+-".contains(c)))
        .unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if word.contains('/') {
        return Some((TimeZone::get(word).ok()?, rest));
    }
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    Some((abbreviated(word, home)?, rest))
}

fn abbreviated(word: &str, home: &TimeZone) -> Option<TimeZone> {
    if ["Z", "UT", "UTC"].iter().any(|it| word.eq_ignore_ascii_case(it)) {
        return Some(TimeZone::UTC);
    }
    let mut same = KNOWN.iter().filter(|it| word.eq_ignore_ascii_case(it.short));
    let first = same.clone().next()?;
    // One time in winter and one in summer, because the abbreviation changes with summer time.
    let probes = [0, 15_638_400].map(|second| jiff::Timestamp::from_second(second).ok());
    let at_home = same.find(|it| {
        probes.into_iter().flatten().any(|at| {
            let info = home.to_offset_info(at);
            info.abbreviation() == it.short && info.offset().seconds() == it.minutes * 60
        })
    });
    fixed(at_home.unwrap_or(first).minutes)
}

fn fixed(minutes: i32) -> Option<TimeZone> {
    Some(Offset::from_seconds(minutes * 60).ok()?.to_time_zone())
}

/// Removes an offset: `+h`, `+hh`, `+hmm`, `+hhmm`, `+hhmmss`, or the same with colons.
fn strip_offset(text: &str) -> Option<(Offset, &str)> {
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let run = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = &text[1..];
    let count = run(rest).min(6);
    let hours = if count <= 2 { count } else { 2 - count % 2 };
    let mut seconds = rest.get(..hours)?.parse::<i32>().ok()? * 3600;
    rest = &rest[hours..];
    let colons = count <= 2;
    for unit in [60, 1] {
        let digits = if colons { rest.strip_prefix(':') } else { Some(rest) };
        let Some(digits) = digits.filter(|it| run(it) >= 2) else {
            break;
        };
        seconds += digits[..2].parse::<i32>().ok()? * unit;
        rest = &digits[2..];
    }
    Some((Offset::from_seconds(sign * seconds).ok()?, rest))
}

/// Sign, hours, minutes and seconds of the offset.
fn parts(at: &Moment) -> (char, i32, i32, i32) {
    let seconds = at.offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.abs();
    (sign, seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Letter `z`: the name of the zone.
pub(super) fn name(at: &Moment, long: bool) -> String {
    let short = at.abbreviation();
    if short.starts_with(['+', '-']) {
        return gmt(at, true);
    }
    let minutes = at.offset.seconds() / 60;
    let found = KNOWN.iter().find(|it| it.short == short && it.minutes == minutes);
    match found {
        Some(it) if long => it.long.to_owned(),
        None if long => gmt(at, true),
        _ => short,
    }
}

/// Letter `Z`: the offset as in RFC 822.
pub(super) fn rfc(at: &Moment, dialect: DateDialect, count: usize) -> String {
    match (dialect, count) {
        (DateDialect::Calendar, 2) => iso(at, 3, false),
        (DateDialect::Time, 4) => gmt(at, true),
        (DateDialect::Time, 5..) => iso(at, 5, true),
        _ => iso(at, 2, false),
    }
}

/// Letters `X` and `x`: the offset as in ISO 8601. The count selects hours, `hhmm`, `hh:mm`,
/// `hhmmss` or `hh:mm:ss`.
pub(super) fn iso(at: &Moment, count: usize, zero_is_z: bool) -> String {
    if zero_is_z && at.offset.seconds() == 0 {
        return "Z".to_owned();
    }
    let (sign, hours, minutes, seconds) = parts(at);
    let colon = if matches!(count, 3 | 5) { ":" } else { "" };
    match (count, minutes, seconds) {
        (1, 0, _) => format!("{sign}{hours:02}"),
        (0..=3, ..) | (_, _, 0) => format!("{sign}{hours:02}{colon}{minutes:02}"),
        _ => format!("{sign}{hours:02}{colon}{minutes:02}{colon}{seconds:02}"),
    }
}

/// A single `X` of `SimpleDateFormat`: hours only.
pub(super) fn iso_hours(at: &Moment) -> String {
    let (sign, hours, ..) = parts(at);
    if at.offset.seconds() == 0 { "Z".to_owned() } else { format!("{sign}{hours:02}") }
}

/// Letter `O`: the offset from GMT. Also used for zones without a name.
pub(super) fn gmt(at: &Moment, long: bool) -> String {
    let (sign, hours, minutes, _) = parts(at);
    match (hours, minutes, long) {
        (0, 0, _) => "GMT".to_owned(),
        (_, _, true) => format!("GMT{sign}{hours:02}:{minutes:02}"),
        (_, 0, false) => format!("GMT{sign}{hours}"),
        (_, _, false) => format!("GMT{sign}{hours}:{minutes:02}"),
    }
}

/// Letter `V`: the identifier of the zone, or its offset if it has none.
pub(super) fn id(at: &Moment) -> String {
    match at.zone.iana_name() {
        Some(name) => name.to_owned(),
        None => iso(at, 3, true),
    }
}
