//! Definitions made ready to run: every selector, pattern, script and plugin compiled once, or
//! every problem found. `check` and `run` share this, so what passes one passes the other.

mod follow;
mod queries;
mod reading;
mod records;
mod sinks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Zoned;
use spoonbill_defs::{
    DataDef, Follow, PluginDef, Problem, Problems, Sources, Span, Step, StepKind, Task,
};
use spoonbill_plugins::converter::{self, ItemConverter};
use spoonbill_plugins::dates::{self, DateSetup, Pattern};
use spoonbill_plugins::filter::Filters;
use spoonbill_plugins::follow::{Canon, FollowPlan, SitemapLimits};
use spoonbill_plugins::loader::Target;
use spoonbill_plugins::options::OptionProblem;
use spoonbill_plugins::parser::{FactText, Plan};
use spoonbill_plugins::records::RecordPlan;
use spoonbill_plugins::script::{self, RunFacts, ScriptChain};

use crate::config::Config;
use crate::plan::publish::Published;

pub(crate) use queries::Dialect;
pub(crate) use reading::{forms, looked_up};
pub(crate) use records::Expectations;
pub(crate) use sinks::{AppenderSpec, Sink};

use records::Takes;

/// The date-time of a run, to the second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunDate(pub Zoned);

/// Everything a run needs in memory, shared by all threads.
pub(crate) struct Prepared {
    /// Task groups by name.
    pub groups: BTreeMap<String, Group>,
    /// Appenders, by number.
    pub appenders: Vec<AppenderSpec>,
    /// Whether the run goes level by level, since depth decides what it gives.
    pub by_level: bool,
    /// The one spelling of addresses.
    pub canon: Canon,
    /// Bounds on sitemaps.
    pub sitemap: SitemapLimits,
    /// What scripts may ask about the run.
    pub run_facts: Arc<RunFacts>,
    /// What stands for facts that are not there.
    pub fact_text: FactText,
    /// Warnings found on the way.
    pub warnings: Vec<Problem>,
}

/// A task group, ready.
#[derive(Debug)]
pub(crate) struct Group {
    /// How long stored pages stay usable, as written.
    pub live: Option<String>,
    /// Its tasks, in document order.
    pub tasks: Vec<ReadyTask>,
    /// Whether links that are followed lead to it: its pages then go by their address alone.
    pub is_followed: bool,
    /// Whether a page found by following a link has the locator name of the page it was found on:
    /// it is printed here or further on.
    pub inherits_name: bool,
    /// Whether its pages have to know their start page.
    pub needs_origin: bool,
}

/// A task, ready.
#[derive(Debug)]
pub(crate) struct ReadyTask {
    /// Its name.
    pub name: String,
    /// Its number in the run: script engines and canonical order go by it.
    pub number: u32,
    /// Name of its data definition.
    pub data_def: String,
    /// Names parsed data for reuse.
    pub data_key: Vec<u8>,
    /// Whether parsed data is kept.
    pub persist_data: bool,
    /// What is expected of its rows.
    pub expect: Option<Arc<Expectations>>,
    /// What happens to a page, in order.
    pub steps: Vec<ReadyStep>,
    /// Links to follow.
    pub follow: FollowPlan,
    /// The reader of pages whose links are followed.
    pub follow_by: Dialect,
}

/// A step, ready.
#[derive(Debug)]
pub(crate) enum ReadyStep {
    /// Page to data.
    Parse(Dialect, Arc<Plan>),
    /// Page to rows with named columns.
    Records(Arc<RecordPlan>),
    /// Sitemap to pages and further sitemaps.
    Sitemap,
    /// Questions typed at a terminal.
    Analyze(Dialect),
    /// Drops rows.
    Filter(Filters),
    /// Converts values.
    Convert(Vec<ItemConverter>),
    /// Data through scripts.
    Script(ScriptChain),
    /// Rows to locators.
    CreateLocators(LinkRules),
    /// Rows to appenders.
    Append(Vec<Sink>),
}

/// For each item name: the group its links go to, and the links that are not followed.
pub(crate) type LinkRules = BTreeMap<String, (String, Vec<String>)>;

impl Prepared {
    /// What is expected of the rows.
    pub(crate) fn expectations(&self) -> Vec<Arc<Expectations>> {
        let tasks = self.groups.values().flat_map(|group| &group.tasks);
        tasks.filter_map(|task| task.expect.clone()).collect()
    }
}

impl RunDate {
    /// The date-time the settings fix, or now.
    pub(crate) fn of(config: &Config) -> Result<Self, Problem> {
        let nowhere = Sources::default();
        let problem = |message: String| Problem::error(&nowhere, Span::default(), message);
        let pattern = Pattern::compile(&config.dates.pattern)
            .map_err(|error| problem(format!("setting `dateTimePattern`: {error}")))?;
        let now = dates::now();
        let Some(text) = &config.dates.run_date_time_text else {
            let second = now.with().subsec_nanosecond(0).build().unwrap_or(now);
            return Ok(Self(second));
        };
        let setup = DateSetup { zone: dates::system_zone(), run_year: now.year() };
        let date = pattern.parse(text, &setup).ok_or_else(|| {
            problem(format!(
                "setting `runDateTimeText`: `{text}` does not fit the pattern `{}`",
                config.dates.pattern
            ))
        })?;
        Ok(Self(date))
    }

    /// The date as a pattern writes it; the ISO form when the pattern is bad, which compose has
    /// ruled out.
    pub(crate) fn text(&self, pattern: &str) -> String {
        Pattern::compile(pattern)
            .map_or_else(|_| self.0.to_string(), |pattern| pattern.format(&self.0))
    }

    /// The date back from its ISO form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        dates::read_zoned(text).map(Self)
    }
}

/// Compiles everything, or gives everything that is wrong.
pub(crate) fn prepare(
    published: &Published,
    config: &Config,
    date: &RunDate,
    sources: &Sources,
) -> Result<Prepared, Problems> {
    let mut maker = Maker {
        published,
        config,
        date,
        setup: DateSetup { zone: date.0.time_zone().clone(), run_year: date.0.year() },
        sources,
        problems: Problems::default(),
        appenders: Vec::new(),
        tried: BTreeSet::new(),
        tasks: 0,
        rules: Vec::new(),
        wanted: follow::wanted(&published.defs),
    };
    let mut groups = BTreeMap::new();
    for group in &published.defs.task_groups {
        let tasks = group.tasks.iter().filter_map(|task| maker.task(task)).collect();
        let live = group.live.as_ref().map(|live| live.text.clone());
        let ready = maker.group(group, live, tasks);
        groups.insert(group.name.text.clone(), ready);
    }
    maker.check_orphans();
    maker.check_settings();
    maker.check_locators();
    let Maker { mut problems, appenders, .. } = maker;
    problems.sort();
    problems.0.dedup();
    if problems.has_errors() {
        return Err(problems);
    }
    Ok(Prepared {
        groups,
        appenders,
        by_level: follow::by_level(&published.defs),
        canon: Canon::new(&config.links.drop_params),
        sitemap: SitemapLimits {
            bytes_max: config.fetch.body_bytes_max,
            urls_max: config.links.sitemap_urls_max,
        },
        run_facts: Arc::new(run_facts(config, date)),
        fact_text: FactText {
            blank_replace: config.fact.blank_replace,
            blank_with: config.fact.blank_replace_with.clone(),
            not_found_with: config.fact.not_found_replace_with.clone(),
        },
        warnings: problems.0,
    })
}

fn run_facts(config: &Config, date: &RunDate) -> RunFacts {
    let settings = config.to_map();
    let pattern = Pattern::compile(&config.dates.pattern).ok();
    RunFacts {
        run_date_time: date.0.clone(),
        config: Arc::new(move |key| settings.get(key).cloned()),
        is_cluster: false,
        stage: String::from("run"),
        user_agent: config.fetch.user_agent.clone(),
        timeout: config.fetch.total_timeout,
        date_text: Arc::new(move |date| {
            pattern.as_ref().map_or_else(|| date.to_string(), |pattern| pattern.format(date))
        }),
    }
}

struct Maker<'a> {
    published: &'a Published,
    config: &'a Config,
    date: &'a RunDate,
    setup: DateSetup,
    sources: &'a Sources,
    problems: Problems,
    appenders: Vec<AppenderSpec>,
    /// Data definitions whose queries have been tried.
    tried: BTreeSet<String>,
    tasks: u32,
    /// Follow rules met so far; the place of one is its number.
    rules: Vec<Follow>,
    /// Groups whose pages need a locator's name, and those that need their start page.
    wanted: (BTreeSet<String>, BTreeSet<String>),
}

impl Maker<'_> {
    fn error(&mut self, at: Span, message: impl Into<String>, help: Option<String>) {
        let problem = Problem::error(self.sources, at, message);
        self.problems.push(Problem { help, ..problem });
    }

    fn options<T>(&mut self, result: Result<T, Vec<OptionProblem>>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(problems) => {
                for OptionProblem { at, message, help, inside } in problems {
                    let at = inside.map_or(at, |offset| self.inside(at, offset));
                    self.error(at, message, help);
                }
                None
            }
        }
    }

    fn task(&mut self, task: &Task) -> Option<ReadyTask> {
        self.tasks += 1;
        let number = self.tasks;
        let def = self.published.defs.data_def(&task.data_def.text)?.clone();
        let takes = self.takes(&def);
        let expect = self.expectations(&def, takes.as_ref());
        let mut steps = Vec::new();
        let mut complete = true;
        for step in &task.steps {
            if matches!(step.kind, StepKind::LocatorSeeder | StepKind::PageLoader)
                || follow::is_links_only(&def) && step.kind.is_parser()
            {
                continue;
            }
            match self.step(step, &def, takes.as_ref()) {
                Some(step) => steps.push(step),
                None => complete = false,
            }
        }
        let follow = self.follow(task);
        if !complete || takes.is_none() {
            return None;
        }
        let parses =
            |step: &ReadyStep| matches!(step, ReadyStep::Parse(..) | ReadyStep::Records(_));
        let delivers =
            |step: &ReadyStep| matches!(step, ReadyStep::Append(_) | ReadyStep::CreateLocators(_));
        if steps.iter().any(parses) && !steps.iter().any(delivers) {
            let words = format!("task `{}` has no appender: its rows go nowhere", task.name.text);
            self.problems.push(Problem::warning(self.sources, task.name.at, words));
        }
        Some(ReadyTask {
            name: task.name.text.clone(),
            number,
            data_def: def.name.text.clone(),
            data_key: data_key(task, &def),
            persist_data: task.persist_data,
            expect,
            follow_by: follow::reader(&def, &steps),
            steps,
            follow: follow?,
        })
    }

    /// A step that works on a page or its data, ready; `None` after a problem.
    fn step(&mut self, step: &Step, def: &DataDef, takes: Option<&Takes>) -> Option<ReadyStep> {
        Some(match step.kind {
            StepKind::LocatorSeeder | StepKind::PageLoader => return None,
            StepKind::SitemapParser => ReadyStep::Sitemap,
            StepKind::DomLoader => {
                let help = "use `page_loader`; pages that need JavaScript cannot be loaded yet";
                let message =
                    format!("step `{}` loads in a browser, which is not supported", step.name.text);
                self.error(step.name.at, message, Some(help.to_owned()));
                return None;
            }
            StepKind::CssParser | StepKind::XpathParser => match takes {
                Some(Takes::Record(plan)) => ReadyStep::Records(Arc::clone(plan)),
                Some(Takes::Items(plan)) => {
                    let dialect = Dialect::of(step.kind);
                    self.check_queries(def, dialect);
                    self.check_scripts(def);
                    ReadyStep::Parse(dialect, Arc::clone(plan))
                }
                None => return None,
            },
            StepKind::CssAnalyzer | StepKind::XpathAnalyzer => {
                ReadyStep::Analyze(Dialect::of(step.kind))
            }
            StepKind::DataFilter => {
                let filters = Filters::compile(def);
                ReadyStep::Filter(self.options(filters)?)
            }
            StepKind::DataConverter => ReadyStep::Convert(self.converters(&step.plugins, def)?),
            StepKind::Scripter => {
                let files = &self.published.files;
                let read = |name: &str| {
                    files.get(name).cloned().ok_or_else(|| format!("file `{name}` was not found"))
                };
                let mut chain = ScriptChain::from_def(&step.plugins, &read);
                if let Err(problems) = &mut chain {
                    for problem in problems.iter_mut().filter(|problem| problem.at.line == 0) {
                        problem.at = step.name.at;
                    }
                }
                ReadyStep::Script(self.options(chain)?)
            }
            StepKind::LocatorCreator => ReadyStep::CreateLocators(link_rules(def)),
            StepKind::DataAppender => ReadyStep::Append(self.sinks(step, takes?)?),
        })
    }

    fn converters(&mut self, plugins: &[PluginDef], def: &DataDef) -> Option<Vec<ItemConverter>> {
        let mut all = Some(Vec::new());
        for plugin in plugins {
            let made = converter::from_def(plugin, &self.setup);
            let Some(converter) = self.options(made) else {
                all = None;
                continue;
            };
            let names = def.items.iter().chain(&def.dims).chain(&def.facts);
            let fields = def.record.iter().flat_map(|record| &record.fields);
            let names = names.map(|item| item.name.as_str());
            let names: Vec<&str> = names.chain(fields.map(|field| field.name.as_str())).collect();
            if !names.contains(&converter.item.as_str()) {
                let at = plugin.option("item").map_or(plugin.name.at, |item| item.at);
                let help = spoonbill_defs::suggest(&converter.item, names)
                    .map(|name| format!("did you mean `{name}`?"));
                let message = format!(
                    "dataDef `{}` has no item `{}` to convert",
                    def.name.text, converter.item
                );
                self.error(at, message, help);
                all = None;
            } else if let Some(all) = &mut all {
                all.push(converter);
            }
        }
        all
    }

    fn check_scripts(&mut self, def: &DataDef) {
        for item in def.items.iter().chain(&def.dims).chain(&def.facts) {
            if let Some(text) = &item.script
                && let Err(error) = script::check_expression(&queries::sample(&text.text, "1"))
            {
                self.error(text.at, format!("script of item `{}`: {error}", item.name.text), None);
            }
        }
    }

    /// Addresses that can be seen to lead nowhere.
    fn check_locators(&mut self) {
        let groups = &self.published.defs.locator_groups;
        for locator in groups.iter().flat_map(|group| &group.locators) {
            if let Err(error) = Target::of(&locator.url.text) {
                let words = format!("this page will fail: {}", error.message);
                self.problems.push(Problem::warning(self.sources, locator.url.at, words));
            }
        }
        self.check_twins();
    }

    fn check_settings(&mut self) {
        let setting = "setting `outputDirTimestampPattern`";
        match Pattern::compile(&self.config.output.dir_timestamp_pattern) {
            Err(error) => self.error(Span::default(), format!("{setting}: {error}"), None),
            Ok(pattern) => {
                let name = pattern.format(&self.date.0);
                if name.contains('/') || matches!(name.trim(), "" | "." | ".." | "latest") {
                    let message = format!("{setting}: `{name}` cannot be the name of a folder");
                    self.error(Span::default(), message, None);
                }
            }
        }
    }
}

fn link_rules(def: &DataDef) -> LinkRules {
    let links = def.items.iter().filter_map(|item| {
        let group = item.link_group.as_ref()?.text.clone();
        let stops = item.link_break_on.iter().map(|text| text.text.clone()).collect();
        Some((item.name.text.clone(), (group, stops)))
    });
    links.collect()
}

/// Names the parsed data of a task: it changes with the definition it was parsed by.
fn data_key(task: &Task, def: &DataDef) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(task.name.text.as_bytes());
    hasher.update(&[0]);
    hasher.update(&crate::plan::publish::encode(def));
    for step in &task.steps {
        hasher.update(&[step.kind as u8]);
    }
    hasher.finalize().as_bytes()[..16].to_vec()
}
