//! Writes the mappings of the definition language as a Markdown page.

use super::{MappingShape, ValueShape};

/// The reference of the definition language, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Reference: definition keys\n\n\
         This page lists every key of a definition file. [The guide](guide.md) shows how to use them. \
         An editor completes and explains the keys with the schema that `spoonbill schema` prints.\n\n\
         Any value may contain `${NAME}` or `${NAME:-default}`, which environment variables replace. \
         `$${` is a literal `${`. If a name ends in SECRET, TOKEN, PASSWORD or KEY, its value is never \
         logged.\n\n\
         A test generates this page: `BLESS=1 cargo test -p spoonbill-defs shapes`. Edits are lost.\n",
    );
    for shape in MappingShape::all() {
        page.push_str(&section(shape));
    }
    page
}

fn section(shape: &MappingShape) -> String {
    let mut lines = vec![
        format!("\n## {}\n", capitalised(title(shape))),
        format!("{}\n", shape.description),
        "| key | value | meaning |".to_owned(),
        "| --- | --- | --- |".to_owned(),
    ];
    lines.extend(shape.keys.iter().map(|key| {
        let needed = if key.required { " (required)" } else { "" };
        let (value, meaning) = (value_type(&key.value), cell(key.description));
        format!("| `{}`{needed} | {value} | {meaning} |", key.name)
    }));
    if let Some((description, value)) = &shape.other_keys {
        lines.push(format!("| ... | {} | {} |", value_type(value), cell(description)));
    }
    if !shape.example.is_empty() {
        lines.push(format!("\n```yaml\n{}\n```", shape.example));
    }
    lines.join("\n") + "\n"
}

/// The name of a mapping without its article.
fn title(shape: &MappingShape) -> &'static str {
    shape.what.trim_start_matches("an ").trim_start_matches("a ")
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Escapes `|`, which would end the table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn value_type(value: &ValueShape) -> String {
    match value {
        ValueShape::Text => "text".to_owned(),
        ValueShape::Scalar => "text, number or boolean".to_owned(),
        ValueShape::Whole => "whole number".to_owned(),
        ValueShape::Boolean => "`true` or `false`".to_owned(),
        ValueShape::Share => "percentage or number from 0 to 1".to_owned(),
        ValueShape::Word(words) => {
            alternatives(&words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>())
        }
        ValueShape::Of(shape) => link(shape),
        ValueShape::List(value) => format!("list of {}", value_type(value)),
        ValueShape::Named(value) => format!("names, each with {}", value_type(value)),
        ValueShape::Wrapped(key, shape) => format!("list of `{key}:` {}", link(shape)),
        // The list repeats the single values.
        ValueShape::Either([single @ .., ValueShape::List(_)]) => {
            format!(
                "{}, or a list",
                alternatives(&single.iter().map(value_type).collect::<Vec<_>>())
            )
        }
        ValueShape::Either(values) => {
            alternatives(&values.iter().map(value_type).collect::<Vec<_>>())
        }
    }
}

/// Joins values to `a, b or c`.
fn alternatives(values: &[String]) -> String {
    match values {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => values.concat(),
    }
}

fn link(shape: &MappingShape) -> String {
    let title = title(shape).replace('`', "");
    format!("[{title}](#{})", title.replace(' ', "-").to_lowercase())
}
