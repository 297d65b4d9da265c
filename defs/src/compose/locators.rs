//! Reads the section `locatorGroups` and the sources of short groups.

use std::collections::HashMap;

use super::links;
use super::mapping::{KeyReader, check_name, sequence};
use super::sections::Section;
use crate::findings::Findings;
use crate::locators::{Locator, LocatorGroup};
use crate::shapes;
use crate::text::Span;
use crate::yaml::{YamlEntry, YamlKind, YamlNode};

/// Reads the section `locatorGroups`. Sitemaps are read later, with the tasks that load them.
pub(super) fn read(section: &Section, findings: &mut Findings<'_>) -> Vec<LocatorGroup> {
    if let (Some(at), true, false) = (section.at, section.entries.is_empty(), findings.incomplete) {
        findings.error(
            at,
            "there are no locators, so there is nothing to load",
            "add a group: `myGroup: { locators: [ { name: ..., url: ... } ] }`",
        );
    }
    section.entries.iter().map(|entry| group(entry, findings)).collect()
}

fn group(entry: &YamlEntry, findings: &mut Findings<'_>) -> LocatorGroup {
    check_name("a locator group", &entry.key, findings);
    let at = entry.key.at;
    let empty = LocatorGroup { name: entry.key.clone(), ..LocatorGroup::default() };
    let Some(keys) = KeyReader::new(&shapes::LOCATOR_GROUP, at, &entry.value, findings) else {
        return empty;
    };
    if !has_sources(&keys) {
        // Of the three keys, the message names the classic one.
        keys.required("locators", findings);
        return empty;
    }
    LocatorGroup { name: entry.key.clone(), ..sources(&keys, findings) }
}

/// Whether a mapping has a source of pages.
pub(super) fn has_sources(keys: &KeyReader<'_>) -> bool {
    ["locators", "urls", "sitemap"].iter().any(|key| keys.get(key).is_some())
}

/// The locators and sources of a mapping, as a group without a name.
pub(super) fn sources(keys: &KeyReader<'_>, findings: &mut Findings<'_>) -> LocatorGroup {
    let mut locators = keys.get("locators").map(|list| listed(list, findings));
    let (plain, sources) = links::urls(keys, findings);
    locators.get_or_insert_default().extend(plain);
    let locators = locators.unwrap_or_default();
    let start_sequence = keys.index("startSequence", findings).unwrap_or_default();
    LocatorGroup { locators, sources, start_sequence, ..LocatorGroup::default() }
}

fn listed(list: &YamlNode, findings: &mut Findings<'_>) -> Vec<Locator> {
    let nodes = sequence("locators", "{ name: ..., url: ... }", list, findings);
    if nodes.is_some_and(<[YamlNode]>::is_empty) {
        findings.error(
            list.at,
            "`locators` is empty",
            "list at least one `{ name: ..., url: ... }`, or a bare address",
        );
    }
    let mut seen: HashMap<(String, String), Span> = HashMap::new();
    let mut locators = Vec::new();
    for node in nodes.unwrap_or_default() {
        let Some(locator) = locator(node, findings) else { continue };
        let pair = (locator.name.text.clone(), locator.url.text.clone());
        if let Some(first) = seen.insert(pair, node.at) {
            findings.error(
                node.at,
                format!("the group lists the locator `{}` with this url twice", locator.name.text),
                format!("line {} has it too; keep one of them", first.line),
            );
        }
        locators.push(locator);
    }
    locators
}

fn locator(node: &YamlNode, findings: &mut Findings<'_>) -> Option<Locator> {
    if matches!(node.kind, YamlKind::Scalar(..)) {
        let url = links::address("locators", node, findings)?;
        return Some(Locator { name: url.clone(), url });
    }
    let keys = KeyReader::new(&shapes::LOCATOR, node.at, node, findings)?;
    let (name, url) =
        (keys.required_filled_text("name", findings), keys.required_filled_text("url", findings));
    Some(Locator { name: name?, url: url? })
}
