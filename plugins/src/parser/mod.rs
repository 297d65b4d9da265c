//! From a page to rows: a data definition, prepared once, is expanded over each page.
//!
//! [`Plan`] knows items, dims and facts; what a query means is left to a dialect, [`CssQueries`]
//! or [`XpathQueries`]. Nothing here does I/O.

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
pub use template::{Template, TemplateError};
pub use xpath::XpathQueries;

/// Answers queries about one page, in one dialect.
pub trait Queries {
    /// The text that `selector` finds below `block`, or that of the named attribute; none when
    /// nothing is there.
    fn query(
        &mut self,
        block: &str,
        selector: &str,
        attribute: Option<&str>,
    ) -> Result<Option<String>, ParseError>;
}

/// Evaluates the scripts of items against one page.
pub trait Scripts {
    /// The value of an expression as text; none when it is null or undefined.
    fn eval(&mut self, expression: &str) -> Result<Option<String>, ParseError>;
}

/// Why a page gave no rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// A query that cannot be understood or answered.
    #[error("query `{query}`: {message}")]
    Query {
        /// The query, variables filled in.
        query: String,
        /// What is wrong with it.
        message: String,
    },
    /// A script that failed.
    #[error("script `{script}`: {message}")]
    Script {
        /// The expression, variables filled in.
        script: String,
        /// What went wrong.
        message: String,
    },
    /// An error and the item it befell.
    #[error("dataDef `{data_def}`, item `{item}`: {problem}")]
    Item {
        /// Name of the data definition.
        data_def: String,
        /// Name of the item.
        item: String,
        /// What went wrong.
        problem: Box<ParseError>,
    },
    /// A range without a reachable end, or ranges that are too wide.
    #[error(
        "dataDef `{data_def}`: more than {rows_max} rows, item `{item}` does not end \
         (setting `parser.rows.max`)"
    )]
    TooManyRows {
        /// Name of the data definition.
        data_def: String,
        /// The item whose range made them.
        item: String,
        /// The bound.
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
        /// Where on it.
        index: u32,
        /// Rows by then.
        rows: usize,
    },
}

/// Characters of a query or script that an error shows; a cell's whole text may be part of it.
const SHOWN_MAX: usize = 300;

impl ParseError {
    /// An error about a query, shown shortened if it is long.
    pub fn query(query: &str, message: &dyn fmt::Display) -> Self {
        Self::Query { query: shorten(query), message: message.to_string() }
    }

    /// An error about a script, shown shortened if it is long.
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

/// Whether a text has nothing to see. A no-break space counts as something: it is what the cell of
/// the page really holds.
fn is_blank(text: &str) -> bool {
    text.chars().all(|letter| {
        let unbreakable = matches!(letter, '\u{a0}' | '\u{2007}' | '\u{202f}');
        letter.is_whitespace() && !unbreakable || matches!(letter, '\u{1c}'..='\u{1f}')
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
