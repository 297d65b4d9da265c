//! Follows a path through JSON.

use super::filter::holds;
use super::path::{JsonPath, Segment, Selector};
use super::{Json, JsonKind, JsonNode};

/// Values looked at for one path; a fraction of a second.
const STEPS_MAX: u64 = if cfg!(test) { 500_000 } else { 20_000_000 };

pub(super) fn find(path: &JsonPath, json: &Json, root: JsonNode) -> Option<Vec<JsonNode>> {
    Walker { json, root, steps_left: STEPS_MAX }.path(path, root)
}

pub(super) struct Walker<'j> {
    pub(super) json: &'j Json,
    pub(super) root: JsonNode,
    steps_left: u64,
}

impl Walker<'_> {
    /// What a path finds from a node; none when out of steps.
    pub(super) fn path(&mut self, path: &JsonPath, from: JsonNode) -> Option<Vec<JsonNode>> {
        let mut nodes = vec![from];
        for segment in &path.segments {
            nodes = self.segment(segment, &nodes)?;
        }
        Some(nodes)
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(steps as u64)?;
        Some(())
    }

    fn segment(&mut self, segment: &Segment, nodes: &[JsonNode]) -> Option<Vec<JsonNode>> {
        let mut found = Vec::new();
        for node in nodes {
            if segment.descends {
                for inner in self.json.inclusive(*node) {
                    self.pick_all(segment, inner, &mut found)?;
                }
            } else {
                self.pick_all(segment, *node, &mut found)?;
            }
        }
        Some(found)
    }

    fn pick_all(
        &mut self,
        segment: &Segment,
        node: JsonNode,
        found: &mut Vec<JsonNode>,
    ) -> Option<()> {
        for selector in &segment.selectors {
            self.pick(selector, node, found)?;
        }
        Some(())
    }

    fn pick(
        &mut self,
        selector: &Selector,
        node: JsonNode,
        found: &mut Vec<JsonNode>,
    ) -> Option<()> {
        let json = self.json;
        let kind = json.kind(node);
        self.spend(1)?;
        if !matches!(kind, JsonKind::Array | JsonKind::Object) {
            return Some(());
        }
        let mut children = Vec::new();
        let wants_children = match selector {
            Selector::Name(_) | Selector::Index(_) | Selector::Slice { .. } => {
                kind == JsonKind::Array
            }
            Selector::Wild | Selector::Filter(_) => true,
        };
        if wants_children {
            children.extend(json.children(node));
        }
        self.spend(children.len())?;
        match selector {
            Selector::Name(name) if kind == JsonKind::Object => {
                found.extend(json.member(node, name));
            }
            // `list.0` means the place.
            Selector::Name(name) => {
                found.extend(name.parse::<usize>().ok().and_then(|at| children.get(at)));
            }
            Selector::Wild => found.extend(children),
            Selector::Index(index) => {
                let at = from_end(*index, children.len());
                found.extend(usize::try_from(at).ok().and_then(|at| children.get(at)));
            }
            Selector::Slice { start, end, step } => {
                found.extend(slice(*start, *end, *step, &children));
            }
            Selector::Filter(test) => {
                for child in children {
                    if holds(self, test, child)? {
                        found.push(child);
                    }
                }
            }
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
