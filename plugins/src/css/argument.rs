//! Parses the arguments of selectors: attributes in `[...]`, and texts, patterns and positions in
//! `(...)`.

use super::SelectorError;
use super::cursor::SelectorCursor;
use super::regex::SelectorRegex;
use super::syntax::{AttributeOperator, NthPosition, SimpleSelector, TextSource};
use super::text::fold;
use crate::html::LocalName;

pub(super) fn attribute(cursor: &mut SelectorCursor<'_>) -> Result<SimpleSelector, SelectorError> {
    let within = cursor.take_balanced('[', ']')?;
    let mut inside = cursor.narrowed(within.clone());
    let start = within.start;
    while let Some(next) = inside.peek() {
        if next == '=' || (inside.peek_at(1) == Some('=') && "!^$*~".contains(next)) {
            break;
        }
        inside.skip();
    }
    let key = inside.text(start..inside.at());
    if key.is_empty() {
        return Err(SelectorError::new(start, "an attribute name is missing"));
    }
    let Some(sign) = inside.peek() else {
        return has_attribute(start, &key);
    };
    inside.skip();
    if sign != '=' {
        inside.skip();
    }
    let value_at = inside.at();
    let value = inside.text(inside.range_to_end());
    if value.is_empty() {
        return Err(SelectorError::new(value_at, "a value is missing after `=`"));
    }
    let key = attribute_key(key.trim_matches(|c| c <= ' '));
    let is = match sign {
        '!' => AttributeOperator::NotEqual,
        '^' => AttributeOperator::Starting,
        '$' => AttributeOperator::Ending,
        '*' => AttributeOperator::Containing,
        // A quoted value is a word, as in standard CSS. jsoup reads an unquoted one as a regex.
        '~' if quoted(split_case_flag(&value).0).is_some() => AttributeOperator::Word,
        '~' => {
            let regex = regex(&value, value_at)?;
            return Ok(SimpleSelector::AttributeMatches { key, regex });
        }
        _ => AttributeOperator::Equal,
    };
    let (value, exact) = split_case_flag(&value);
    if exact {
        let value = quoted(value).unwrap_or(value).to_owned();
        return Ok(SimpleSelector::Attribute { key, is, value, exact });
    }
    let value = attribute_value(value, is);
    Ok(SimpleSelector::Attribute { key, is, value, exact })
}

/// The value without a case flag behind its quotes, and whether the comparison is case-sensitive.
fn split_case_flag(value: &str) -> (&str, bool) {
    let trimmed = value.trim_matches(|c| c <= ' ');
    for flag in ['i', 'I', 's', 'S'] {
        if let Some(bare) =
            trimmed.strip_suffix(flag).map(|bare| bare.trim_end_matches(|c| c <= ' '))
            && quoted(bare).is_some()
        {
            return (bare, flag.eq_ignore_ascii_case(&'s'));
        }
    }
    (value, false)
}

/// The text between quotes, if they are the first and last character.
fn quoted(value: &str) -> Option<&str> {
    ['\'', '"']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)))
}

fn has_attribute(at: usize, key: &str) -> Result<SimpleSelector, SelectorError> {
    match key.strip_prefix('^') {
        Some("") => Err(SelectorError::new(at, "an attribute name is missing after `^`")),
        Some(prefix) => Ok(SimpleSelector::AttributePrefix(prefix.to_lowercase())),
        None => Ok(SimpleSelector::HasAttribute(attribute_key(key))),
    }
}

/// The key without `abs:`. Pages have no base address here, so `abs:href` is the same as `href`.
fn attribute_key(key: &str) -> LocalName {
    let key = key.to_lowercase();
    key.strip_prefix("abs:").unwrap_or(&key).into()
}

/// Removes quotes that are the first and last character. Spaces inside them are kept only where the
/// start or end of the value is compared.
fn attribute_value(value: &str, is: AttributeOperator) -> String {
    let quoted = quoted(value);
    let lower = quoted.unwrap_or(value).to_lowercase();
    let keeps_space = matches!(is, AttributeOperator::Starting | AttributeOperator::Ending);
    if quoted.is_some() && keeps_space {
        return lower;
    }
    lower.trim_matches(|c| c <= ' ').to_owned()
}

/// Reads an argument in parentheses that must not be empty.
fn argument(cursor: &mut SelectorCursor<'_>, what: &str) -> Result<String, SelectorError> {
    let within = cursor.take_balanced('(', ')')?;
    if within.is_empty() {
        let message = format!("{what} is missing in the parentheses");
        return Err(SelectorError::new(within.start, message));
    }
    Ok(cursor.text(within))
}

/// Reads the text to search for, folded like the texts of the page.
pub(super) fn search_text(cursor: &mut SelectorCursor<'_>) -> Result<String, SelectorError> {
    Ok(fold(&unescaped(&argument(cursor, "a text")?)))
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

pub(super) fn matches_regex(
    cursor: &mut SelectorCursor<'_>,
    reads: TextSource,
) -> Result<SimpleSelector, SelectorError> {
    let at = cursor.at() + 1;
    let pattern = argument(cursor, "a regex")?;
    let regex = regex(&pattern, at)?;
    Ok(SimpleSelector::Matches { regex, reads })
}

fn regex(pattern: &str, at: usize) -> Result<Box<SelectorRegex>, SelectorError> {
    SelectorRegex::parse(pattern).map(Box::new).map_err(|message| SelectorError::new(at, message))
}

pub(super) fn index(cursor: &mut SelectorCursor<'_>) -> Result<u32, SelectorError> {
    cursor.skip();
    let within = cursor.take_to(')')?;
    let start = within.start;
    let text = cursor.text(within);
    let digits = text.trim();
    digits.parse().ok().filter(|_| digits.chars().all(|c| c.is_ascii_digit())).ok_or_else(|| {
        let message = format!("`{digits}` is not an index: expected a whole number from 0");
        SelectorError::new(start, message)
    })
}

pub(super) fn first(from_end: bool, of_type: bool) -> SimpleSelector {
    SimpleSelector::Nth(NthPosition { step: 0, offset: 1, from_end, of_type })
}

pub(super) fn nth(
    cursor: &mut SelectorCursor<'_>,
    from_end: bool,
    of_type: bool,
) -> Result<SimpleSelector, SelectorError> {
    cursor.skip();
    let within = cursor.take_to(')')?;
    let start = within.start;
    let text = cursor.text(within);
    let (step, offset) = nth_formula(&text).ok_or_else(|| {
        let message = format!("`{text}` is not a position: use `3`, `2n+1`, `odd` or `even`");
        SelectorError::new(start, message)
    })?;
    Ok(SimpleSelector::Nth(NthPosition { step, offset, from_end, of_type }))
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
        // jsoup drops the sign of a bare `-n`, and existing definitions rely on it.
        "" | "+" | "-" => 1,
        number => signed(number)?,
    };
    let offset: String = offset.chars().filter(|c| !c.is_whitespace()).collect();
    let offset = if offset.is_empty() { 0 } else { signed(&offset)? };
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
