//! Java's regular expressions, translated for `fancy-regex`.
//!
//! Constructs with a different meaning are rewritten: Java's classes are ASCII unless flagged,
//! `\Q...\E` quotes, and some escapes differ. A construct that cannot be rewritten is an error. One
//! difference remains: `(?i)` ignores the case of all letters, in Java only of ASCII letters.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use fancy_regex::RegexBuilder;

pub use fancy_regex::Regex;

/// Backtracking steps before a match is given up with an error.
///
/// This bounds a hostile pattern to a fraction of a second.
const BACKTRACK_LIMIT: usize = 1_000_000;

/// Why a pattern is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JavaRegexError {
    /// An escape that Java does not have, or that `fancy-regex` cannot express.
    #[error("`\\{letter}` is not a supported escape")]
    Escape {
        /// The character after the backslash.
        letter: char,
    },
    /// A backslash at the end of the pattern.
    #[error("the pattern ends in a backslash")]
    LoneBackslash,
    /// `fancy-regex` rejects the pattern.
    #[error(transparent)]
    Engine(Box<fancy_regex::Error>),
}

impl JavaRegexError {
    /// The position of the problem in the pattern, in characters from 0, if it is known.
    pub(crate) fn position_in(&self, java: &str) -> Option<usize> {
        let at = match self {
            Self::Escape { letter } => java.find(&format!("\\{letter}"))?,
            Self::LoneBackslash => java.len().checked_sub(1)?,
            Self::Engine(error) => match **error {
                // The engine reports positions in the translated pattern, so they are used only if
                // both are equal.
                fancy_regex::Error::ParseError(at, _) if translate(java).ok()? == java => at,
                _ => return None,
            },
        };
        java.get(..at).map(|before| before.chars().count())
    }
}

/// Compiles a Java pattern that may match anywhere in a text.
pub(crate) fn compile_find(java: &str) -> Result<Regex, JavaRegexError> {
    build(&translate(java)?)
}

/// Compiles a Java pattern that must match a whole text.
///
/// ```
/// let regex = spoonbill_plugins::java_regex::compile_whole(r"a|\p{Upper}b\d")?;
/// assert!(regex.is_match("Ab1")?);
/// assert!(!regex.is_match("ab1")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compile_whole(java: &str) -> Result<Regex, JavaRegexError> {
    let bare = translate(java)?;
    // Compiled alone first: `a)|(b` would close the group around it and become valid.
    build(&bare)?;
    // With the flag `x`, a comment at the end would include the closing parenthesis.
    let line = if has_flag(java, 'x') { "\n" } else { "" };
    build(&format!(r"\A(?:{bare}{line})\z"))
}

/// The patterns compiled last. Definitions are compiled several times before a run starts, and a
/// pattern such as `^.{0,200}` takes milliseconds.
static RECENT: Mutex<Vec<(String, Regex)>> = Mutex::new(Vec::new());
/// Number of patterns kept.
const RECENT_MAX: usize = 64;

fn build(pattern: &str) -> Result<Regex, JavaRegexError> {
    let recent = || RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = recent().iter().find(|(known, _)| known == pattern) {
        return Ok(known.clone());
    }
    let regex = RegexBuilder::new(pattern)
        .backtrack_limit(BACKTRACK_LIMIT)
        .build()
        .map_err(|error| JavaRegexError::Engine(Box::new(error)))?;
    let mut recent = recent();
    if recent.len() >= RECENT_MAX {
        recent.remove(0);
    }
    recent.push((pattern.to_owned(), regex.clone()));
    Ok(regex)
}

/// Translates a Java pattern for `fancy-regex`.
fn translate(java: &str) -> Result<String, JavaRegexError> {
    let mut translator = Translator {
        rest: java,
        out: String::with_capacity(java.len() + 16),
        depth: 0,
        unicode: has_flag(java, 'U'),
        dot_all: has_flag(java, 's'),
    };
    while let Some(next) = translator.rest.chars().next() {
        translator.step(next)?;
    }
    Ok(translator.out)
}

/// Whether some `(?...)` sets a flag, anywhere in the pattern.
fn has_flag(java: &str, flag: char) -> bool {
    java.split("(?").skip(1).any(|group| {
        let flags = group.split(|c: char| !c.is_ascii_alphabetic()).next();
        group.starts_with(|c: char| c.is_ascii_alphabetic())
            && flags.is_some_and(|flags| flags.contains(flag))
    })
}

struct Translator<'p> {
    rest: &'p str,
    out: String,
    /// Number of open `[`.
    depth: usize,
    unicode: bool,
    dot_all: bool,
}

impl Translator<'_> {
    fn step(&mut self, next: char) -> Result<(), JavaRegexError> {
        if next == '\\' {
            self.rest = &self.rest[1..];
            return self.escape();
        }
        if self.depth == 0 && self.rest.starts_with("(?") {
            self.group();
            return Ok(());
        }
        self.rest = &self.rest[next.len_utf8()..];
        match next {
            '[' => self.open_class(),
            ']' if self.depth > 0 => {
                self.depth -= 1;
                self.out.push(']');
            }
            '.' if self.depth == 0 && !self.dot_all => {
                self.out.push_str(r"[^\n\r\x{85}\x{2028}\x{2029}]");
            }
            // `~~` is an operator inside a class of `fancy-regex`, but not in Java.
            '~' if self.depth > 0 => self.out.push_str(r"\~"),
            other => self.out.push(other),
        }
        Ok(())
    }

    /// Starts a class. Directly after `[` or `[^`, a `]` is a plain character.
    fn open_class(&mut self) {
        self.depth += 1;
        self.out.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.out.push('^');
            self.rest = rest;
        }
        if let Some(rest) = self.rest.strip_prefix(']') {
            self.out.push_str(r"\]");
            self.rest = rest;
        }
    }

    /// Copies the start of a group, without flags that have no meaning or another meaning in
    /// `fancy-regex`.
    fn group(&mut self) {
        let body = &self.rest[2..];
        let count =
            body.bytes().take_while(|byte| byte.is_ascii_alphabetic() || *byte == b'-').count();
        let (flags, after) = body.split_at(count);
        if flags.is_empty() || !after.starts_with([':', ')']) {
            self.out.push_str("(?");
            self.rest = body;
            return;
        }
        let kept: String = flags.chars().filter(|c| !"duU".contains(*c)).collect();
        let kept = kept.strip_suffix('-').unwrap_or(&kept);
        if kept.is_empty() && after.starts_with(')') {
            self.rest = &after[1..];
        } else {
            self.out.push_str("(?");
            self.out.push_str(kept);
            self.rest = after;
        }
    }

    /// Translates the escape after a backslash.
    fn escape(&mut self) -> Result<(), JavaRegexError> {
        let Some(letter) = self.rest.chars().next() else {
            return Err(JavaRegexError::LoneBackslash);
        };
        self.rest = &self.rest[letter.len_utf8()..];
        match letter {
            'Q' => self.quotation(),
            'p' | 'P' => self.property(letter == 'P'),
            '0' => self.octal(),
            'c' => self.control(),
            'd' | 'D' | 'w' | 'W' | 's' | 'S' if self.unicode => {
                self.out.push('\\');
                self.out.push(letter);
            }
            'd' | 'D' => self.class("0-9", letter == 'D'),
            'w' | 'W' => self.class("A-Za-z0-9_", letter == 'W'),
            's' | 'S' => self.class(r" \t\n\x0B\f\r", letter == 'S'),
            'h' | 'H' => self.class(HORIZONTAL, letter == 'H'),
            'v' | 'V' => self.class(VERTICAL, letter == 'V'),
            'R' => self.out.push_str(r"(?:\r\n|[\n\x0B\f\r\x{85}\x{2028}\x{2029}])"),
            'e' => self.out.push_str(r"\x1B"),
            'u' => self.unit(),
            'b'
            | 'B'
            | 'A'
            | 'G'
            | 'Z'
            | 'z'
            | 'k'
            | 't'
            | 'n'
            | 'r'
            | 'f'
            | 'a'
            | 'x'
            | '1'..='9' => {
                self.out.push('\\');
                self.out.push(letter);
            }
            // `fancy-regex` gives these letters a meaning that Java does not have.
            letter if letter.is_ascii_alphabetic() => {
                return Err(JavaRegexError::Escape { letter });
            }
            other => self.literal(other),
        }
        Ok(())
    }

    fn class(&mut self, members: &str, negated: bool) {
        let not = if negated { "^" } else { "" };
        self.push(&format!("[{not}{members}]"));
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Adds a character that stands for itself, inside a class or outside.
    fn literal(&mut self, plain: char) {
        if plain.is_alphanumeric() || plain == '_' {
            self.out.push(plain);
        } else {
            // A number is never special, neither as operator nor as white space in a pattern with
            // the flag `x`.
            write!(self.out, r"\x{{{:X}}}", u32::from(plain)).unwrap_or_default();
        }
    }

    fn quotation(&mut self) {
        let (text, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
        for plain in text.chars() {
            self.literal(plain);
        }
        self.rest = rest;
    }

    fn property(&mut self, negated: bool) {
        let braced = self.rest.strip_prefix('{').and_then(|it| it.split_once('}'));
        let (name, rest) = braced.unwrap_or_else(|| {
            let end = self.rest.chars().next().map_or(0, char::len_utf8);
            self.rest.split_at(end)
        });
        self.rest = rest;
        if let Some((_, members)) = POSIX.iter().find(|(posix, _)| *posix == name) {
            self.class(members, negated);
            return;
        }
        if name == "javaWhitespace" {
            self.class(WHITE, negated);
            return;
        }
        let name = match name {
            "javaLowerCase" => "Lowercase",
            "javaUpperCase" => "Uppercase",
            "javaAlphabetic" | "javaLetter" => "Alphabetic",
            "javaDigit" => "Nd",
            other => other.strip_prefix("Is").unwrap_or(other),
        };
        let letter = if negated { 'P' } else { 'p' };
        self.push(&format!(r"\{letter}{{{name}}}"));
    }

    /// Translates octal escapes: `\0n`, `\0nn` and `\0mnn`.
    fn octal(&mut self) {
        let digits = self.rest.bytes().take(3).take_while(|it| (b'0'..=b'7').contains(it));
        let count = match (digits.count(), self.rest.as_bytes().first()) {
            (3, Some(b'4'..=b'7')) => 2,
            (count, _) => count,
        };
        let (number, rest) = self.rest.split_at(count);
        match u32::from_str_radix(number, 8) {
            Ok(number) => write!(self.out, r"\x{{{number:X}}}").unwrap_or_default(),
            Err(_) => self.push(r"\0"),
        }
        self.rest = rest;
    }

    /// Translates the control character `\cX`.
    fn control(&mut self) {
        match self.rest.chars().next() {
            Some(letter) if letter.is_ascii() => {
                self.rest = &self.rest[1..];
                write!(self.out, r"\x{{{:X}}}", u32::from(letter) ^ 64).unwrap_or_default();
            }
            _ => self.push(r"\c"),
        }
    }

    /// Translates `\uXXXX`. A surrogate pair of two escapes is one character.
    fn unit(&mut self) {
        let unit = |text: &str| u16::from_str_radix(text.get(..4)?, 16).ok();
        let Some(first) = unit(self.rest) else {
            self.push(r"\u");
            return;
        };
        let second = self.rest[4..].strip_prefix(r"\u").and_then(unit);
        let pair = second.and_then(|low| char::decode_utf16([first, low]).next()?.ok());
        let (code, length) = match pair {
            Some(both) if u32::from(both) > 0xFFFF => (u32::from(both), 10),
            _ => (u32::from(first), 4),
        };
        write!(self.out, r"\x{{{code:X}}}").unwrap_or_default();
        self.rest = &self.rest[length..];
    }
}

const HORIZONTAL: &str = r" \t\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
/// The characters of `Character.isWhitespace`: no no-break spaces, but the separators U+001C to
/// U+001F.
const WHITE: &str = r"\s\x1C-\x1F&&[^\x{85}\x{A0}\x{2007}\x{202F}]";
const VERTICAL: &str = r"\n\x0B\f\r\x{85}\x{2028}\x{2029}";

/// Java's POSIX classes and their ASCII members.
const POSIX: &[(&str, &str)] = &[
    ("Lower", "a-z"),
    ("Upper", "A-Z"),
    ("ASCII", r"\x00-\x7F"),
    ("Alpha", "A-Za-z"),
    ("Digit", "0-9"),
    ("Alnum", "A-Za-z0-9"),
    ("Punct", r"!-/:-@\[-`{-\x{7E}"),
    ("Graph", r"!-\x{7E}"),
    ("Print", r"\x20-\x{7E}"),
    ("Blank", r"\x20\t"),
    ("Cntrl", r"\x00-\x1F\x7F"),
    ("XDigit", "0-9A-Fa-f"),
    ("Space", r"\x20\t\n\x0B\f\r"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(java: &str, fits: &[&str], not: &[&str]) {
        let regex = compile_whole(java).unwrap();
        for text in fits {
            assert!(regex.is_match(text).unwrap(), "{java} must match {text:?}");
        }
        for text in not {
            assert!(!regex.is_match(text).unwrap(), "{java} must not match {text:?}");
        }
    }

    #[test]
    fn a_whole_match_covers_all_alternatives() {
        check("a|ab", &["a", "ab"], &["abc", "b", ""]);
        check("(?x) a b # this comment must not hide the end", &["ab"], &["a b"]);
        assert!(compile_whole("a)|(b").is_err());
        assert!(compile_whole("a(").is_err());
        check("", &[""], &[" "]);
    }

    #[test]
    fn classes_are_ascii_unless_flagged() {
        check(r"\d+", &["12"], &["١٢"]);
        check(r"\w+", &["a_1"], &["é"]);
        check(r"(?U)\w+", &["é"], &["-"]);
        check(r"\s", &[" ", "\t"], &["\u{a0}"]);
        check(r"\h", &[" ", "\u{a0}"], &["a", "\n"]);
        check(r"[\d\s]+", &["1 2"], &["1-2"]);
        check(r"[^\d]+", &["ab"], &["a1"]);
        check(r"[^\D]", &["1"], &["a"]);
    }

    #[test]
    fn java_properties_match() {
        check(r"\p{Alpha}+", &["abC"], &["é", "1"]);
        check(r"\P{Alpha}", &["é", "1"], &["a"]);
        check(r"[\p{Punct}\p{Upper}]+", &["A!]~"], &["a"]);
        check(r"\p{Lu}\p{IsAlphabetic}\pL", &["Éaé"], &["éaa"]);
        check(r"\p{javaLowerCase}", &["a"], &["A"]);
        check(r"[\p{javaWhitespace}x]", &[" ", "x", "\u{1c}"], &["\u{a0}", "\u{85}", "a"]);
        assert!(compile_whole(r"\p{Nonsense}").is_err());
    }

    #[test]
    fn quotations_and_escapes_are_plain_characters() {
        check(r"\Qa.b(\E\d", &["a.b(1"], &["axb(1"]);
        check(r"\Qa|b", &["a|b"], &["a"]);
        check(r"[\Q^]\E]+", &["^]"], &["a"]);
        check(r"\<\>\ \-\/", &["<> -/"], &[]);
        check("\\u00e9\\x41\\0101\\t\\cA\\e", &["éAA\t\u{1}\u{1b}"], &[]);
        check(r"\ud83d\ude00", &["😀"], &[]);
        check(r"a\Rb", &["a\r\nb", "a\nb"], &["a\n\nb"]);
    }

    #[test]
    fn escapes_of_other_engines_are_rejected() {
        for java in [r"\N", r"\X", r"\K", r"\y", r"a\", r"\i"] {
            assert!(compile_whole(java).is_err(), "{java}");
        }
        let error = compile_find(r"\y").unwrap_err();
        assert_eq!(error.to_string(), r"`\y` is not a supported escape");
    }

    #[test]
    fn a_dot_does_not_match_line_ends() {
        check("a.b", &["axb"], &["a\nb", "a\rb", "a\u{2028}b"]);
        check("(?s)a.b", &["a\nb"], &[]);
        check("[.]", &["."], &["a"]);
    }

    #[test]
    fn class_operators_follow_java() {
        check("[a-z&&[^aeiou]]+", &["xyz"], &["a"]);
        check("[]a]+", &["]a"], &["["]);
        check("[~~]", &["~"], &["a"]);
    }

    #[test]
    fn flags_and_backreferences_work() {
        check("(?iu)abc", &["ABC"], &["abd"]);
        check("(?i:a)b", &["Ab"], &["AB"]);
        check("(?u)a", &["a"], &["A"]);
        check(r"(a+)\1", &["aaaa"], &["aaa"]);
        check("(?!not).*", &["found"], &["not found"]);
        check("(?<n>a)\\k<n>", &["aa"], &["a"]);
        check("a++b", &["aab"], &["aa"]);
    }

    #[test]
    fn a_hostile_pattern_stops_at_its_limit() {
        let regex = compile_whole(r"(a*)*\1b").unwrap();
        assert!(!matches!(regex.is_match(&"a".repeat(200)), Ok(true)));
    }
}
