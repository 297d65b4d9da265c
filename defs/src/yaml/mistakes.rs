//! Finds the real position of a mistake if the YAML parser reports it too late, such as a missing
//! quote or a tab.

use std::borrow::Cow;

use granit_parser::ErrorKind;

use super::syntax::{QUOTE_HELP, QUOTE_OPEN, TAB, TAB_HELP};
use crate::text::Span;

/// A text that the parser could not read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParseFailure<'s> {
    pub(super) text: &'s str,
    /// End of the part that was read without error, in bytes.
    pub(super) from: usize,
    /// Where the parser failed, in bytes.
    pub(super) to: usize,
    /// Where the parser failed, as a position.
    pub(super) at: Span,
}

/// Position, message and help of a mistake.
pub(super) type SyntaxMistake = (Span, String, Cow<'static, str>);

/// Finds the mistake behind a parser error. `None` if the parser's own position is best.
pub(super) fn find(kind: &ErrorKind, failure: ParseFailure<'_>) -> Option<SyntaxMistake> {
    if let Some(mistake) = bare_variable(failure) {
        return Some(mistake);
    }
    match kind {
        ErrorKind::InvalidQuotedScalarIndent => open_quote(failure),
        ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => late_quote(failure),
        // The parser reports these two at the start of the text; the tab is on a later line.
        ErrorKind::TabInPlainScalar | ErrorKind::TabAtBlockScalarStart => tab(failure, true),
        ErrorKind::TabInBlockIndentation
        | ErrorKind::InvalidIndentation
        | ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::BlockSequenceEntryNotAllowed
        | ErrorKind::SimpleKeyExpected => tab(failure, false),
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => colon(failure),
        ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::MismatchedFlowCollectionEnd { .. }
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::ExpectedNodeContent => bracket(failure),
        _ => None,
    }
}

/// `${NAME}` without quotes inside brackets, where the brace starts a mapping.
fn bare_variable(failure: ParseFailure<'_>) -> Option<SyntaxMistake> {
    let ParseFailure { text, to, at, .. } = failure;
    let meets = text.get(..to)?.ends_with('$') && text.get(to..)?.starts_with('{');
    meets.then(|| {
        let at = Span { column: at.column.saturating_sub(1), width: 2, ..at };
        let message = "inside `{ }` and `[ ]`, a variable must be in quotes".to_owned();
        (at, message, "write `\"${NAME}\"`".into())
    })
}

/// An unquoted text with brackets inside brackets, or an extra comma.
fn bracket(failure: ParseFailure<'_>) -> Option<SyntaxMistake> {
    let ParseFailure { text, to, at, .. } = failure;
    let start = text.get(..to)?.rfind('\n').map_or(0, |line| line + 1);
    let (before, behind) = (text.get(start..to)?, text.get(to..)?.lines().next()?);
    if behind.starts_with(',') && before.trim_end().ends_with([',', '[', '{']) {
        let message = "a comma without an entry before it".to_owned();
        return Some((at, message, "remove it".into()));
    }
    let from = [": ", ", ", "{ ", "[ "].iter().filter_map(|mark| before.rfind(mark)).max()? + 2;
    let first = before.get(from..)?;
    let ends = [", ", " }", " ]"].iter().filter_map(|mark| behind.find(mark)).min();
    let last = behind.get(..ends.unwrap_or(behind.len()))?;
    let written = format!("{first}{last}");
    let glued = written.match_indices(['[', '{']).any(|(at, _)| {
        written.get(..at).is_some_and(|front| front.ends_with(|c: char| !c.is_whitespace()))
    });
    let listed = first.starts_with('[') && first.ends_with(']');
    if first.contains(['"', '\'', '}']) || !glued && !listed {
        return None;
    }
    let column = before.get(..from)?.chars().count() as u32 + 1;
    let at = Span { column, width: written.chars().count() as u32, ..at };
    let message = "inside `{ }` and `[ ]`, a text with `[`, `]`, `{`, `}` or `,` must be in quotes"
        .to_owned();
    let quote = if written.contains(['"', '\\']) { '\'' } else { '"' };
    Some((at, message, format!("write `{quote}{}{quote}`", written.trim()).into()))
}

/// An unexpected colon. The mistake may be on a line above.
fn colon(failure: ParseFailure<'_>) -> Option<SyntaxMistake> {
    let ParseFailure { text, at, .. } = failure;
    let lines: Vec<&str> = text.lines().take(at.line as usize).collect();
    let (line, above) = lines.split_last()?;
    let indent = |line: &str| line.len() - line.trim_start().len();
    let head: String = line.chars().take(at.column as usize - 1).collect();
    if let Some((key, value)) = head.split_once(": ") {
        let whole = line.split_once(": ").map_or(value, |(_, whole)| whole).trim();
        if whole.contains(['"', '#']) || whole.starts_with('\'') {
            return None;
        }
        let at = Span {
            column: key.chars().count() as u32 + 3,
            width: whole.chars().count() as u32,
            ..at
        };
        let message = "a text that contains `: ` must be in quotes".to_owned();
        return Some((at, message, format!("write `{}: \"{whole}\"`", key.trim()).into()));
    }
    let said = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let (number, before) = (1..).zip(above).filter(|(_, line)| said(line)).last()?;
    let words = before.trim();
    let at_line = Span { line: number, column: indent(before) as u32 + 1, width: 1, ..at };
    if !words.contains(": ") && !words.ends_with(':') && !words.starts_with(['-', '"', '\'']) {
        let key: String = words.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let rest = words.get(key.len()..)?;
        let at = Span { width: key.chars().count().max(1) as u32, ..at_line };
        if let Some(value) = rest.strip_prefix(':') {
            let help = format!("write `{key}: {value}`").into();
            return Some((at, format!("a space is missing after `{key}:`"), help));
        }
        let help = format!("write `{key}:{rest}`").into();
        let spaced = rest.is_empty() || rest.starts_with(' ');
        return spaced.then(|| (at, format!("a colon is missing after `{key}`"), help));
    }
    let (here, there) = (indent(line), indent(before));
    (here > there && words.contains(": ")).then(|| {
        let at = Span { column: here as u32 + 1, width: 1, ..at };
        let message =
            format!("this line is indented by {here} spaces, and line {number} by {there}");
        (
            at,
            message,
            "indent both lines by the same number of spaces if they belong together".into(),
        )
    })
}

/// The first tab in an indentation: on the line of the failure, or on a later line if `below`.
fn tab(failure: ParseFailure<'_>, below: bool) -> Option<SyntaxMistake> {
    let ParseFailure { text, at, .. } = failure;
    let skipped = (at.line as usize).saturating_sub(usize::from(!below));
    let lines = (1..).zip(text.lines()).skip(skipped);
    let mut lines = lines.take(if below { usize::MAX } else { 1 });
    let (line, column) = lines.find_map(|(line, content)| {
        let blank = content.len() - content.trim_start().len();
        let indented = blank < content.len();
        let tab = content.get(..blank)?.find('\t').filter(|_| indented)?;
        Some((line, tab + 1))
    })?;
    Some((Span { line, column: column as u32, width: 1, ..at }, TAB.to_owned(), TAB_HELP.into()))
}

/// A quoted text whose next line is not indented enough. Usually a closing quote is missing.
fn open_quote(failure: ParseFailure<'_>) -> Option<SyntaxMistake> {
    let open = last_quote(failure)?;
    let goes_on = closing(failure.text, open).and_then(|close| failure.text.get(close + 1..));
    let rest = goes_on.and_then(|rest| rest.lines().next()).map(str::trim_start);
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#')) {
        return Some((
            failure.at,
            "a line of a quoted text is not indented enough".to_owned(),
            "indent the line more than the key, or close the quote before it".into(),
        ));
    }
    Some((place(failure, open)?, QUOTE_OPEN.to_owned(), QUOTE_HELP.into()))
}

/// A missing closing quote, so that the text ends at the next quote on a later line.
fn late_quote(failure: ParseFailure<'_>) -> Option<SyntaxMistake> {
    let at = place(failure, last_quote(failure)?)?;
    (at.line < failure.at.line).then(|| {
        let line = failure.at.line;
        let message = format!("the quote is closed only on line {line}, and text follows it");
        (at, message, "add the closing quote where the text ends".into())
    })
}

/// The opening quote of the text in which the parser failed.
fn last_quote(failure: ParseFailure<'_>) -> Option<usize> {
    let mut found = None;
    let mut from = failure.from;
    while let Some(open) = opening(failure.text, from, failure.to) {
        found = Some(open);
        match closing(failure.text, open) {
            Some(close) if close < failure.to => from = close + 1,
            _ => break,
        }
    }
    found
}

/// The first quote that opens a text outside comments.
fn opening(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut before = ' ';
    let mut comment = false;
    for (at, c) in text.get(from..to)?.char_indices() {
        let starts = before.is_whitespace();
        match c {
            '\n' | '\r' => comment = false,
            '#' if starts => comment = true,
            '\'' | '"' if !comment && (starts || "[{,:-?".contains(before)) => {
                return Some(from + at);
            }
            _ => {}
        }
        before = c;
    }
    None
}

/// The quote that closes the one at `open`.
fn closing(text: &str, open: usize) -> Option<usize> {
    let quote = *text.as_bytes().get(open)?;
    let bytes = text.as_bytes();
    let mut at = open + 1;
    while let Some(byte) = bytes.get(at) {
        match *byte {
            b'\\' if quote == b'"' => at += 2,
            b'\'' if quote == b'\'' && bytes.get(at + 1) == Some(&b'\'') => at += 2,
            byte if byte == quote => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// The position of a byte before the failure.
fn place(failure: ParseFailure<'_>, byte: usize) -> Option<Span> {
    let between = failure.text.get(byte..failure.to)?;
    let returns = between.matches('\r').count() - between.matches("\r\n").count();
    let breaks = between.matches('\n').count() + returns;
    let before = failure.text.get(..byte)?;
    let start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    Some(Span {
        line: failure.at.line.checked_sub(breaks as u32)?,
        column: before.get(start..)?.chars().count() as u32 + 1,
        width: 1,
        ..failure.at
    })
}
