//! Follows a path through JSON.

use super::path::{JsonPath, PathSegment, PathSelector};
use super::{Json, JsonKind, JsonNode};

/// Most values that one path looks at: a fraction of a second.
const STEPS_MAX: usize = if cfg!(test) { 500_000 } else { 20_000_000 };

pub(super) fn find(path: &JsonPath, json: &Json, root: JsonNode) -> Option<Vec<JsonNode>> {
    PathWalker { json, root, steps_left: STEPS_MAX }.select(&path.segments, root)
}

pub(super) struct PathWalker<'j> {
    pub(super) json: &'j Json,
    pub(super) root: JsonNode,
    steps_left: usize,
}

impl PathWalker<'_> {
    /// The nodes that segments select from a node. `None` when the path has used up its steps.
    pub(super) fn select(
        &mut self,
        segments: &[PathSegment],
        from: JsonNode,
    ) -> Option<Vec<JsonNode>> {
        let json = self.json;
        let mut nodes = vec![from];
        for segment in segments {
            let mut found = Vec::new();
            for node in nodes {
                let inner =
                    if segment.is_descendant { json.inclusive(node) } else { node..node + 1 };
                for node in inner {
                    for selector in &segment.selectors {
                        self.apply(selector, node, &mut found)?;
                    }
                }
            }
            nodes = found;
        }
        Some(nodes)
    }

    pub(super) fn spend(&mut self, steps: usize) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(steps)?;
        Some(())
    }

    fn apply(
        &mut self,
        selector: &PathSelector,
        node: JsonNode,
        found: &mut Vec<JsonNode>,
    ) -> Option<()> {
        use PathSelector::{Filter, Index, Name, NameOrIndex, Slice, Wildcard};
        let json = self.json;
        self.spend(1)?;
        let children = match (selector, json.kind(node)) {
            (Name(name) | NameOrIndex(name, _), JsonKind::Object) => {
                found.extend(json.member(node, name));
                return Some(());
            }
            (Index(_) | NameOrIndex(..) | Slice { .. }, JsonKind::Array)
            | (Wildcard | Filter(_), JsonKind::Array | JsonKind::Object) => {
                json.children(node).collect::<Vec<_>>()
            }
            _ => return Some(()),
        };
        self.spend(children.len())?;
        match selector {
            Index(index) | NameOrIndex(_, index) => {
                let at = from_end(*index, children.len());
                found.extend(usize::try_from(at).ok().and_then(|at| children.get(at)));
            }
            Slice { start, end, step } => found.extend(slice(*start, *end, *step, &children)),
            Filter(test) => {
                for child in children {
                    if self.passes(test, child)? {
                        found.push(child);
                    }
                }
            }
            Wildcard | Name(_) => found.extend(children),
        }
        Some(())
    }
}

fn from_end(index: i64, length: usize) -> i64 {
    if index < 0 { index.saturating_add(length as i64) } else { index }
}

fn slice(start: Option<i64>, end: Option<i64>, step: i64, all: &[JsonNode]) -> Vec<JsonNode> {
    let length = all.len() as i64;
    if step == 0 {
        return Vec::new();
    }
    let (least, most) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let bound = |given: Option<i64>, otherwise: i64| {
        given.map_or(otherwise, |it| from_end(it, all.len()).clamp(least, most))
    };
    let (first, last) = if step > 0 { (least, most) } else { (most, least) };
    let (mut at, end) = (bound(start, first), bound(end, last));
    let mut picked = Vec::new();
    while (step > 0 && at < end) || (step < 0 && at > end) {
        picked.extend(usize::try_from(at).ok().and_then(|at| all.get(at)));
        at = at.saturating_add(step);
    }
    picked
}
