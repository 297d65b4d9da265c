//! Proposes a definition. The input is a page and some texts that the user wants from it; the output
//! is selectors.
//!
//! Nothing here loads or prints, and the same page and samples always give the same proposal. Every
//! selector is tried on the page before it is proposed. The steps, in this order:
//!
//! 1. `matches`: find each sample in the texts and attributes of the page.
//! 2. `layout` and `items`: decide which elements are the rows.
//! 3. `block`: find a selector that matches exactly the rows.
//! 4. `field`, `paths` and `selectors`: find the cheapest query for each column. A cost says how
//!    likely a query is to fail on other rows or on tomorrow's page.
//! 5. `names`: name the columns that the user did not name.

mod block;
mod field;
mod items;
mod json;
mod layout;
mod links;
mod matches;
mod names;
mod page_view;
mod paths;
mod patterns;
mod query;
mod reduced_price;
mod selectors;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeSet;

use url::Url;

use crate::html::{Document, NodeId};
use field::{ScoredQuery, WantedColumn};
use layout::{LayoutKind, PageLayout, PlacedSample};
use matches::SampleMatch;
use page_view::PageView;
pub use query::{FieldQuery, FieldSource};

/// A text that the user saw on the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Name of its column. If `None`, a name is derived from the page.
    pub name: Option<String>,
    /// The text.
    pub text: String,
}

impl Sample {
    /// Reads `name=text` or a text alone. The part before `=` is a name only if it is a plain word.
    ///
    /// ```
    /// use spoonbill_plugins::propose::Sample;
    ///
    /// assert_eq!(Sample::read("price=£5").name.as_deref(), Some("price"));
    /// assert_eq!(Sample::read("1 + 1 = 2").name, None);
    /// assert_eq!(Sample::read("/list?page=2").text, "/list?page=2");
    /// ```
    pub fn read(text: &str) -> Self {
        let named = text.split_once('=').filter(|(name, rest)| {
            name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
                && !rest.trim().is_empty()
        });
        match named {
            Some((name, rest)) => Self { name: Some(name.to_owned()), text: words::fold(rest) },
            None => Self { name: None, text: words::fold(text) },
        }
    }
}

/// The type of a column, chosen only if every value on the page has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// Any text.
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers with a fraction.
    Decimal,
    /// ISO dates.
    Date,
    /// Links, resolved against the address of the page.
    Url,
}

/// One proposed column.
#[derive(Debug, Clone)]
pub struct ProposedColumn {
    /// Its name.
    pub name: String,
    /// How to get its values.
    pub query: FieldQuery,
    /// The type of its values.
    pub value_type: ValueType,
    /// The samples that this column gives.
    pub samples: Vec<String>,
    /// The value of each row; `None` where nothing was found.
    pub values: Vec<Option<String>>,
}

impl ProposedColumn {
    /// How many rows have a value.
    pub fn filled(&self) -> usize {
        self.values.iter().flatten().count()
    }
}

/// Rows that are the elements of a JSON array in a script of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonBlock {
    /// Selector of the script.
    pub selector: String,
    /// JSON path to the elements.
    pub path: String,
}

/// A proposed definition.
#[derive(Debug, Clone, Default)]
pub struct ProposedDefinition {
    /// Selector of the rows. `None` if the page is one row.
    pub block: Option<String>,
    /// Where the rows are if they are not HTML elements.
    pub json_block: Option<JsonBlock>,
    /// How many rows the page gives.
    pub rows: usize,
    /// The columns.
    pub columns: Vec<ProposedColumn>,
    /// Selector of the link to the next page.
    pub next_page: Option<String>,
    /// Selector of the links from each row to its own page.
    pub details: Option<String>,
    /// How many elements were left out because they look like advertisements.
    pub adverts: usize,
}

/// A sample that got no column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSample {
    /// The sample.
    pub text: String,
    /// The most similar text on the page.
    pub nearest: Option<String>,
    /// Whether the sample is on the page, but no selector fits it and the remaining samples.
    pub is_there: bool,
}

/// Proposes selectors for samples of a page, or returns the samples that it cannot find.
///
/// ```
/// use spoonbill_plugins::html::{Document, TreeLimits};
/// use spoonbill_plugins::propose::{Sample, propose};
///
/// let html = "<ul><li><b class=name>Rye</b> <i class=price>4</i><li><b class=name>Oat</b> <i class=price>3</i></ul>";
/// let page = Document::parse(html, TreeLimits::default())?;
/// let samples = [Sample::read("Rye"), Sample::read("price=4")];
/// let proposal = propose(&page, &samples, None).map_err(|missing| format!("{missing:?}"))?;
/// assert_eq!(proposal.rows, 2);
/// assert_eq!(proposal.columns[1].values[1].as_deref(), Some("3"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn propose(
    document: &Document,
    samples: &[Sample],
    base: Option<&Url>,
) -> Result<ProposedDefinition, Vec<MissingSample>> {
    let view = PageView::new(document);
    let matches: Vec<Vec<SampleMatch>> =
        samples.iter().map(|sample| matches::matches(&view, sample, base)).collect();
    let data: Vec<Option<(FieldQuery, String)>> = samples
        .iter()
        .zip(&matches)
        .map(|(sample, matches)| {
            matches.is_empty().then(|| json::find(&view, &sample.text)).flatten()
        })
        .collect();
    let lost = samples.iter().zip(matches.iter().zip(&data));
    let missing: Vec<MissingSample> = lost
        .filter(|(_, (matches, data))| matches.is_empty() && data.is_none())
        .map(|(sample, _)| missing(&view, sample))
        .collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    let is_hidden = matches.iter().all(Vec::is_empty);
    if let Some(list) = is_hidden.then(|| json::list(&view, samples)).flatten() {
        return Ok(json_proposal(list, samples));
    }
    let layout = layout::layout(&view, samples, &matches);
    let builder = ProposalBuilder { view: &view, samples, matches: &matches, data: &data, base };
    builder.build(layout)
}

/// A definition whose rows are the elements of a JSON array.
fn json_proposal(list: json::JsonList, samples: &[Sample]) -> ProposedDefinition {
    let mut taken = BTreeSet::new();
    let column = |(at, (path, values)): (usize, (String, Vec<Option<String>>))| {
        let name = samples[at].name.clone().unwrap_or_else(|| last_name(&path));
        let query = FieldQuery::new(FieldSource::Json(path));
        let draft = DraftColumn { samples: vec![at], name, other_name: None, query, fixed: None };
        draft.finish(samples, values, &mut taken)
    };
    ProposedDefinition {
        json_block: Some(list.block),
        rows: list.rows,
        columns: list.columns.into_iter().enumerate().map(column).collect(),
        ..ProposedDefinition::default()
    }
}

/// The name of a column: the last name in its JSON path.
fn last_name(path: &str) -> String {
    let last = path.rsplit(['.', '[']).find(|step| !step.ends_with(']'));
    names::snake(last.unwrap_or("value"))
}

fn missing(view: &PageView, sample: &Sample) -> MissingSample {
    let nodes = view.elements().filter(|node| (1..400).contains(&view.text_len(*node)));
    let texts = nodes.flat_map(|node| [view.own_text(node), view.text(node)]);
    let nearest = texts
        .map(|text| (words::likeness(&text, &sample.text), text))
        .filter(|(likeness, _)| *likeness > 0.3)
        .min_by(|a, b| b.0.total_cmp(&a.0))
        .map(|(_, text)| text);
    MissingSample { text: sample.text.clone(), nearest, is_there: false }
}

struct ProposalBuilder<'a> {
    view: &'a PageView<'a>,
    samples: &'a [Sample],
    matches: &'a [Vec<SampleMatch>],
    data: &'a [Option<(FieldQuery, String)>],
    base: Option<&'a Url>,
}

/// A column whose query is chosen, but whose name may still clash with another.
struct DraftColumn {
    /// Indexes of its samples.
    samples: Vec<usize>,
    name: String,
    /// Used if another column has `name`.
    other_name: Option<String>,
    query: FieldQuery,
    /// The value of all rows, if it comes from JSON that the page holds once.
    fixed: Option<String>,
}

impl DraftColumn {
    /// Gives the column a name that is not in `taken`; adds a number if both names are.
    fn finish(
        self,
        samples: &[Sample],
        values: Vec<Option<String>>,
        taken: &mut BTreeSet<String>,
    ) -> ProposedColumn {
        let Self { name: own, query, .. } = self;
        let mut name = match self.other_name {
            Some(other) if taken.contains(&own) => other,
            _ => own.clone(),
        };
        let mut number = 1;
        while !taken.insert(name.clone()) {
            number += 1;
            name = format!("{own}_{number}");
        }
        let samples = self.samples.iter().map(|at| samples[*at].text.clone()).collect();
        ProposedColumn { value_type: value_type(&query, &values), name, query, samples, values }
    }
}

impl ProposalBuilder<'_> {
    fn build(&self, layout: PageLayout) -> Result<ProposedDefinition, Vec<MissingSample>> {
        let (block, layout) = match layout.kind {
            LayoutKind::Page => (None, layout),
            LayoutKind::List | LayoutKind::Flat => {
                let (block, layout) = self.blocked(layout);
                (Some(block), layout)
            }
        };
        let members = match &block {
            Some(block) => self.view.select(block, self.view.document.root()),
            None => layout.members.clone(),
        };
        let mut lost = Vec::new();
        let mut drafts = Vec::new();
        let mut taken = Vec::new();
        for group in self.groups(&layout) {
            match self.draft(&group, layout.kind, &members, &taken) {
                Some((draft, node)) => {
                    taken.push((node, draft.query.attribute.clone()));
                    drafts.push(draft);
                }
                None => lost.extend(group.iter().map(|example| example.sample)),
            }
        }
        for example in &layout.outside {
            // The value is the same for all items, so try the query on any item with samples.
            let member = layout.examples.first().map_or(example.member, |first| first.member);
            let example = PlacedSample { member, ..example.clone() };
            match self.draft(&[&example], LayoutKind::Page, &members, &taken) {
                Some((draft, _)) => drafts.push(draft),
                None => lost.push(example.sample),
            }
        }
        if !lost.is_empty() {
            let clashing = |at: &usize| {
                let text = self.samples[*at].text.clone();
                MissingSample { text, nearest: None, is_there: true }
            };
            return Err(lost.iter().map(clashing).collect());
        }
        let mut drafts = self.merged(drafts, &layout, &members);
        drafts.extend(self.data_drafts());
        drafts.sort_by_key(|draft| draft.samples.first().copied());
        let nodes: Vec<NodeId> = layout.examples.iter().map(|example| example.hit.node).collect();
        let details =
            block.as_ref().and_then(|block| links::details(self.view, block, &members, &nodes));
        Ok(ProposedDefinition {
            rows: members.len(),
            columns: self.columns(drafts, &members),
            next_page: links::next_page(self.view),
            adverts: items::adverts(self.view, &members),
            json_block: None,
            details,
            block,
        })
    }

    /// Finds the selector of the items. The wrapper of an item may have a better one, so the layout
    /// may move outwards.
    fn blocked(&self, layout: PageLayout) -> (String, PageLayout) {
        let levels = match layout.kind {
            LayoutKind::List => layout::levels(self.view, &layout.members),
            LayoutKind::Flat | LayoutKind::Page => vec![layout.members.clone()],
        };
        let inside: Vec<NodeId> = layout.examples.iter().map(|each| each.hit.node).collect();
        let choices = levels.iter().enumerate().filter_map(|(level, members)| {
            let inner: Vec<NodeId> =
                inside.iter().copied().filter(|node| !members.contains(node)).collect();
            let choice = block::block(self.view, members, &inner)?;
            let is_bare = inner.len() < inside.len() && layout.kind == LayoutKind::List;
            let cost = choice.cost
                + if choice.is_exact { 0.0 } else { 4.0 }
                + if is_bare { 0.6 } else { 0.0 }
                - 0.05 * level as f64;
            Some((cost, level, choice.selector))
        });
        let Some((_, level, selector)) = choices.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return (self.view.tag(layout.members[0]).to_owned(), layout);
        };
        let raised = |member: NodeId| {
            let at = layout.members.iter().position(|other| *other == member).unwrap_or_default();
            levels[level][at]
        };
        let examples = layout
            .examples
            .iter()
            .map(|example| PlacedSample { member: raised(example.member), ..example.clone() })
            .collect();
        (selector, PageLayout { members: levels[level].clone(), examples, ..layout })
    }

    /// Groups the samples by column. Samples of one column have the same role and the same name.
    /// Without a name, they must lie in different items.
    fn groups<'b>(&self, layout: &'b PageLayout) -> Vec<Vec<&'b PlacedSample>> {
        let mut groups: Vec<Vec<&PlacedSample>> = Vec::new();
        for example in &layout.examples {
            let sample = &self.samples[example.sample];
            let home = groups.iter_mut().find(|group| {
                group.iter().all(|other| {
                    let their = &self.samples[other.sample];
                    let is_apart =
                        layout.kind == LayoutKind::List && other.member != example.member;
                    sample.name == their.name
                        && (is_apart || sample.name.is_some())
                        && layout::same_role(self.view, other, example)
                })
            });
            match home {
                Some(home) => home.push(example),
                None => groups.push(vec![example]),
            }
        }
        groups
    }

    fn draft(
        &self,
        group: &[&PlacedSample],
        kind: LayoutKind,
        members: &[NodeId],
        taken: &[(NodeId, Option<String>)],
    ) -> Option<(DraftColumn, NodeId)> {
        let first = *group.first()?;
        let member = first.member;
        let sample = &self.samples[first.sample];
        let examples =
            group.iter().map(|each| (*each, self.samples[each.sample].text.as_str())).collect();
        let wanted = WantedColumn {
            first,
            sample: &sample.text,
            examples,
            matches: &self.matches[first.sample],
            kind,
            taken,
        };
        let ScoredQuery { mut query, node, .. } =
            field::choose(self.view, &wanted, members, self.base)?;
        if kind == LayoutKind::List {
            query = reduced_price::with_reduced_price(self.view, &query, (member, node), members)
                .unwrap_or(query);
        }
        let name = sample
            .name
            .clone()
            .unwrap_or_else(|| names::name(self.view, member, node, &query, &sample.text));
        let other_name =
            names::any_class(self.view, member, node).map(|class| names::snake(&class));
        let samples = group.iter().map(|example| example.sample).collect();
        Some((DraftColumn { samples, name, other_name, query, fixed: None }, node))
    }

    /// Merges columns to which the user gave the same name, if one field can try both selectors.
    fn merged(
        &self,
        drafts: Vec<DraftColumn>,
        layout: &PageLayout,
        members: &[NodeId],
    ) -> Vec<DraftColumn> {
        let mut merged: Vec<DraftColumn> = Vec::new();
        for draft in drafts {
            let is_named = self.samples[draft.samples[0]].name.is_some();
            let home = merged.iter_mut().find(|home| is_named && home.name == draft.name);
            let Some(home) = home else {
                merged.push(draft);
                continue;
            };
            let samples: Vec<usize> = home.samples.iter().chain(&draft.samples).copied().collect();
            match self.both(&home.query, &draft.query, &samples, layout, members) {
                Some(query) => (home.query, home.samples) = (query, samples),
                None => merged.push(draft),
            }
        }
        merged
    }

    /// Joins two queries so that they give all samples. The one that matches fewer items goes first.
    fn both(
        &self,
        one: &FieldQuery,
        other: &FieldQuery,
        samples: &[usize],
        layout: &PageLayout,
        members: &[NodeId],
    ) -> Option<FieldQuery> {
        let filled = |query: &FieldQuery| {
            query.values(self.view, members, self.base).iter().flatten().count()
        };
        let (rare, usual) = if filled(one) <= filled(other) { (one, other) } else { (other, one) };
        let gives = |query: &FieldQuery| {
            let wanted = layout.examples.iter().filter(|each| samples.contains(&each.sample));
            wanted.into_iter().all(|each| {
                let values = query.values(self.view, &[each.member], self.base);
                let sample = &self.samples[each.sample].text;
                values.iter().flatten().any(|value| query::is_sample(value, sample))
            })
        };
        [rare.or(usual), usual.or(rare)].into_iter().flatten().find(gives)
    }

    fn data_drafts(&self) -> impl Iterator<Item = DraftColumn> {
        self.data.iter().enumerate().filter_map(|(at, found)| {
            let (query, value) = found.clone()?;
            let (FieldSource::JsonLd(path) | FieldSource::Script { path, .. }) = &query.source
            else {
                return None;
            };
            let name = self.samples[at].name.clone().unwrap_or_else(|| last_name(path));
            Some(DraftColumn {
                samples: vec![at],
                name,
                other_name: None,
                query,
                fixed: Some(value),
            })
        })
    }

    fn columns(&self, drafts: Vec<DraftColumn>, members: &[NodeId]) -> Vec<ProposedColumn> {
        let mut taken = BTreeSet::new();
        let column = |draft: DraftColumn| {
            let values = match &draft.fixed {
                Some(value) => vec![Some(value.clone()); members.len()],
                None => draft.query.values(self.view, members, self.base),
            };
            draft.finish(self.samples, values, &mut taken)
        };
        drafts.into_iter().map(column).collect()
    }
}

/// The most specific type that would write every value exactly as the page does.
fn value_type(query: &FieldQuery, values: &[Option<String>]) -> ValueType {
    let all = |test: fn(&str) -> bool| {
        values.iter().flatten().count() > 0 && values.iter().flatten().all(|value| test(value))
    };
    let is_integer = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        (1..=15).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && (digits == "0" || !digits.starts_with('0'))
    };
    let is_decimal = |text: &str| {
        text.split_once('.').is_some_and(|(whole, part)| {
            let is_number =
                |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            is_number(whole) && is_number(part) && whole.len() + part.len() <= 15
        })
    };
    let is_date = |text: &str| text.len() == 10 && words::is_iso_date(text);
    if query.is_url {
        ValueType::Url
    } else if all(is_integer) {
        ValueType::Integer
    } else if all(is_decimal) {
        ValueType::Decimal
    } else if all(is_date) {
        ValueType::Date
    } else {
        ValueType::Text
    }
}
