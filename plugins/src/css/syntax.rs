//! A compiled selector. A list holds complex selectors, these hold compound selectors joined by
//! combinators, and these hold simple selectors.

use super::regex::SelectorRegex;
use crate::html::LocalName;

/// Alternatives, separated by `,`.
#[derive(Debug)]
pub(super) struct SelectorList {
    pub(super) chains: Vec<ComplexSelector>,
    /// Whether the result for a node depends on the root of the search.
    pub(super) rooted: bool,
    /// Whether all matches are children of the root (`> a`).
    pub(super) only_children: bool,
    /// The slots that this list and all lists in its arguments use.
    pub(super) slots: MemoSlots,
}

/// Numbers of the results a matcher remembers for a selector: searches among ancestors and
/// siblings, arguments of `:has`, texts of `:contains`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MemoSlots {
    pub(super) walks: usize,
    pub(super) lists: usize,
    pub(super) needles: usize,
}

/// One alternative: the compound selector of the match itself, then the parts to its left.
#[derive(Debug)]
pub(super) struct ComplexSelector {
    pub(super) subject: CompoundSelector,
    /// Ordered from right to left.
    pub(super) links: Vec<CombinatorLink>,
}

#[derive(Debug)]
pub(super) struct CombinatorLink {
    pub(super) combinator: Combinator,
    pub(super) compound: CompoundSelector,
    /// Where [`SearchScope`](super::matcher::SearchScope) keeps this link's results.
    pub(super) slot: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combinator {
    /// White space: an ancestor.
    Descendant,
    /// `>`: the parent.
    Child,
    /// `+`: the element directly before.
    Next,
    /// `~`: an element before.
    Later,
}

/// Simple selectors that must all match. They are sorted by cost, but keep their order if
/// `:matchText` is among them.
#[derive(Debug)]
pub(super) struct CompoundSelector {
    pub(super) tests: Vec<SimpleSelector>,
    /// Whether it matches text nodes (`:matchText`) instead of elements.
    pub(super) wants_text: bool,
    /// How many of the last tests must also hold for the element around a text.
    pub(super) on_host: usize,
}

impl CompoundSelector {
    pub(super) fn new(mut tests: Vec<SimpleSelector>) -> Self {
        let text_at = tests.iter().position(|test| matches!(test, SimpleSelector::MatchText));
        if text_at.is_none() {
            tests.sort_by_key(SimpleSelector::cost);
        }
        Self {
            wants_text: text_at.is_some(),
            // jsoup evaluates a compound selector from its end, and replaces elements by their
            // texts when it reaches `:matchText`. So everything after `:matchText` was tested on
            // the element.
            on_host: text_at.map_or(0, |at| tests.len() - at - 1),
            tests,
        }
    }

    /// The tag name that every match has, if the selector demands one.
    pub(super) fn tag(&self) -> Option<&LocalName> {
        self.tests.iter().find_map(|test| match test {
            SimpleSelector::Tag(name) => Some(name),
            _ => None,
        })
    }
}

/// A position among siblings: `step * n + offset` for some `n` from 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct NthPosition {
    pub(super) step: i32,
    pub(super) offset: i32,
    pub(super) from_end: bool,
    pub(super) of_type: bool,
}

impl NthPosition {
    pub(super) fn holds(self, position: u32) -> bool {
        let distance = i64::from(position) - i64::from(self.offset);
        let step = i64::from(self.step);
        if step == 0 {
            return distance == 0;
        }
        distance * step >= 0 && distance % step == 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttributeOperator {
    Equal,
    NotEqual,
    Starting,
    Ending,
    Containing,
    /// One of the value's words, which are separated by white space.
    Word,
}

/// The text that a test reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextSource {
    /// All text of the element and its descendants.
    Whole,
    /// The element's own text nodes.
    Own,
    /// Scripts, styles and comments.
    Data,
}

/// A simple selector: one condition on a node.
#[derive(Debug)]
pub(super) enum SimpleSelector {
    /// `*`.
    Any,
    /// `:scope`, the root of the search. It is also implied before a leading combinator.
    Scope,
    Tag(LocalName),
    /// `*|name`: the name with any prefix or none.
    AnyPrefix {
        name: LocalName,
        suffix: String,
    },
    Id(String),
    /// The class in lower case.
    Class(String),
    HasAttribute(LocalName),
    /// `[^prefix]`, in lower case.
    AttributePrefix(String),
    /// `value` is in lower case unless the comparison is `exact`.
    Attribute {
        key: LocalName,
        is: AttributeOperator,
        value: String,
        exact: bool,
    },
    AttributeMatches {
        key: LocalName,
        regex: Box<SelectorRegex>,
    },
    /// `:eq`. Like `:lt` and `:gt` it counts from 0.
    IndexEqual(u32),
    IndexLess(u32),
    IndexGreater(u32),
    Nth(NthPosition),
    OnlyChild {
        of_type: bool,
    },
    Empty,
    Root,
    MatchText,
    Contains {
        /// Folded like the texts of the page.
        needle: String,
        reads: TextSource,
        slot: usize,
    },
    Matches {
        regex: Box<SelectorRegex>,
        reads: TextSource,
    },
    Not(Box<SelectorList>),
    Is(Box<SelectorList>),
    Has {
        group: Box<SelectorList>,
        slot: usize,
    },
}

impl SimpleSelector {
    /// Rank by cost: cheaper tests run first.
    fn cost(&self) -> u8 {
        match self {
            Self::Any | Self::Scope | Self::Tag(_) | Self::MatchText => 0,
            Self::AnyPrefix { .. } | Self::Root => 1,
            Self::Id(_) | Self::HasAttribute(_) => 2,
            Self::Class(_) | Self::AttributePrefix(_) | Self::Attribute { .. } => 3,
            Self::IndexEqual(_)
            | Self::IndexLess(_)
            | Self::IndexGreater(_)
            | Self::Nth(_)
            | Self::OnlyChild { .. }
            | Self::Empty => 4,
            Self::AttributeMatches { .. } => 5,
            Self::Contains { .. } => 6,
            Self::Not(_) | Self::Is(_) => 7,
            Self::Matches { .. } => 8,
            Self::Has { .. } => 9,
        }
    }

    /// Whether the result depends on the root of the search.
    pub(super) fn is_rooted(&self) -> bool {
        match self {
            Self::Scope | Self::Root | Self::IndexLess(_) => true,
            Self::Not(group) | Self::Is(group) => group.rooted,
            // This includes `:has`, whose argument is searched from the element itself.
            _ => false,
        }
    }
}
