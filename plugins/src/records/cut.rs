//! The regex of a field.

use fancy_regex::Regex;

use crate::java_regex::{JavaRegexError, compile_find};

/// The compiled regex of a field.
#[derive(Debug, Clone)]
pub(super) enum FieldRegex {
    /// At most this many characters of the first line: `^.{0,200}`. The regex engine would compile
    /// a state for each of them, which takes milliseconds.
    Start(usize),
    Regex(Regex),
}

impl FieldRegex {
    /// Compiles a Java pattern.
    pub(super) fn compile(java: &str) -> Result<Self, JavaRegexError> {
        match length_of_start(java) {
            Some(length) => Ok(Self::Start(length)),
            None => compile_find(java).map(Self::Regex),
        }
    }

    /// Returns the first group that matched, or the whole match if the regex has no groups.
    pub(super) fn find<'t>(
        &self,
        text: &'t str,
    ) -> Result<Option<&'t str>, Box<fancy_regex::Error>> {
        let regex = match self {
            Self::Start(length) => return Ok(Some(start(text, *length))),
            Self::Regex(regex) => regex,
        };
        let Some(captures) = regex.captures(text)? else { return Ok(None) };
        let group = captures.iter().skip(1).flatten().next();
        let meant = if captures.len() > 1 { group } else { captures.get(0) };
        Ok(meant.map(|it| it.as_str()))
    }
}

/// Reads the `200` in `^.{0,200}`.
fn length_of_start(java: &str) -> Option<usize> {
    let digits = java.strip_prefix("^.{0,")?.strip_suffix('}')?;
    let plain = matches!(digits.len(), 1..=3) && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn start(text: &str, length: usize) -> &str {
    let ends_line = |c: char| matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut places = text.char_indices().enumerate();
    let end = places.find(|(number, (_, c))| *number == length || ends_line(*c));
    end.map_or(text, |(_, (at, _))| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortcut_for_a_prefix_finds_what_the_regex_finds() {
        let texts = ["", "a", "ab", "äöü€", "a\nb", "\nab", "ab\r\n", "a\u{85}b", "€\u{2028}x"];
        for java in ["^.{0,0}", "^.{0,1}", "^.{0,2}", "^.{0,3}", "^.{0,02}", "^.{0,200}"] {
            let regex = FieldRegex::Regex(compile_find(java).unwrap());
            let quick = FieldRegex::compile(java).unwrap();
            assert!(matches!(quick, FieldRegex::Start(_)), "{java}");
            for text in texts.into_iter().chain([&*"long €\u{a0} ".repeat(90)]) {
                assert_eq!(quick.find(text).unwrap(), regex.find(text).unwrap(), "{java} {text:?}");
            }
        }
        for java in
            ["^.{1,20}", ".{0,20}", "^.{0,20}?", "^.{0,2000}", "^.{0,}", "^a{0,2}", "^.{0,2}b{0,3}"]
        {
            assert!(matches!(FieldRegex::compile(java).unwrap(), FieldRegex::Regex(_)), "{java}");
        }
    }
}
