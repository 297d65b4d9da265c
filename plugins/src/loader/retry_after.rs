//! How long a host asks to be left alone.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::{rfc2822, strtime};
use jiff::tz::TimeZone;

/// Reads `Retry-After`: seconds, or a date counted from the server's own `Date`, so that a wrong
/// clock on either side does not turn into a long or missing pause.
pub(super) fn wait(retry_after: &str, date: Option<&str>, now: Timestamp) -> Option<Duration> {
    let text = retry_after.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit are still a wish for a long pause; the caller has a cap.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = http_date(text)?;
    let from = date.and_then(http_date).unwrap_or(now);
    Some(Duration::try_from(until.duration_since(from)).unwrap_or_default())
}

/// The three forms of an HTTP date, the current one first.
fn http_date(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(at) = rfc2822::DateTimeParser::new().parse_timestamp(text) {
        return Some(at);
    }
    ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"].iter().find_map(|format| {
        let parsed = strtime::parse(format, text).ok()?;
        let civil: DateTime = parsed.to_datetime().ok()?;
        Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-16T10:00:00Z";

    fn check(retry_after: &str, date: Option<&str>, expect: Option<u64>) {
        let found = wait(retry_after, date, NOW.parse().unwrap());
        assert_eq!(found.map(|d| d.as_secs()), expect, "of `{retry_after}`");
    }

    #[test]
    fn seconds() {
        check("120", None, Some(120));
        check(" 0 ", None, Some(0));
        check("99999999999999999999999", None, Some(u64::MAX));
        check("-5", None, None);
        check("1.5", None, None);
        check("soon", None, None);
        check("", None, None);
    }

    #[test]
    fn dates_in_all_three_forms() {
        check("Mon, 16 Nov 2026 10:01:30 GMT", None, Some(90));
        check("Monday, 16-Nov-26 10:01:30 GMT", None, Some(90));
        check("Mon Nov 16 10:01:30 2026", None, Some(90));
        check("Mon Nov  2 10:01:30 2026", None, Some(0));
        check("Mon, 16 Nov 2026 09:00:00 GMT", None, Some(0));
    }

    #[test]
    fn a_date_counts_from_the_clock_of_the_server() {
        let server = Some("Mon, 16 Nov 2026 12:00:00 GMT");
        check("Mon, 16 Nov 2026 12:00:10 GMT", server, Some(10));
        check("Mon, 16 Nov 2026 10:00:20 GMT", Some("nonsense"), Some(20));
    }
}
