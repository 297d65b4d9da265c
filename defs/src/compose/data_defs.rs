//! Reads the section `dataDefs` and fills in defaults for facts, ranges and orders.

use super::links;
use super::mapping::{KeyReader, check_name, sequence, wrapped};
use super::records::{self, RECORD_KEYS};
use crate::data_defs::{DataDef, FilterSubject, IndexRange, Item, ItemFilter, ItemQuery};
use crate::findings::Findings;
use crate::follow::Follow;
use crate::records::Record;
use crate::shapes;
use crate::text::{Span, Text};
use crate::yaml::{YamlEntry, YamlKind, YamlNode};

/// A data definition and its follow rules, which apply to the tasks that use it.
pub(super) type DataDefWithLinks = (DataDef, Vec<Follow>);

/// Reads all data definitions. A broken one keeps its name, so that references to it are valid.
pub(super) fn read(entries: &[YamlEntry], findings: &mut Findings<'_>) -> Vec<DataDefWithLinks> {
    let defs = entries.iter().map(|entry| {
        let keys = KeyReader::new(&shapes::DATA_DEF, entry.key.at, &entry.value, findings);
        let follow = keys.as_ref().map(|keys| links::follow(keys, &Text::default(), findings));
        let follow = follow.unwrap_or_default();
        (data_def(entry, keys, !follow.is_empty(), findings), follow)
    });
    defs.collect()
}

fn data_def(
    entry: &YamlEntry,
    fields: Option<KeyReader<'_>>,
    follows: bool,
    findings: &mut Findings<'_>,
) -> DataDef {
    check_name("a dataDef", &entry.key, findings);
    let mut def = DataDef { name: entry.key.clone(), ..DataDef::default() };
    let at = entry.key.at;
    let Some(fields) = fields else {
        return def;
    };
    let classic = ["query", "items", "dims", "facts"];
    let classic = fields.entries_of(&classic).next();
    if RECORD_KEYS.iter().any(|key| fields.get(key).is_some()) {
        let record = records::record(&fields, findings);
        def.expect = records::expect(&fields, &record, findings);
        def.record = Some(record);
        if let Some(classic) = classic {
            findings.error(
                classic.key.at,
                format!("`{}` and `fields` cannot be used together", classic.key.text),
                "keep `fields`, or the classic `query` and `items`; define two dataDefs if you need \
                 wanted",
            );
        }
        return def;
    }
    if classic.is_none() && !fields.has_misspelt_keys() {
        if !follows {
            findings.error(
                at,
                "a dataDef needs `fields`, or `query` and `items`",
                "add the columns: `fields: { title: h1 }`",
            );
        }
        def.record = Some(Record::default());
        return def;
    }
    if let Some(node) = fields.required("query", findings) {
        def.query = query(node, findings);
    }
    if let Some(node) = fields.required("items", findings) {
        def.items = items("items", node, findings);
    }
    if let Some(node) = fields.get("dims") {
        def.dims = items("dims", node, findings);
    }
    def.facts = match fields.get("facts") {
        Some(node) => items("facts", node, findings),
        None => vec![Item { name: Text::new("fact"), order: Some(1), ..Item::default() }],
    };
    def
}

fn query(node: &YamlNode, findings: &mut Findings<'_>) -> ItemQuery {
    let Some(fields) = KeyReader::new(&shapes::QUERY, node.at, node, findings) else {
        return ItemQuery::default();
    };
    ItemQuery {
        block: fields.required_text("block", findings).unwrap_or_default(),
        selector: fields.text("selector", findings),
    }
}

fn items(key: &str, node: &YamlNode, findings: &mut Findings<'_>) -> Vec<Item> {
    let Some(nodes) = sequence(key, "item: { name: ... }", node, findings) else {
        return Vec::new();
    };
    if nodes.is_empty() {
        findings.error(
            node.at,
            format!("`{key}` is empty"),
            if key == "items" {
                "list at least one `item: { name: ... }`"
            } else {
                "list at least one `item: { name: ... }`, or remove the key"
            },
        );
    }
    let entries = (1..).zip(nodes).filter_map(|(position, node)| {
        let mut item = item(key, wrapped(key, "item", node, findings)?, findings)?;
        item.order.get_or_insert(position);
        Some(item)
    });
    entries.collect()
}

fn item(list: &str, node: &YamlNode, findings: &mut Findings<'_>) -> Option<Item> {
    let fields = KeyReader::new(&shapes::ITEM, node.at, node, findings)?;
    let name = fields.required_filled_text("name", findings).unwrap_or_default();
    let range = range(&fields, &name, findings);
    let item = Item {
        name,
        value: fields.text("value", findings),
        match_text: fields.text("match", findings),
        script: fields.text("script", findings),
        selector: fields.text("selector", findings),
        range,
        break_after: fields.texts("breakAfter", findings),
        filters: filters(&fields, findings),
        prefix: fields.texts("prefix", findings).unwrap_or_default(),
        link_group: fields.text("linkGroup", findings),
        link_break_on: fields.texts("linkBreakOn", findings).unwrap_or_default(),
        order: fields.index("order", findings),
    };
    let idle: &[&str] = match list {
        "items" => &[],
        "dims" => &["linkGroup", "linkBreakOn"],
        _ => &["selector", "linkGroup", "linkBreakOn"],
    };
    for key in idle {
        if let Some(entry) = fields.entry(key) {
            let help = match *key {
                "selector" => "the `selector` of the query selects the fact",
                _ => "only `items` create links; move the entry there",
            };
            findings.warn(entry.key.at, format!("`{key}` has no effect in `{list}`"), help);
        }
    }
    Some(item)
}

fn range(fields: &KeyReader<'_>, name: &Text, findings: &mut Findings<'_>) -> IndexRange {
    let index = fields.index("index", findings);
    if let Some(node) = fields.get("indexRange") {
        if let (Some(_), Some(at)) = (index, fields.get("index").map(|node| node.at)) {
            findings.warn(at, "`index` has no effect with `indexRange`", "keep one of the two");
        }
        let parsed = fields.text("indexRange", findings);
        let range = parsed.map(|text| parse_range(&text, findings));
        let range = range.unwrap_or_default();
        if range.last.is_none() {
            check_open(fields, name, node.at, findings);
        }
        return range;
    }
    let first = index.unwrap_or(1);
    if let Some(node) = fields.get("breakAfter") {
        check_open(fields, name, node.at, findings);
        return IndexRange { first, last: None };
    }
    IndexRange { first, last: Some(first) }
}

/// Warns of an open range that never ends.
fn check_open(fields: &KeyReader<'_>, name: &Text, at: Span, findings: &mut Findings<'_>) {
    let names_nothing = fields
        .get("breakAfter")
        .is_none_or(|node| matches!(&node.kind, YamlKind::Sequence(nodes) if nodes.is_empty()));
    let constant = ["value", "match"].into_iter().find(|key| fields.get(key).is_some());
    if let Some(key) = constant {
        // The parser's plan reports the same at the name. The same position is reported only once.
        findings.warn(
            if name.at.line == 0 { at } else { name.at },
            format!("the range never ends: with `{key}`, no value of the page can end it"),
            "write both ends, such as `indexRange: 1-20`",
        );
    } else if names_nothing {
        findings.warn(
            at,
            "the range never ends: `breakAfter` lists no value",
            "write both ends, or the last value: `breakAfter: [ \"...\" ]`",
        );
    }
}

/// Reads `a-b`, `a-`, `a` or `-`.
fn parse_range(text: &Text, findings: &mut Findings<'_>) -> IndexRange {
    let mut parts = text.text.split('-');
    let first = parts.next().unwrap_or_default();
    let second = parts.next();
    let number = |part: &str| {
        let digits = !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
        let number = part.parse::<u32>().ok();
        number.filter(|number| digits && i32::try_from(*number).is_ok())
    };
    let range = match (number(first), second) {
        (Some(first), None) => Some((first, Some(first))),
        (Some(first), Some("")) => Some((first, None)),
        (Some(first), Some(second)) => number(second).map(|second| (first, Some(second))),
        (None, _) if text.text == "-" => Some((0, Some(0))),
        (None, _) => None,
    };
    if range.is_some() && parts.next().is_some() {
        findings.warn(
            text.at,
            format!(
                "the range `{}` has a second dash; the text from there on is ignored",
                text.text
            ),
            "write two numbers, such as `2-6`",
        );
    }
    match range {
        Some((first, Some(last))) => {
            IndexRange { first: first.min(last), last: Some(first.max(last)) }
        }
        Some((first, None)) => IndexRange { first, last: None },
        None => {
            findings.error(
                text.at,
                format!("`{}` is not a range of indexes", crate::yaml::shorten(&text.text)),
                "write `2-6`, or `5-` for a range that `breakAfter` ends",
            );
            IndexRange::default()
        }
    }
}

fn filters(fields: &KeyReader<'_>, findings: &mut Findings<'_>) -> Vec<ItemFilter> {
    let Some(node) = fields.get("filters") else {
        return Vec::new();
    };
    let nodes = sequence("filters", "filter: { type: value, pattern: ... }", node, findings)
        .unwrap_or_default();
    let filters = nodes.iter().filter_map(|node| {
        let node = wrapped("filters", "filter", node, findings)?;
        let fields = KeyReader::new(&shapes::FILTER, node.at, node, findings)?;
        let on = fields.required_text("type", findings);
        let pattern = fields.required_text("pattern", findings);
        Some(ItemFilter { on: filter_on(&on?, findings), pattern: pattern? })
    });
    filters.collect()
}

fn filter_on(text: &Text, findings: &mut Findings<'_>) -> FilterSubject {
    match text.text.as_str() {
        "match" => FilterSubject::Match,
        "value" => FilterSubject::Value,
        other => {
            let help = findings.did_you_mean(other, ["value", "match"], "write `value` or `match`");
            findings.warn(
                text.at,
                format!("there is no filter type `{other}`, so `value` is used"),
                help,
            );
            FilterSubject::Value
        }
    }
}
