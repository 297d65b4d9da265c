//! Conversion between numbers and text as XPath defines it.

/// White space in XPath. It does not include the no-break space.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Converts a number to text: without exponent, and without a decimal point if it is whole.
pub fn number_to_string(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else if number == 0.0 {
        // XPath prints negative zero without a sign.
        "0".to_owned()
    } else {
        number.to_string()
    }
}

/// Converts text to a number: an optional minus, digits, a point. Anything else (`+1`, `1e3`, empty
/// text) is NaN.
pub(super) fn number_from(text: &str) -> f64 {
    let trimmed = text.trim_matches(is_space);
    let digits = trimmed.strip_prefix('-').unwrap_or(trimmed);
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if !plain || !digits.bytes().any(|b| b.is_ascii_digit()) {
        return f64::NAN;
    }
    // The standard library rejects two points.
    trimmed.parse().unwrap_or(f64::NAN)
}

/// Rounds to the nearest whole number, and halves towards positive infinity.
pub(super) fn round(number: f64) -> f64 {
    let below = number.floor();
    let rounded = if number - below >= 0.5 { below + 1.0 } else { below };
    // From -0.5 up to zero the result is negative zero, which differs from zero in a division.
    if rounded == 0.0 { rounded.copysign(number) } else { rounded }
}
