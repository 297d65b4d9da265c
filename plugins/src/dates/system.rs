//! The zone and the clock of the machine.
//!
//! `jiff` lists all zones of the machine before it returns one, which takes longer than most of
//! what a run does before its first page. Nearly always it is enough to read one file.

use std::path::Path;
use std::sync::OnceLock;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

const ZONES: &str = "/usr/share/zoneinfo";
const LOCAL: &str = "/etc/localtime";

/// The machine's zone.
pub fn system_zone() -> TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    ZONE.get_or_init(|| named_by_machine().unwrap_or_else(TimeZone::system)).clone()
}

/// Now, in the machine's zone.
pub fn now() -> Zoned {
    Timestamp::now().to_zoned(system_zone())
}

/// A date-time with its zone in brackets, as [`Zoned`] prints it.
pub fn read_zoned(text: &str) -> Option<Zoned> {
    let zone = system_zone();
    let plain = zone
        .iana_name()
        .and_then(|name| text.strip_suffix(']')?.strip_suffix(name)?.strip_suffix('['));
    match plain.map(str::parse::<Timestamp>) {
        Some(Ok(moment)) => Some(moment.to_zoned(zone)),
        _ => text.parse().ok(),
    }
}

/// The zone named by `TZ` or by the link `/etc/localtime`. `None` for anything more complicated,
/// which `jiff` handles.
fn named_by_machine() -> Option<TimeZone> {
    if std::env::var_os("TZDIR").is_some() {
        return None;
    }
    let name = match std::env::var("TZ") {
        Ok(name) => name,
        Err(std::env::VarError::NotPresent) => {
            let link = std::fs::read_link(LOCAL).ok()?;
            link.strip_prefix(ZONES).ok()?.to_str()?.to_owned()
        }
        Err(_) => return None,
    };
    let plain = |part: &str| !part.is_empty() && !part.contains(['.', ':', ',']);
    if !name.split('/').all(plain) {
        return None;
    }
    let bytes = std::fs::read(Path::new(ZONES).join(&name)).ok()?;
    TimeZone::tzif(&name, &bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_is_the_one_that_jiff_finds() {
        let (ours, theirs) = (system_zone(), TimeZone::system());
        assert_eq!(ours.iana_name(), theirs.iana_name());
        for text in ["2026-01-15T10:00:00Z", "2026-07-15T10:00:00Z"] {
            let moment: Timestamp = text.parse().unwrap();
            assert_eq!(
                moment.to_zoned(ours.clone()).to_string(),
                moment.to_zoned(theirs.clone()).to_string()
            );
        }
    }

    #[test]
    fn a_printed_date_is_parsed_again() {
        let here: Zoned =
            "2020-07-01T10:00:00Z".parse::<Timestamp>().unwrap().to_zoned(system_zone());
        assert_eq!(read_zoned(&here.to_string()).unwrap(), here);
        let there: Zoned = "2020-07-01T10:00:00+05:30[Asia/Kolkata]".parse().unwrap();
        assert_eq!(read_zoned(&there.to_string()).unwrap(), there);
        assert_eq!(read_zoned(&there.to_string()).unwrap().to_string(), there.to_string());
        assert!(read_zoned("yesterday").is_none());
        assert!(read_zoned("]").is_none());
    }
}
