//! Regular expressions as Java writes them, put in the words of our own regex engine.

use fancy_regex::{Regex, RegexBuilder};

/// Steps back a match may take before it is given up.
const BACKTRACKS_MAX: usize = 1_000_000;

/// A pattern that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at character {})", at + 1)]
pub struct JavaRegexError {
    /// What is wrong, in plain words.
    pub message: String,
    /// Where, in characters from the start of the pattern.
    pub at: usize,
}

/// A compiled Java pattern.
///
/// ```
/// let year = spoonbill_plugins::css::JavaRegex::parse(r"\p{Alpha}+ \Q'\E\d++")?;
/// assert_eq!(year.is_match("Dec '16"), Ok(true));
/// # Ok::<(), spoonbill_plugins::css::JavaRegexError>(())
/// ```
#[derive(Debug, Clone)]
pub struct JavaRegex {
    regex: Regex,
    pattern: String,
}

impl JavaRegex {
    /// Compiles a pattern.
    pub fn parse(pattern: &str) -> Result<Self, JavaRegexError> {
        let regex = RegexBuilder::new(&translate(pattern)?)
            .backtrack_limit(BACKTRACKS_MAX)
            .build()
            .map_err(|error| JavaRegexError {
                message: format!("regex `{pattern}` cannot be read: {}", fault(&error)),
                at: 0,
            })?;
        Ok(Self {
            regex,
            pattern: pattern.to_owned(),
        })
    }

    /// Whether the pattern is found anywhere in `text`; the error says why the search was given up.
    pub fn is_match(&self, text: &str) -> Result<bool, String> {
        self.regex.is_match(text).map_err(|error| fault(&error))
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }
}

/// The engine draws its errors over several lines; the last one names the fault.
fn fault(error: &fancy_regex::Error) -> String {
    let text = error.to_string();
    let words = text.lines().rfind(|line| !line.trim().is_empty());
    words.unwrap_or_default().trim().to_owned()
}

fn translate(pattern: &str) -> Result<String, JavaRegexError> {
    let mut translator = Translator {
        chars: pattern.chars().collect(),
        at: 0,
        out: String::with_capacity(pattern.len() + 16),
        brackets: 0,
        unicode: false,
    };
    while let Some(next) = translator.peek(0) {
        translator.translate_one(next)?;
    }
    Ok(translator.out)
}

struct Translator {
    chars: Vec<char>,
    at: usize,
    out: String,
    /// How many `[` are open.
    brackets: usize,
    /// Whether `\d`, `\w` and `\s` know more than ASCII, as after `(?U)`.
    unicode: bool,
}

impl Translator {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn error(&self, message: String) -> JavaRegexError {
        JavaRegexError {
            message,
            at: self.at,
        }
    }

    fn translate_one(&mut self, next: char) -> Result<(), JavaRegexError> {
        match next {
            '\\' => return self.escape(),
            '(' if self.brackets == 0 && self.peek(1) == Some('?') => {
                self.flags();
                return Ok(());
            }
            '[' => self.open_bracket(),
            ']' if self.brackets > 0 => {
                self.brackets -= 1;
                self.out.push(']');
            }
            // Doubled, these two would be operators on sets; in Java they are not.
            '~' if self.brackets > 0 => self.out.push_str("\\~"),
            '-' if self.brackets > 0 && self.out.ends_with('-') => self.out.push_str("\\-"),
            _ => self.out.push(next),
        }
        self.at += 1;
        Ok(())
    }

    fn open_bracket(&mut self) {
        self.brackets += 1;
        self.out.push('[');
        if self.peek(1) == Some('^') {
            self.at += 1;
            self.out.push('^');
        }
        // Java has no `[:alpha:]`; a colon there is a colon.
        if self.peek(1) == Some(':') {
            self.at += 1;
            self.out.push_str("\\:");
        }
    }

    /// Copies `(?`, and the flags after it in our spelling.
    fn flags(&mut self) {
        self.at += 2;
        self.out.push_str("(?");
        let mut end = self.at;
        while self
            .chars
            .get(end)
            .is_some_and(|c| c.is_ascii_alphabetic() || *c == '-')
        {
            end += 1;
        }
        if !matches!(self.chars.get(end), Some(')' | ':')) || end == self.at {
            return;
        }
        let flags: String = self.chars[self.at..end].iter().collect();
        self.unicode |= flags.split('-').next().is_some_and(|on| on.contains('U'));
        // Letters of all scripts are folded anyway, and lines end at `\n` only.
        let kept = flags.replace(['u', 'd', 'U'], "");
        let kept = kept.strip_suffix('-').unwrap_or(&kept);
        if kept.is_empty() && self.chars[end] == ')' {
            self.out.truncate(self.out.len() - 2);
            end += 1;
        }
        self.out.push_str(kept);
        self.at = end;
    }

    fn escape(&mut self) -> Result<(), JavaRegexError> {
        let Some(next) = self.peek(1) else {
            return Err(self.error("regex ends in a lone `\\`".to_owned()));
        };
        if let Some(class) = self.known_class(next) {
            self.out.push_str(&class);
            self.at += 2;
            return Ok(());
        }
        match next {
            'Q' => self.quoted(),
            'p' | 'P' => return self.property(next == 'P'),
            'u' | 'x' | '0' | 'c' | 'e' | 'a' => return self.coded(next),
            't' | 'n' | 'r' | 'f' => self.copy_escape(next),
            'b' | 'B' | 'A' | 'G' | 'z' | 'Z' | 'k' | '1'..='9' if self.brackets == 0 => {
                self.copy_escape(next);
            }
            // The end of a quote that never began.
            'E' => self.at += 2,
            _ if next.is_ascii_alphanumeric() => {
                return Err(self.error(format!("regex has `\\{next}`, which is not known")));
            }
            _ => {
                self.push_literal(next);
                self.at += 2;
            }
        }
        Ok(())
    }

    fn copy_escape(&mut self, next: char) {
        self.out.push('\\');
        self.out.push(next);
        self.at += 2;
    }

    fn push_literal(&mut self, c: char) {
        if c.is_ascii_punctuation() && !matches!(c, '<' | '>') || c == '#' {
            self.out.push('\\');
            self.out.push(c);
        } else if c.is_ascii_whitespace() || c.is_ascii_control() {
            // Spelled out, since the flag `x` would swallow it.
            let spelled = format!("\\x{:02X}", u32::from(c));
            self.out.push_str(&spelled);
        } else {
            self.out.push(c);
        }
    }

    /// Copies `\Q...\E` letter by letter.
    fn quoted(&mut self) {
        self.at += 2;
        while let Some(next) = self.peek(0) {
            if next == '\\' && self.peek(1) == Some('E') {
                self.at += 2;
                return;
            }
            self.push_literal(next);
            self.at += 1;
        }
    }

    /// Classes that are wider here than in Java, or not there at all.
    fn known_class(&self, letter: char) -> Option<String> {
        let members = match letter.to_ascii_lowercase() {
            'd' if !self.unicode => "0-9",
            'w' if !self.unicode => "A-Za-z0-9_",
            's' if !self.unicode => r" \t\n\x0B\f\r",
            'd' | 'w' | 's' => return Some(format!("\\{letter}")),
            'h' => r" \t\xA0\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}",
            'v' => r"\n\x0B\f\r\x{85}\x{2028}\x{2029}",
            'r' if letter == 'R' && self.brackets == 0 => {
                return Some(r"(?:\r\n|[\n\x0B\f\r\x{85}\x{2028}\x{2029}])".to_owned());
            }
            _ => return None,
        };
        Some(if letter.is_ascii_uppercase() {
            format!("[^{members}]")
        } else if self.brackets > 0 {
            members.to_owned()
        } else {
            format!("[{members}]")
        })
    }

    /// `\p{Alpha}`, `\pL` and their opposites.
    fn property(&mut self, negated: bool) -> Result<(), JavaRegexError> {
        let (name, end) = if self.peek(2) == Some('{') {
            let Some(len) = self.chars[self.at + 3..].iter().position(|c| *c == '}') else {
                return Err(self.error("`}` is missing after `\\p{`".to_owned()));
            };
            let start = self.at + 3;
            (
                self.chars[start..start + len].iter().collect(),
                start + len + 1,
            )
        } else if let Some(letter) = self.peek(2) {
            (letter.to_string(), self.at + 3)
        } else {
            return Err(self.error("a property is missing after `\\p`".to_owned()));
        };
        let sign = if negated { "^" } else { "" };
        let name: &str = &name;
        let class = match name {
            "Lower" | "Upper" | "ASCII" | "Alpha" | "Digit" | "Alnum" | "Punct" | "Graph"
            | "Print" | "Blank" | "Cntrl" | "XDigit" | "Space" => {
                format!("[[:{sign}{}:]]", name.to_ascii_lowercase())
            }
            "javaLowerCase" => format!("[{sign}\\p{{Lowercase}}]"),
            "javaUpperCase" => format!("[{sign}\\p{{Uppercase}}]"),
            "javaWhitespace" => format!("[{sign}\\s]"),
            _ if name.starts_with("In") || name.starts_with("java") => {
                return Err(self.error(format!("regex property `{name}` is not supported")));
            }
            _ => {
                let plain = name.strip_prefix("Is").unwrap_or(name);
                format!("[{sign}\\p{{{plain}}}]")
            }
        };
        self.out.push_str(&class);
        self.at = end;
        Ok(())
    }

    /// A character given by its number or name.
    fn coded(&mut self, kind: char) -> Result<(), JavaRegexError> {
        let start = self.at;
        self.at += 2;
        let code = match kind {
            'e' => Some(0x1b),
            'a' => Some(0x07),
            'c' => {
                let letter = self.peek(0);
                self.at += 1;
                letter.map(|letter| u32::from(letter) ^ 64)
            }
            '0' => self.number(8, 3),
            'x' if self.peek(0) == Some('{') => {
                self.at += 1;
                let code = self.number(16, 6);
                let is_closed = self.peek(0) == Some('}');
                self.at += 1;
                code.filter(|_| is_closed)
            }
            'x' => self.number(16, 2),
            _ => self.utf16(),
        };
        let Some(c) = code.and_then(char::from_u32) else {
            self.at = start;
            return Err(self.error(format!("`\\{kind}` names no character")));
        };
        self.push_literal(c);
        Ok(())
    }

    /// Four hexadecimal digits, and a second four if the first are half a character.
    fn utf16(&mut self) -> Option<u32> {
        let high = self.number(16, 4)?;
        let is_pair = (0xD800..0xDC00).contains(&high)
            && self.peek(0) == Some('\\')
            && self.peek(1) == Some('u');
        if !is_pair {
            return Some(high);
        }
        self.at += 2;
        let low = self.number(16, 4)?.checked_sub(0xDC00)?;
        Some(0x10000 + ((high - 0xD800) << 10) + low)
    }

    fn number(&mut self, radix: u32, digits_max: usize) -> Option<u32> {
        let mut value = None;
        for _ in 0..digits_max {
            let Some(digit) = self.peek(0).and_then(|c| c.to_digit(radix)) else {
                break;
            };
            value = Some(value.unwrap_or(0) * radix + digit);
            self.at += 1;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: bool) {
        let regex = JavaRegex::parse(pattern).expect(pattern);
        assert_eq!(regex.is_match(text), Ok(expected), "{pattern} on {text}");
    }

    #[test]
    fn classes_are_ascii_as_in_java() {
        check(r"^\d$", "5", true);
        check(r"^\d$", "٥", false);
        check(r"(?U)^\d$", "٥", true);
        check(r"^\w+$", "naïve", false);
        check(r"^[\w-]+$", "a-b", true);
        check(r"^[^\d]+$", "ab", true);
        check(r"^[\D]$", "7", false);
        check(r"a\sb", "a\u{a0}b", false);
        check(r"a\hb", "a\u{a0}b", true);
        check(r"^\S+$", "é", true);
    }

    #[test]
    fn java_only_spellings_are_understood() {
        check(r"\p{Alpha}{3}", "abc", true);
        check(r"^\P{Alpha}+$", "123", true);
        check(r"[\p{Digit}x]+y", "1x2y", true);
        check(r"\pL", "é", true);
        check(r"\p{IsGreek}", "σ", true);
        check(r"\Q1.5 (a)\E", "1.5 (a)", true);
        check(r"\Q1.5\E", "1x5", false);
        check(r"\u0041\x42\x{43}\0104", "ABCD", true);
        check(r"\uD83D\uDE00", "😀", true);
        check(r"Dec \'16", "Dec '16", true);
        check(r"\<b\>", "<b>", true);
        check(r"a++b", "aaab", true);
        check(r"(a)\1", "aa", true);
        check(r"(?<q>['\x22]).*\k<q>", "'x'", true);
        check(r"(?iu)STRASSE", "strasse", true);
        check(r"(?i)abc", "ABC", true);
        check(r"x(?=y)", "xy", true);
        check(r"(?<!\d)5", "15", false);
        check(r"a\Z", "a", true);
        check(r"[a~~b]", "~", true);
        check(r"[a-z&&[^b]]", "b", false);
        check(r"\R", "\n", true);
    }

    #[test]
    fn bad_patterns_say_what_is_wrong() {
        let message = |pattern| JavaRegex::parse(pattern).expect_err(pattern).to_string();
        assert_eq!(
            message(r"a\y"),
            r"regex has `\y`, which is not known (at character 2)"
        );
        assert_eq!(
            message(r"\p{InGreek}"),
            "regex property `InGreek` is not supported (at character 1)"
        );
        assert!(
            message("a(b").starts_with("regex `a(b` cannot be read: "),
            "{}",
            message("a(b")
        );
    }

    #[test]
    fn a_runaway_match_is_given_up() {
        let regex = JavaRegex::parse(r"^(a|aa)+(?<!a)\1$").expect("valid");
        assert!(regex.is_match(&"a".repeat(60)).is_err());
    }
}
