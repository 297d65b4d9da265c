//! Compiles JSON paths.
//!
//! A path that starts with `$` follows RFC 9535 to the letter. The short form leaves the `$` out:
//! `offers.0.x-price`. Its names may hold `-`, `@` and `:`, and a number is an index or a name.

use super::path::{
    Comparison, FilterOperand, FilterPattern, FilterQuery, FilterTest, JsonPath, JsonPathError,
    PathSegment, PathSelector,
};
use crate::java_regex::{JavaRegexError, Regex, compile_find, compile_whole};

/// Brackets within brackets. The parser recurses on each of them.
const DEPTH_MAX: usize = 32;

/// Largest index: numbers of JSON are exact up to here.
const INDEX_MAX: u64 = (1 << 53) - 1;

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

type Parsed<T> = Result<T, JsonPathError>;

pub(super) fn parse(text: &str) -> Parsed<JsonPath> {
    let is_short = !text.starts_with('$');
    let mut parser = PathParser { chars: text.chars().collect(), at: 0, depth: 0, is_short };
    let mut segments = Vec::new();
    if !is_short {
        parser.at = 1;
    } else if parser.peek().is_none_or(|c| !matches!(c, '[' | '.')) {
        segments.push(PathSegment { is_descendant: false, selectors: vec![parser.name()?] });
    }
    segments.extend(parser.segments()?);
    if parser.at < parser.chars.len() {
        return Err(parser.error("a path continues with `.name`, `[...]` or `..`"));
    }
    Ok(JsonPath { segments })
}

/// Compiles the pattern of `match` (`is_whole`) or `search`.
pub(super) fn compile_pattern(pattern: &str, is_whole: bool) -> Result<Regex, JavaRegexError> {
    let java = java_pattern(pattern);
    if is_whole { compile_whole(&java) } else { compile_find(&java) }
}

/// An I-Regexp (RFC 9485) as a Java pattern: its `.` matches more. Java's own syntax passes.
fn java_pattern(pattern: &str) -> String {
    if pattern.contains("(?") || pattern.contains("\\Q") {
        return pattern.to_owned();
    }
    let mut out = String::with_capacity(pattern.len());
    let (mut is_escaped, mut is_in_class) = (false, false);
    for c in pattern.chars() {
        match c {
            '.' if !is_escaped && !is_in_class => out.push_str(r"[^\n\r]"),
            _ => out.push(c),
        }
        match c {
            '[' if !is_escaped => is_in_class = true,
            ']' if !is_escaped => is_in_class = false,
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    out
}

/// An expression in a filter. Its context decides whether it must be a value, nodes or a test.
enum FilterTerm {
    Value(FilterOperand),
    Nodes(FilterQuery),
    Logical(FilterTest),
}

struct PathParser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    is_short: bool,
}

/// The characters of a name in the short form. The standard allows fewer.
fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '@' | ':' | '$') || !c.is_ascii()
}

fn is_standard_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

impl PathParser {
    fn error(&self, message: impl Into<String>) -> JsonPathError {
        Self::error_at(self.at, message)
    }

    fn error_at(at: usize, message: impl Into<String>) -> JsonPathError {
        JsonPathError { message: message.into(), at }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take_while(&mut self, is_meant: impl Fn(char) -> bool) -> String {
        let taken: String = self.chars[self.at..].iter().take_while(|c| is_meant(**c)).collect();
        self.at += taken.chars().count();
        taken
    }

    fn space(&mut self) {
        self.take_while(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
    }

    fn eat(&mut self, sign: &str) -> bool {
        let is_there =
            sign.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c));
        if is_there {
            self.at += sign.chars().count();
        }
        is_there
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.eat(sign) { Ok(()) } else { Err(self.error(format!("`{sign}` is missing here"))) }
    }

    /// One item or more with a separator between them, and white space around each.
    fn list<T>(&mut self, separator: &str, item: fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error("the path is nested too deeply"));
        }
        let mut items = Vec::new();
        loop {
            self.space();
            items.push(item(self)?);
            self.space();
            if !self.eat(separator) {
                self.depth -= 1;
                return Ok(items);
            }
        }
    }

    fn segments(&mut self) -> Parsed<Vec<PathSegment>> {
        let mut segments = Vec::new();
        loop {
            let before = self.at;
            self.space();
            let is_descendant = self.eat("..");
            let selectors = if (is_descendant || self.peek() == Some('[')) && self.eat("[") {
                let selectors = self.list(",", Self::selector)?;
                self.expect("]")?;
                selectors
            } else if is_descendant || self.eat(".") {
                vec![if self.eat("*") { PathSelector::Wildcard } else { self.name()? }]
            } else {
                self.at = before;
                return Ok(segments);
            };
            segments.push(PathSegment { is_descendant, selectors });
        }
    }

    /// A name after a dot.
    fn name(&mut self) -> Parsed<PathSelector> {
        let start = self.at;
        let name = self.take_while(is_name_char);
        let index = name.parse().ok().filter(|_| name.bytes().all(|byte| byte.is_ascii_digit()));
        match (index, self.is_short) {
            _ if name.is_empty() => {
                Err(self.error("a name is missing here; write others than words as `['...']`"))
            }
            (Some(index), true) => Ok(PathSelector::NameOrIndex(name, index)),
            (Some(index), false) => {
                Err(Self::error_at(start, format!("after a dot stands a name: write `[{index}]`")))
            }
            (None, false) if !is_standard_name(&name) => {
                Err(Self::error_at(start, format!("write this name in brackets: `['{name}']`")))
            }
            (None, _) => Ok(PathSelector::Name(name)),
        }
    }

    fn selector(&mut self) -> Parsed<PathSelector> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(PathSelector::Wildcard)
            }
            Some('?') => {
                self.at += 1;
                Ok(PathSelector::Filter(self.any()?))
            }
            Some('\'' | '"') => Ok(PathSelector::Name(self.quoted()?)),
            Some('0'..='9' | '-' | ':') => self.index_or_slice(),
            _ => Err(self.error("expected a number, `*`, a name in quotes, or `?` and a test")),
        }
    }

    fn index_or_slice(&mut self) -> Parsed<PathSelector> {
        let start = self.integer()?;
        self.space();
        if let (Some(index), false) = (start, self.eat(":")) {
            return Ok(PathSelector::Index(index));
        }
        self.space();
        let end = self.integer()?;
        self.space();
        let mut step = None;
        if self.eat(":") {
            self.space();
            step = self.integer()?;
        }
        Ok(PathSelector::Slice { start, end, step: step.unwrap_or(1) })
    }

    fn integer(&mut self) -> Parsed<Option<i64>> {
        let start = self.at;
        let sign = if self.eat("-") { "-" } else { "" };
        let digits = sign.to_owned() + &self.take_while(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Ok(None);
        }
        // One number has one spelling: neither `-0` nor `01`.
        let number = digits.parse::<i64>().ok();
        let number = number.filter(|it| it.unsigned_abs() <= INDEX_MAX && it.to_string() == digits);
        number.map(Some).ok_or_else(|| Self::error_at(start, format!("`{digits}` is no index")))
    }

    /// Reads a text in quotes by rewriting it as a JSON string, which has the same escapes.
    fn quoted(&mut self) -> Parsed<String> {
        let (start, quote) = (self.at, self.peek());
        self.at += 1;
        let mut json = String::from('"');
        while let Some(c) = self.peek().filter(|_| self.peek() != quote) {
            self.at += 1;
            match (c, self.peek()) {
                ('\\', escaped) if escaped == quote => {
                    json.push_str(if quote == Some('"') { "\\\"" } else { "'" });
                    self.at += 1;
                }
                // The standard allows a backslash before the enclosing quote only.
                ('\\', Some('"' | '\'')) => return Err(self.error("this quote needs no backslash")),
                ('\\', Some('\\')) => {
                    json.push_str("\\\\");
                    self.at += 1;
                }
                ('"', _) => json.push_str("\\\""),
                _ => json.push(c),
            }
        }
        if self.peek().is_none() {
            return Err(Self::error_at(start, "the closing quote is missing"));
        }
        self.at += 1;
        json.push('"');
        serde_json::from_str(&json)
            .map_err(|_| Self::error_at(start, "the quotes hold an invalid escape or character"))
    }

    /// Tests with `||` between them.
    fn any(&mut self) -> Parsed<FilterTest> {
        self.list("||", |parser| parser.list("&&", Self::test).map(FilterTest::All))
            .map(FilterTest::Any)
    }

    fn test(&mut self) -> Parsed<FilterTest> {
        let is_negated = self.eat("!");
        if is_negated {
            self.space();
        }
        let test = if self.eat("(") {
            let test = self.any()?;
            self.expect(")")?;
            test
        } else {
            self.test_of_terms(is_negated)?
        };
        Ok(if is_negated { FilterTest::Not(Box::new(test)) } else { test })
    }

    fn test_of_terms(&mut self, is_negated: bool) -> Parsed<FilterTest> {
        let (start, left) = (self.at, self.term()?);
        self.space();
        let comparison = COMPARISONS.iter().find(|(sign, _)| self.eat(sign));
        match (left, comparison) {
            (_, Some(_)) if is_negated => {
                Err(Self::error_at(start, "put the comparison after `!` in brackets"))
            }
            (left, Some((_, comparison))) => {
                let left = Self::operand(left, start)?;
                self.space();
                let (start, right) = (self.at, self.term()?);
                Ok(FilterTest::Compare(left, *comparison, Self::operand(right, start)?))
            }
            (FilterTerm::Nodes(query), None) => Ok(FilterTest::Exists(query)),
            (FilterTerm::Logical(test), None) => Ok(test),
            (FilterTerm::Value(_), None) => Err(self.error("a comparison is missing here")),
        }
    }

    /// Converts an expression to the value that a comparison or function needs.
    fn operand(term: FilterTerm, start: usize) -> Parsed<FilterOperand> {
        match term {
            FilterTerm::Value(operand) => Ok(operand),
            FilterTerm::Nodes(query) if query.is_singular() => Ok(FilterOperand::Query(query)),
            FilterTerm::Nodes(_) => Err(Self::error_at(
                start,
                "a path with several values needs `count(...)` or `value(...)` around it",
            )),
            FilterTerm::Logical(_) => {
                Err(Self::error_at(start, "`match` and `search` are tests and have no value"))
            }
        }
    }

    fn term(&mut self) -> Parsed<FilterTerm> {
        let start = self.at;
        Ok(FilterTerm::Value(match self.peek() {
            Some(sign @ ('@' | '$')) => {
                self.at += 1;
                let segments = self.segments()?;
                return Ok(FilterTerm::Nodes(FilterQuery { is_relative: sign == '@', segments }));
            }
            Some('\'' | '"') => FilterOperand::Text(self.quoted()?),
            Some('-' | '0'..='9') => self.number()?,
            _ => {
                let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                match &*self.take_while(is_word) {
                    "null" => FilterOperand::Null,
                    "true" => FilterOperand::Boolean(true),
                    "false" => FilterOperand::Boolean(false),
                    word if self.eat("(") => return self.function(word, start),
                    _ => {
                        let message = "expected `@.name`, a text in quotes, a number or a word";
                        return Err(Self::error_at(start, message));
                    }
                }
            }
        }))
    }

    fn function(&mut self, name: &str, start: usize) -> Parsed<FilterTerm> {
        let inside = self.at;
        let mut terms = self.list(",", Self::term)?.into_iter();
        self.expect(")")?;
        let value = |term| Self::operand(term, inside);
        Ok(FilterTerm::Value(match (name, terms.next(), terms.next(), terms.next()) {
            ("length", Some(term), None, None) => FilterOperand::Length(Box::new(value(term)?)),
            ("count", Some(FilterTerm::Nodes(query)), None, None) => FilterOperand::Count(query),
            ("value", Some(FilterTerm::Nodes(query)), None, None) => FilterOperand::Query(query),
            ("match" | "search", Some(text), Some(pattern), None) => {
                let is_whole = name == "match";
                let pattern = match value(pattern)? {
                    FilterOperand::Text(pattern) => {
                        let regex = compile_pattern(&pattern, is_whole);
                        let regex =
                            regex.map_err(|error| Self::error_at(inside, error.to_string()));
                        FilterPattern::Fixed(Box::new(regex?))
                    }
                    pattern => FilterPattern::Computed { pattern, is_whole },
                };
                return Ok(FilterTerm::Logical(FilterTest::Matches(value(text)?, pattern)));
            }
            ("length" | "match" | "search" | "count" | "value", ..) => {
                let message = format!("`{name}` takes other arguments than these");
                return Err(Self::error_at(inside, message));
            }
            _ => return Err(Self::error_at(start, format!("there is no function `{name}`"))),
        }))
    }

    fn number(&mut self) -> Parsed<FilterOperand> {
        let start = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit() || "+-.eE".contains(c));
        // The standard writes numbers as JSON does.
        let is_json = serde_json::from_str::<f64>(&digits).is_ok();
        let number = digits.parse().ok().filter(|_| is_json).map(FilterOperand::Number);
        number.ok_or_else(|| Self::error_at(start, format!("`{digits}` is no number")))
    }
}
