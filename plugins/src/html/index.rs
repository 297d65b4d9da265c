//! Lists of a page's elements by name, and of those with an `id` or `class`, so that a query looks
//! only at elements that can match. The first query that needs a list builds it.

use super::name::{KNOWN_NAMES, NameId};
use super::names::{CLASS, ID};
use super::{Document, LocalName, Namespace, NodeId, NodeKind};

/// The elements of a page by lower-case name. SVG has names with capitals, such as
/// `linearGradient`.
#[derive(Debug, Clone)]
pub(super) struct NameIndex {
    /// For each name number, where its elements begin in `nodes`, plus the end of the last.
    starts: Vec<u32>,
    /// All elements, sorted by name, then in document order.
    nodes: Vec<NodeId>,
    /// For each of the page's own names, the number of its lower-case form. Empty if all are lower
    /// case.
    folded: Vec<u32>,
}

/// The elements of a page that have an `id`, and those that have a `class`, in document order.
#[derive(Debug, Clone, Default)]
pub(super) struct IdClassIndex {
    pub(super) ids: Vec<NodeId>,
    pub(super) classes: Vec<NodeId>,
}

impl NameIndex {
    /// Counting sort: the first pass counts, the second fills in the elements.
    pub(super) fn of(document: &Document) -> Self {
        let folded = fold_own(&document.names);
        let number = |name: u32| fold(NameId::from_raw(name), &folded);
        let mut starts = vec![0; KNOWN_NAMES + document.names.len() + 1];
        let elements = || document.nodes.iter().zip(0..).filter(|(node, _)| is_element(node.kind));
        for (node, _) in elements() {
            starts[number(node.name) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut nodes = vec![NodeId(0); sum as usize];
        let mut next = starts.clone();
        for (node, id) in elements() {
            let place = &mut next[number(node.name)];
            nodes[*place as usize] = NodeId(id);
            *place += 1;
        }
        Self { starts, nodes, folded }
    }

    /// The elements with this lower-case name; `own` are the page's own names.
    pub(super) fn get(&self, name: &LocalName, own: &[LocalName]) -> &[NodeId] {
        let number = match name.number() {
            Some(known) => usize::from(known),
            None => match own.iter().position(|text| text.eq_ignore_ascii_case(name)) {
                Some(place) => fold(NameId::from_raw((KNOWN_NAMES + place) as u32), &self.folded),
                None => return &[],
            },
        };
        &self.nodes[self.starts[number] as usize..self.starts[number + 1] as usize]
    }
}

fn is_element(kind: NodeKind) -> bool {
    kind == NodeKind::Element
}

/// The number of a name's lower-case form.
fn fold(name: NameId, folded: &[u32]) -> usize {
    match name.index().checked_sub(KNOWN_NAMES) {
        None => name.lower().index(),
        Some(place) => folded.get(place).map_or(name.index(), |number| *number as usize),
    }
}

/// See [`NameIndex::folded`].
fn fold_own(own: &[LocalName]) -> Vec<u32> {
    if !own.iter().any(|name| name.bytes().any(|byte| byte.is_ascii_uppercase())) {
        return Vec::new();
    }
    let mut numbers = std::collections::HashMap::new();
    let all = own.iter().zip(KNOWN_NAMES as u32..);
    let number = all.map(|(name, own_number)| {
        let lower = LocalName::from(name.to_ascii_lowercase());
        match lower.number() {
            Some(known) => u32::from(known),
            None => *numbers.entry(lower).or_insert(own_number),
        }
    });
    number.collect()
}

impl IdClassIndex {
    pub(super) fn of(document: &Document) -> Self {
        let mut marked = Self::default();
        for (node, id) in document.nodes.iter().zip(0..) {
            if node.kind != NodeKind::Element {
                continue;
            }
            let own = &document.attributes[node.at as usize..(node.at + node.len) as usize];
            let (mut has_id, mut has_class) = (false, false);
            for attribute in own {
                let mut name = attribute.name;
                if node.namespace != Namespace::HTML {
                    name = lower(name, &document.names);
                }
                has_id |= name == ID;
                has_class |= name == CLASS;
            }
            if has_id {
                marked.ids.push(NodeId(id));
            }
            if has_class {
                marked.classes.push(NodeId(id));
            }
        }
        marked
    }
}

/// The lower-case form of a name, if that is a known name.
fn lower(name: NameId, own: &[LocalName]) -> NameId {
    let Some(text) = name.index().checked_sub(KNOWN_NAMES).and_then(|place| own.get(place)) else {
        return name.lower();
    };
    let lower = LocalName::from(text.to_ascii_lowercase());
    lower.number().map_or(name, NameId::known)
}

#[cfg(test)]
mod tests {
    use super::super::TreeLimits;
    use super::*;

    #[test]
    fn elements_are_found_by_name_whatever_their_letters() {
        let html = "<p id=a><svg><linearGradient ID=b /></svg><x-own class=c>1</x-own><p>";
        let page = Document::parse(html, TreeLimits::default()).unwrap();
        let count = |name: &str| page.named(&LocalName::from(name), page.root()).len();
        assert_eq!([count("p"), count("lineargradient"), count("x-own")], [2, 1, 1]);
        assert_eq!([count("a"), count("x-other")], [0, 0]);
        assert_eq!(page.with_id(page.root()).len(), 2);
        assert_eq!(page.with_class(page.root()).len(), 1);
    }

    #[test]
    fn names_of_xml_differ_in_their_letters_and_are_found_together() {
        let xml = "<Feed><Entry/><entry><Own-Name/></entry><own-name/><OWN-NAME/></Feed>";
        let page = Document::parse_xml(xml, TreeLimits::default()).unwrap();
        let count = |name: &str| page.named(&LocalName::from(name), page.root()).len();
        assert_eq!([count("feed"), count("entry"), count("own-name")], [1, 2, 3]);
        let second = page.named(&LocalName::from("entry"), page.root())[1];
        assert_eq!(page.named(&LocalName::from("own-name"), second).len(), 1);
    }
}
