//! From a page to data: the tree is built once for all tasks, then each definition is expanded.

use std::time::Instant;

use spoonbill_plugins::data::Data;
use spoonbill_plugins::html::Document;
use spoonbill_plugins::loader::charset;
use spoonbill_plugins::parser::{
    CssQueries, DataDefPlan, ExpandContext, ExpandLimits, ParseError, Queries, Scripts,
    XpathQueries,
};
use spoonbill_plugins::records::{FieldScripts, is_xml};
use spoonbill_plugins::script::{ItemScripts, Limits, ScriptError, ScriptFacts};
use spoonbill_plugins::xpath::XPathLimits;

use super::{Delivery, PageWorker, TaskYield, Worker};
use crate::plan::prepare::{Dialect, ReadyTask};

/// The trees of one page. Most pages need one of them.
#[derive(Default)]
pub(super) struct Trees {
    css: Option<Result<Document, String>>,
    xpath: Option<Result<Document, String>>,
    /// The tree of an XML page. Classic definitions still read such a page as HTML.
    xml: Option<Result<Document, String>>,
}

/// Starts the script engine when the first script runs.
pub(super) struct LazyScripts<'a> {
    page_worker: &'a PageWorker,
    delivery: &'a Delivery,
    scripts: Option<ItemScripts>,
}

impl<'a> LazyScripts<'a> {
    pub(super) fn new(page_worker: &'a PageWorker, delivery: &'a Delivery) -> Self {
        Self { page_worker, delivery, scripts: None }
    }

    fn started(&mut self) -> &mut ItemScripts {
        let (page_worker, delivery) = (self.page_worker, self.delivery);
        self.scripts.get_or_insert_with(|| {
            let id = format!("{:?}", delivery.grant.job.key);
            let facts = ScriptFacts::of_page(&delivery.page, id, &page_worker.plan.run_facts);
            ItemScripts::new(&facts, page_worker.script_limits())
        })
    }
}

impl FieldScripts for LazyScripts<'_> {
    fn eval(&mut self, expression: &str, value: &str) -> Result<Option<String>, ScriptError> {
        self.started().eval_value(expression, value)
    }
}

impl Scripts for LazyScripts<'_> {
    fn eval(&mut self, expression: &str) -> Result<Option<String>, ParseError> {
        self.started().eval(expression).map_err(|error| ParseError::Script {
            script: expression.to_owned(),
            message: error.to_string(),
        })
    }
}

impl PageWorker {
    pub(super) fn script_limits(&self) -> Limits {
        Limits {
            time: self.plan.config.script.time_max,
            memory: self.plan.config.script.memory_bytes_max as usize,
            ..Limits::default()
        }
    }

    /// The page's tree for a dialect, built on first use.
    pub(super) fn tree<'t>(
        &self,
        delivery: &Delivery,
        dialect: Dialect,
        trees: &'t mut Trees,
    ) -> Result<&'t Document, String> {
        let tree = match dialect {
            Dialect::Css => &mut trees.css,
            Dialect::Xpath => &mut trees.xpath,
        };
        let built = tree.get_or_insert_with(|| {
            let page = &delivery.page;
            let text = charset::decode(&page.body, page.content_type.as_deref());
            let limits = self.plan.config.parse.tree_limits();
            Document::parse_as(dialect.html_dialect(), &text, limits)
                .map_err(|error| error.to_string())
        });
        built.as_ref().map_err(Clone::clone)
    }

    /// The page's tree for records and links: XML if the page is XML.
    pub(super) fn true_tree<'t>(
        &self,
        delivery: &Delivery,
        dialect: Dialect,
        trees: &'t mut Trees,
    ) -> Result<&'t Document, String> {
        let page = &delivery.page;
        if !is_xml(page.content_type.as_deref(), &page.body) {
            return self.tree(delivery, dialect, trees);
        }
        let built = trees.xml.get_or_insert_with(|| {
            let text = charset::decode(&page.body, page.content_type.as_deref());
            let limits = self.plan.config.parse.tree_limits();
            Document::parse_xml(&text, limits).map_err(|error| error.to_string())
        });
        built.as_ref().map_err(Clone::clone)
    }

    /// The saved data of a task, if it is reused.
    pub(super) fn reused(&self, task: &ReadyTask, delivery: &Delivery) -> Option<Data> {
        let stored = delivery.parsed.get(&task.data_key)?;
        let kept = self.plan.config.store.saves_data() && task.persist_data;
        kept.then(|| postcard::from_bytes(stored).ok()).flatten()
    }

    /// Parsed data and its key, if it is saved for later runs.
    pub(super) fn worth_keeping(
        &self,
        task: &ReadyTask,
        delivery: &Delivery,
        data: &Data,
    ) -> Option<(Vec<u8>, Vec<u8>)> {
        let keep = self.plan.config.store.saves_data() && task.persist_data && delivery.keep_data;
        keep.then(|| (task.data_key.clone(), crate::plan::publish::encode(data)))
    }

    pub(super) fn parse(
        &self,
        worker: &mut Worker,
        task: &ReadyTask,
        (dialect, plan): (Dialect, &DataDefPlan),
        delivery: &Delivery,
        trees: &mut Trees,
        made: &mut TaskYield,
    ) -> Result<Data, String> {
        if let Some(data) = self.reused(task, delivery) {
            return Ok(data);
        }
        let document = self.tree(delivery, dialect, trees)?;
        let (mut css, mut xpath);
        let queries: &mut dyn Queries = match dialect {
            Dialect::Css => {
                css = CssQueries::new(document, &mut worker.selectors);
                &mut css
            }
            Dialect::Xpath => {
                let limits = XPathLimits::default();
                xpath = XpathQueries::new(document, &mut worker.xpaths, limits);
                &mut xpath
            }
        };
        let mut scripts = LazyScripts::new(self, delivery);
        let page = &delivery.page;
        let context = ExpandContext {
            locator: page.name.clone(),
            group: page.group.clone(),
            label: format!("{}:{}:{}", page.name, task.name, task.data_def),
        };
        let limits = ExpandLimits {
            rows_max: self.plan.config.parse.rows_max,
            deadline: Instant::now().checked_add(self.plan.config.parse.time_max),
        };
        let expansion = plan
            .expand(&context, queries, &mut scripts, &self.plan.fact_text, &limits)
            .map_err(|error| error.to_string())?;
        made.notes = expansion.notes;
        made.parsed = self.worth_keeping(task, delivery, &expansion.data);
        Ok(expansion.data)
    }
}
