//! Compiles definitions: every selector, pattern, script and plugin once. Returns all problems at once.
//! `check` and `run` both call [`prepare`], so `run` accepts what `check` accepts.

mod follow;
mod queries;
mod reading;
mod records;
mod sinks;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Zoned;
use spoonbill_defs::{
    DataDef, Follow, PluginDef, Problem, Problems, Sources, Span, Step, StepKind, Task,
};
use spoonbill_plugins::converter::{self, ItemConverter};
use spoonbill_plugins::dates::{self, DatePattern, DateSetup};
use spoonbill_plugins::filter::Filters;
use spoonbill_plugins::follow::{Canonicalizer, FollowPlan, SitemapLimits};
use spoonbill_plugins::loader::PageTarget;
use spoonbill_plugins::options::OptionProblem;
use spoonbill_plugins::parser::{DataDefPlan, FactText};
use spoonbill_plugins::records::RecordPlan;
use spoonbill_plugins::script::{self, RunFacts, ScriptChain};

use crate::config::Config;
use crate::plan::publish::{PublishedPlan, encode};

pub(crate) use queries::Dialect;
pub(crate) use reading::{forms, looked_up};
pub(crate) use records::Expectations;
pub(crate) use sinks::{AppenderSpec, Sink};

use records::Takes;

/// The date-time of a run, to the second.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunDate(pub Zoned);

/// The published definitions and everything compiled from them. All threads of a node share it.
pub(crate) struct Plan {
    /// The definitions it was compiled from.
    pub published: Arc<PublishedPlan>,
    /// The settings of the run, with those of this machine.
    pub config: Config,
    /// The date-time of the run.
    pub date: RunDate,
    /// Task groups by name.
    pub groups: BTreeMap<String, Group>,
    /// Appenders, by number.
    pub appenders: Vec<AppenderSpec>,
    /// Whether the run works level by level, because the depth of a page decides its rows.
    pub by_level: bool,
    /// The canonical form of addresses.
    pub canon: Canonicalizer,
    /// Bounds on sitemaps.
    pub sitemap: SitemapLimits,
    /// The facts of the run that scripts can read.
    pub run_facts: Arc<RunFacts>,
    /// Replacements for blank and missing facts.
    pub fact_text: FactText,
}

/// A compiled task group.
#[derive(Debug)]
pub(crate) struct Group {
    /// How long saved pages stay usable, as written in the definitions.
    pub live: Option<String>,
    /// Its tasks, in document order.
    pub tasks: Vec<ReadyTask>,
    /// Whether followed links lead to the group. Its pages then have their address as their key.
    pub is_followed: bool,
    /// Whether a followed page takes the locator name of the page that linked to it, because this group
    /// or a later one prints that name.
    pub inherits_name: bool,
    /// Whether its pages need the address of their start page.
    pub needs_origin: bool,
}

/// A compiled task.
#[derive(Debug)]
pub(crate) struct ReadyTask {
    /// Its name.
    pub name: String,
    /// Its number in the run. It names the script engine and decides the canonical order.
    pub number: u32,
    /// Name of its data definition.
    pub data_def: String,
    /// The key of parsed data that is saved for reuse.
    pub data_key: Vec<u8>,
    /// Whether parsed data is saved.
    pub persist_data: bool,
    /// The expectations of its rows.
    pub expect: Option<Arc<Expectations>>,
    /// The steps, in order.
    pub steps: Vec<ReadyStep>,
    /// Links to follow.
    pub follow: FollowPlan,
    /// The dialect by which links to follow are selected.
    pub follow_by: Dialect,
}

/// A compiled step.
#[derive(Debug)]
pub(crate) enum ReadyStep {
    /// Page to data.
    Parse(Dialect, Arc<DataDefPlan>),
    /// Page to rows with named columns.
    Records(Arc<RecordPlan>),
    /// Sitemap to pages and further sitemaps.
    Sitemap,
    /// Queries that a person types at a terminal.
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

/// For each item name, the group of its links and the links that are not followed.
pub(crate) type LinkRules = BTreeMap<String, (String, Vec<String>)>;

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("published", &self.published).finish_non_exhaustive()
    }
}

impl Plan {
    /// The expectations of all tasks.
    pub(crate) fn expectations(&self) -> Vec<Arc<Expectations>> {
        let tasks = self.groups.values().flat_map(|group| &group.tasks);
        tasks.filter_map(|task| task.expect.clone()).collect()
    }
}

impl RunDate {
    /// The date-time that the settings set, or now.
    pub(crate) fn of(config: &Config) -> Result<Self, Problem> {
        let nowhere = Sources::default();
        let problem = |message: String| Problem::error(&nowhere, Span::default(), message);
        let pattern = DatePattern::compile(&config.dates.pattern)
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

    /// The date in the form of a pattern; in ISO form if the pattern is invalid, which loading excludes.
    pub(crate) fn text(&self, pattern: &str) -> String {
        DatePattern::compile(pattern)
            .map_or_else(|_| self.0.to_string(), |pattern| pattern.format(&self.0))
    }

    /// Reads the ISO form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        dates::read_zoned(text).map(Self)
    }
}

/// Compiles everything. Returns the plan and its warnings, or all problems.
pub(crate) fn prepare(
    published: &Arc<PublishedPlan>,
    config: &Config,
    date: &RunDate,
    sources: &Sources,
) -> Result<(Plan, Vec<Problem>), Problems> {
    let mut compiler = PlanCompiler {
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
        let tasks = group.tasks.iter().filter_map(|task| compiler.task(task)).collect();
        let live = group.live.as_ref().map(|live| live.text.clone());
        let ready = compiler.group(group, live, tasks);
        groups.insert(group.name.text.clone(), ready);
    }
    compiler.check_orphans();
    compiler.check_settings();
    compiler.check_locators();
    let PlanCompiler { mut problems, appenders, .. } = compiler;
    problems.sort();
    problems.0.dedup();
    if problems.has_errors() {
        return Err(problems);
    }
    let plan = Plan {
        published: Arc::clone(published),
        config: config.clone(),
        date: date.clone(),
        groups,
        appenders,
        by_level: follow::by_level(&published.defs),
        canon: Canonicalizer::new(&config.links.drop_params),
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
    };
    Ok((plan, problems.0))
}

fn run_facts(config: &Config, date: &RunDate) -> RunFacts {
    let settings = config.to_map();
    let pattern = DatePattern::compile(&config.dates.pattern).ok();
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

struct PlanCompiler<'a> {
    published: &'a PublishedPlan,
    config: &'a Config,
    date: &'a RunDate,
    setup: DateSetup,
    sources: &'a Sources,
    problems: Problems,
    appenders: Vec<AppenderSpec>,
    /// Data definitions whose queries are already checked.
    tried: BTreeSet<String>,
    tasks: u32,
    /// The compiled follow rules; the index of a rule is its number.
    rules: Vec<Follow>,
    /// Groups whose pages need a locator's name, and groups whose pages need their start page.
    wanted: (BTreeSet<String>, BTreeSet<String>),
}

impl PlanCompiler<'_> {
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

    /// Compiles a step; `None` after a problem.
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

    /// Warns of start pages whose address is invalid.
    fn check_locators(&mut self) {
        let groups = &self.published.defs.locator_groups;
        for locator in groups.iter().flat_map(|group| &group.locators) {
            if let Err(error) = PageTarget::of(&locator.url.text) {
                let words = format!("this page will fail: {}", error.message);
                self.problems.push(Problem::warning(self.sources, locator.url.at, words));
            }
        }
        self.check_twins();
    }

    fn check_settings(&mut self) {
        let setting = "setting `outputDirTimestampPattern`";
        match DatePattern::compile(&self.config.output.dir_timestamp_pattern) {
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

/// The key of a task's parsed data. It changes with the definition that the data was parsed by.
fn data_key(task: &Task, def: &DataDef) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(task.name.text.as_bytes());
    hasher.update(&[0]);
    hasher.update(&encode(def));
    for step in &task.steps {
        hasher.update(&[step.kind as u8]);
    }
    hasher.finalize().as_bytes()[..16].to_vec()
}
