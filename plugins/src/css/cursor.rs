//! Reads a selector character by character, with the quoting rules of jsoup.

use std::ops::Range;

use super::SelectorError;

/// A position in a selector, and the end of the part being read.
#[derive(Debug, Clone)]
pub(super) struct SelectorCursor<'a> {
    chars: &'a [char],
    at: usize,
    end: usize,
}

/// Which quotes make brackets inside them plain characters.
#[derive(Debug, Clone, Copy)]
struct QuoteRules {
    quotes: bool,
    regex_quote: bool,
}

impl<'a> SelectorCursor<'a> {
    pub(super) fn new(chars: &'a [char], within: Range<usize>) -> Self {
        Self { chars, at: within.start, end: within.end }
    }

    /// A cursor over another part of the same selector.
    pub(super) fn narrowed(&self, within: Range<usize>) -> Self {
        Self::new(self.chars, within)
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn range_to_end(&self) -> Range<usize> {
        self.at..self.end
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        let at = self.at + ahead;
        (at < self.end).then(|| self.chars[at])
    }

    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// Skips `wanted` if it comes next; returns whether it did.
    pub(super) fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.skip();
        }
        found
    }

    /// Skips white space; returns whether there was any.
    pub(super) fn eat_space(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(is_space) {
            self.skip();
        }
        self.at > start
    }

    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.skip();
        }
        self.chars[start..self.at].iter().collect()
    }

    /// Reads a name of the wanted characters. A backslash makes the next character part of the
    /// name, and `\31` is the character with that hexadecimal number.
    pub(super) fn take_name(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut name = self.take_while(&wanted);
        while self.peek() == Some('\\')
            && let Some(next) = self.peek_at(1).filter(|next| !is_space(*next))
        {
            self.skip();
            if next.is_ascii_hexdigit() {
                let start = self.at;
                while self.at < start + 6 && self.peek().is_some_and(|c| c.is_ascii_hexdigit()) {
                    self.skip();
                }
                let number = u32::from_str_radix(&self.text(start..self.at), 16).ok();
                let letter = number.and_then(char::from_u32);
                name.push(letter.unwrap_or(char::REPLACEMENT_CHARACTER));
                if self.peek().is_some_and(is_space) {
                    self.skip();
                }
            } else {
                name.push(next);
                self.skip();
            }
            name.push_str(&self.take_while(&wanted));
        }
        name
    }

    pub(super) fn text(&self, range: Range<usize>) -> String {
        self.chars[range].iter().collect()
    }

    /// Reads up to `close` and skips it. Returns the range before it.
    pub(super) fn take_to(&mut self, close: char) -> Result<Range<usize>, SelectorError> {
        let start = self.at;
        while let Some(next) = self.peek() {
            self.skip();
            if next == close {
                return Ok(start..self.at - 1);
            }
        }
        Err(SelectorError::new(start, format!("`{close}` is missing")))
    }

    /// Skips a pair of brackets, of which the opening one comes next. Returns the range between
    /// them.
    ///
    /// Brackets in quotes or after a backslash do not count. If the pair has no end that way,
    /// quotes are read as plain characters, as in `Dec '16`.
    pub(super) fn take_balanced(
        &mut self,
        open: char,
        close: char,
    ) -> Result<Range<usize>, SelectorError> {
        let tries = [(true, false), (true, true), (false, true), (false, false)];
        for (quotes, regex_quote) in tries {
            let rules = QuoteRules { quotes, regex_quote };
            if let Some(end) = self.balanced_end(open, close, rules) {
                let inside = self.at + 1..end;
                self.at = end + 1;
                return Ok(inside);
            }
        }
        Err(SelectorError::new(self.at, format!("`{open}` has no matching `{close}`")))
    }

    fn balanced_end(&self, open: char, close: char, rules: QuoteRules) -> Option<usize> {
        let mut depth = 0_usize;
        let mut in_quote = None;
        let mut in_regex_quote = false;
        let mut last = None;
        for at in self.at..self.end {
            let next = self.chars[at];
            if last == Some('\\') {
                match next {
                    'Q' if rules.regex_quote => in_regex_quote = true,
                    'E' => in_regex_quote = false,
                    _ => {}
                }
            } else if rules.quotes && matches!(next, '\'' | '"') {
                match in_quote {
                    None => in_quote = Some(next),
                    Some(quote) if quote == next => in_quote = None,
                    Some(_) => {}
                }
            } else if in_quote.is_none() && !in_regex_quote {
                if next == open {
                    depth += 1;
                } else if next == close {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at);
                    }
                }
            }
            last = Some(next);
        }
        None
    }
}

pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0c' | '\r')
}
