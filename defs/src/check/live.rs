//! Checks the key `live`: how long later runs may reuse a page.

use crate::findings::Findings;
use crate::tasks::TaskGroup;
use crate::yaml::shorten;

/// Warns of a `live` that is neither a duration nor a date, as the engine then uses zero.
pub(super) fn check(groups: &[TaskGroup], findings: &mut Findings<'_>) {
    for live in groups.iter().filter_map(|group| group.live.as_ref()) {
        let text = live.text.trim();
        if text.is_empty() || text == "0" || is_duration(text) || looks_like_date(text) {
            continue;
        }
        findings.warn(
            live.at,
            format!(
                "`live: {}` is not a duration, so every run loads the pages again",
                shorten(text)
            ),
            "write a duration such as `PT6H`, `P1D` or `P1W`, or a date and time",
        );
    }
}

/// Whether the text is an ISO 8601 duration (`P1DT2H`) or period (`P1Y2M`), but not a mix.
fn is_duration(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(&text);
    let Some(rest) = unsigned.strip_prefix('P') else {
        return false;
    };
    let duration = match rest.split_once('T') {
        Some((days, time)) => (days.is_empty() || has_fields(days, "D")) && has_fields(time, "HMS"),
        None => has_fields(rest, "D"),
    };
    duration || has_fields(rest, "YMWD")
}

/// Whether the text is a sequence of numbers with units, in the given order of units.
fn has_fields(text: &str, units: &str) -> bool {
    let mut rest = text;
    let mut left = units;
    while !rest.is_empty() {
        let unsigned = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        let Some(end) = unsigned.find(|c: char| c.is_ascii_uppercase()) else {
            return false;
        };
        let (number, after) = unsigned.split_at(end);
        let mut after = after.chars();
        let Some(unit) = after.next().and_then(|unit| left.find(unit).map(|at| (unit, at))) else {
            return false;
        };
        let whole = match number.split_once(['.', ',']) {
            Some((whole, part)) if unit.0 == 'S' && is_digits(part, true) => whole,
            Some(_) => return false,
            None => number,
        };
        if !is_digits(whole, false) {
            return false;
        }
        left = left.get(unit.1 + 1..).unwrap_or_default();
        rest = after.as_str();
    }
    !text.is_empty()
}

fn is_digits(text: &str, may_be_empty: bool) -> bool {
    (may_be_empty || !text.is_empty()) && text.chars().all(|c| c.is_ascii_digit())
}

/// Whether the text may be a date. The pattern is a setting of the engine, so any text passes that
/// has at least two groups of digits and four digits.
fn looks_like_date(text: &str) -> bool {
    let groups = text.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty());
    let digits = text.chars().filter(char::is_ascii_digit).count();
    !text.starts_with(['P', 'p']) && digits >= 4 && groups.count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_periods_are_recognised() {
        for good in
            ["PT6H", "P1D", "P1DT2H", "P1W", "P2M", "P1Y2M", "PT1.5S", "-P1D", "p1w", "PT0S"]
        {
            assert!(is_duration(good), "{good}");
        }
        for bad in ["PT1W", "P", "PT", "1D", "P1H", "P1M2Y", "P1.5D", "PD", "P1DT", "P1YT1H"] {
            assert!(!is_duration(bad), "{bad}");
        }
    }

    #[test]
    fn dates_of_any_pattern_are_recognised() {
        for good in ["31-12-2037 23:59:59", "2037-12-31", "31 Dec 2037"] {
            assert!(looks_like_date(good), "{good}");
        }
        for bad in ["PT1W", "tomorrow", "10", "1 week"] {
            assert!(!looks_like_date(bad), "{bad}");
        }
    }
}
