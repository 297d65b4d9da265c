//! The `live` of a task: how long a saved page stays valid.

use jiff::{Span, Zoned};

use super::{DatePattern, DateSetup};

/// The end of a page's validity.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveUntil {
    /// The page is valid while this is later than the date-time of the run.
    pub until: Zoned,
    /// The message shown to users if `live` is invalid, which counts as zero.
    pub warning: Option<String>,
}

/// The end of validity of a page that was fetched at `from`.
///
/// `live` is empty or `0`, an ISO duration (`PT6H`, `P1DT2H`; a day has 24 hours), an ISO period
/// (`P1W`, `P1Y2M`), or a date-time in `pattern`. They are tried in this order. Anything else
/// counts as zero and gives a warning.
pub fn live_until(from: &Zoned, live: &str, pattern: &DatePattern) -> LiveUntil {
    let text = live.trim();
    if text.is_empty() || text == "0" {
        return LiveUntil { until: from.clone(), warning: None };
    }
    let setup = DateSetup { zone: from.time_zone().clone(), run_year: from.year() };
    let end = match iso_duration(text).or_else(|| iso_period(text)) {
        Some(span) => from.checked_add(span).ok(),
        None => pattern.parse(text, &setup),
    };
    match end {
        Some(until) => LiveUntil { until, warning: None },
        None => LiveUntil {
            until: from.clone(),
            warning: Some(format!(
                "live `{live}` is neither an ISO duration such as `PT6H` or `P1W` \
                 nor a date-time in the pattern `{}`; it counts as zero",
                pattern.as_str()
            )),
        },
    }
}

fn iso_duration(text: &str) -> Option<Span> {
    let (sign, body) = after_p(text)?;
    let (days, time) = match body.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (body.as_str(), ""),
    };
    let mut span = Span::new();
    let mut found = 0;
    for (units, text) in [("D", days), ("HMS", time)] {
        found += amounts(text, units, |unit, amount, nanos| {
            let (amount, nanos) = (sign * amount, sign * nanos);
            span = match unit {
                // A day counts as 24 hours, so that a change to summer time does not alter its
                // length.
                'D' => span.try_hours(amount.checked_mul(24)?.checked_add(hours(&span))?).ok()?,
                'H' => span.try_hours(amount.checked_add(hours(&span))?).ok()?,
                'M' => span.try_minutes(amount).ok()?,
                _ => span.try_seconds(amount).ok()?.try_nanoseconds(nanos).ok()?,
            };
            (unit == 'S' || nanos == 0).then_some(())
        })?;
    }
    (found > 0).then_some(span)
}

fn hours(span: &Span) -> i64 {
    i64::from(span.get_hours())
}

fn iso_period(text: &str) -> Option<Span> {
    let (sign, body) = after_p(text)?;
    let mut span = Span::new();
    let found = amounts(&body, "YMWD", |unit, amount, nanos| {
        let amount = sign * amount;
        span = match unit {
            'Y' => span.try_years(amount).ok()?,
            'M' => span.try_months(amount).ok()?,
            'W' => span.try_weeks(amount).ok()?,
            _ => span.try_days(amount).ok()?,
        };
        (nanos == 0).then_some(())
    })?;
    (found > 0).then_some(span)
}

/// The sign, and the text after `P` in upper case.
fn after_p(text: &str) -> Option<(i64, String)> {
    let upper = text.to_ascii_uppercase();
    let (sign, rest) = match upper.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, upper.strip_prefix('+').unwrap_or(&upper)),
    };
    Some((sign, rest.strip_prefix('P')?.to_owned()))
}

/// Reads amounts such as `1Y2M`, each unit at most once and in the order of `units`. Calls `take`
/// with the unit, the whole amount and the nanoseconds of its fraction. Returns the number of
/// amounts.
fn amounts(
    text: &str,
    units: &str,
    mut take: impl FnMut(char, i64, i64) -> Option<()>,
) -> Option<usize> {
    let (mut rest, mut units, mut found) = (text, units, 0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let unit = rest[end..].chars().next()?;
        units = &units[units.find(unit)? + 1..];
        let (whole, fraction) = match rest[..end].split_once(['.', ',']) {
            Some((whole, fraction)) => (whole, fraction),
            None => (&rest[..end], ""),
        };
        let nanos: i64 = format!("{fraction:0<9}").parse().ok()?;
        let negative = whole.starts_with('-');
        if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        take(unit, whole.parse::<i32>().ok()?.into(), if negative { -nanos } else { nanos })?;
        found += 1;
        rest = &rest[end + 1..];
    }
    Some(found)
}
