//! Compiles the text of a selector.
//!
//! Selectors that jsoup 1.13 accepts mean the same here, with two exceptions: tabs and line breaks
//! are white space everywhere, and `*|a` also finds a plain `a`. Some selectors that jsoup rejects
//! are accepted: a lone quote, `:is`, `:scope`, escapes in names, case flags of attributes, `2n +
//! 1`, and a combinator after a comma.

use std::ops::Range;

use super::SelectorError;
use super::argument::{attribute, first, index, matches_regex, nth, search_text};
use super::cursor::{SelectorCursor, is_space};
use super::syntax::{
    Combinator, CombinatorLink, ComplexSelector, CompoundSelector, MemoSlots, SelectorList,
    SimpleSelector, TextSource,
};

/// Levels of selectors inside selectors. It bounds the recursion of the parser.
const NESTING_MAX: usize = 16;
/// Compound selectors in a selector, including those in arguments. It bounds the recursion of the
/// matcher.
const COMPOUNDS_MAX: usize = 500;

/// Pseudo-classes as jsoup's manual spells them. They are recognized in any case.
const PSEUDO_CLASSES: [&str; 25] = [
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
    "scope",
];

pub(super) fn parse(text: &str) -> Result<SelectorList, SelectorError> {
    let chars: Vec<char> = text.chars().collect();
    let mut parser =
        SelectorParser { chars: &chars, nesting: 0, compounds: 0, slots: MemoSlots::default() };
    let mut group = parser.group(0..chars.len())?;
    group.slots = parser.slots;
    Ok(group)
}

struct SelectorParser<'a> {
    chars: &'a [char],
    nesting: usize,
    compounds: usize,
    slots: MemoSlots,
}

impl SelectorParser<'_> {
    fn group(&mut self, within: Range<usize>) -> Result<SelectorList, SelectorError> {
        let within = trimmed(self.chars, within);
        if self.nesting > NESTING_MAX {
            let message = format!("selectors are nested more than {NESTING_MAX} levels deep");
            return Err(SelectorError::new(within.start, message));
        }
        if within.is_empty() {
            return Err(SelectorError::new(within.start, "a selector is missing"));
        }
        let mut cursor = SelectorCursor::new(self.chars, within);
        let mut chains = vec![self.chain(&mut cursor)?];
        while cursor.eat(',') {
            chains.push(self.chain(&mut cursor)?);
        }
        let rooted = chains.iter().any(|chain| {
            !chain.links.is_empty() || chain.subject.tests.iter().any(SimpleSelector::is_rooted)
        });
        let only_children = chains.iter().all(|chain| match chain.links.as_slice() {
            [link] => {
                link.combinator == Combinator::Child
                    && matches!(link.compound.tests.as_slice(), [SimpleSelector::Scope])
            }
            _ => false,
        });
        Ok(SelectorList { chains, rooted, only_children, slots: self.slots })
    }

    /// Reads a complex selector, up to a comma or the end.
    fn chain(&mut self, cursor: &mut SelectorCursor<'_>) -> Result<ComplexSelector, SelectorError> {
        cursor.eat_space();
        let mut left = Vec::new();
        if let Some(combinator) = take_combinator(cursor) {
            left.push((CompoundSelector::new(vec![SimpleSelector::Scope]), combinator));
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
                CombinatorLink { combinator, compound, slot }
            })
            .collect();
        Ok(ComplexSelector { subject, links })
    }

    fn compound(
        &mut self,
        cursor: &mut SelectorCursor<'_>,
    ) -> Result<CompoundSelector, SelectorError> {
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
        Ok(CompoundSelector::new(tests))
    }

    fn test(
        &mut self,
        cursor: &mut SelectorCursor<'_>,
        next: char,
    ) -> Result<SimpleSelector, SelectorError> {
        match next {
            '#' => Ok(SimpleSelector::Id(identifier(cursor, "an id")?)),
            '.' => Ok(SimpleSelector::Class(identifier(cursor, "a class name")?.to_lowercase())),
            '[' => attribute(cursor),
            ':' => self.pseudo_class(cursor),
            '*' if cursor.peek_at(1) == Some('|') => tag(cursor),
            '*' => {
                cursor.skip();
                Ok(SimpleSelector::Any)
            }
            _ if next.is_alphanumeric() => tag(cursor),
            '\\' if cursor.peek_at(1).is_some() => tag(cursor),
            _ => Err(unexpected(cursor)),
        }
    }

    fn pseudo_class(
        &mut self,
        cursor: &mut SelectorCursor<'_>,
    ) -> Result<SimpleSelector, SelectorError> {
        let start = cursor.at();
        cursor.skip();
        let name = cursor.take_while(|c| c.is_alphanumeric() || c == '-');
        match name.to_ascii_lowercase().as_str() {
            "first-child" => Ok(first(false, false)),
            "last-child" => Ok(first(true, false)),
            "first-of-type" => Ok(first(false, true)),
            "last-of-type" => Ok(first(true, true)),
            "only-child" => Ok(SimpleSelector::OnlyChild { of_type: false }),
            "only-of-type" => Ok(SimpleSelector::OnlyChild { of_type: true }),
            "empty" => Ok(SimpleSelector::Empty),
            "root" => Ok(SimpleSelector::Root),
            "scope" => Ok(SimpleSelector::Scope),
            "matchtext" => Ok(SimpleSelector::MatchText),
            lower if takes_argument(lower) && cursor.peek() != Some('(') => {
                let message = format!("`:{name}` needs an argument in parentheses");
                Err(SelectorError::new(cursor.at(), message))
            }
            "nth-child" => nth(cursor, false, false),
            "nth-last-child" => nth(cursor, true, false),
            "nth-of-type" => nth(cursor, false, true),
            "nth-last-of-type" => nth(cursor, true, true),
            "eq" => Ok(SimpleSelector::IndexEqual(index(cursor)?)),
            "lt" => Ok(SimpleSelector::IndexLess(index(cursor)?)),
            "gt" => Ok(SimpleSelector::IndexGreater(index(cursor)?)),
            "contains" => self.contains(cursor, TextSource::Whole),
            "containsown" => self.contains(cursor, TextSource::Own),
            "containsdata" => self.contains(cursor, TextSource::Data),
            "matches" => matches_regex(cursor, TextSource::Whole),
            "matchesown" => matches_regex(cursor, TextSource::Own),
            "not" => Ok(SimpleSelector::Not(self.inner(cursor)?)),
            "is" => Ok(SimpleSelector::Is(self.inner(cursor)?)),
            "has" => {
                let group = self.inner(cursor)?;
                let slot = self.slots.lists;
                self.slots.lists += 1;
                Ok(SimpleSelector::Has { group, slot })
            }
            _ => Err(SelectorError::new(start, unknown_pseudo_class(&name))),
        }
    }

    fn inner(
        &mut self,
        cursor: &mut SelectorCursor<'_>,
    ) -> Result<Box<SelectorList>, SelectorError> {
        let within = cursor.take_balanced('(', ')')?;
        self.nesting += 1;
        let group = self.group(within);
        self.nesting -= 1;
        group.map(Box::new)
    }

    fn contains(
        &mut self,
        cursor: &mut SelectorCursor<'_>,
        reads: TextSource,
    ) -> Result<SimpleSelector, SelectorError> {
        let needle = search_text(cursor)?;
        let slot = self.slots.needles;
        self.slots.needles += 1;
        Ok(SimpleSelector::Contains { needle, reads, slot })
    }
}

fn takes_argument(lower: &str) -> bool {
    matches!(lower, "eq" | "lt" | "gt" | "not" | "is" | "has")
        || ["nth-", "contains", "matches"].iter().any(|start| lower.starts_with(start))
            && PSEUDO_CLASSES.iter().any(|known| known.eq_ignore_ascii_case(lower))
}

/// The range without white space and control characters at both ends.
fn trimmed(chars: &[char], mut range: Range<usize>) -> Range<usize> {
    while !range.is_empty() && chars[range.start] <= ' ' {
        range.start += 1;
    }
    while !range.is_empty() && chars[range.end - 1] <= ' ' {
        range.end -= 1;
    }
    range
}

fn take_combinator(cursor: &mut SelectorCursor<'_>) -> Option<Combinator> {
    let combinator = match cursor.peek()? {
        '>' => Combinator::Child,
        '+' => Combinator::Next,
        '~' => Combinator::Later,
        _ => return None,
    };
    cursor.skip();
    Some(combinator)
}

fn unexpected(cursor: &SelectorCursor<'_>) -> SelectorError {
    let message = match cursor.peek() {
        Some(next) => format!("unexpected `{next}`"),
        None => "unexpected end of the selector".to_owned(),
    };
    SelectorError::new(cursor.at(), message)
}

/// Reads the name after `#` or `.`.
fn identifier(cursor: &mut SelectorCursor<'_>, what: &str) -> Result<String, SelectorError> {
    let sign = cursor.peek().unwrap_or_default();
    cursor.skip();
    let name = cursor.take_name(|c| c.is_alphanumeric() || c == '-' || c == '_');
    if name.is_empty() {
        let message = format!("{what} is missing after `{sign}`");
        return Err(SelectorError::new(cursor.at(), message));
    }
    Ok(name)
}

fn tag(cursor: &mut SelectorCursor<'_>) -> Result<SimpleSelector, SelectorError> {
    let start = cursor.at();
    let any_prefix = cursor.eat('*') && cursor.eat('|');
    let name = cursor.take_name(|c| c.is_alphanumeric() || matches!(c, '|' | '-' | '_'));
    // A prefix is written `fb|name` here and `fb:name` in the page.
    let name = name.to_lowercase().replace('|', ":");
    if name.is_empty() {
        return Err(SelectorError::new(start, "a tag name is missing after `*|`"));
    }
    if any_prefix {
        return Ok(SimpleSelector::AnyPrefix { suffix: format!(":{name}"), name: name.into() });
    }
    Ok(SimpleSelector::Tag(name.into()))
}

fn unknown_pseudo_class(name: &str) -> String {
    if name.is_empty() {
        return "a pseudo-class is missing after `:`".to_owned();
    }
    let lower = name.to_lowercase();
    let nearest =
        PSEUDO_CLASSES.iter().map(|known| (distance(&lower, &known.to_lowercase()), known)).min();
    match nearest {
        Some((steps, known)) if steps <= 1 + name.len() / 4 => {
            format!("unknown pseudo-class `:{name}`; did you mean `:{known}`?")
        }
        _ => format!("unknown pseudo-class `:{name}`"),
    }
}

/// The edit distance: how many characters must be changed, added or removed to turn `left` into
/// `right`.
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
