//! Compiles the text of a selector.
//!
//! What jsoup 1.13 accepts means the same here; some of what it refuses is accepted besides (a lone
//! quote, `:is`, spaces in `2n + 1`).

use std::ops::Range;

use super::SelectorError;
use super::cursor::{Cursor, is_space};
use super::java_regex::{JavaRegex, JavaRegexError};
use super::test::{AttributeIs, Chain, Combinator, Compound, Group, Link, Nth, Reads, Slots, Test};
use super::text::fold;
use crate::html::LocalName;

/// Selectors inside selectors; bounds our own recursion.
const NESTING_MAX: usize = 16;
/// Compounds of a selector, those inside others included; bounds the recursion of the matcher.
const COMPOUNDS_MAX: usize = 500;

/// Pseudo-classes, in the spelling of the manual. Any case is understood.
const PSEUDO_CLASSES: [&str; 24] = [
    "contains",
    "containsData",
    "containsOwn",
    "empty",
    "eq",
    "first-child",
    "first-of-type",
    "gt",
    "has",
    "is",
    "last-child",
    "last-of-type",
    "lt",
    "matchText",
    "matches",
    "matchesOwn",
    "not",
    "nth-child",
    "nth-last-child",
    "nth-last-of-type",
    "nth-of-type",
    "only-child",
    "only-of-type",
    "root",
];

pub(super) fn parse(text: &str) -> Result<Group, SelectorError> {
    let chars: Vec<char> = text.chars().collect();
    let mut parser = Parser {
        chars: &chars,
        nesting: 0,
        compounds: 0,
        slots: Slots::default(),
    };
    let mut group = parser.group(0..chars.len())?;
    group.slots = parser.slots;
    Ok(group)
}

struct Parser<'a> {
    chars: &'a [char],
    nesting: usize,
    compounds: usize,
    slots: Slots,
}

impl Parser<'_> {
    fn group(&mut self, within: Range<usize>) -> Result<Group, SelectorError> {
        let within = trimmed(self.chars, within);
        if self.nesting > NESTING_MAX {
            let message = format!("selectors are nested more than {NESTING_MAX} levels deep");
            return Err(SelectorError::new(within.start, message));
        }
        if within.is_empty() {
            return Err(SelectorError::new(within.start, "a selector is missing"));
        }
        let mut cursor = Cursor::new(self.chars, within);
        let mut chains = vec![self.chain(&mut cursor)?];
        while cursor.eat(',') {
            chains.push(self.chain(&mut cursor)?);
        }
        let rooted = chains
            .iter()
            .any(|chain| !chain.links.is_empty() || chain.subject.tests.iter().any(Test::rooted));
        let only_children = chains.iter().all(|chain| match chain.links.as_slice() {
            [link] => {
                link.combinator == Combinator::Child
                    && matches!(link.compound.tests.as_slice(), [Test::Scope])
            }
            _ => false,
        });
        Ok(Group {
            chains,
            rooted,
            only_children,
            slots: self.slots,
        })
    }

    /// Reads up to a comma or the end.
    fn chain(&mut self, cursor: &mut Cursor<'_>) -> Result<Chain, SelectorError> {
        cursor.eat_space();
        let mut left = Vec::new();
        if let Some(combinator) = take_combinator(cursor) {
            left.push((Compound::new(vec![Test::Scope]), combinator));
        }
        let subject = loop {
            let compound = self.compound(cursor)?;
            let spaced = cursor.eat_space();
            match take_combinator(cursor) {
                Some(combinator) => left.push((compound, combinator)),
                None if cursor.is_empty() || cursor.peek() == Some(',') => break compound,
                None if spaced => left.push((compound, Combinator::Descendant)),
                None => return Err(unexpected(cursor)),
            }
        };
        let links = left
            .into_iter()
            .rev()
            .map(|(compound, combinator)| {
                let slot = self.slots.walks;
                self.slots.walks += 1;
                Link {
                    combinator,
                    compound,
                    slot,
                }
            })
            .collect();
        Ok(Chain { subject, links })
    }

    fn compound(&mut self, cursor: &mut Cursor<'_>) -> Result<Compound, SelectorError> {
        cursor.eat_space();
        self.compounds += 1;
        if self.compounds > COMPOUNDS_MAX {
            let message = format!("selector has more than {COMPOUNDS_MAX} parts");
            return Err(SelectorError::new(cursor.at(), message));
        }
        let mut tests = Vec::new();
        while let Some(next) = cursor.peek() {
            if is_space(next) || matches!(next, ',' | '>' | '+' | '~') {
                break;
            }
            tests.push(self.test(cursor, next)?);
        }
        if tests.is_empty() {
            return Err(match cursor.peek() {
                Some(next) => SelectorError::new(
                    cursor.at(),
                    format!("a selector is missing before `{next}`"),
                ),
                None => SelectorError::new(cursor.at(), "a selector is missing at the end"),
            });
        }
        Ok(Compound::new(tests))
    }

    fn test(&mut self, cursor: &mut Cursor<'_>, next: char) -> Result<Test, SelectorError> {
        match next {
            '#' => Ok(Test::Id(identifier(cursor, "an id")?)),
            '.' => Ok(Test::Class(
                identifier(cursor, "a class name")?.to_lowercase(),
            )),
            '[' => attribute(cursor),
            ':' => self.pseudo_class(cursor),
            '*' if cursor.peek_at(1) == Some('|') => tag(cursor),
            '*' => {
                cursor.bump();
                Ok(Test::Any)
            }
            _ if next.is_alphanumeric() => tag(cursor),
            _ => Err(unexpected(cursor)),
        }
    }

    fn pseudo_class(&mut self, cursor: &mut Cursor<'_>) -> Result<Test, SelectorError> {
        let start = cursor.at();
        cursor.bump();
        let name = cursor.take_while(|c| c.is_alphanumeric() || c == '-');
        match name.to_ascii_lowercase().as_str() {
            "first-child" => Ok(first(false, false)),
            "last-child" => Ok(first(true, false)),
            "first-of-type" => Ok(first(false, true)),
            "last-of-type" => Ok(first(true, true)),
            "only-child" => Ok(Test::OnlyChild { of_type: false }),
            "only-of-type" => Ok(Test::OnlyChild { of_type: true }),
            "empty" => Ok(Test::Empty),
            "root" => Ok(Test::Root),
            "matchtext" => Ok(Test::MatchText),
            lower if takes_argument(lower) && cursor.peek() != Some('(') => {
                let message = format!("`:{name}` wants an argument in parentheses");
                Err(SelectorError::new(cursor.at(), message))
            }
            "nth-child" => nth(cursor, false, false),
            "nth-last-child" => nth(cursor, true, false),
            "nth-of-type" => nth(cursor, false, true),
            "nth-last-of-type" => nth(cursor, true, true),
            "eq" => Ok(Test::IndexEqual(index(cursor)?)),
            "lt" => Ok(Test::IndexLess(index(cursor)?)),
            "gt" => Ok(Test::IndexGreater(index(cursor)?)),
            "contains" => self.contains(cursor, Reads::Whole),
            "containsown" => self.contains(cursor, Reads::Own),
            "containsdata" => self.contains(cursor, Reads::Data),
            "matches" => matches_regex(cursor, Reads::Whole),
            "matchesown" => matches_regex(cursor, Reads::Own),
            "not" => Ok(Test::Not(self.inner(cursor)?)),
            "is" => Ok(Test::Is(self.inner(cursor)?)),
            "has" => {
                let group = self.inner(cursor)?;
                let slot = self.slots.lists;
                self.slots.lists += 1;
                Ok(Test::Has { group, slot })
            }
            _ => Err(SelectorError::new(start, unknown_pseudo_class(&name))),
        }
    }

    fn inner(&mut self, cursor: &mut Cursor<'_>) -> Result<Box<Group>, SelectorError> {
        let within = cursor.take_balanced('(', ')')?;
        self.nesting += 1;
        let group = self.group(within);
        self.nesting -= 1;
        group.map(Box::new)
    }

    fn contains(&mut self, cursor: &mut Cursor<'_>, reads: Reads) -> Result<Test, SelectorError> {
        let argument = argument(cursor, "a text")?;
        let needle = fold(&unescaped(&argument));
        let slot = self.slots.needles;
        self.slots.needles += 1;
        Ok(Test::Contains {
            needle,
            reads,
            slot,
        })
    }
}

fn takes_argument(lower: &str) -> bool {
    matches!(lower, "eq" | "lt" | "gt" | "not" | "is" | "has")
        || ["nth-", "contains", "matches"]
            .iter()
            .any(|start| lower.starts_with(start))
            && PSEUDO_CLASSES
                .iter()
                .any(|known| known.eq_ignore_ascii_case(lower))
}

/// The range without white space and control characters at its ends.
fn trimmed(chars: &[char], mut range: Range<usize>) -> Range<usize> {
    while !range.is_empty() && chars[range.start] <= ' ' {
        range.start += 1;
    }
    while !range.is_empty() && chars[range.end - 1] <= ' ' {
        range.end -= 1;
    }
    range
}

fn take_combinator(cursor: &mut Cursor<'_>) -> Option<Combinator> {
    let combinator = match cursor.peek()? {
        '>' => Combinator::Child,
        '+' => Combinator::Next,
        '~' => Combinator::Later,
        _ => return None,
    };
    cursor.bump();
    Some(combinator)
}

fn unexpected(cursor: &Cursor<'_>) -> SelectorError {
    let message = match cursor.peek() {
        Some(next) => format!("`{next}` cannot stand here"),
        None => "selector ends too early".to_owned(),
    };
    SelectorError::new(cursor.at(), message)
}

/// Reads a name after its `#` or `.`.
fn identifier(cursor: &mut Cursor<'_>, what: &str) -> Result<String, SelectorError> {
    let sign = cursor.peek().unwrap_or_default();
    cursor.bump();
    let name = cursor.take_while(|c| c.is_alphanumeric() || c == '-' || c == '_');
    if name.is_empty() {
        let message = format!("{what} is missing after `{sign}`");
        return Err(SelectorError::new(cursor.at(), message));
    }
    Ok(name)
}

fn tag(cursor: &mut Cursor<'_>) -> Result<Test, SelectorError> {
    let start = cursor.at();
    let any_prefix = cursor.eat('*') && cursor.eat('|');
    let name = cursor.take_while(|c| c.is_alphanumeric() || matches!(c, '|' | '-' | '_'));
    // A prefix is written `fb|name` here and `fb:name` in the page.
    let name = name.to_lowercase().replace('|', ":");
    if name.is_empty() {
        return Err(SelectorError::new(
            start,
            "a tag name is missing after `*|`",
        ));
    }
    if any_prefix {
        return Ok(Test::AnyPrefix {
            suffix: format!(":{name}"),
            name: name.into(),
        });
    }
    Ok(Test::Tag(name.into()))
}

fn attribute(cursor: &mut Cursor<'_>) -> Result<Test, SelectorError> {
    let within = cursor.take_balanced('[', ']')?;
    let mut inside = cursor.narrowed(within.clone());
    let start = within.start;
    while let Some(next) = inside.peek() {
        if next == '=' || (inside.peek_at(1) == Some('=') && "!^$*~".contains(next)) {
            break;
        }
        inside.bump();
    }
    let key = inside.text(start..inside.at());
    if key.is_empty() {
        return Err(SelectorError::new(start, "an attribute name is missing"));
    }
    let Some(sign) = inside.peek() else {
        return attribute_is_there(start, &key);
    };
    inside.bump();
    if sign != '=' {
        inside.bump();
    }
    let value_at = inside.at();
    let value = inside.text(inside.range_to_end());
    if value.is_empty() {
        return Err(SelectorError::new(value_at, "a value is missing after `=`"));
    }
    let key = attribute_key(key.trim_matches(|c| c <= ' '));
    let is = match sign {
        '!' => AttributeIs::NotEqual,
        '^' => AttributeIs::Starting,
        '$' => AttributeIs::Ending,
        '*' => AttributeIs::Containing,
        '~' => {
            let regex = regex(&value, value_at)?;
            return Ok(Test::AttributeMatches { key, regex });
        }
        _ => AttributeIs::Equal,
    };
    let value = attribute_value(&value, is);
    Ok(Test::Attribute { key, is, value })
}

fn attribute_is_there(at: usize, key: &str) -> Result<Test, SelectorError> {
    match key.strip_prefix('^') {
        Some("") => Err(SelectorError::new(
            at,
            "an attribute name is missing after `^`",
        )),
        Some(prefix) => Ok(Test::AttributePrefix(prefix.to_lowercase())),
        None => Ok(Test::HasAttribute(attribute_key(key))),
    }
}

/// Pages have no base address, so `abs:href` can mean no more than `href`.
fn attribute_key(key: &str) -> LocalName {
    let key = key.to_lowercase();
    key.strip_prefix("abs:").unwrap_or(&key).into()
}

/// Quotes are dropped if they are the very first and last character; spaces inside them count only
/// where the start or the end of the value is compared.
fn attribute_value(value: &str, is: AttributeIs) -> String {
    let quoted = ['\'', '"'].into_iter().find_map(|quote| {
        value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    });
    let lower = quoted.unwrap_or(value).to_lowercase();
    let keeps_space = matches!(is, AttributeIs::Starting | AttributeIs::Ending);
    if quoted.is_some() && keeps_space {
        return lower;
    }
    lower.trim_matches(|c| c <= ' ').to_owned()
}

/// Reads an argument in parentheses that must not be empty.
fn argument(cursor: &mut Cursor<'_>, what: &str) -> Result<String, SelectorError> {
    let within = cursor.take_balanced('(', ')')?;
    if within.is_empty() {
        let message = format!("{what} is missing in the parentheses");
        return Err(SelectorError::new(within.start, message));
    }
    Ok(cursor.text(within))
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last = '\0';
    for next in text.chars() {
        if next != '\\' || last == '\\' {
            out.push(next);
        }
        last = next;
    }
    out
}

fn matches_regex(cursor: &mut Cursor<'_>, reads: Reads) -> Result<Test, SelectorError> {
    let at = cursor.at() + 1;
    let pattern = argument(cursor, "a regex")?;
    let regex = regex(&pattern, at)?;
    Ok(Test::Matches { regex, reads })
}

fn regex(pattern: &str, at: usize) -> Result<Box<JavaRegex>, SelectorError> {
    JavaRegex::parse(pattern)
        .map(Box::new)
        .map_err(|JavaRegexError { message, at: inner }| SelectorError::new(at + inner, message))
}

fn index(cursor: &mut Cursor<'_>) -> Result<u32, SelectorError> {
    cursor.bump();
    let within = cursor.take_to(')')?;
    let start = within.start;
    let text = cursor.text(within);
    let digits = text.trim();
    digits
        .parse()
        .ok()
        .filter(|_| digits.chars().all(|c| c.is_ascii_digit()))
        .ok_or_else(|| {
            let message = format!("`{digits}` is not an index: a number from 0 up is wanted");
            SelectorError::new(start, message)
        })
}

fn first(from_end: bool, of_type: bool) -> Test {
    Test::Nth(Nth {
        step: 0,
        offset: 1,
        from_end,
        of_type,
    })
}

fn nth(cursor: &mut Cursor<'_>, from_end: bool, of_type: bool) -> Result<Test, SelectorError> {
    cursor.bump();
    let within = cursor.take_to(')')?;
    let start = within.start;
    let text = cursor.text(within);
    let (step, offset) = nth_formula(&text).ok_or_else(|| {
        let message = format!("`{text}` is not a position: use `3`, `2n+1`, `odd` or `even`");
        SelectorError::new(start, message)
    })?;
    Ok(Test::Nth(Nth {
        step,
        offset,
        from_end,
        of_type,
    }))
}

fn nth_formula(text: &str) -> Option<(i32, i32)> {
    let lower = text.trim().to_ascii_lowercase();
    match lower.as_str() {
        "odd" => return Some((2, 1)),
        "even" => return Some((2, 0)),
        _ => {}
    }
    let Some((step, offset)) = lower.split_once('n') else {
        return signed(&lower).map(|offset| (0, offset));
    };
    let step = match step {
        // jsoup drops the sign of a bare `-n`, and definitions were written against what it does.
        "" | "+" | "-" => 1,
        number => signed(number)?,
    };
    let offset: String = offset.chars().filter(|c| !c.is_whitespace()).collect();
    let offset = if offset.is_empty() {
        0
    } else {
        signed(&offset)?
    };
    Some((step, offset))
}

/// A whole number with an optional sign.
fn signed(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn unknown_pseudo_class(name: &str) -> String {
    if name.is_empty() {
        return "a pseudo-class is missing after `:`".to_owned();
    }
    let lower = name.to_lowercase();
    let nearest = PSEUDO_CLASSES
        .iter()
        .map(|known| (distance(&lower, &known.to_lowercase()), known))
        .min();
    match nearest {
        Some((steps, known)) if steps <= 1 + name.len() / 4 => {
            format!("`:{name}` is not known; did you mean `:{known}`?")
        }
        _ => format!("`:{name}` is not known"),
    }
}

/// How many letters must be changed, added or dropped to make `left` into `right`.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let change = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}
