//! What an expression is once parsed. Operands have been checked for their kind.

use crate::html::LocalName;

use super::function::Function;

/// The four kinds of value.
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
    /// The context node, as `.` says it.
    pub(super) fn here() -> Self {
        Self::Path(LocationPath { start: PathStart::Context, steps: Vec::new() })
    }

    /// XPath has no variables here, so the kind of an expression never depends on the page.
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

    /// The comparison that says the same with its sides swapped.
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
    /// Nodes of any other expression; predicates count them in document order.
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
    /// By their names in an expression.
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
    /// A name, in lower case where that is allowed, and as given if that differs.
    Name(LocalName, Option<LocalName>),
    /// `prefix:*`; the text ends in the colon.
    Prefix(Box<str>, Option<Box<str>>),
    Text,
    Comment,
    /// `processing-instruction()`: a page has none.
    ProcessingInstruction,
    /// Not of the language: a node with children, which is all that `//td[1]` need look into.
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

    /// Whether it matters how many candidates came before one.
    pub(super) fn is_positional(&self) -> bool {
        self.predicates.iter().any(Predicate::is_positional)
    }
}

#[derive(Debug, Clone)]
pub(super) enum Predicate {
    /// A position known beforehand, from one; zero is never reached.
    At(usize),
    Test {
        expression: Expression,
        /// A number, to be compared with the position.
        numeric: bool,
        /// Asks for `position()` or `last()`, or is a number.
        positional: bool,
        /// Asks for `last()`, so that all candidates must be known first.
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
