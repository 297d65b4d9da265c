//! Numbers as XPath reads and writes them.

/// Whitespace of XPath; the no-break space is none.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Writes a number without exponent, and whole numbers without a point.
pub fn number_to_string(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else if number == 0.0 {
        // Negative zero has no sign in XPath.
        "0".to_owned()
    } else {
        number.to_string()
    }
}

/// Reads a number: a minus, digits, a point; all else (`+1`, `1e3`, the empty text) is NaN.
pub(super) fn number_from(text: &str) -> f64 {
    let trimmed = text.trim_matches(is_space);
    let digits = trimmed.strip_prefix('-').unwrap_or(trimmed);
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if !plain || !digits.bytes().any(|b| b.is_ascii_digit()) {
        return f64::NAN;
    }
    // Two points are left for the standard parser to refuse.
    trimmed.parse().unwrap_or(f64::NAN)
}

/// Rounds to the nearest whole number, halves towards positive infinity.
pub(super) fn round(number: f64) -> f64 {
    let below = number.floor();
    let rounded = if number - below >= 0.5 { below + 1.0 } else { below };
    // From -0.5 up to zero the answer is negative zero, which division can tell from zero.
    if rounded == 0.0 { rounded.copysign(number) } else { rounded }
}
