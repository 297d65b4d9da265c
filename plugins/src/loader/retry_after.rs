//! The `Retry-After` header of HTTP.

use std::time::{Duration, SystemTime};

use httpdate::parse_http_date;

/// Reads `Retry-After`: seconds, or a date. A date counts from the server's own `Date`, so that a
/// wrong clock on either side does not turn into a long or missing pause.
pub(super) fn wait(retry_after: &str, date: Option<&str>, now: SystemTime) -> Option<Duration> {
    let text = retry_after.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit ask for a long pause too; the caller has a limit.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = parse_http_date(text).ok()?;
    let from = date.and_then(|date| parse_http_date(date.trim()).ok()).unwrap_or(now);
    Some(until.duration_since(from).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(retry_after: &str, date: Option<&str>, expect: Option<u64>) {
        let now = parse_http_date("Mon, 16 Nov 2026 10:00:00 GMT").unwrap();
        let found = wait(retry_after, date, now);
        assert_eq!(found.map(|d| d.as_secs()), expect, "of `{retry_after}`");
    }

    #[test]
    fn a_number_is_a_duration_in_seconds() {
        check("120", None, Some(120));
        check(" 0 ", None, Some(0));
        check("99999999999999999999999", None, Some(u64::MAX));
        check("-5", None, None);
        check("1.5", None, None);
        check("soon", None, None);
        check("", None, None);
    }

    #[test]
    fn a_date_has_one_of_three_forms() {
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
