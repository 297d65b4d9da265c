//! From a page to rows: a data definition is compiled once and expanded on each page.
//!
//! [`DataDefPlan`] handles items, dims and facts. [`CssQueries`] and [`XpathQueries`] answer its
//! queries, each in its own dialect. Nothing here does I/O.
//!
//! `template` parses texts with variables, `bound` binds them to an axis, and `plan` compiles a
//! definition from them. `expand` loops over the indexes, and `lookup` asks each query only once
//! per page.

mod bound;
mod compiled;
mod css;
mod expand;
mod lookup;
mod plan;
mod template;
mod xpath;

use std::fmt;

pub use compiled::CompiledQueries;
pub use css::CssQueries;
pub use expand::{ExpandContext, ExpandLimits, Expansion, FactText};
pub use plan::{DataDefPlan, PlanProblem};
pub use xpath::XpathQueries;

/// Answers queries about one page in one dialect.
pub trait Queries {
    /// The text that `selector` finds below `block`, or the named attribute of its matches. `None`
    /// if nothing matches.
    fn query(
        &mut self,
        block: &str,
        selector: &str,
        attribute: Option<&str>,
    ) -> Result<Option<String>, ParseError>;
}

/// Evaluates the scripts of items on one page.
pub trait Scripts {
    /// The value of an expression as text; `None` if it is null or undefined.
    fn eval(&mut self, expression: &str) -> Result<Option<String>, ParseError>;
}

/// Why a page could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// A query that is invalid, or fails on the page.
    #[error("query `{query}`: {message}")]
    Query {
        /// The query, with its variables replaced.
        query: String,
        /// The message shown to users.
        message: String,
    },
    /// A script that failed.
    #[error("script `{script}`: {message}")]
    Script {
        /// The expression, with its variables replaced.
        script: String,
        /// The message shown to users.
        message: String,
    },
    /// An error and the item that caused it.
    #[error("dataDef `{data_def}`, item `{item}`: {problem}")]
    Item {
        /// Name of the data definition.
        data_def: String,
        /// Name of the item.
        item: String,
        /// The error itself.
        problem: Box<ParseError>,
    },
    /// More rows than [`ExpandLimits::rows_max`].
    #[error(
        "dataDef `{data_def}`: more than {rows_max} rows, the range of item `{item}` does not end \
         (setting `parser.rows.max`)"
    )]
    TooManyRows {
        /// Name of the data definition.
        data_def: String,
        /// The item whose range caused them.
        item: String,
        /// The limit.
        rows_max: usize,
    },
    /// The deadline passed.
    #[error(
        "dataDef `{data_def}`: out of time after {rows} rows at index {index} of item `{item}` \
         (setting `parser.time.max`)"
    )]
    OutOfTime {
        /// Name of the data definition.
        data_def: String,
        /// The item whose range takes the time.
        item: String,
        /// Current index of that item.
        index: u32,
        /// Number of rows found before that.
        rows: usize,
    },
}

/// Characters of a query or script that an error shows. A query can contain the whole text of a
/// cell.
const SHOWN_MAX: usize = 300;

impl ParseError {
    /// An error about a query, which is shortened if it is long.
    pub fn query(query: &str, message: &dyn fmt::Display) -> Self {
        Self::Query { query: shorten(query), message: message.to_string() }
    }

    /// An error about a script, which is shortened if it is long.
    pub fn script(script: &str, message: &dyn fmt::Display) -> Self {
        Self::Script { script: shorten(script), message: message.to_string() }
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Whether a text is only white space. A no-break space is not: pages use it as the content of a
/// cell.
fn is_blank(text: &str) -> bool {
    text.chars().all(|letter| {
        let is_no_break_space = matches!(letter, '\u{a0}' | '\u{2007}' | '\u{202f}');
        letter.is_whitespace() && !is_no_break_space || matches!(letter, '\u{1c}'..='\u{1f}')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_the_start_of_a_long_query() {
        let error = ParseError::query(&"ä".repeat(1000), &"too long");
        assert_eq!(error.to_string(), format!("query `{}...`: too long", "ä".repeat(300)));
        let error = ParseError::script("f(", &"unfinished");
        assert_eq!(error.to_string(), "script `f(`: unfinished");
    }

    #[test]
    fn a_no_break_space_is_not_blank() {
        assert!(is_blank("") && is_blank(" \t\r\n\u{b}\u{1f}\u{3000}"));
        assert!(!is_blank("\u{a0}") && !is_blank(" - "));
    }
}
