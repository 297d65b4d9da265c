//! Decides whether a value passes a filter.

use std::cmp::Ordering;

use super::path::{Compare, Operand, Query, Test};
use super::walk::Walker;
use super::{JsonKind, JsonNode};

/// What one side of a comparison comes to.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Nothing,
    Null,
    Boolean(bool),
    Number(f64),
    Text(String),
    /// An array or object, as text.
    Whole(String),
}

/// Whether `node` passes; none when out of steps.
pub(super) fn holds(walker: &mut Walker<'_>, test: &Test, node: JsonNode) -> Option<bool> {
    Some(match test {
        Test::Any(tests) => {
            for test in tests {
                if holds(walker, test, node)? {
                    return Some(true);
                }
            }
            false
        }
        Test::All(tests) => {
            for test in tests {
                if !holds(walker, test, node)? {
                    return Some(false);
                }
            }
            true
        }
        Test::Not(test) => !holds(walker, test, node)?,
        Test::Exists(query) => !nodes(walker, query, node)?.is_empty(),
        Test::Compare(left, compare, right) => {
            let (left, right) = (value(walker, left, node)?, value(walker, right, node)?);
            compares(&left, *compare, &right)
        }
        Test::Matches(operand, regex) => match value(walker, operand, node)? {
            Value::Text(text) => regex.is_match(&text).unwrap_or(false),
            _ => false,
        },
    })
}

fn nodes(walker: &mut Walker<'_>, query: &Query, node: JsonNode) -> Option<Vec<JsonNode>> {
    let from = if query.relative { node } else { walker.root };
    walker.path(&query.path, from)
}

fn value(walker: &mut Walker<'_>, operand: &Operand, node: JsonNode) -> Option<Value> {
    Some(match operand {
        Operand::Null => Value::Null,
        Operand::Boolean(it) => Value::Boolean(*it),
        Operand::Number(it) => Value::Number(*it),
        Operand::Text(it) => Value::Text(it.clone()),
        Operand::Count(query) => Value::Number(nodes(walker, query, node)?.len() as f64),
        Operand::Query(query) => match *nodes(walker, query, node)? {
            [only] => of_node(walker, only),
            _ => Value::Nothing,
        },
        Operand::Length(inner) => length(walker, inner, node)?,
    })
}

fn of_node(walker: &Walker<'_>, node: JsonNode) -> Value {
    let json = walker.json;
    let text = json.text(node).unwrap_or_default();
    match json.kind(node) {
        JsonKind::Null => Value::Null,
        JsonKind::Boolean => Value::Boolean(text == "true"),
        JsonKind::Number => text.parse().map_or(Value::Nothing, Value::Number),
        JsonKind::Text => Value::Text(text),
        JsonKind::Array | JsonKind::Object => Value::Whole(text),
    }
}

/// The characters of a text, or the values of an array or object.
fn length(walker: &mut Walker<'_>, inner: &Operand, node: JsonNode) -> Option<Value> {
    if let Operand::Query(query) = inner
        && let [only] = *nodes(walker, query, node)?
        && matches!(walker.json.kind(only), JsonKind::Array | JsonKind::Object)
    {
        return Some(Value::Number(walker.json.children(only).count() as f64));
    }
    Some(match value(walker, inner, node)? {
        Value::Text(text) => Value::Number(text.chars().count() as f64),
        _ => Value::Nothing,
    })
}

fn compares(left: &Value, compare: Compare, right: &Value) -> bool {
    let order = match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.partial_cmp(right),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        _ => None,
    };
    match compare {
        Compare::Equal => left == right,
        Compare::NotEqual => left != right,
        Compare::Less => order == Some(Ordering::Less),
        Compare::Greater => order == Some(Ordering::Greater),
        Compare::LessOrEqual => left == right || order == Some(Ordering::Less),
        Compare::GreaterOrEqual => left == right || order == Some(Ordering::Greater),
    }
}
