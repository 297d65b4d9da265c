//! Regular expressions as Java writes them, run by `fancy-regex`.
//!
//! What differs is rewritten: Java's classes are ASCII unless flagged, `\Q...\E` quotes, and some
//! letters after a backslash mean other things. What cannot be rewritten is an error, never a
//! guess. Known difference: `(?i)` folds the case of all letters, in Java of ASCII alone.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use fancy_regex::RegexBuilder;

pub use fancy_regex::Regex;

/// Steps of backtracking after which a match is given up.
///
/// A hostile pattern costs a fraction of a second this way, and not the life of a thread.
pub const BACKTRACK_LIMIT: usize = 1_000_000;

/// Why a pattern cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JavaRegexError {
    /// An escape that Java does not know, or that cannot be said here.
    #[error("`\\{letter}` is not a supported escape")]
    Escape {
        /// The character behind the backslash.
        letter: char,
    },
    /// A backslash with nothing behind it.
    #[error("the pattern ends in a backslash")]
    LoneBackslash,
    /// The engine refuses the pattern.
    #[error(transparent)]
    Engine(Box<fancy_regex::Error>),
}

impl JavaRegexError {
    /// The character of the pattern that is meant, counted from 0, where that is known.
    pub fn place_in(&self, java: &str) -> Option<usize> {
        let at = match self {
            Self::Escape { letter } => java.find(&format!("\\{letter}"))?,
            Self::LoneBackslash => java.len().checked_sub(1)?,
            Self::Engine(error) => match **error {
                // The engine counts in its own words; they are the same as a rule.
                fancy_regex::Error::ParseError(at, _) if translate(java).ok()? == java => at,
                _ => return None,
            },
        };
        java.get(..at).map(|before| before.chars().count())
    }
}

/// Compiles a Java pattern to be searched for anywhere in a text.
pub fn compile_find(java: &str) -> Result<Regex, JavaRegexError> {
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
    // On its own first: `a)|(b` would close the group put around it and pass.
    build(&bare)?;
    // Where white space is free, a comment would swallow the bracket.
    let line = if has_flag(java, 'x') { "\n" } else { "" };
    build(&format!(r"\A(?:{bare}{line})\z"))
}

/// Patterns compiled last. Definitions are made ready more than once on the way to a run, and
/// `^.{0,200}` alone takes milliseconds.
static RECENT: Mutex<Vec<(String, Regex)>> = Mutex::new(Vec::new());
/// How many of them are kept.
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

/// Rewrites a Java pattern in the words of `fancy-regex`.
pub fn translate(java: &str) -> Result<String, JavaRegexError> {
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

/// Whether some `(?...)` switches a flag on. Where in the pattern is not looked at.
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
    /// How many `[` are open.
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
            // Two of them are an operator there, never in Java.
            '~' if self.depth > 0 => self.out.push_str(r"\~"),
            other => self.out.push(other),
        }
        Ok(())
    }

    /// A `]` right after the opening is a plain character.
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

    /// Flags that mean nothing or something else here are left out.
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

    /// What follows a backslash.
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
            // Here they would mean what they mean to other engines.
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

    /// A character that stands for itself, inside a class or out of it.
    fn literal(&mut self, plain: char) {
        if plain.is_alphanumeric() || plain == '_' {
            self.out.push(plain);
        } else {
            // By number: then no character is special, nor free white space.
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

    /// `\0n`, `\0nn` and `\0mnn`.
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

    /// `\cX`.
    fn control(&mut self) {
        match self.rest.chars().next() {
            Some(letter) if letter.is_ascii() => {
                self.rest = &self.rest[1..];
                write!(self.out, r"\x{{{:X}}}", u32::from(letter) ^ 64).unwrap_or_default();
            }
            _ => self.push(r"\c"),
        }
    }

    /// `\uXXXX`, of which two may make one character.
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
/// Java's white space: no space that forbids a line break, but the separators of old.
const WHITE: &str = r"\s\x1C-\x1F&&[^\x{85}\x{A0}\x{2007}\x{202F}]";
const VERTICAL: &str = r"\n\x0B\f\r\x{85}\x{2028}\x{2029}";

/// Java's ASCII classes and their members.
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
    fn a_whole_match_reaches_over_alternatives() {
        check("a|ab", &["a", "ab"], &["abc", "b", ""]);
        check("(?x) a b # the bracket of the frame is no comment", &["ab"], &["a b"]);
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
    fn java_properties_are_known() {
        check(r"\p{Alpha}+", &["abC"], &["é", "1"]);
        check(r"\P{Alpha}", &["é", "1"], &["a"]);
        check(r"[\p{Punct}\p{Upper}]+", &["A!]~"], &["a"]);
        check(r"\p{Lu}\p{IsAlphabetic}\pL", &["Éaé"], &["éaa"]);
        check(r"\p{javaLowerCase}", &["a"], &["A"]);
        check(r"[\p{javaWhitespace}x]", &[" ", "x", "\u{1c}"], &["\u{a0}", "\u{85}", "a"]);
        assert!(compile_whole(r"\p{Nonsense}").is_err());
    }

    #[test]
    fn quotations_and_escapes_stand_for_themselves() {
        check(r"\Qa.b(\E\d", &["a.b(1"], &["axb(1"]);
        check(r"\Qa|b", &["a|b"], &["a"]);
        check(r"[\Q^]\E]+", &["^]"], &["a"]);
        check(r"\<\>\ \-\/", &["<> -/"], &[]);
        check("\\u00e9\\x41\\0101\\t\\cA\\e", &["éAA\t\u{1}\u{1b}"], &[]);
        check(r"\ud83d\ude00", &["😀"], &[]);
        check(r"a\Rb", &["a\r\nb", "a\nb"], &["a\n\nb"]);
    }

    #[test]
    fn escapes_of_other_engines_are_refused() {
        for java in [r"\N", r"\X", r"\K", r"\y", r"a\", r"\i"] {
            assert!(compile_whole(java).is_err(), "{java}");
        }
        let error = compile_find(r"\y").unwrap_err();
        assert_eq!(error.to_string(), r"`\y` is not a supported escape");
    }

    #[test]
    fn the_dot_stops_at_every_line_end() {
        check("a.b", &["axb"], &["a\nb", "a\rb", "a\u{2028}b"]);
        check("(?s)a.b", &["a\nb"], &[]);
        check("[.]", &["."], &["a"]);
    }

    #[test]
    fn classes_of_java_keep_their_shape() {
        check("[a-z&&[^aeiou]]+", &["xyz"], &["a"]);
        check("[]a]+", &["]a"], &["["]);
        check("[~~]", &["~"], &["a"]);
    }

    #[test]
    fn flags_and_backtracking_constructs_work() {
        check("(?iu)abc", &["ABC"], &["abd"]);
        check("(?i:a)b", &["Ab"], &["AB"]);
        check("(?u)a", &["a"], &["A"]);
        check(r"(a+)\1", &["aaaa"], &["aaa"]);
        check("(?!not).*", &["found"], &["not found"]);
        check("(?<n>a)\\k<n>", &["aa"], &["a"]);
        check("a++b", &["aab"], &["aa"]);
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let regex = compile_whole(r"(a*)*\1b").unwrap();
        assert!(!matches!(regex.is_match(&"a".repeat(200)), Ok(true)));
    }
}
