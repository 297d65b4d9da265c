//! Reads the sources of pages: links to follow, addresses, files of addresses, sitemaps.

use super::mapping::{KeyReader, advised_text, text};
use super::records::{css, keyword, one_of};
use super::selectors;
use crate::findings::Findings;
use crate::follow::{Follow, FollowScope, UrlSource};
use crate::locators::Locator;
use crate::records::Query;
use crate::shapes;
use crate::text::Text;
use crate::yaml::{YamlKind, YamlNode, shorten};

/// The rules below `follow`. A rule without `group` leads to the given group.
pub(super) fn follow(
    keys: &KeyReader<'_>,
    group: &Text,
    findings: &mut Findings<'_>,
) -> Vec<Follow> {
    let Some((at, nodes)) = keys.one_or_many("follow") else {
        return Vec::new();
    };
    if nodes.is_empty() {
        findings.error(at, "`follow` is empty", "write a selector of links, or remove the key");
    }
    nodes.iter().filter_map(|node| rule(node, group, findings)).collect()
}

fn rule(node: &YamlNode, group: &Text, findings: &mut Findings<'_>) -> Option<Follow> {
    let own = Text { text: group.text.clone(), at: node.at };
    if !matches!(node.kind, YamlKind::Mapping(_)) {
        let advice = "write a selector of links: `follow: a.next`";
        let selector = advised_text("follow", node, advice, findings)?;
        if selector.text.trim().is_empty() {
            findings.error(node.at, "the selector is empty", "write a selector of links: `a.next`");
            return None;
        }
        let query = link(&selector, findings)?;
        return Some(Follow { query, group: own, ..Follow::default() });
    }
    let keys = KeyReader::new(&shapes::FOLLOW, node.at, node, findings)?;
    one_of(&keys, &["selector", "xpath"], findings);
    let selector = keys.filled_text("selector", findings);
    let selector = selector.and_then(|text| link(&text, findings));
    let xpath = keys
        .filled_text("xpath", findings)
        .map(|path| Query { xpath: Some(path), ..Query::default() });
    let query = selector.or(xpath);
    if query.is_none()
        && keys.get("selector").or(keys.get("xpath")).is_none()
        && !keys.has_unknown_keys()
    {
        findings.error(
            keys.at(),
            "a follow rule needs `selector` or `xpath`",
            "add `selector: a` or `xpath: //a`",
        );
    }
    let scope = keys.text("scope", findings);
    let scope =
        scope.and_then(|text| keyword(&text, &FollowScope::ALL, "there is no scope", findings));
    Some(Follow {
        query: query?,
        group: keys.filled_text("group", findings).unwrap_or(own),
        scope: scope.unwrap_or_default(),
        allow: patterns(&keys, "allow", findings),
        deny: patterns(&keys, "deny", findings),
        max_depth: keys.index("maxDepth", findings),
        max_pages: keys.index("maxPages", findings).map(u64::from),
    })
}

/// The query of a selector of links.
fn link(text: &Text, findings: &mut Findings<'_>) -> Option<Query> {
    let fits = selectors::is_plain(text, findings) && selectors::check_link(text, findings);
    if fits { css(text, findings) } else { None }
}

fn patterns(keys: &KeyReader<'_>, key: &str, findings: &mut Findings<'_>) -> Vec<Text> {
    let patterns = keys.text_or_list(key, findings).unwrap_or_default();
    selectors::check_patterns(&patterns, findings);
    patterns
}

/// The entries of `urls`: plain addresses are locators, ranges and files are sources.
pub(super) fn urls(
    keys: &KeyReader<'_>,
    findings: &mut Findings<'_>,
) -> (Vec<Locator>, Vec<UrlSource>) {
    let (mut locators, mut sources) = (Vec::new(), Vec::new());
    let Some((at, nodes)) = keys.one_or_many("urls") else {
        return (locators, sources);
    };
    if nodes.is_empty() {
        findings.error(at, "`urls` is empty", "write at least one address");
    }
    for node in nodes {
        if matches!(node.kind, YamlKind::Mapping(_)) {
            if node.get("url").is_some() && node.get("file").is_none() {
                locators.extend(named_locator(node, findings));
            } else {
                sources.extend(url_file(node, findings));
            }
            continue;
        }
        let Some(url) = address("urls", node, findings) else { continue };
        if url.text.contains('[') {
            check_ranges(&url, findings);
            sources.push(UrlSource::Pattern(url));
        } else {
            locators.push(Locator { name: url.clone(), url });
        }
    }
    (locators, sources)
}

/// An entry `{ name: ..., url: ... }`.
fn named_locator(node: &YamlNode, findings: &mut Findings<'_>) -> Option<Locator> {
    let keys = KeyReader::new(&shapes::LOCATOR, node.at, node, findings)?;
    let (name, url) =
        (keys.required_filled_text("name", findings), keys.required_filled_text("url", findings));
    let (name, url) = (name?, url?);
    if ranges(&url.text).any(is_range) {
        findings.error(
            url.at,
            "an address with a range stands for many pages, so it cannot have a name",
            "write only the address, without `name` and `url`",
        );
    }
    Some(Locator { name, url })
}

/// An entry `{ file: ... }`.
fn url_file(node: &YamlNode, findings: &mut Findings<'_>) -> Option<UrlSource> {
    let keys = KeyReader::new(&shapes::URL_FILE, node.at, node, findings)?;
    let (column, name) = (keys.filled_text("column", findings), keys.filled_text("name", findings));
    if let (None, Some(name)) = (&column, &name) {
        findings.error(
            name.at,
            "`name` needs `column`: both are columns of a CSV file",
            "add `column: ...` with the name of the column that holds the address",
        );
    }
    let file = keys.required_filled_text("file", findings)?;
    if column.is_none() && name.is_none() && file.text.to_lowercase().ends_with(".csv") {
        findings.warn(
            file.at,
            "without `column` every line of the file is an address",
            "add `column: ...` with the name of the column that holds the address",
        );
    }
    Some(UrlSource::File { file, column, name })
}

/// The texts between brackets in an address, without an IPv6 host.
fn ranges(url: &str) -> impl Iterator<Item = &str> {
    let from = url.find("://[").and_then(|at| Some(at + url[at..].find(']')? + 1)).unwrap_or(0);
    let parts = url[from..].split('[').skip(1);
    parts.map(|part| part.split_once(']').map_or(part, |(range, _)| range))
}

fn is_range(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (bounds, step) =
        text.split_once(':').map_or((text, None), |(bounds, step)| (bounds, Some(step)));
    bounds.split_once('-').is_some_and(|(from, to)| digits(from) && digits(to))
        && step.is_none_or(digits)
}

/// Reports a malformed range, which would otherwise become a part of the address.
fn check_ranges(url: &Text, findings: &mut Findings<'_>) {
    for range in ranges(&url.text) {
        let open = !url.text.contains(&format!("[{range}]"));
        let near = |c: char| c.is_ascii_digit() || matches!(c, '-' | ':' | '.' | ',' | ' ');
        let digits = range.chars().any(|c| c.is_ascii_digit());
        let parted = range.contains(['-', ',', ':']) || range.contains("..");
        let numbers = digits && parted && range.chars().all(near);
        let letters = matches!(range.as_bytes(), [from, b'-', to]
            if from.is_ascii_alphabetic() && to.is_ascii_alphabetic());
        let cut = open
            && digits
            && range.contains('-')
            && range.starts_with(|c: char| c.is_ascii_digit());
        if !(cut || !open && (letters || numbers && !is_range(range))) {
            continue;
        }
        findings.error(
            url.at,
            if open {
                format!("the range `[{}` has no closing bracket", shorten(range))
            } else {
                format!("`[{}]` is not a range", shorten(range))
            },
            "write `[1-100]`, `[001-100]` or `[0-100:20]`; for a plain bracket write `%5B`",
        );
    }
}

/// A text that is not empty, as an address.
pub(super) fn address(key: &str, node: &YamlNode, findings: &mut Findings<'_>) -> Option<Text> {
    let url = text(&format!("an entry of {key}"), node, findings)?;
    if !selectors::is_plain(&url, findings) {
        return None;
    }
    if url.text.trim().is_empty() {
        findings.error(url.at, "the address is empty", "write an address or the path of a file");
        return None;
    }
    Some(url)
}

/// The addresses of the sitemaps below `sitemap`, each with the rule for its entries.
pub(super) fn sitemaps(
    keys: &KeyReader<'_>,
    group: &Text,
    findings: &mut Findings<'_>,
) -> Vec<(Text, Follow)> {
    let Some((at, nodes)) = keys.one_or_many("sitemap") else {
        return Vec::new();
    };
    let group = Text { text: group.text.clone(), at };
    let rule = Follow { group, scope: FollowScope::Any, ..Follow::default() };
    let sitemaps = nodes.iter().filter_map(|node| {
        if !matches!(node.kind, YamlKind::Mapping(_)) {
            return Some((address("sitemap", node, findings)?, rule.clone()));
        }
        let keys = KeyReader::new(&shapes::SITEMAP, node.at, node, findings)?;
        let rule = Follow {
            allow: patterns(&keys, "allow", findings),
            deny: patterns(&keys, "deny", findings),
            max_pages: keys.index("maxPages", findings).map(u64::from),
            ..rule.clone()
        };
        Some((keys.required_filled_text("url", findings)?, rule))
    });
    sitemaps.collect()
}
