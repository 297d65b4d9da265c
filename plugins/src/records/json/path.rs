//! A compiled JSON path (RFC 9535).

use fancy_regex::Regex;

use super::{Json, JsonNode, parse, walk};

/// Why a path cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::records) struct JsonPathError {
    pub(in crate::records) message: String,
    /// Where, in characters from the start of the path.
    pub(in crate::records) at: usize,
}

/// A compiled path.
#[derive(Debug, Clone)]
pub(in crate::records) struct JsonPath {
    pub(super) segments: Vec<PathSegment>,
}

impl JsonPath {
    /// Compiles a path of the standard, or the short form without `$`.
    pub(in crate::records) fn parse(text: &str) -> Result<Self, JsonPathError> {
        parse::parse(text)
    }

    /// The nodes the path selects from `root`, in order. `None` if that takes too many steps.
    pub(in crate::records) fn find(&self, json: &Json, root: JsonNode) -> Option<Vec<JsonNode>> {
        walk::find(self, json, root)
    }
}

/// One step of a path.
#[derive(Debug, Clone)]
pub(super) struct PathSegment {
    /// `..`: the selectors also apply to all descendants.
    pub(super) is_descendant: bool,
    pub(super) selectors: Vec<PathSelector>,
}

/// Selects nodes of an array or object.
#[derive(Debug, Clone)]
pub(super) enum PathSelector {
    Name(String),
    /// `items.0` in the short form: the index of an array, or a name in an object.
    NameOrIndex(String, i64),
    Wildcard,
    /// Counts from the end when negative.
    Index(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    Filter(FilterTest),
}

/// The condition of a filter.
#[derive(Debug, Clone)]
pub(super) enum FilterTest {
    Any(Vec<FilterTest>),
    All(Vec<FilterTest>),
    Not(Box<FilterTest>),
    Exists(FilterQuery),
    Compare(FilterOperand, Comparison, FilterOperand),
    Matches(FilterOperand, FilterPattern),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// An expression with at most one value.
#[derive(Debug, Clone)]
pub(super) enum FilterOperand {
    Null,
    Boolean(bool),
    Number(f64),
    Text(String),
    /// Has a value if the query selects exactly one node.
    Query(FilterQuery),
    Length(Box<FilterOperand>),
    Count(FilterQuery),
}

/// The regular expression of `match` and `search`.
#[derive(Debug, Clone)]
pub(super) enum FilterPattern {
    Fixed(Box<Regex>),
    /// Compiled for each node. Text that is no regular expression matches nothing.
    Computed {
        pattern: FilterOperand,
        is_whole: bool,
    },
}

/// A path within a filter.
#[derive(Debug, Clone)]
pub(super) struct FilterQuery {
    /// `@` starts at the node that is tested, `$` at the root.
    pub(super) is_relative: bool,
    pub(super) segments: Vec<PathSegment>,
}

impl FilterQuery {
    /// Whether it selects one node at most, by its form alone.
    pub(super) fn is_singular(&self) -> bool {
        use PathSelector::{Index, Name, NameOrIndex};
        self.segments.iter().all(|segment| {
            !segment.is_descendant
                && matches!(segment.selectors[..], [Name(_) | Index(_) | NameOrIndex(..)])
        })
    }
}
