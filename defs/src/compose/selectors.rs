//! Reports common mistakes in selectors and patterns, each with a correction.

use crate::findings::Findings;
use crate::text::Text;

/// Typographic quotes, as word processors write them.
const CURLY: [char; 8] = ['“', '”', '„', '‘', '’', '‚', '«', '»'];

/// Returns false and reports typographic quotes, which YAML reads as a part of the text.
pub(super) fn is_plain(text: &Text, findings: &mut Findings<'_>) -> bool {
    let inner = text.text.trim();
    if !inner.starts_with(CURLY) {
        return true;
    }
    findings.error(
        text.at,
        "YAML does not accept typographic quotes",
        format!("write plain ones: `\"{}\"`", inner.trim_matches(CURLY)),
    );
    false
}

/// Returns false and reports an `@` that remains after the attribute is split off.
pub(super) fn check_at(text: &Text, selector: &str, findings: &mut Findings<'_>) -> bool {
    let Some(at) = outside(selector, '@') else { return true };
    let (front, name) = (selector[..at].trim_end(), selector[at + 1..].trim());
    let spaced = front.len() < at;
    let (message, help) = if name.is_empty() {
        ("the name of an attribute is missing after `@`", format!("write `{front} @href`"))
    } else if !spaced && !name.contains([' ', '@']) {
        ("a space is missing before `@`", format!("write `{front} @{name}`"))
    } else {
        let name = name.split([' ', '@']).next().unwrap_or(name);
        let help = format!("keep one of them: `{front} @{name}`");
        ("a selector has one attribute, at its end", help)
    };
    findings.error(text.at, message, help);
    false
}

/// Returns false and reports an attribute in the selector of a block.
pub(super) fn check_element(text: &Text, findings: &mut Findings<'_>) -> bool {
    let Some(at) = outside(&text.text, '@') else { return true };
    findings.error(
        text.at,
        "a block is an element, not an attribute",
        format!("write `{}`, and take the attribute in a field", text.text[..at].trim_end()),
    );
    false
}

/// Returns false and reports XPath and other dialects in the selector of a follow rule.
pub(super) fn check_link(text: &Text, findings: &mut Findings<'_>) -> bool {
    let selector = text.text.trim();
    if selector.starts_with('/') || selector.starts_with("./") || selector.starts_with("(/") {
        findings.error(
            text.at,
            format!("`{selector}` is XPath, not a CSS selector"),
            format!("write `{{ xpath: \"{selector}\" }}`"),
        );
        return false;
    }
    if let Some((front, _)) = selector.split_once("::") {
        findings.error(
            text.at,
            "a selector of links cannot contain `::`",
            format!("write `{front}`: `follow` takes the `href`"),
        );
        return false;
    }
    true
}

/// Reports wildcards in place of regular expressions.
pub(super) fn check_patterns(patterns: &[Text], findings: &mut Findings<'_>) {
    for pattern in patterns {
        let text = pattern.text.as_str();
        if let Some(ending) = text.strip_prefix('*') {
            let ending = ending.trim_end_matches('*').replace('.', r"\.");
            let end = if text.ends_with('*') { "" } else { "$" };
            findings.error(
                pattern.at,
                format!("`{text}` is a wildcard, not a regular expression"),
                format!("write `'{ending}{end}'`: it may match anywhere in the address"),
            );
        } else if let Some(front) = text.strip_suffix("/*") {
            findings.warn(
                pattern.at,
                format!("`{text}` is a regular expression: its `*` means any number of `/`"),
                format!("write `{front}/`: it may match anywhere in the address"),
            );
        }
    }
}

/// Byte offset of the first such character outside quotes and brackets.
fn outside(text: &str, wanted: char) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '(') => depth += 1,
            (None, ']' | ')') => depth = depth.saturating_sub(1),
            (None, _) if c == wanted && depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}
