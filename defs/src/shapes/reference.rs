//! The shapes as a page for people.

use super::{MappingShape, ValueShape};

/// The reference of the definition language, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Definitions: every key\n\n\
         Written from the program itself by `BLESS=1 cargo test -p spoonbill-defs shapes`; edits are \
         overwritten. [The guide](guide.md) shows how the keys are used together. For completion and \
         explanations in an editor, give it `spoonbill schema`.\n\n\
         Any value may hold `${NAME}` or `${NAME:-default}`, filled from the environment; `$${` is a \
         literal `${`. Values of variables whose names end in SECRET, TOKEN, PASSWORD or KEY are \
         never logged.\n",
    );
    for shape in MappingShape::all() {
        page.push_str(&section(shape));
    }
    page
}

fn section(shape: &MappingShape) -> String {
    let title = shape.what.trim_start_matches("an ").trim_start_matches("a ");
    let mut lines = vec![
        format!("\n## {}\n", capitalised(title)),
        format!("{}\n", shape.description),
        "| key | value | meaning |".to_owned(),
        "| --- | --- | --- |".to_owned(),
    ];
    lines.extend(shape.keys.iter().map(|key| {
        let needed = if key.required { " (required)" } else { "" };
        format!("| `{}`{needed} | {} | {} |", key.name, kind(&key.value), cell(key.description))
    }));
    if let Some((words, value)) = &shape.other_keys {
        lines.push(format!("| ... | {} | {} |", kind(value), cell(words)));
    }
    if !shape.example.is_empty() {
        lines.push(format!("\n```yaml\n{}\n```", shape.example));
    }
    lines.join("\n") + "\n"
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A bar would end the cell.
fn cell(words: &str) -> String {
    words.replace('|', "\\|")
}

fn kind(value: &ValueShape) -> String {
    match value {
        ValueShape::Text => "text".to_owned(),
        ValueShape::Scalar => "text, number or boolean".to_owned(),
        ValueShape::Whole => "whole number".to_owned(),
        ValueShape::Boolean => "`true` or `false`".to_owned(),
        ValueShape::Share => "share".to_owned(),
        ValueShape::Word(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        ValueShape::Of(shape) => link(shape),
        ValueShape::List(value) => format!("list of: {}", kind(value)),
        ValueShape::Named(value) => format!("names, each with: {}", kind(value)),
        ValueShape::Wrapped(key, shape) => format!("list of `{key}:` {}", link(shape)),
        ValueShape::Either(values) => {
            let kinds: Vec<_> = values.iter().map(kind).collect();
            kinds.join("; or ")
        }
    }
}

fn link(shape: &MappingShape) -> String {
    let title = shape.what.trim_start_matches("an ").trim_start_matches("a ").replace('`', "");
    format!("[{title}](#{})", title.replace(' ', "-"))
}
