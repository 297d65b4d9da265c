//! Reads where pages come from: links to follow, addresses, files of them, sitemaps.

use super::fields::{Fields, text};
use super::records::{css, one_of, word};
use crate::findings::Findings;
use crate::follow::{Follow, Scope, UrlSource};
use crate::locators::Locator;
use crate::records::Query;
use crate::shapes;
use crate::text::Text;
use crate::yaml::{Kind, Node};

/// The rules below `follow`; without a group of their own they lead to `group`.
pub(super) fn follow(keys: &Fields<'_>, group: &Text, findings: &mut Findings<'_>) -> Vec<Follow> {
    let Some(node) = keys.get("follow") else {
        return Vec::new();
    };
    let nodes = match &node.kind {
        Kind::Sequence(nodes) => nodes.as_slice(),
        Kind::Scalar(..) | Kind::Mapping(_) => std::slice::from_ref(node),
    };
    if nodes.is_empty() {
        findings.error(node.at, "`follow` is empty", "write a selector of links, or leave it out");
    }
    nodes.iter().filter_map(|node| rule(node, group, findings)).collect()
}

fn rule(node: &Node, group: &Text, findings: &mut Findings<'_>) -> Option<Follow> {
    let own = Text { text: group.text.clone(), at: node.at };
    if !matches!(node.kind, Kind::Mapping(_)) {
        let selector = text("follow", node, findings)?;
        if selector.text.trim().is_empty() {
            findings.error(node.at, "the selector is empty", "write a selector of links: `a.next`");
            return None;
        }
        return Some(Follow { query: css(&selector), group: own, ..Follow::default() });
    }
    let keys = Fields::new(&shapes::FOLLOW, node.at, node, findings)?;
    one_of(&keys, &["selector", "xpath"], findings);
    let selector = keys.filled_text("selector", findings).map(|text| css(&text));
    let xpath = keys
        .filled_text("xpath", findings)
        .map(|path| Query { xpath: Some(path), ..Query::default() });
    let query = selector.or(xpath);
    if query.is_none() && keys.get("selector").or(keys.get("xpath")).is_none() && !keys.has_slips()
    {
        findings.error(
            keys.at(),
            "a follow rule needs to know where the links are",
            "add `selector: a` or `xpath: //a`",
        );
    }
    let scope = keys.text("scope", findings);
    let scope = scope.and_then(|text| word(&text, &Scope::ALL, "there is no scope", findings));
    Some(Follow {
        query: query?,
        group: keys.filled_text("group", findings).unwrap_or(own),
        scope: scope.unwrap_or_default(),
        allow: keys.text_or_list("allow", findings).unwrap_or_default(),
        deny: keys.text_or_list("deny", findings).unwrap_or_default(),
        max_depth: keys.index("maxDepth", findings),
        max_pages: keys.index("maxPages", findings).map(u64::from),
    })
}

/// Addresses below `urls`: plain ones are locators, the rest are sources.
pub(super) fn urls(
    keys: &Fields<'_>,
    findings: &mut Findings<'_>,
) -> (Vec<Locator>, Vec<UrlSource>) {
    let (mut locators, mut sources) = (Vec::new(), Vec::new());
    let Some(node) = keys.get("urls") else {
        return (locators, sources);
    };
    let nodes = match &node.kind {
        Kind::Sequence(nodes) => nodes.as_slice(),
        Kind::Scalar(..) | Kind::Mapping(_) => std::slice::from_ref(node),
    };
    if nodes.is_empty() {
        findings.error(node.at, "`urls` is empty", "write at least one address");
    }
    for node in nodes {
        if matches!(node.kind, Kind::Mapping(_)) {
            let Some(keys) = Fields::new(&shapes::URL_FILE, node.at, node, findings) else {
                continue;
            };
            let (column, name) =
                (keys.filled_text("column", findings), keys.filled_text("name", findings));
            if let (None, Some(name)) = (&column, &name) {
                findings.error(
                    name.at,
                    "`name` is a column of a CSV file, which needs `column` too",
                    "add `column: ...` with the name of the column that holds the address",
                );
            }
            if let Some(file) = keys.name("file", findings) {
                sources.push(UrlSource::File { file, column, name });
            }
            continue;
        }
        let Some(url) = address("urls", node, findings) else { continue };
        if url.text.contains('[') {
            sources.push(UrlSource::Pattern(url));
        } else {
            locators.push(Locator { name: url.clone(), url });
        }
    }
    (locators, sources)
}

/// A text that is an address.
pub(super) fn address(key: &str, node: &Node, findings: &mut Findings<'_>) -> Option<Text> {
    let url = text(&format!("an entry of {key}"), node, findings)?;
    if url.text.trim().is_empty() {
        findings.error(url.at, "the address is empty", "write an address or the path of a file");
        return None;
    }
    Some(url)
}

/// The sitemaps below `sitemap`: each with the rule for its addresses.
pub(super) fn sitemaps(
    keys: &Fields<'_>,
    group: &Text,
    findings: &mut Findings<'_>,
) -> Vec<(Text, Follow)> {
    let Some(node) = keys.get("sitemap") else {
        return Vec::new();
    };
    let nodes = match &node.kind {
        Kind::Sequence(nodes) => nodes.as_slice(),
        Kind::Scalar(..) | Kind::Mapping(_) => std::slice::from_ref(node),
    };
    let group = Text { text: group.text.clone(), at: node.at };
    let rule = Follow { group, scope: Scope::Any, ..Follow::default() };
    let sitemaps = nodes.iter().filter_map(|node| {
        if !matches!(node.kind, Kind::Mapping(_)) {
            return Some((address("sitemap", node, findings)?, rule.clone()));
        }
        let keys = Fields::new(&shapes::SITEMAP, node.at, node, findings)?;
        let rule = Follow {
            allow: keys.text_or_list("allow", findings).unwrap_or_default(),
            deny: keys.text_or_list("deny", findings).unwrap_or_default(),
            max_pages: keys.index("maxPages", findings).map(u64::from),
            ..rule.clone()
        };
        Some((keys.name("url", findings)?, rule))
    });
    sitemaps.collect()
}
