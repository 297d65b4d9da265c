//! Reads records: blocks, fields, columns about the page, and expectations.

use super::mapping::{
    KeyReader, advised_text, boolean, check_name, mapping, quoted, sequence, text,
};
use super::selectors;
use crate::findings::Findings;
use crate::records::{Expect, Field, FieldType, PageColumn, Query, Record, Separators, TextKind};
use crate::shapes;
use crate::text::{Span, Text};
use crate::yaml::{ScalarType, YamlEntry, YamlKind, YamlNode, shorten};

/// The keys of a record. They may stand in a group, a task or a dataDef.
pub(super) const RECORD_KEYS: [&str; 4] = ["block", "fields", "columns", "expect"];

/// The content of a block, which decides how a field is read.
#[derive(Clone, Copy, PartialEq)]
enum BlockContent {
    /// HTML elements, or the whole page.
    Html,
    /// JSON inside an element of the page.
    Element,
    /// JSON that is the whole page.
    Page,
}

/// The record of a mapping with `fields`. Without `fields`, it has no columns.
pub(super) fn record(keys: &KeyReader<'_>, findings: &mut Findings<'_>) -> Record {
    let block = keys.get("block").and_then(|node| block(node, findings));
    let inside = match &block {
        Some(Query { json: Some(_), css: None, xpath: None, .. }) => BlockContent::Page,
        Some(Query { json: Some(_), .. }) => BlockContent::Element,
        _ => BlockContent::Html,
    };
    let columns = keys.get("columns").map(|node| columns(node, findings)).unwrap_or_default();
    let entries = keys.get("fields").and_then(|node| {
        let entries = mapping("`fields`", node, findings)?;
        if entries.is_empty() {
            findings.error(
                node.at,
                "`fields` is empty",
                "write a column and its selector: `title: h1`",
            );
        }
        Some(entries)
    });
    let fields = entries.unwrap_or_default().iter().map(|entry| field(entry, inside, findings));
    let fields: Vec<Field> = fields.collect();
    for field in &fields {
        let twin = columns.iter().find(|(column, _)| column.name() == field.name.text);
        if let Some((_, at)) = twin {
            findings.error(
                field.name.at,
                format!("two columns have the name `{}`", field.name.text),
                format!("`columns` on line {} has it too; rename the field", at.line),
            );
        }
    }
    if keys.get("fields").is_none() && !keys.misspells(&["fields"]) {
        for key in ["block", "columns", "expect"] {
            if let Some(entry) = keys.entry(key) {
                findings.error(
                    entry.key.at,
                    format!("`{key}` has no effect without `fields`"),
                    "add `fields:` with the columns",
                );
            }
        }
    }
    Record { block, columns: columns.into_iter().map(|(column, _)| column).collect(), fields }
}

fn block(node: &YamlNode, findings: &mut Findings<'_>) -> Option<Query> {
    if matches!(node.kind, YamlKind::Scalar(..)) {
        let advice = "write a selector, or remove `block` to make the whole page one row";
        let css = non_blank("block", advised_text("block", node, advice, findings)?, findings)?;
        if !selectors::check_element(&css, findings) {
            return None;
        }
        return Some(Query { css: Some(css), ..Query::default() });
    }
    let keys = KeyReader::new(&shapes::BLOCK, node.at, node, findings)?;
    let query = Query {
        css: keys.filled_text("selector", findings),
        xpath: keys.filled_text("xpath", findings),
        json: keys.filled_text("json", findings),
        ..Query::default()
    };
    one_of(&keys, &["selector", "xpath"], findings);
    if query == Query::default() && keys.entries().is_empty() {
        findings.error(
            node.at,
            "a block needs `selector`, `xpath` or `json`",
            "write a selector, or remove `block` to make the whole page one row",
        );
        return None;
    }
    Some(query)
}

fn columns(node: &YamlNode, findings: &mut Findings<'_>) -> Vec<(PageColumn, Span)> {
    let nodes = sequence("columns", "url, fetched_at", node, findings).unwrap_or_default();
    let mut columns: Vec<(PageColumn, Span)> = Vec::new();
    for node in nodes {
        let Some(name) = text("an entry of columns", node, findings) else { continue };
        let Some(column) = keyword(&name, &PageColumn::ALL, "there is no column", findings) else {
            continue;
        };
        if columns.iter().any(|(known, _)| *known == column) {
            findings.error(
                name.at,
                format!("the column `{}` is listed twice", name.text),
                "keep one of the two",
            );
            continue;
        }
        columns.push((column, name.at));
    }
    columns
}

/// Names of types in other languages, and the names here.
const OTHER_TYPES: [(&str, &str); 12] = [
    ("number", "decimal"),
    ("float", "decimal"),
    ("double", "decimal"),
    ("money", "decimal"),
    ("price", "decimal"),
    ("int", "integer"),
    ("string", "text"),
    ("str", "text"),
    ("bool", "boolean"),
    ("datetime", "date"),
    ("link", "url"),
    ("uri", "url"),
];

/// The value of a keyword. An unknown keyword is reported with the known ones.
pub(super) fn keyword<T: Copy>(
    text: &Text,
    known: &[(T, &'static str)],
    problem: &str,
    findings: &mut Findings<'_>,
) -> Option<T> {
    if let Some((meaning, _)) = known.iter().find(|(_, name)| *name == text.text) {
        return Some(*meaning);
    }
    let names: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
    let other = OTHER_TYPES.iter().find(|(word, name)| *word == text.text && names.contains(name));
    let help = if let Some((_, name)) = other {
        format!("write `{name}`")
    } else {
        let otherwise = format!("write one of {}", quoted(&names));
        findings.did_you_mean(&text.text, names, otherwise)
    };
    findings.error(text.at, format!("{problem} `{}`", text.text), help);
    None
}

fn field(entry: &YamlEntry, inside: BlockContent, findings: &mut Findings<'_>) -> Field {
    check_name("a field", &entry.key, findings);
    let mut field = Field { name: entry.key.clone(), ..Field::default() };
    let node = &entry.value;
    if !matches!(node.kind, YamlKind::Mapping(_)) {
        let selector = match &node.kind {
            YamlKind::Sequence(nodes) => {
                let texts = nodes.iter().filter_map(|node| {
                    text(&format!("an entry of {}", entry.key.text), node, findings)
                });
                texts.collect()
            }
            YamlKind::Scalar(words, _) => {
                let advice = match node.describe().as_str() {
                    "empty" => "write a selector after the colon, such as `h1`".to_owned(),
                    _ => format!(
                        "write a selector, such as `h1`; a constant is `{{ value: {} }}`",
                        shorten(words)
                    ),
                };
                Vec::from_iter(advised_text(&entry.key.text, node, &advice, findings))
            }
            YamlKind::Mapping(_) => Vec::new(),
        };
        if matches!(&node.kind, YamlKind::Sequence(nodes) if nodes.is_empty()) {
            findings.error(node.at, format!("`{}` is empty", entry.key.text), "write a selector");
        }
        let texts =
            selector.into_iter().filter_map(|text| non_blank(&entry.key.text, text, findings));
        let texts: Vec<Text> = texts.collect();
        let queries = texts.into_iter().filter_map(|text| plain(text, inside, findings));
        field.queries = queries.collect();
        assume_value(&mut field);
        return field;
    }
    let Some(keys) = KeyReader::new(&shapes::FIELD, entry.key.at, node, findings) else {
        assume_value(&mut field);
        return field;
    };
    field.queries = queries(&keys, findings);
    check_inside(&keys, inside, findings);
    field.value = keys.scalar("value", findings);
    field.text = text_kind(&keys, &field.queries, findings);
    field.all = joiner(&keys, findings);
    field.regex = keys.filled_text("regex", findings);
    field.script = keys.filled_text("script", findings);
    field.kind = field_type(&keys, findings);
    field.default = keys.scalar("default", findings);
    field.required =
        keys.get("required").and_then(|node| boolean("required", node, findings)).unwrap_or(false);
    check_sources(&keys, findings);
    if field.script.is_none() {
        assume_value(&mut field);
    }
    field
}

/// Gives a field without a query a constant value. Its broken query was reported, so no later check
/// reports it as missing.
fn assume_value(field: &mut Field) {
    if field.queries.is_empty() {
        field.value.get_or_insert_default();
    }
}

fn plain(text: Text, inside: BlockContent, findings: &mut Findings<'_>) -> Option<Query> {
    if inside != BlockContent::Html {
        return Some(Query { json: Some(text), ..Query::default() });
    }
    css(&text, findings)
}

/// Reports keys that search for elements on a JSON page.
fn check_inside(keys: &KeyReader<'_>, inside: BlockContent, findings: &mut Findings<'_>) {
    // With JSON inside an element, a field can still search the page.
    if inside != BlockContent::Page {
        return;
    }
    for YamlEntry { key, .. } in keys.entries_of(&["selector", "xpath", "jsonld"]) {
        findings.error(
            key.at,
            format!("`{}` finds nothing on a page that is JSON", key.text),
            "write `json: ...`; `$` is the block",
        );
    }
}

/// The query of a selector with an optional attribute at its end.
pub(super) fn css(text: &Text, findings: &mut Findings<'_>) -> Option<Query> {
    let (selector, _) = split_attribute(&text.text);
    selectors::check_at(text, selector.trim(), findings).then(|| split(text))
}

fn split(text: &Text) -> Query {
    let (selector, attribute) = split_attribute(&text.text);
    let place =
        |part: &str, from: &str| Text { text: part.to_owned(), at: part_place(text, from, part) };
    let attribute = attribute.map(|name| place(name, &text.text));
    let selector = selector.trim();
    let css = (!matches!(selector, "" | ".")).then(|| place(selector, &text.text));
    Query { css, attribute, ..Query::default() }
}

/// The position of a part of a text. It is exact only for a text without quotes on one line.
fn part_place(text: &Text, whole: &str, part: &str) -> Span {
    let offset = whole.find(part).map_or(0, |byte| whole[..byte].chars().count() as u32);
    let plain = text.at.width as usize == whole.chars().count();
    if !plain || offset == 0 {
        return text.at;
    }
    Span { column: text.at.column + offset, width: part.chars().count() as u32, ..text.at }
}

/// Splits `a.x attribute: href` and `a.x @href` into the selector and `href`.
fn split_attribute(text: &str) -> (&str, Option<&str>) {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'))
    };
    let classic = text
        .rsplit_once(" attribute: ")
        .or_else(|| text.strip_prefix("attribute: ").map(|name| ("", name)));
    let short = text.rsplit_once(" @").or_else(|| text.strip_prefix('@').map(|name| ("", name)));
    for (selector, name) in classic.into_iter().chain(short) {
        if is_name(name.trim()) {
            return (selector, Some(name.trim()));
        }
    }
    (text, None)
}

fn queries(keys: &KeyReader<'_>, findings: &mut Findings<'_>) -> Vec<Query> {
    one_of(keys, &["selector", "xpath", "jsonld", "value"], findings);
    let json = keys.filled_text("json", findings);
    if let Some(path) = keys.filled_text("jsonld", findings) {
        return vec![Query { jsonld: Some(path), json, ..Query::default() }];
    }
    let selectors = keys.text_or_list("selector", findings).unwrap_or_default();
    let selectors = selectors.into_iter().filter_map(|text| {
        non_blank("selector", text, findings).and_then(|text| css(&text, findings))
    });
    let mut queries: Vec<Query> = selectors.collect();
    let paths = keys.text_or_list("xpath", findings).unwrap_or_default();
    let paths = paths.into_iter().filter_map(|text| non_blank("xpath", text, findings));
    queries.extend(paths.map(|text| Query { xpath: Some(text), ..Query::default() }));
    if queries.is_empty() && json.is_some() {
        queries.push(Query::default());
    }
    for query in &mut queries {
        query.json.clone_from(&json);
    }
    queries
}

/// Returns the text unless it is blank or in typographic quotes, which is reported.
fn non_blank(key: &str, text: Text, findings: &mut Findings<'_>) -> Option<Text> {
    if text.text.trim().is_empty() {
        findings.error(text.at, format!("`{key}` is empty"), "write a query");
        return None;
    }
    selectors::is_plain(&text, findings).then_some(text)
}

/// Reports keys that exclude each other.
pub(super) fn one_of(keys: &KeyReader<'_>, names: &[&str], findings: &mut Findings<'_>) {
    let mut entries = keys.entries_of(names);
    if let (Some(first), Some(second)) = (entries.next(), entries.next()) {
        findings.error(
            second.key.at,
            format!("`{}` and `{}` cannot be used together", first.key.text, second.key.text),
            "keep one of the two",
        );
    }
}

fn check_sources(keys: &KeyReader<'_>, findings: &mut Findings<'_>) {
    let sources = ["selector", "xpath", "json", "jsonld", "value", "script"];
    if !sources.iter().any(|key| keys.get(key).is_some()) && !keys.has_unknown_keys() {
        findings.error(
            keys.at(),
            "a field needs a query or a value",
            "add `selector`, `xpath`, `json`, `jsonld`, `script` or `value`",
        );
    }
    if let (Some(_), Some(node)) = (keys.get("default"), keys.get("required")) {
        findings.warn(
            node.at,
            "`required` has no effect with `default`: the cell always has a value",
            "keep one of the two",
        );
    }
}

fn text_kind(keys: &KeyReader<'_>, queries: &[Query], findings: &mut Findings<'_>) -> TextKind {
    let kind = keys.text("text", findings);
    let entry = keys.entry("text");
    let beside = ["json", "jsonld", "value"].into_iter().find(|key| keys.get(key).is_some());
    let attributes = !queries.is_empty() && queries.iter().all(|query| query.attribute.is_some());
    let idle = beside.map(|key| format!("`{key}`"));
    let idle = idle.or_else(|| attributes.then(|| "an attribute".to_owned()));
    if let (Some(entry), Some(idle)) = (entry, idle) {
        let message = format!("`text` has no effect with {idle}");
        findings.error(entry.key.at, message, "remove it: it applies to elements only");
    }
    kind.and_then(|text| keyword(&text, &TextKind::ALL, "`text` has no option", findings))
        .unwrap_or_default()
}

fn joiner(keys: &KeyReader<'_>, findings: &mut Findings<'_>) -> Option<Text> {
    let node = keys.get("all")?;
    match node.kind {
        YamlKind::Scalar(_, ScalarType::Boolean(false)) => None,
        YamlKind::Scalar(_, ScalarType::Boolean(true)) => {
            Some(Text { text: ", ".to_owned(), at: node.at })
        }
        _ => text("all", node, findings),
    }
}

fn field_type(keys: &KeyReader<'_>, findings: &mut Findings<'_>) -> FieldType {
    let names = FieldType::NAMES.map(|name| (name, name));
    let advice = format!("write one of {}", quoted(&FieldType::NAMES));
    let node = keys.get("type");
    let text = node.and_then(|node| advised_text("type", node, &advice, findings));
    let known = text.and_then(|text| keyword(&text, &names, "there is no type", findings));
    let is_valid = known.is_some() || node.is_none();
    let name = known.unwrap_or("text");
    let separators = Separators {
        decimal: keys.filled_text("decimal", findings),
        thousands: keys.text("thousands", findings),
    };
    let true_when = keys.text_or_list("trueWhen", findings).unwrap_or_default();
    let input = keys.text_or_list("in", findings).unwrap_or_default();
    let output = keys.filled_text("out", findings);
    for (key, needed, fits) in [
        ("decimal", "decimal", matches!(name, "integer" | "decimal")),
        ("thousands", "decimal", matches!(name, "integer" | "decimal")),
        ("trueWhen", "boolean", name == "boolean"),
        ("in", "date", name == "date"),
        ("out", "date", name == "date"),
    ] {
        if let Some(entry) = keys.entry(key)
            && is_valid
            && !fits
        {
            findings.error(
                entry.key.at,
                format!("`{key}` has no effect on this type"),
                format!("add `type: {needed}`, or remove it"),
            );
        }
    }
    match name {
        "integer" => FieldType::Integer(separators),
        "decimal" => FieldType::Decimal(separators),
        "boolean" => FieldType::Boolean { true_when },
        "date" => FieldType::Date { input, output },
        "url" => FieldType::Url,
        _ => FieldType::Text,
    }
}

/// The expectations of a mapping with `expect`.
pub(super) fn expect(
    keys: &KeyReader<'_>,
    record: &Record,
    findings: &mut Findings<'_>,
) -> Option<Expect> {
    let node = keys.get("expect")?;
    let keys = KeyReader::new(&shapes::EXPECT, node.at, node, findings)?;
    let mut expect = Expect {
        min_rows: keys.index("minRows", findings).map(u64::from),
        max_rows: keys.index("maxRows", findings).map(u64::from),
        ..Expect::default()
    };
    if let (Some(min), Some(max)) = (expect.min_rows, expect.max_rows)
        && min > max
    {
        findings.error(node.at, "`minRows` is greater than `maxRows`", "swap the two numbers");
    }
    for entry in field_entries(&keys, "fill", record, findings) {
        match share(&entry.value) {
            Some(share) => expect.fill.push((entry.key.clone(), share)),
            None => findings.error(
                entry.value.at,
                format!("a share must be between 0 and 1, but it is {}", entry.value.describe()),
                "write `95%` or `0.95`",
            ),
        }
    }
    for entry in field_entries(&keys, "pattern", record, findings) {
        if let Some(pattern) = text("pattern", &entry.value, findings) {
            expect.pattern.push((entry.key.clone(), pattern));
        }
    }
    Some(expect)
}

/// The entries below a key that maps field names to values.
fn field_entries<'n>(
    keys: &KeyReader<'n>,
    key: &str,
    record: &Record,
    findings: &mut Findings<'_>,
) -> Vec<&'n YamlEntry> {
    let entries = keys.get(key).and_then(|node| mapping(&format!("`{key}`"), node, findings));
    let mut known = Vec::new();
    for entry in entries.unwrap_or_default() {
        if record.fields.iter().any(|field| field.name == entry.key) {
            known.push(entry);
            continue;
        }
        let names = record.fields.iter().map(|field| field.name.as_str());
        let help = findings.did_you_mean(&entry.key.text, names, "write the name of a field");
        findings.error(entry.key.at, format!("there is no field `{}`", entry.key.text), help);
    }
    known
}

/// Reads `95%` or `0.95` as millionths.
fn share(node: &YamlNode) -> Option<u32> {
    let YamlKind::Scalar(text, _) = &node.kind else {
        return None;
    };
    let text = text.trim();
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse::<f64>().ok()?,
    };
    (0.0..=1.0).contains(&share).then(|| (share * 1e6).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_stands_at_the_end_of_a_selector() {
        for (text, expected) in [
            ("a.x @href", ("a.x", Some("href"))),
            ("a.x attribute: data-id", ("a.x", Some("data-id"))),
            ("@data-id", ("", Some("data-id"))),
            ("a[title=' @x']", ("a[title=' @x']", None)),
            ("h1", ("h1", None)),
            ("img @xlink:href", ("img", Some("xlink:href"))),
        ] {
            assert_eq!(split_attribute(text), expected, "{text}");
        }
    }

    #[test]
    fn shares_are_percentages_or_fractions() {
        let node = |text: &str| YamlNode {
            at: Span::default(),
            kind: YamlKind::Scalar(text.to_owned(), ScalarType::Text),
        };
        assert_eq!(share(&node("95%")), Some(950_000));
        assert_eq!(share(&node("0.5")), Some(500_000));
        assert_eq!(share(&node("95")), None);
        assert_eq!(share(&node("most")), None);
    }
}
