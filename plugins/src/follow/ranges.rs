//! Addresses with ranges: `https://example.org/page/[1-100]`.

use std::fmt::Write as _;

/// An address with ranges. Addresses are produced on demand.
///
/// ```
/// use spoonbill_plugins::follow::UrlPattern;
///
/// let pattern = UrlPattern::parse("http://h/[a]/[08-10]")?;
/// assert_eq!(pattern.count(), 3);
/// assert_eq!(pattern.get(2), "http://h/[a]/10");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlPattern {
    parts: Vec<PatternPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternPart {
    Text(String),
    Range { first: u64, step: u64, count: u64, width: usize },
}

impl UrlPattern {
    /// Parses a pattern with ranges such as `[1-100]`, `[001-100]` or `[0-100:20]`. Other brackets
    /// are plain text. Fails if a range is empty or too large.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('[') {
            let inner = rest[open + 1..].find(']').map(|close| &rest[open + 1..open + 1 + close]);
            let Some(range) = inner.and_then(|inner| Some((inner, digits(inner)?))) else {
                plain.push_str(&rest[..=open]);
                rest = &rest[open + 1..];
                continue;
            };
            plain.push_str(&rest[..open]);
            parts.push(PatternPart::Text(std::mem::take(&mut plain)));
            let (inner, numbers) = range;
            parts.push(range_of(inner, numbers)?);
            rest = &rest[open + inner.len() + 2..];
        }
        plain.push_str(rest);
        parts.push(PatternPart::Text(plain));
        Ok(Self { parts })
    }

    /// Number of addresses, at most `u64::MAX`.
    pub fn count(&self) -> u64 {
        self.counts().fold(1, u64::saturating_mul)
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().filter_map(|part| match part {
            PatternPart::Text(_) => None,
            PatternPart::Range { count, .. } => Some(*count),
        })
    }

    /// The address at an index below [`Self::count`]. The last range changes fastest.
    pub fn get(&self, number: u64) -> String {
        let mut left = self.count();
        let mut url = String::new();
        for part in &self.parts {
            match part {
                PatternPart::Text(text) => url.push_str(text),
                PatternPart::Range { first, step, count, width } => {
                    left = (left / count).max(1);
                    let value = first + number / left % count * step;
                    // Writing to a string cannot fail.
                    write!(url, "{value:0width$}").ok();
                }
            }
        }
        url
    }
}

/// The digits of `1-100` or `0-100:20`. `None` if this is not a range.
fn digits(inner: &str) -> Option<(&str, &str, Option<&str>)> {
    let is_number =
        |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (first, rest) = inner.split_once('-')?;
    let (last, step) = match rest.split_once(':') {
        Some((last, step)) => (last, Some(step)),
        None => (rest, None),
    };
    let all = [Some(first), Some(last), step];
    all.iter().flatten().all(is_number).then_some((first, last, step))
}

fn range_of(inner: &str, numbers: (&str, &str, Option<&str>)) -> Result<PatternPart, String> {
    let number = |text: &str| -> Result<u64, String> {
        let read = text.parse().ok().filter(|number| *number <= 1_000_000_000_000_000_000_u64);
        read.ok_or_else(|| format!("range `[{inner}]`: `{text}` is too large"))
    };
    let (first, last, step) = numbers;
    let width = if first.starts_with('0') { first.len() } else { 0 };
    let (first, last) = (number(first)?, number(last)?);
    let step = step.map_or(Ok(1), number)?;
    if step == 0 {
        return Err(format!("range `[{inner}]` has the step 0"));
    }
    if last < first {
        return Err(format!("range `[{inner}]` is empty, because {last} is less than {first}"));
    }
    Ok(PatternPart::Range { first, step, count: (last - first) / step + 1, width })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let pattern = UrlPattern::parse(text).unwrap();
        (0..pattern.count()).map(|number| pattern.get(number)).collect()
    }

    #[test]
    fn ranges_produce_all_their_addresses() {
        assert_eq!(all("p/[1-3]"), ["p/1", "p/2", "p/3"]);
        assert_eq!(all("p/[008-010]/"), ["p/008/", "p/009/", "p/010/"]);
        assert_eq!(all("[0-50:20]"), ["0", "20", "40"]);
        assert_eq!(all("[5-5]"), ["5"]);
        assert_eq!(all("[0-2]"), ["0", "1", "2"]);
        assert_eq!(all("[1-2]/[1-3]"), ["1/1", "1/2", "1/3", "2/1", "2/2", "2/3"]);
        assert_eq!(all("[99-101]"), ["99", "100", "101"]);
        assert_eq!(all("[01-03:2]x"), ["01x", "03x"]);
    }

    #[test]
    fn other_brackets_are_plain_text() {
        for text in ["http://[::1]/x", "a[abc]b", "a[1]b", "a[1-]b", "[-3]", "[1-2", "]", "[1-2:]"]
        {
            assert_eq!(all(text), [text]);
        }
        assert_eq!(all("http://[::1]/[1-2]"), ["http://[::1]/1", "http://[::1]/2"]);
        assert_eq!(all("[[1-2]]"), ["[1]", "[2]"]);
    }

    #[test]
    fn empty_and_too_large_ranges_are_refused() {
        let problem = |text: &str| UrlPattern::parse(text).unwrap_err();
        assert_eq!(problem("[10-1]"), "range `[10-1]` is empty, because 1 is less than 10");
        assert_eq!(problem("[1-10:0]"), "range `[1-10:0]` has the step 0");
        assert_eq!(
            problem("[1-99999999999999999999]"),
            "range `[1-99999999999999999999]`: `99999999999999999999` is too large"
        );
    }

    #[test]
    fn large_ranges_are_not_expanded() {
        let pattern = UrlPattern::parse("[1-1000000000]/[1-1000000000]/[1-1000000000]").unwrap();
        assert_eq!(pattern.count(), u64::MAX);
        let pattern = UrlPattern::parse("[1-1000000000]").unwrap();
        assert_eq!(pattern.get(999_999_999), "1000000000");
    }
}
