//! Compiles a data definition: parses its templates, resolves names and lays out the axes of each
//! row.
//!
//! A plan is compiled once per run, and all threads share it.

use std::sync::Arc;

use spoonbill_defs::{DataDef, IndexRange, Item, Span, Text};

use super::bound::{AxisHead, AxisState, BoundTemplate};
use super::template::{Template, split_attribute};
use crate::data::AxisKind;

/// A problem in a data definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanProblem {
    /// Where it is in the definition.
    pub at: Span,
    /// The message shown to users.
    pub message: String,
}

/// A compiled data definition.
///
/// ```
/// use spoonbill_defs::{DataDef, Item, Text};
/// use spoonbill_plugins::parser::DataDefPlan;
///
/// let name = Text::new("price");
/// let item = Item { name, value: Some(Text::new("Price")), ..Item::default() };
/// let def = DataDef { name: Text::new("quote"), items: vec![item], ..DataDef::default() };
/// assert!(DataDefPlan::compile(&def).is_ok());
/// ```
#[derive(Debug, Clone)]
pub struct DataDefPlan {
    pub(super) name: Arc<str>,
    pub(super) rows: Vec<RowPlan>,
    warnings: Vec<PlanProblem>,
}

/// The axes of the rows of one item and one fact, with all dims between them.
#[derive(Debug, Clone)]
pub(super) struct RowPlan {
    pub(super) heads: Vec<AxisHead>,
    pub(super) axes: Vec<AxisPlan>,
    /// The first axis that depends on an index further right. It must be evaluated again whenever
    /// any axis changes.
    pub(super) reaches_right: usize,
}

/// How an axis gets its values.
#[derive(Debug, Clone)]
pub(super) struct AxisPlan {
    pub(super) first: u32,
    pub(super) last: Option<u32>,
    pub(super) source: AxisSource,
    /// Values that end an open range; `None` if the definition has no `breakAfter`.
    pub(super) break_after: Option<Vec<String>>,
    /// All prefixes, joined in the order in which they are printed.
    pub(super) prefix: String,
}

#[derive(Debug, Clone)]
pub(super) enum AxisSource {
    /// `value`, or `match` without backslashes. It is printed without a prefix.
    Constant(String),
    /// The value of the script, or the match of the query if the script has none.
    LookedUp { script: Option<BoundTemplate>, query: Option<Box<CellQueryPlan>> },
}

#[derive(Debug, Clone)]
pub(super) struct CellQueryPlan {
    pub(super) block: BoundTemplate,
    pub(super) selector: BoundTemplate,
    pub(super) attribute: Option<BoundTemplate>,
}

impl DataDefPlan {
    /// Compiles a definition, or returns all its problems.
    pub fn compile(def: &DataDef) -> Result<Self, Vec<PlanProblem>> {
        let default_fact = [Item { name: Text::new("fact"), ..Item::default() }];
        let facts = if def.facts.is_empty() { &default_fact[..] } else { &def.facts[..] };
        let mut compiler = PlanCompiler { def, errors: duplicates(def), warnings: Vec::new() };
        let mut rows = Vec::with_capacity(def.items.len() * facts.len());
        for item in &def.items {
            for fact in facts {
                rows.push(compiler.row(item, fact));
            }
        }
        if !compiler.errors.is_empty() {
            return Err(compiler.errors);
        }
        Ok(Self { name: def.name.as_str().into(), rows, warnings: compiler.warnings })
    }

    /// Parts that are valid but probably a mistake.
    pub fn warnings(&self) -> &[PlanProblem] {
        &self.warnings
    }
}

impl RowPlan {
    /// The state of the first row: every axis at its first index.
    pub(super) fn start(&self) -> Vec<AxisState> {
        let axes = self.axes.iter().zip(&self.heads);
        axes.map(|(axis, head)| AxisState {
            index: axis.first,
            value: head.constant.as_deref().map(str::to_owned),
            last: axis.last,
        })
        .collect()
    }
}

impl AxisPlan {
    fn bounds(&self) -> impl Iterator<Item = &BoundTemplate> {
        let (script, query) = match &self.source {
            AxisSource::Constant(_) => (None, None),
            AxisSource::LookedUp { script, query } => (script.as_ref(), query.as_deref()),
        };
        let query = query.into_iter();
        script.into_iter().chain(
            query.flat_map(|query| {
                [&query.block, &query.selector].into_iter().chain(&query.attribute)
            }),
        )
    }
}

/// Items whose name another item before them has, so that variables could not tell them apart.
fn duplicates(def: &DataDef) -> Vec<PlanProblem> {
    let names: Vec<&Text> =
        def.items.iter().chain(&def.dims).chain(&def.facts).map(|item| &item.name).collect();
    let twice = names.iter().enumerate().filter(|(at, name)| names[..*at].contains(name));
    twice
        .map(|(_, name)| PlanProblem {
            at: name.at,
            message: format!(
                "dataDef `{}` has more than one item named `{}`",
                def.name.as_str(),
                name.as_str()
            ),
        })
        .collect()
}

struct PlanCompiler<'d> {
    def: &'d DataDef,
    errors: Vec<PlanProblem>,
    warnings: Vec<PlanProblem>,
}

impl PlanCompiler<'_> {
    fn row(&mut self, item: &Item, fact: &Item) -> RowPlan {
        let dims = self.def.dims.iter().map(|dim| (AxisKind::Dim, dim));
        let entries: Vec<(AxisKind, &Item)> = std::iter::once((AxisKind::Item, item))
            .chain(dims)
            .chain(std::iter::once((AxisKind::Fact, fact)))
            .collect();
        let heads: Vec<AxisHead> = entries.iter().map(|(kind, entry)| head(*kind, entry)).collect();
        let axes: Vec<AxisPlan> =
            (0..entries.len()).map(|own| self.axis(own, entries[own].1, &heads)).collect();
        let reaches_right = axes
            .iter()
            .position(|axis| axis.bounds().any(BoundTemplate::reaches_right))
            .unwrap_or(axes.len());
        RowPlan { heads, axes, reaches_right }
    }

    fn axis(&mut self, own: usize, entry: &Item, heads: &[AxisHead]) -> AxisPlan {
        let IndexRange { first, last } = entry.range;
        let constant = constant_of(entry);
        if constant.is_some() && last.is_none() {
            let message = format!(
                "the range of item `{}` never ends: it is open, and the value never changes",
                entry.name.as_str()
            );
            push_once(&mut self.warnings, entry.name.at, message);
        }
        AxisPlan {
            first: last.map_or(first, |last| first.min(last)),
            last: last.map(|last| first.max(last)),
            source: match constant {
                Some(text) => AxisSource::Constant(text),
                None => self.looked_up(own, entry, heads),
            },
            break_after: entry.break_after.as_ref().map(|values| {
                let values = values.iter();
                values.map(|value| value.text.clone()).collect()
            }),
            prefix: entry.prefix.iter().rev().map(Text::as_str).collect(),
        }
    }

    fn looked_up(&mut self, own: usize, entry: &Item, heads: &[AxisHead]) -> AxisSource {
        let script = entry.script.as_ref();
        let script = script.and_then(|text| self.bind(&text.text, text.at, own, heads));
        let selector = match heads[own].kind {
            AxisKind::Item | AxisKind::Dim => entry.selector.as_ref(),
            AxisKind::Fact | AxisKind::Field => self.def.query.selector.as_ref(),
        };
        let query = selector.and_then(|text| {
            let (selector, attribute) = split_attribute(&text.text);
            let block = &self.def.query.block;
            // All three are bound before the first `?`, so that all problems are reported.
            let block = self.bind(&block.text, block.at, own, heads);
            let selector = self.bind(selector, text.at, own, heads);
            let attribute = attribute.map(|name| self.bind(name, text.at, own, heads));
            Some(Box::new(CellQueryPlan {
                block: block?,
                selector: selector?,
                attribute: match attribute {
                    Some(name) => Some(name?),
                    None => None,
                },
            }))
        });
        AxisSource::LookedUp { script, query }
    }

    fn bind(
        &mut self,
        text: &str,
        at: Span,
        own: usize,
        heads: &[AxisHead],
    ) -> Option<BoundTemplate> {
        let bound = Template::compile(text).and_then(|template| template.bind(own, heads));
        match bound {
            Ok(bound) => {
                for whole in bound.unfilled() {
                    let message = format!(
                        "variable `{whole}` has no value when item `{}` is looked up, so it stays \
                         as written",
                        heads[own].item_name
                    );
                    push_once(&mut self.warnings, at, message);
                }
                Some(bound)
            }
            Err(error) => {
                push_once(&mut self.errors, at, error.message);
                None
            }
        }
    }
}

/// Adds a problem once: the same text occurs in many rows.
fn push_once(problems: &mut Vec<PlanProblem>, at: Span, message: String) {
    let problem = PlanProblem { at, message };
    if !problems.contains(&problem) {
        problems.push(problem);
    }
}

/// The value of an item that does not depend on the page: `value`, or `match` without backslashes.
fn constant_of(entry: &Item) -> Option<String> {
    let given = entry.value.as_ref().map(|value| value.text.clone());
    given.or_else(|| Some(entry.match_text.as_ref()?.text.replace('\\', "")))
}

fn head(kind: AxisKind, entry: &Item) -> AxisHead {
    let arc = |text: &Text| Arc::from(text.as_str());
    AxisHead {
        kind,
        item_name: arc(&entry.name),
        match_text: entry.match_text.as_ref().map(arc),
        order: entry.order,
        constant: constant_of(entry).map(Arc::from),
    }
}
