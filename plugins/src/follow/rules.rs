//! Compiled follow rules, and the links they find on a page.

use std::collections::{BTreeMap, HashSet};

use fancy_regex::Regex;
use spoonbill_defs::{Follow, FollowScope, Text};

use super::address::PageAddress;
use super::canonical::{Canonicalizer, without_user};
use super::reasons;
use super::scope::out_of_scope;
use crate::css::{Selector, TextCache};
use crate::html::{Document, Namespace, NodeId};
use crate::java_regex::compile_find;
use crate::options::OptionProblem;
use crate::records;
use crate::xpath::{XNode, XPath, XPathLimits, XPathValue};

/// The compiled follow rules of a task.
#[derive(Debug, Default)]
pub struct FollowPlan {
    rules: Vec<FollowRule>,
}

/// A compiled follow rule.
#[derive(Debug)]
pub struct FollowRule {
    /// Number of the rule in the run.
    number: u32,
    /// Group of the pages that the rule finds.
    group: String,
    /// Most pages that the rule may add to a run. `None` means no limit.
    max_pages: Option<u64>,
    max_depth: Option<u32>,
    query: LinkQuery,
    attribute: Option<String>,
    scope: FollowScope,
    allow: Vec<Regex>,
    deny: Vec<Regex>,
}

#[derive(Debug)]
enum LinkQuery {
    Css(Selector),
    Xpath(XPath),
    /// The addresses come from a sitemap.
    None,
}

/// A link to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedLink {
    /// Group of the linked page.
    pub group: String,
    /// Normalized address.
    pub url: String,
    /// Number of the rule that found the link.
    pub rule: u32,
    /// Most pages that the rule may add to a run. `None` means no limit.
    pub max_pages: Option<u64>,
}

/// The page whose links are collected.
#[derive(Debug, Clone)]
pub struct LinkContext<'a> {
    /// Group of the page.
    pub group: &'a str,
    /// Address before redirects.
    pub asked: &'a str,
    /// Address after redirects. Links are resolved against it.
    pub page: PageAddress,
    /// The scopes `host` and `domain` compare with this address. For a linked page it is the one
    /// before redirects, so that a redirect does not open another host.
    pub home: PageAddress,
    /// Address of the start page whose links led to this page.
    pub start: PageAddress,
    /// Number of links followed to reach the page.
    pub depth: u32,
    /// Normalizes addresses.
    pub canon: &'a Canonicalizer,
    /// Whether refused links are kept with their reasons, and not only counted.
    pub keeps_refused: bool,
}

/// A page with its own normalized addresses, before and after redirects.
struct LinkOrigin<'a> {
    context: &'a LinkContext<'a>,
    own: [String; 2],
}

impl<'a> LinkOrigin<'a> {
    fn new(context: &'a LinkContext<'a>) -> Self {
        let own = [context.canon.address(context.asked), spelt(&context.page, context.canon)];
        let own = own.map(|url| without_user(&url).into_owned());
        Self { context, own }
    }
}

/// The links of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PageLinks {
    /// Links to follow, by rule and then in document order.
    pub links: Vec<FollowedLink>,
    /// Number of links that are not followed, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Links that are not followed, with their reasons.
    pub refused: Vec<(String, &'static str)>,
    met: HashSet<(String, String)>,
}

impl PageLinks {
    /// Counts a link that is not followed.
    pub fn skip(&mut self, reason: &str) {
        *self.skipped.entry(reason.to_owned()).or_default() += 1;
    }

    fn refuse(&mut self, context: &LinkContext<'_>, url: String, reason: &'static str) {
        self.skip(reason);
        if context.keeps_refused {
            self.refused.push((url, reason));
        }
    }
}

impl FollowRule {
    /// Compiles a rule, or returns all its problems. A rule without a query takes the addresses of
    /// sitemaps.
    pub fn compile(follow: &Follow, number: u32) -> Result<Self, Vec<OptionProblem>> {
        let mut problems = Vec::new();
        let query = link_query(follow, &mut problems);
        let mut patterns = |texts: &[Text], word: &str| -> Vec<Regex> {
            let compiled = texts.iter().filter_map(|text| match compile_find(&text.text) {
                Ok(regex) => Some(regex),
                Err(error) => {
                    let message = format!("bad `{word}` pattern: {error}");
                    let mut problem = OptionProblem::new(text.at, message);
                    problem.inside = error.position_in(&text.text);
                    problems.push(problem);
                    None
                }
            });
            compiled.collect()
        };
        let (allow, deny) = (patterns(&follow.allow, "allow"), patterns(&follow.deny, "deny"));
        match query {
            Some(query) if problems.is_empty() => Ok(Self {
                number,
                group: follow.group.text.clone(),
                max_pages: follow.max_pages,
                max_depth: follow.max_depth,
                query,
                attribute: follow.query.attribute.as_ref().map(|name| name.text.clone()),
                scope: follow.scope,
                allow,
                deny,
            }),
            _ => Err(problems),
        }
    }

    /// Returns the reason why an address is not followed. `None` means that it is.
    fn refuses(
        &self,
        context: &LinkContext<'_>,
        link: &PageAddress,
        url: &str,
    ) -> Option<&'static str> {
        if let Some(reason) = out_of_scope(self.scope, &context.home, &context.start, link) {
            return Some(reason);
        }
        match holds(&self.deny, url) {
            Ok(true) => return Some(reasons::DENIED),
            Ok(false) => {}
            Err(()) => return Some(reasons::PATTERN_GAVE_UP),
        }
        match holds(&self.allow, url) {
            Ok(false) if !self.allow.is_empty() => return Some(reasons::NOT_ALLOWED),
            Ok(_) => {}
            Err(()) => return Some(reasons::PATTERN_GAVE_UP),
        }
        let too_deep = self.max_depth.is_some_and(|max| context.depth >= max);
        too_deep.then_some(reasons::TOO_DEEP)
    }

    /// Adds a link of a page, or counts the reason against it.
    fn offer(
        &self,
        origin: &LinkOrigin<'_>,
        link: Result<PageAddress, &'static str>,
        found: &mut PageLinks,
    ) {
        let link = match link {
            Ok(link) => link,
            Err(reason) => return found.skip(reason),
        };
        let url = spelt(&link, origin.context.canon);
        if let Some(reason) = self.refuses(origin.context, &link, &url) {
            return found.refuse(origin.context, url, reason);
        }
        let plain = without_user(&url).into_owned();
        let own = self.group == origin.context.group && origin.own.contains(&plain);
        if own || !found.met.insert((self.group.clone(), plain)) {
            return found.refuse(origin.context, url, reasons::KNOWN);
        }
        found.links.push(FollowedLink {
            group: self.group.clone(),
            url,
            rule: self.number,
            max_pages: self.max_pages,
        });
    }

    fn collect(
        &self,
        document: &Document,
        base: &PageAddress,
        origin: &LinkOrigin<'_>,
        cache: &mut TextCache,
        found: &mut PageLinks,
    ) -> Result<(), String> {
        let hrefs = match &self.query {
            LinkQuery::None => return Ok(()),
            LinkQuery::Css(selector) => {
                let nodes = selector.select(document, document.root(), cache);
                let nodes = nodes.map_err(|error| format!("follow `{selector}`: {error}"))?;
                nodes.into_iter().map(|node| self.href(document, node)).collect()
            }
            LinkQuery::Xpath(path) => self.by_xpath(document, path)?,
        };
        for href in hrefs {
            match href {
                Some(href) => match base.join(&href) {
                    Err(reason) => found.refuse(origin.context, href, reason),
                    link => self.offer(origin, link, found),
                },
                None => found.skip(reasons::NO_ADDRESS),
            }
        }
        Ok(())
    }

    fn by_xpath(&self, document: &Document, path: &XPath) -> Result<Vec<Option<String>>, String> {
        let value = path.evaluate(document, document.root(), XPathLimits::default());
        let value = value.map_err(|error| format!("follow by XPath: {error}"))?;
        Ok(match value {
            XPathValue::Nodes(nodes) => {
                let hrefs = nodes.into_iter().map(|node| match node {
                    XNode::Node(node) if document.is_element(node) => self.href(document, node),
                    node => Some(node.string_value(document)),
                });
                hrefs.collect()
            }
            XPathValue::Text(text) if text.trim().is_empty() => Vec::new(),
            XPathValue::Text(text) => vec![Some(text)],
            XPathValue::Number(_) | XPathValue::Boolean(_) => vec![None],
        })
    }

    /// The address in an element: the attribute of the rule, or `href`, or `src`, or its text in XML.
    fn href(&self, document: &Document, node: NodeId) -> Option<String> {
        let value = match &self.attribute {
            Some(name) => document
                .attributes(node)
                .find(|(own, _)| (***own).eq_ignore_ascii_case(name))
                .map(|(_, value)| value),
            None => document.attribute(node, "href").or_else(|| document.attribute(node, "src")),
        };
        let value = value.map(str::to_owned);
        // A feed has the address in the text of an element.
        if value.is_none()
            && self.attribute.is_none()
            && document.namespace(node) == Some(&Namespace::XML)
        {
            return Some(document.text_content(node)).filter(|text| !text.trim().is_empty());
        }
        value
    }
}

impl FollowPlan {
    /// Creates a plan of rules.
    pub fn new(rules: Vec<FollowRule>) -> Self {
        Self { rules }
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether any rule looks for links on the page itself.
    pub fn reads_pages(&self) -> bool {
        self.rules.iter().any(|rule| !matches!(rule.query, LinkQuery::None))
    }

    /// Collects the links of a page.
    pub fn collect(
        &self,
        document: &Document,
        context: &LinkContext<'_>,
    ) -> Result<PageLinks, String> {
        let base = context.page.clone().base(document);
        let (mut found, mut cache) = (PageLinks::default(), TextCache::default());
        let origin = LinkOrigin::new(context);
        for rule in &self.rules {
            rule.collect(document, &base, &origin, &mut cache, &mut found)?;
        }
        Ok(found)
    }

    /// Adds the addresses of a sitemap through the first rule without a query.
    pub fn take<'u>(
        &self,
        urls: impl IntoIterator<Item = &'u str>,
        context: &LinkContext<'_>,
        found: &mut PageLinks,
    ) {
        let rule = self.rules.iter().find(|rule| matches!(rule.query, LinkQuery::None));
        let origin = LinkOrigin::new(context);
        for url in urls {
            match rule {
                Some(rule) => rule.offer(&origin, context.page.join(url), found),
                None => found.skip(reasons::UNREADABLE),
            }
        }
    }
}

/// The normalized address as text.
fn spelt(address: &PageAddress, canon: &Canonicalizer) -> String {
    match address {
        PageAddress::Web(url) => canon.url(url),
        PageAddress::File(path) => path.clone(),
    }
}

/// Whether a text matches one of the patterns. An error means that a pattern took too long.
fn holds(patterns: &[Regex], text: &str) -> Result<bool, ()> {
    for pattern in patterns {
        if pattern.is_match(text).map_err(drop)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn link_query(follow: &Follow, problems: &mut Vec<OptionProblem>) -> Option<LinkQuery> {
    let query = &follow.query;
    match (&query.css, &query.xpath) {
        (Some(css), _) => records::selector(css, problems).map(LinkQuery::Css),
        (None, Some(xpath)) => records::xpath(xpath, problems).map(LinkQuery::Xpath),
        (None, None) => Some(LinkQuery::None),
    }
}

#[cfg(test)]
mod tests;
