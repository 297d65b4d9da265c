//! A compiled selector: groups of chains of compounds of tests.

use super::regex::SelectorRegex;
use crate::html::LocalName;

/// Alternatives, written with `,`.
#[derive(Debug)]
pub(super) struct SelectorList {
    pub(super) chains: Vec<ComplexSelector>,
    /// Whether the verdict on a node depends on where the search starts.
    pub(super) rooted: bool,
    /// Whether all matches are children of where the search starts (`> a`).
    pub(super) only_children: bool,
    /// Memo slots that this group and all groups inside it use.
    pub(super) slots: MemoSlots,
}

/// How many memos of each kind a selector wants.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MemoSlots {
    pub(super) walks: usize,
    pub(super) lists: usize,
    pub(super) needles: usize,
}

/// One alternative: the compound an answer must match, then what lies to its left.
#[derive(Debug)]
pub(super) struct ComplexSelector {
    pub(super) subject: CompoundSelector,
    /// From right to left.
    pub(super) links: Vec<CombinatorLink>,
}

#[derive(Debug)]
pub(super) struct CombinatorLink {
    pub(super) combinator: Combinator,
    pub(super) compound: CompoundSelector,
    /// Memo of this link's walk.
    pub(super) slot: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combinator {
    /// White space: any ancestor.
    Descendant,
    /// `>`: the parent.
    Child,
    /// `+`: the element before.
    Next,
    /// `~`: any element before.
    Later,
}

/// Tests that must all hold: the cheap ones first, but in the order written around `:matchText`.
#[derive(Debug)]
pub(super) struct CompoundSelector {
    pub(super) tests: Vec<SimpleSelector>,
    /// Whether it is about text nodes (`:matchText`) and not about elements.
    pub(super) wants_text: bool,
    /// How many tests, the last ones, the element around a text must pass too.
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
            // jsoup reads a compound from its end and makes elements of texts when it comes to
            // `:matchText`: what is written after that has by then been asked of the element.
            on_host: text_at.map_or(0, |at| tests.len() - at - 1),
            tests,
        }
    }

    /// The tag name every match has, if the compound asks for one.
    pub(super) fn tag(&self) -> Option<&LocalName> {
        self.tests.iter().find_map(|test| match test {
            SimpleSelector::Tag(name) => Some(name),
            _ => None,
        })
    }
}

/// Which position among siblings is meant.
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
    /// One of the words of the value.
    Word,
}

/// Which text a test reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextSource {
    /// All text of the element.
    Whole,
    /// Its own text nodes only.
    Own,
    /// Scripts, styles and comments.
    Data,
}

/// One condition on a node.
#[derive(Debug)]
pub(super) enum SimpleSelector {
    /// `*`.
    Any,
    /// The node the search starts from; stands before a leading combinator.
    Scope,
    Tag(LocalName),
    /// `*|name`: as is, or after any prefix.
    AnyPrefix {
        name: LocalName,
        suffix: String,
    },
    Id(String),
    /// Lower case.
    Class(String),
    HasAttribute(LocalName),
    /// `[^prefix]`, lower case.
    AttributePrefix(String),
    /// The value is in lower case, unless the letters count `exact`ly as they are.
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
    /// `:eq`, 0-based like the two below.
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
        /// Folded as the text is.
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
    /// Rough rank of what a test costs.
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

    /// Whether the verdict depends on where the search starts.
    pub(super) fn rooted(&self) -> bool {
        match self {
            Self::Scope | Self::Root | Self::IndexLess(_) => true,
            Self::Not(group) | Self::Is(group) => group.rooted,
            // `:has` too: what it looks for starts anew at the element, whatever lies around.
            _ => false,
        }
    }
}
