//! Decides whether a node passes a filter.

use std::cmp::Ordering;

use super::parse::compile_pattern;
use super::path::{Comparison, FilterOperand, FilterPattern, FilterQuery, FilterTest};
use super::walk::PathWalker;
use super::{JsonKind, JsonNode};

/// Steps that a pattern from the page costs, because it is compiled for each node.
const COMPILE_STEPS: usize = 1_000;

/// The value of an operand.
#[derive(Debug, Clone, PartialEq)]
enum FilterValue {
    /// The operand selects no node.
    Nothing,
    Null,
    Boolean(bool),
    Number(f64),
    Text(String),
    /// An array or object.
    Node(JsonNode),
}

/// Each answer is `None` when the path has used up its steps.
impl PathWalker<'_> {
    /// Whether `node` passes.
    pub(super) fn passes(&mut self, test: &FilterTest, node: JsonNode) -> Option<bool> {
        Some(match test {
            FilterTest::Any(tests) => {
                for test in tests {
                    if self.passes(test, node)? {
                        return Some(true);
                    }
                }
                false
            }
            FilterTest::All(tests) => {
                for test in tests {
                    if !self.passes(test, node)? {
                        return Some(false);
                    }
                }
                true
            }
            FilterTest::Not(test) => !self.passes(test, node)?,
            FilterTest::Exists(query) => !self.query(query, node)?.is_empty(),
            FilterTest::Compare(left, comparison, right) => {
                let (left, right) = (self.value(left, node)?, self.value(right, node)?);
                self.compare(&left, *comparison, &right)?
            }
            FilterTest::Matches(text, pattern) => {
                let FilterValue::Text(text) = self.value(text, node)? else { return Some(false) };
                self.matches(&text, pattern, node)?
            }
        })
    }

    fn matches(&mut self, text: &str, pattern: &FilterPattern, node: JsonNode) -> Option<bool> {
        let found = match pattern {
            FilterPattern::Fixed(regex) => regex.is_match(text),
            FilterPattern::Computed { pattern, is_whole } => {
                self.spend(COMPILE_STEPS)?;
                let FilterValue::Text(pattern) = self.value(pattern, node)? else {
                    return Some(false);
                };
                let Ok(regex) = compile_pattern(&pattern, *is_whole) else { return Some(false) };
                regex.is_match(text)
            }
        };
        Some(found.unwrap_or(false))
    }

    fn query(&mut self, query: &FilterQuery, node: JsonNode) -> Option<Vec<JsonNode>> {
        self.select(&query.segments, if query.is_relative { node } else { self.root })
    }

    fn value(&mut self, operand: &FilterOperand, node: JsonNode) -> Option<FilterValue> {
        Some(match operand {
            FilterOperand::Null => FilterValue::Null,
            FilterOperand::Boolean(it) => FilterValue::Boolean(*it),
            FilterOperand::Number(it) => FilterValue::Number(*it),
            FilterOperand::Text(it) => FilterValue::Text(it.clone()),
            FilterOperand::Count(query) => {
                FilterValue::Number(self.query(query, node)?.len() as f64)
            }
            FilterOperand::Query(query) => match self.query(query, node)?[..] {
                [only] => self.value_of(only),
                _ => FilterValue::Nothing,
            },
            FilterOperand::Length(inner) => match self.value(inner, node)? {
                FilterValue::Text(text) => FilterValue::Number(text.chars().count() as f64),
                FilterValue::Node(node) => {
                    FilterValue::Number(self.json.children(node).count() as f64)
                }
                _ => FilterValue::Nothing,
            },
        })
    }

    fn value_of(&self, node: JsonNode) -> FilterValue {
        let text = || self.json.text(node).unwrap_or_default();
        match self.json.kind(node) {
            JsonKind::Null => FilterValue::Null,
            JsonKind::Boolean => FilterValue::Boolean(text() == "true"),
            JsonKind::Number => text().parse().map_or(FilterValue::Nothing, FilterValue::Number),
            JsonKind::Text => FilterValue::Text(text()),
            JsonKind::Array | JsonKind::Object => FilterValue::Node(node),
        }
    }

    fn compare(
        &mut self,
        left: &FilterValue,
        comparison: Comparison,
        right: &FilterValue,
    ) -> Option<bool> {
        let order = match (left, right) {
            (FilterValue::Number(left), FilterValue::Number(right)) => left.partial_cmp(right),
            (FilterValue::Text(left), FilterValue::Text(right)) => Some(left.cmp(right)),
            (FilterValue::Node(left), FilterValue::Node(right)) => {
                self.equal(*left, *right)?.then_some(Ordering::Equal)
            }
            _ => (left == right).then_some(Ordering::Equal),
        };
        Some(match comparison {
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::NotEqual => order != Some(Ordering::Equal),
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        })
    }

    /// Whether two nodes hold the same values; the order of names in an object has no meaning.
    fn equal(&mut self, left: JsonNode, right: JsonNode) -> Option<bool> {
        let json = self.json;
        let mut pairs = vec![(left, right)];
        while let Some((left, right)) = pairs.pop() {
            let count = json.children(left).count();
            self.spend(1 + count)?;
            if json.kind(left) != json.kind(right) || count != json.children(right).count() {
                return Some(false);
            }
            match json.kind(left) {
                JsonKind::Array => pairs.extend(json.children(left).zip(json.children(right))),
                JsonKind::Object => {
                    for child in json.children(left) {
                        self.spend(count)?;
                        let Some(twin) = json.member(right, &json.name(child)) else {
                            return Some(false);
                        };
                        pairs.push((child, twin));
                    }
                }
                _ if self.value_of(left) != self.value_of(right) => return Some(false),
                _ => {}
            }
        }
        Some(true)
    }
}
