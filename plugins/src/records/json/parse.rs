//! Reads JSON paths. Beyond the standard: `$` may be left out at the start, and names may hold
//! `-`, `@`, `:` and digits.

use super::path::{Compare, JsonPath, JsonPathError, Operand, Query, Segment, Selector, Test};
use crate::java_regex::{compile_find, compile_whole};

/// Brackets within brackets.
const DEPTH_MAX: usize = 32;

pub(super) fn parse(text: &str) -> Result<JsonPath, JsonPathError> {
    let mut parser = Parser { chars: text.chars().collect(), at: 0, depth: 0 };
    parser.space();
    let is_rooted = parser.eat("$");
    let mut segments = Vec::new();
    if !is_rooted && parser.peek().is_some_and(is_name_char) {
        let name = Selector::Name(parser.name()?);
        segments.push(Segment { descends: false, selectors: vec![name] });
    }
    segments.extend(parser.segments()?);
    parser.space();
    if parser.at < parser.chars.len() {
        return Err(parser.error("a path goes on with `.name`, `[...]` or `..`"));
    }
    if segments.is_empty() && !is_rooted {
        return Err(parser.error("the path is empty"));
    }
    Ok(JsonPath { segments })
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '@' | ':' | '$') || !c.is_ascii()
}

impl Parser {
    fn error(&self, message: impl Into<String>) -> JsonPathError {
        JsonPathError { message: message.into(), at: self.at }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn starts(&self, word: &str) -> bool {
        word.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c))
    }

    fn eat(&mut self, word: &str) -> bool {
        let there = self.starts(word);
        if there {
            self.at += word.chars().count();
        }
        there
    }

    fn expect(&mut self, word: &str) -> Result<(), JsonPathError> {
        self.space();
        if self.eat(word) { Ok(()) } else { Err(self.error(format!("`{word}` is missing here"))) }
    }

    fn name(&mut self) -> Result<String, JsonPathError> {
        let start = self.at;
        while self.peek().is_some_and(is_name_char) {
            self.at += 1;
        }
        if start == self.at {
            return Err(self.error("a name is missing here; others than words stand in `['...']`"));
        }
        Ok(self.chars[start..self.at].iter().collect())
    }

    fn segments(&mut self) -> Result<Vec<Segment>, JsonPathError> {
        let mut segments = Vec::new();
        loop {
            let before = self.at;
            self.space();
            let descends = self.eat("..");
            if self.starts("[") {
                segments.push(Segment { descends, selectors: self.brackets()? });
            } else if descends || self.eat(".") {
                let selector = match self.peek() {
                    Some('*') => {
                        self.at += 1;
                        Selector::Wild
                    }
                    _ => Selector::Name(self.name()?),
                };
                segments.push(Segment { descends, selectors: vec![selector] });
            } else {
                self.at = before;
                return Ok(segments);
            }
        }
    }

    fn brackets(&mut self) -> Result<Vec<Selector>, JsonPathError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error("the path is nested too deeply"));
        }
        self.expect("[")?;
        let mut selectors = Vec::new();
        loop {
            self.space();
            selectors.push(self.selector()?);
            self.space();
            if !self.eat(",") {
                break;
            }
        }
        self.expect("]")?;
        self.depth -= 1;
        Ok(selectors)
    }

    fn selector(&mut self) -> Result<Selector, JsonPathError> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(Selector::Wild)
            }
            Some('?') => {
                self.at += 1;
                Ok(Selector::Filter(self.any()?))
            }
            Some('\'' | '"') => Ok(Selector::Name(self.quoted()?)),
            Some('0'..='9' | '-' | ':') => self.numbers(),
            _ => Err(self.error("here stands a number, `*`, a name in quotes, or `?` and a test")),
        }
    }

    /// An index or a slice.
    fn numbers(&mut self) -> Result<Selector, JsonPathError> {
        let start = self.integer()?;
        self.space();
        if !self.eat(":") {
            return match start {
                Some(index) => Ok(Selector::Index(index)),
                None => Err(self.error("a number is missing here")),
            };
        }
        self.space();
        let end = self.integer()?;
        self.space();
        let step = if self.eat(":") {
            self.space();
            self.integer()?
        } else {
            None
        };
        Ok(Selector::Slice { start, end, step: step.unwrap_or(1) })
    }

    fn integer(&mut self) -> Result<Option<i64>, JsonPathError> {
        let start = self.at;
        self.eat("-");
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        if start == self.at {
            return Ok(None);
        }
        let digits: String = self.chars[start..self.at].iter().collect();
        digits.parse().map(Some).map_err(|_| self.error("this is no number of a place"))
    }

    fn quoted(&mut self) -> Result<String, JsonPathError> {
        let open = self.peek();
        let start = self.at;
        self.at += 1;
        let mut words = String::new();
        loop {
            match self.peek() {
                None => {
                    self.at = start;
                    return Err(self.error("this quote is never closed"));
                }
                Some('\\') => {
                    self.at += 1;
                    let raw: String = self.chars[self.at - 1..].iter().take(12).collect();
                    let taken = match self.peek() {
                        Some('u') => 5,
                        Some('\'') => {
                            words.push('\'');
                            self.at += 1;
                            continue;
                        }
                        _ => 1,
                    };
                    let escape: String = raw.chars().take(taken + 1).collect();
                    words.push_str(&super::read::unquote(&escape));
                    self.at += taken;
                }
                end if end == open => {
                    self.at += 1;
                    return Ok(words);
                }
                Some(other) => {
                    words.push(other);
                    self.at += 1;
                }
            }
        }
    }

    fn any(&mut self) -> Result<Test, JsonPathError> {
        let mut tests = vec![self.all()?];
        self.space();
        while self.eat("||") {
            tests.push(self.all()?);
            self.space();
        }
        Ok(single(tests, Test::Any))
    }

    fn all(&mut self) -> Result<Test, JsonPathError> {
        let mut tests = vec![self.basic()?];
        self.space();
        while self.eat("&&") {
            tests.push(self.basic()?);
            self.space();
        }
        Ok(single(tests, Test::All))
    }

    fn basic(&mut self) -> Result<Test, JsonPathError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error("the path is nested too deeply"));
        }
        self.space();
        let test = if self.starts("!") && !self.starts("!=") {
            self.at += 1;
            Test::Not(Box::new(self.basic()?))
        } else if self.eat("(") {
            let inner = self.any()?;
            self.expect(")")?;
            inner
        } else if self.starts("match(") || self.starts("search(") {
            self.matches()?
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(test)
    }

    fn matches(&mut self) -> Result<Test, JsonPathError> {
        let whole = self.eat("match");
        if !whole {
            self.eat("search");
        }
        self.expect("(")?;
        let operand = self.operand()?;
        self.expect(",")?;
        self.space();
        let start = self.at;
        if !matches!(self.peek(), Some('\'' | '"')) {
            return Err(self.error("the pattern stands here in quotes"));
        }
        let pattern = self.quoted()?;
        let regex = if whole { compile_whole(&pattern) } else { compile_find(&pattern) };
        let regex =
            regex.map_err(|error| JsonPathError { message: error.to_string(), at: start })?;
        self.expect(")")?;
        Ok(Test::Matches(operand, Box::new(regex)))
    }

    fn comparison(&mut self) -> Result<Test, JsonPathError> {
        const SIGNS: [(&str, Compare); 6] = [
            ("==", Compare::Equal),
            ("!=", Compare::NotEqual),
            ("<=", Compare::LessOrEqual),
            (">=", Compare::GreaterOrEqual),
            ("<", Compare::Less),
            (">", Compare::Greater),
        ];
        let left = self.operand()?;
        self.space();
        if let Some((_, compare)) = SIGNS.into_iter().find(|(sign, _)| self.eat(sign)) {
            let right = self.operand()?;
            return Ok(Test::Compare(left, compare, right));
        }
        match left {
            Operand::Query(query) => Ok(Test::Exists(query)),
            _ => Err(self.error("a comparison such as `== 1` is missing here")),
        }
    }

    fn operand(&mut self) -> Result<Operand, JsonPathError> {
        self.space();
        match self.peek() {
            Some('@' | '$') => Ok(Operand::Query(self.query()?)),
            Some('\'' | '"') => Ok(Operand::Text(self.quoted()?)),
            Some('0'..='9' | '-') => self.number(),
            _ if self.eat("true") => Ok(Operand::Boolean(true)),
            _ if self.eat("false") => Ok(Operand::Boolean(false)),
            _ if self.eat("null") => Ok(Operand::Null),
            _ if self.eat("length(") => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(self.error("the path is nested too deeply"));
                }
                let inner = self.operand()?;
                self.expect(")")?;
                self.depth -= 1;
                Ok(Operand::Length(Box::new(inner)))
            }
            _ if self.eat("count(") => {
                self.space();
                let query = self.query()?;
                self.expect(")")?;
                Ok(Operand::Count(query))
            }
            _ if self.eat("value(") => {
                self.space();
                let query = self.query()?;
                self.expect(")")?;
                Ok(Operand::Query(query))
            }
            _ => Err(self.error("here stands `@.name`, a text in quotes, a number or a word")),
        }
    }

    fn query(&mut self) -> Result<Query, JsonPathError> {
        let relative = self.eat("@");
        if !relative && !self.eat("$") {
            return Err(self.error("a path that starts with `@` or `$` is missing here"));
        }
        Ok(Query { relative, path: JsonPath { segments: self.segments()? } })
    }

    fn number(&mut self) -> Result<Operand, JsonPathError> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit() || "+-.eE".contains(c)) {
            self.at += 1;
        }
        let digits: String = self.chars[start..self.at].iter().collect();
        digits
            .parse()
            .map(Operand::Number)
            .map_err(|_| JsonPathError { message: format!("`{digits}` is no number"), at: start })
    }
}

fn single(mut tests: Vec<Test>, many: fn(Vec<Test>) -> Test) -> Test {
    match tests.pop() {
        Some(only) if tests.is_empty() => only,
        Some(last) => {
            tests.push(last);
            many(tests)
        }
        None => many(tests),
    }
}
