//! A parsed expression. The kinds of all operands have been checked.

use crate::html::LocalName;

use super::function::Function;

/// The four kinds of value in XPath 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Nodes,
    Text,
    Number,
    Boolean,
}

#[derive(Debug, Clone)]
pub(super) enum Expression {
    Or(Vec<Expression>),
    And(Vec<Expression>),
    Compare(Comparison, Box<(Expression, Expression)>),
    Arithmetic(Arithmetic, Box<(Expression, Expression)>),
    Negate(Box<Expression>),
    Union(Vec<Expression>),
    Literal(Box<str>),
    Number(f64),
    Boolean(bool),
    Call(Function, Vec<Expression>),
    Path(LocationPath),
}

impl Expression {
    /// The context node, written `.`.
    pub(super) fn here() -> Self {
        Self::Path(LocationPath { start: PathStart::Context, steps: Vec::new() })
    }

    /// The kind of the value. It never depends on the page, because expressions have no variables
    /// here.
    pub(super) fn kind(&self) -> ValueKind {
        match self {
            Self::Or(_) | Self::And(_) | Self::Compare(..) | Self::Boolean(_) => ValueKind::Boolean,
            Self::Arithmetic(..) | Self::Negate(_) | Self::Number(_) => ValueKind::Number,
            Self::Union(_) | Self::Path(_) => ValueKind::Nodes,
            Self::Literal(_) => ValueKind::Text,
            Self::Call(function, _) => function.kind(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    pub(super) fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }

    /// The equivalent comparison with both sides swapped.
    pub(super) fn flipped(self) -> Self {
        match self {
            Self::Equal | Self::NotEqual => self,
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
        }
    }

    #[expect(clippy::float_cmp, reason = "XPath compares numbers exactly, as IEEE 754 does")]
    pub(super) fn of_numbers(self, left: f64, right: f64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterEqual => left >= right,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Arithmetic {
    pub(super) fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Modulo => left % right,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct LocationPath {
    pub(super) start: PathStart,
    pub(super) steps: Vec<PathStep>,
}

#[derive(Debug, Clone)]
pub(super) enum PathStart {
    Context,
    Root,
    /// The nodes of another expression. Its predicates count them in document order.
    Filter(Box<Expression>, Vec<Predicate>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum XPathAxis {
    Ancestor,
    AncestorOrSelf,
    Attribute,
    Child,
    Descendant,
    DescendantOrSelf,
    Following,
    FollowingSibling,
    Namespace,
    Parent,
    Preceding,
    PrecedingSibling,
    SelfNode,
}

impl XPathAxis {
    /// All axes with their names in an expression.
    pub(super) const ALL: [(&'static str, Self); 13] = [
        ("ancestor", Self::Ancestor),
        ("ancestor-or-self", Self::AncestorOrSelf),
        ("attribute", Self::Attribute),
        ("child", Self::Child),
        ("descendant", Self::Descendant),
        ("descendant-or-self", Self::DescendantOrSelf),
        ("following", Self::Following),
        ("following-sibling", Self::FollowingSibling),
        ("namespace", Self::Namespace),
        ("parent", Self::Parent),
        ("preceding", Self::Preceding),
        ("preceding-sibling", Self::PrecedingSibling),
        ("self", Self::SelfNode),
    ];

    /// Whether positions count backwards through the document.
    pub(super) fn is_reverse(self) -> bool {
        matches!(
            self,
            Self::Ancestor | Self::AncestorOrSelf | Self::Preceding | Self::PrecedingSibling
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeTest {
    /// `node()`.
    Any,
    /// `*`.
    AnyName,
    /// A name, in lower case where case is ignored. The second field is the name as written, if it
    /// differs.
    Name(LocalName, Option<LocalName>),
    /// `prefix:*`. The text ends in the colon.
    Prefix(Box<str>, Option<Box<str>>),
    Text,
    Comment,
    /// `processing-instruction()`. The tree keeps none, so nothing matches.
    ProcessingInstruction,
    /// A node with children. It has no syntax: it replaces the `node()` that `//` stands for in
    /// `//td[1]`.
    HasChildren,
}

#[derive(Debug, Clone)]
pub(super) struct PathStep {
    pub(super) axis: XPathAxis,
    pub(super) test: NodeTest,
    pub(super) predicates: Vec<Predicate>,
}

impl PathStep {
    pub(super) fn plain(axis: XPathAxis, test: NodeTest) -> Self {
        Self { axis, test, predicates: Vec::new() }
    }

    /// Whether a predicate depends on the position of a candidate.
    pub(super) fn is_positional(&self) -> bool {
        self.predicates.iter().any(Predicate::is_positional)
    }
}

#[derive(Debug, Clone)]
pub(super) enum Predicate {
    /// A position known when the expression is compiled, counted from 1. No node matches 0.
    At(usize),
    Test {
        expression: Expression,
        /// The value is a number, which is compared with the position.
        numeric: bool,
        /// Depends on the position: uses `position()` or `last()`, or is a number.
        positional: bool,
        /// Uses `last()`, so all candidates must be found first.
        sized: bool,
    },
}

impl Predicate {
    pub(super) fn is_positional(&self) -> bool {
        match self {
            Self::At(_) => true,
            Self::Test { positional, .. } => *positional,
        }
    }

    pub(super) fn is_sized(&self) -> bool {
        match self {
            Self::At(_) => false,
            Self::Test { sized, .. } => *sized,
        }
    }
}
