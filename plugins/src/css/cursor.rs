//! Reads a selector character by character, as jsoup's queue of tokens does.

use std::ops::Range;

use super::SelectorError;

/// A place in a selector, and where reading must stop.
#[derive(Debug, Clone)]
pub(super) struct SelectorCursor<'a> {
    chars: &'a [char],
    at: usize,
    end: usize,
}

/// What may hide a bracket from the count.
#[derive(Debug, Clone, Copy)]
struct QuoteRules {
    quotes: bool,
    regex_quote: bool,
}

impl<'a> SelectorCursor<'a> {
    pub(super) fn new(chars: &'a [char], within: Range<usize>) -> Self {
        Self { chars, at: within.start, end: within.end }
    }

    /// A cursor over a part of the same selector.
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

    pub(super) fn bump(&mut self) {
        self.at += 1;
    }

    /// Steps over `wanted` if it comes next.
    pub(super) fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.bump();
        }
        found
    }

    /// Steps over white space and says whether there was any.
    pub(super) fn eat_space(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(is_space) {
            self.bump();
        }
        self.at > start
    }

    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.bump();
        }
        self.chars[start..self.at].iter().collect()
    }

    /// Reads a name: letters that are wanted, and any with a backslash before it. `\31` is the
    /// letter with that number.
    pub(super) fn take_name(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut name = self.take_while(&wanted);
        while self.peek() == Some('\\')
            && let Some(next) = self.peek_at(1).filter(|next| !is_space(*next))
        {
            self.bump();
            if next.is_ascii_hexdigit() {
                let start = self.at;
                while self.at < start + 6 && self.peek().is_some_and(|c| c.is_ascii_hexdigit()) {
                    self.bump();
                }
                let number = u32::from_str_radix(&self.text(start..self.at), 16).ok();
                let letter = number.and_then(char::from_u32);
                name.push(letter.unwrap_or(char::REPLACEMENT_CHARACTER));
                if self.peek().is_some_and(is_space) {
                    self.bump();
                }
            } else {
                name.push(next);
                self.bump();
            }
            name.push_str(&self.take_while(&wanted));
        }
        name
    }

    pub(super) fn text(&self, range: Range<usize>) -> String {
        self.chars[range].iter().collect()
    }

    /// Reads up to `close`, steps over it and gives what lay before.
    pub(super) fn take_to(&mut self, close: char) -> Result<Range<usize>, SelectorError> {
        let start = self.at;
        while let Some(next) = self.peek() {
            self.bump();
            if next == close {
                return Ok(start..self.at - 1);
            }
        }
        Err(SelectorError::new(start, format!("`{close}` is missing")))
    }

    /// Steps over a pair of brackets, the first of which comes next, and gives what lies between.
    ///
    /// Brackets in quotes or after a backslash do not count. Where that leaves the pair open, a
    /// quote is a plain character after all, as in `Dec '16`.
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
        Err(SelectorError::new(self.at, format!("no `{close}` goes with this `{open}`")))
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
