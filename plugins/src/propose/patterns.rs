//! Regular expressions that extract the sampled part of a text.

use fancy_regex::Regex;

use super::matches::find_word;
use super::query::kept;
use super::words::{ValueShape, is_currency, shape};

/// Patterns that extract `sample` from `text`, most specific first.
pub(super) fn patterns(text: &str, sample: &str) -> Vec<String> {
    let Some(at) = find_word(text, sample) else { return Vec::new() };
    let (left, right) = (&text[..at], &text[at + sample.len()..]);
    let (before, after) = (edge_before(left), edge_after(right));
    let mut found = Vec::new();
    for value in value_patterns(sample) {
        found.push(format!("{before}({value}){after}"));
        found.push(format!("{before}({value})"));
        found.push(format!("({value}){after}"));
        found.push(format!("({value})"));
    }
    let open = if left.trim().is_empty() { "^".to_owned() } else { before };
    let close = if right.trim().is_empty() { "$".to_owned() } else { after };
    found.push(format!("{open}(.+?){close}"));
    found.push(format!("{open}(\\S+)"));
    found.extend(segment(left, right));
    found.retain(|pattern| {
        let regex = Regex::new(pattern);
        regex.is_ok_and(|regex| kept(&regex, text).as_deref() == Some(sample))
    });
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|pattern| seen.insert(pattern.clone()));
    found
}

/// Patterns for values of the same type as the sample.
fn value_patterns(sample: &str) -> Vec<String> {
    const NUMBER: &str = r"\d+(?:[.,]\d+)*";
    match shape(sample) {
        ValueShape::Number if sample.chars().all(|c| c.is_ascii_digit()) => {
            vec![r"\d+".to_owned(), NUMBER.to_owned()]
        }
        ValueShape::Number if sample.starts_with(['-', '+']) => vec![format!("[-+]?{NUMBER}")],
        ValueShape::Number if sample.ends_with('%') => vec![format!("{NUMBER}\\s*%")],
        ValueShape::Number => vec![NUMBER.to_owned()],
        ValueShape::Money if sample.starts_with(is_currency) => {
            let sign: String = sample.chars().take(1).collect();
            vec![format!("{}\\s*{NUMBER}", escape(&sign))]
        }
        ValueShape::Money if sample.ends_with(is_currency) => {
            let sign: String = sample.chars().rev().take(1).collect();
            vec![format!("{NUMBER}\\s*{}", escape(&sign))]
        }
        ValueShape::Date if sample.len() == 10 && super::words::is_iso_date(sample) => {
            vec![r"\d{4}-\d{2}-\d{2}".to_owned()]
        }
        _ => Vec::new(),
    }
}

/// A pattern for the last word or the punctuation before the sample.
fn edge_before(left: &str) -> String {
    let trimmed = left.trim_end();
    if trimmed.is_empty() {
        return String::new();
    }
    let rest = trimmed.trim_end_matches(|c: char| !c.is_alphanumeric());
    let before = rest.trim_end_matches(char::is_alphanumeric);
    let word = &rest[before.len()..];
    let is_name = !word.is_empty() && word.chars().all(char::is_alphabetic);
    let edge = if is_name { &trimmed[before.len()..] } else { &trimmed[rest.len()..] };
    let space = if left.len() > trimmed.len() { "\\s+" } else { "" };
    format!("{}{space}", escape(edge.trim_start()))
}

/// A pattern for the first word or the punctuation after the sample.
fn edge_after(right: &str) -> String {
    let trimmed = right.trim_start();
    if trimmed.is_empty() {
        return String::new();
    }
    let rest = trimmed.trim_start_matches(|c: char| !c.is_alphanumeric());
    let signs = trimmed[..trimmed.len() - rest.len()].trim();
    let word = &rest[..rest.len() - rest.trim_start_matches(char::is_alphanumeric).len()];
    let is_name = signs.is_empty() && word.chars().all(char::is_alphabetic);
    let edge = if is_name { word } else { signs };
    let space = if right.len() > trimmed.len() { "\\s+" } else { "" };
    format!("{space}{}", escape(edge))
}

/// A pattern for one of several pieces with a separator between them.
fn segment(left: &str, right: &str) -> Option<String> {
    let sign = ['|', '·', '•', '/', ',', '–', '—', ';', '(', '-']
        .into_iter()
        .find(|sign| left.trim_end().ends_with(*sign) || right.trim_start().starts_with(*sign))?;
    let sign_text = escape(&sign.to_string());
    let before = left.matches(sign).count();
    let skip = format!("[^{sign_text}]*{sign_text}").repeat(before);
    Some(format!("^{skip}\\s*([^{sign_text}]+?)\\s*(?:{sign_text}|$)"))
}

pub(super) fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_whitespace() {
            out.push_str("\\s+");
            continue;
        }
        if "\\.+*?()|[]{}^$-".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, sample: &str, other: &str, expect: &str) {
        let all = patterns(text, sample);
        let first = all.iter().find_map(|pattern| kept(&Regex::new(pattern).unwrap(), other));
        assert_eq!(first.as_deref(), Some(expect), "{all:?}");
    }

    #[test]
    fn a_pattern_extracts_the_same_part_of_another_text() {
        check("Price: £51.77", "51.77", "Price: £8.00", "8.00");
        check("Price: £51.77", "£51.77", "Price: £8.00", "£8.00");
        check("by Albert Einstein", "Albert Einstein", "by Jane Austen", "Jane Austen");
        check("By John on 5 May 2020", "John", "By Mary Ann on 6 June", "Mary Ann");
        check("4.5 out of 5 stars (120 reviews)", "120", "3 out of 5 stars (9 reviews)", "9");
        check("4.5 out of 5 stars", "4.5", "3 out of 5 stars", "3");
        check("Berlin | Full time | 3 days ago", "Full time", "Rome | Half | 1 day ago", "Half");
        check("star-rating Three", "Three", "star-rating Five", "Five");
    }
}
