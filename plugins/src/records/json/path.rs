//! A compiled JSON path (RFC 9535).

use fancy_regex::Regex;

use super::{Json, JsonNode, parse, walk};

/// A path that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::records) struct JsonPathError {
    /// What is wrong, in plain words.
    pub(in crate::records) message: String,
    /// Where, in characters from the start of the path.
    pub(in crate::records) at: usize,
}

/// A compiled path.
#[derive(Debug, Clone)]
pub(in crate::records) struct JsonPath {
    pub(super) segments: Vec<Segment>,
}

impl JsonPath {
    /// Compiles a path; `$` at its start may be left out.
    pub(in crate::records) fn parse(text: &str) -> Result<Self, JsonPathError> {
        parse::parse(text)
    }

    /// What the path finds from `root`, in order; none if that takes steps without end.
    pub(in crate::records) fn find(&self, json: &Json, root: JsonNode) -> Option<Vec<JsonNode>> {
        walk::find(self, json, root)
    }
}

/// One step of a path.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    /// `..`: from everything inside too.
    pub(super) descends: bool,
    pub(super) selectors: Vec<Selector>,
}

/// What a step picks of an array or object.
#[derive(Debug, Clone)]
pub(super) enum Selector {
    Name(String),
    Wild,
    /// From the end when negative.
    Index(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    Filter(Test),
}

/// The condition of a filter.
#[derive(Debug, Clone)]
pub(super) enum Test {
    Any(Vec<Test>),
    All(Vec<Test>),
    Not(Box<Test>),
    Exists(Query),
    Compare(Operand, Compare, Operand),
    Matches(Operand, Box<Regex>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// One side of a comparison.
#[derive(Debug, Clone)]
pub(super) enum Operand {
    Null,
    Boolean(bool),
    Number(f64),
    Text(String),
    Query(Query),
    Length(Box<Operand>),
    Count(Query),
}

/// A path within a filter.
#[derive(Debug, Clone)]
pub(super) struct Query {
    /// `@`: from the value tested; else from the root.
    pub(super) relative: bool,
    pub(super) path: JsonPath,
}
