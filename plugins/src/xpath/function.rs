//! The functions of an expression: names, numbers of arguments, kinds of value.

use super::expression::ValueKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Boolean,
    Ceiling,
    Concat,
    Contains,
    Count,
    EndsWith,
    False,
    Floor,
    Id,
    Lang,
    Last,
    LocalName,
    LowerCase,
    Name,
    NamespaceUri,
    NormalizeSpace,
    Not,
    Number,
    Position,
    Round,
    StartsWith,
    String,
    StringLength,
    Substring,
    SubstringAfter,
    SubstringBefore,
    Sum,
    Translate,
    True,
}

/// A row of the table: name, function, fewest arguments, most arguments.
type FunctionRow = (&'static str, Function, usize, usize);

const MANY: usize = usize::MAX;

/// The 27 functions of XPath 1.0, plus `lower-case` and `ends-with`.
pub(super) const FUNCTIONS: [FunctionRow; 29] = [
    ("boolean", Function::Boolean, 1, 1),
    ("ceiling", Function::Ceiling, 1, 1),
    ("concat", Function::Concat, 2, MANY),
    ("contains", Function::Contains, 2, 2),
    ("count", Function::Count, 1, 1),
    ("ends-with", Function::EndsWith, 2, 2),
    ("false", Function::False, 0, 0),
    ("floor", Function::Floor, 1, 1),
    ("id", Function::Id, 1, 1),
    ("lang", Function::Lang, 1, 1),
    ("last", Function::Last, 0, 0),
    ("local-name", Function::LocalName, 0, 1),
    ("lower-case", Function::LowerCase, 1, 1),
    ("name", Function::Name, 0, 1),
    ("namespace-uri", Function::NamespaceUri, 0, 1),
    ("normalize-space", Function::NormalizeSpace, 0, 1),
    ("not", Function::Not, 1, 1),
    ("number", Function::Number, 0, 1),
    ("position", Function::Position, 0, 0),
    ("round", Function::Round, 1, 1),
    ("starts-with", Function::StartsWith, 2, 2),
    ("string", Function::String, 0, 1),
    ("string-length", Function::StringLength, 0, 1),
    ("substring", Function::Substring, 2, 3),
    ("substring-after", Function::SubstringAfter, 2, 2),
    ("substring-before", Function::SubstringBefore, 2, 2),
    ("sum", Function::Sum, 1, 1),
    ("translate", Function::Translate, 3, 3),
    ("true", Function::True, 0, 0),
];

impl Function {
    pub(super) fn kind(self) -> ValueKind {
        match self {
            Self::Boolean
            | Self::Contains
            | Self::EndsWith
            | Self::False
            | Self::Lang
            | Self::Not
            | Self::StartsWith
            | Self::True => ValueKind::Boolean,
            Self::Ceiling
            | Self::Count
            | Self::Floor
            | Self::Last
            | Self::Number
            | Self::Position
            | Self::Round
            | Self::StringLength
            | Self::Sum => ValueKind::Number,
            Self::Concat
            | Self::LocalName
            | Self::LowerCase
            | Self::Name
            | Self::NamespaceUri
            | Self::NormalizeSpace
            | Self::String
            | Self::Substring
            | Self::SubstringAfter
            | Self::SubstringBefore
            | Self::Translate => ValueKind::Text,
            Self::Id => ValueKind::Nodes,
        }
    }

    /// Whether the argument must be a set of nodes.
    pub(super) fn wants_nodes(self) -> bool {
        matches!(self, Self::Count | Self::LocalName | Self::Name | Self::NamespaceUri | Self::Sum)
    }

    /// Whether a missing argument means the context node.
    pub(super) fn defaults_to_context(self) -> bool {
        matches!(
            self,
            Self::LocalName
                | Self::Name
                | Self::NamespaceUri
                | Self::NormalizeSpace
                | Self::Number
                | Self::String
                | Self::StringLength
        )
    }
}

/// The known name closest to a mistyped one, if one is close enough.
pub(super) fn nearest<'n>(typed: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let typed: Vec<char> = typed.to_lowercase().chars().take(40).collect();
    known
        .map(|name| (distance(&typed, name), name))
        .min()
        .filter(|(away, name)| *away <= 1 + name.len() / 4)
        .map(|(_, name)| name)
}

/// The edit distance: how many characters must be added, removed or changed.
fn distance(left: &[char], right: &str) -> usize {
    let mut row: Vec<usize> = (0..=left.len()).collect();
    for (above, there) in right.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (at, here) in left.iter().enumerate() {
            let changed = diagonal + usize::from(*here != there);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[left.len()]
}
