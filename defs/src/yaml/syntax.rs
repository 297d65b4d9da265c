//! Translates errors of the YAML parser into messages for authors of definitions.

use granit_parser::ErrorKind;

/// Message for a tab in the indentation.
pub(super) const TAB: &str = "a tab in the indentation";
pub(super) const TAB_HELP: &str = "replace the tab with spaces";

/// Message for a missing closing quote.
pub(super) const QUOTE_OPEN: &str = "the closing quote is missing";
pub(super) const QUOTE_HELP: &str =
    "add the closing quote; inside double quotes write `\\\"` for a quote";

/// Message and help for a parser error.
pub(super) fn explain(kind: &ErrorKind) -> (String, &'static str) {
    brackets_and_quotes(kind).or_else(|| lines(kind)).unwrap_or_else(|| {
        let said = kind.to_string();
        (format!("not YAML: {}", said.trim_end_matches('.')), "")
    })
}

fn lines(kind: &ErrorKind) -> Option<(String, &'static str)> {
    let (message, help) = match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => (TAB, TAB_HELP),
        ErrorKind::InvalidIndentation
        | ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::InvalidFlowScalarIndent
        | ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::BlockSequenceEntryNotAllowed => (
            "the indentation of this line does not match the lines around it",
            "indent it like the lines around it, and end each key with `:`",
        ),
        ErrorKind::MappingValueNotAllowed
        | ErrorKind::MappingKeyNotAllowed
        | ErrorKind::InvalidColonPlacement => (
            "a `key: value` is not allowed here",
            "indent it like the lines around it; put a text that contains `: ` in quotes",
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
            ("a key without `:`", "write `key: value`; put a space after the colon")
        }
        ErrorKind::RecursionLimitExceeded => (
            "the definition is nested too deeply",
            "no definition needs this depth; look for a missing closing bracket",
        ),
        _ => return None,
    };
    Some((message.to_owned(), help))
}

fn brackets_and_quotes(kind: &ErrorKind) -> Option<(String, &'static str)> {
    Some(match kind {
        ErrorKind::UnclosedFlowCollection { open } => (
            format!("the closing bracket of `{open}` is missing"),
            "add the closing bracket, or look for a missing comma or quote before it",
        ),
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            (format!("`{close}` does not match `{open}`"), "use a matching pair of brackets")
        }
        ErrorKind::MisplacedFlowCollectionEnd => (
            "a closing bracket without an opening bracket".to_owned(),
            "remove it, or add the opening bracket",
        ),
        ErrorKind::ExpectedFlowMappingSeparator | ErrorKind::ExpectedFlowSequenceSeparator => (
            "a comma or a closing bracket is missing before this".to_owned(),
            "separate the entries between brackets by commas",
        ),
        ErrorKind::UnclosedQuotedScalar | ErrorKind::DocumentIndicatorInQuotedScalar => {
            (QUOTE_OPEN.to_owned(), QUOTE_HELP)
        }
        ErrorKind::UnknownQuotedScalarEscape => (
            "an unknown escape inside double quotes".to_owned(),
            "write `\\\\` for a backslash, or use single quotes, in which a backslash is a plain character",
        ),
        ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            ("text after the closing quote".to_owned(), "put the quotes around the whole text")
        }
        ErrorKind::UnexpectedCharacter { character } => {
            (format!("a text cannot start with `{character}`"), "put the text in quotes")
        }
        ErrorKind::MissingAnchorOrAliasName => (
            "a text that begins with `*` or `&` must be in quotes".to_owned(),
            "put the text in quotes: `\"*\"`",
        ),
        _ => return None,
    })
}
