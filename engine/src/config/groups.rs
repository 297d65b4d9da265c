//! The settings as the engine takes them: typed, grouped, and handed down in pieces.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use spoonbill_plugins::html::TreeLimits;

use spoonbill_plugins::loader::http::HttpSettings;

use super::Setting;
use super::value::Value;
use crate::ledger::OnError;

/// What definitions leave open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefsConfig {
    /// `defs.defaultSteps`: chain of steps for tasks that name none.
    pub default_steps: String,
}

/// What stands in for facts that are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactConfig {
    /// `fact.blank.replace`: whether blank facts are replaced.
    pub blank_replace: bool,
    /// `fact.blank.replaceWith`: what stands in for a blank fact.
    pub blank_replace_with: String,
    /// `fact.notFound.replaceWith`: what stands in for a fact whose query matches nothing.
    pub not_found_replace_with: String,
}

/// Dates: patterns in Scoopi's (Java's) letters, texts not yet read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatesConfig {
    /// `runDateTimeText`: the start of the run, written in `pattern`; the clock when none.
    pub run_date_time_text: Option<String>,
    /// `dateTimePattern`: how dates with a time are written.
    pub pattern: String,
    /// `highDate`: the date that means "for ever".
    pub high_date: String,
}

/// The order rows are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputOrder {
    /// As jobs finish.
    Arrival,
    /// Always the same for the same pages.
    Canonical,
}

/// Where and how rows are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputConfig {
    /// `output.dir`, or `appender.file.baseDir`: where relative files of appenders are placed.
    pub dir: PathBuf,
    /// `outputDirTimestampPattern`: pattern of the directory of one run.
    pub dir_timestamp_pattern: String,
    /// `output.order`: order of rows.
    pub order: OutputOrder,
    /// `output.lag.max`: bytes of rows that may wait to be written.
    pub lag_bytes_max: u64,
}

/// How jobs are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobConfig {
    /// `job.takeLimit`: jobs in flight at the same time.
    pub take_limit: usize,
    /// `job.attempts.max`: tries of a failing job.
    pub attempts_max: u32,
    /// `task.timeout`: how long a job may be in hand from when its turn has come.
    pub task_timeout: Duration,
    /// `job.onError`: what a failed job means for the others.
    pub on_error: OnError,
}

/// How far links lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinksConfig {
    /// `links.depth.max`: links followed one after the other from one locator.
    pub depth_max: u32,
    /// `links.page.max`: locators made from one page.
    pub page_max: usize,
    /// `follow.dropParams`: parameters taken out of addresses.
    pub drop_params: String,
    /// `urls.max`: addresses from ranges and files.
    pub urls_max: u64,
    /// `sitemap.urls.max`: addresses taken from one sitemap.
    pub sitemap_urls_max: usize,
    /// `sitemap.files.max`: sitemaps that indexes add.
    pub sitemap_files_max: u64,
}

/// How politely and how patiently pages are fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchConfig {
    /// `resources.dir`: what a path is resolved against.
    pub resources_dir: Option<PathBuf>,
    /// `loader.fetch.delay`: pause between two fetches from one host.
    pub delay: Duration,
    /// `loader.fetch.parallelism`: pages of one host fetched at the same time.
    pub parallelism: usize,
    /// `loader.retry.backoff`: pause before the first retry; doubled each time.
    pub retry_backoff: Duration,
    /// `loader.retry.backoffMax`: longest pause between two retries.
    pub retry_backoff_max: Duration,
    /// `loader.retryAfter.max`: longest `Retry-After` that is waited for.
    pub retry_after_max: Duration,
    /// `loader.connect.timeout`: time to reach a server.
    pub connect_timeout: Duration,
    /// `loader.idle.timeout`: time without a byte.
    pub idle_timeout: Duration,
    /// `loader.total.timeout`, or `webClient.timeout`: time one fetch may take.
    pub total_timeout: Duration,
    /// `loader.redirects.max`: redirects followed for one page.
    pub redirects_max: u32,
    /// `loader.body.max`: bytes of a page after decompression.
    pub body_bytes_max: u64,
    /// `webClient.userAgent`: what servers are told.
    pub user_agent: String,
}

impl FetchConfig {
    /// The part that concerns one fetch over the network.
    pub(crate) fn http(&self) -> HttpSettings {
        HttpSettings {
            user_agent: self.user_agent.clone(),
            connect_timeout: self.connect_timeout,
            idle_timeout: self.idle_timeout,
            total_timeout: self.total_timeout,
            redirects_max: self.redirects_max as usize,
            body_max: self.body_bytes_max,
            retry_after_max: self.retry_after_max,
            ..HttpSettings::default()
        }
    }
}

/// What parsing one page may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseConfig {
    /// `parser.nodes.max`: nodes of one page.
    pub nodes_max: usize,
    /// `parser.depth.max`: elements inside each other.
    pub depth_max: usize,
    /// `parser.rows.max`: rows one task may take from one page.
    pub rows_max: usize,
    /// `parser.time.max`: time one task may take on one page.
    pub time_max: Duration,
    /// `parser.threads`: threads that parse; 0 is one per core.
    pub threads: usize,
}

impl ParseConfig {
    /// Bounds on the tree of a page that is read from now on.
    pub(crate) fn tree_limits(&self) -> TreeLimits {
        TreeLimits {
            nodes_max: self.nodes_max,
            depth_max: self.depth_max,
            deadline: Instant::now().checked_add(self.time_max),
        }
    }
}

/// What scripts may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptConfig {
    /// `script.time.max`: time of one call.
    pub time_max: Duration,
    /// `script.memory.max`: bytes the scripts of one thread may use.
    pub memory_bytes_max: u64,
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The disk.
    Strict,
    /// The operating system only.
    None,
}

/// What is kept, where, and how safely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// `data.dir`: directory of the durable state.
    pub data_dir: PathBuf,
    /// `datastore.enable` and `persist.locator`: pages are kept for later runs.
    pub persist_pages: bool,
    /// `pages.keep`: whether files are kept too, not pages from the network only.
    pub keep_files: bool,
    /// `pages.max`: bytes of kept pages.
    pub pages_bytes_max: u64,
    /// `datastore.enable` and `persist.data`: parsed data is kept for later runs.
    pub persist_data: bool,
    /// `store.durability`: what a commit waits for.
    pub durability: Durability,
    /// `store.commit.interval`: how long commands gather.
    pub commit_interval: Duration,
    /// `store.commit.max`: commands committed together.
    pub commit_max: usize,
    /// `store.journal.max`: bytes of the journal.
    pub journal_max: u64,
    /// `store.seen.memory`: bytes for the set of known addresses.
    pub seen_memory: u64,
}

/// How a run shows its progress and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunConfig {
    /// `progress.interval`: time between two lines of progress.
    pub progress_interval: Duration,
    /// `shutdown.timeout`: how long a cancelled run waits for the jobs in flight.
    pub shutdown_timeout: Duration,
}

/// Checked settings, read by name and kind. A name or kind the table does not have is our own bug.
pub(super) struct Values<'a>(pub(super) &'a BTreeMap<String, Setting>);

impl Values<'_> {
    pub(super) fn defs(&self) -> DefsConfig {
        DefsConfig { default_steps: self.text("defs.defaultSteps") }
    }

    pub(super) fn fact(&self) -> FactConfig {
        FactConfig {
            blank_replace: self.boolean("fact.blank.replace"),
            blank_replace_with: self.text("fact.blank.replaceWith"),
            not_found_replace_with: self.text("fact.notFound.replaceWith"),
        }
    }

    pub(super) fn dates(&self) -> DatesConfig {
        DatesConfig {
            run_date_time_text: self.value("runDateTimeText").map(|_| self.text("runDateTimeText")),
            pattern: self.text("dateTimePattern"),
            high_date: self.text("highDate"),
        }
    }

    pub(super) fn output(&self) -> OutputConfig {
        OutputConfig {
            dir: self.path("output.dir"),
            dir_timestamp_pattern: self.text("outputDirTimestampPattern"),
            order: match self.text("output.order").as_str() {
                "canonical" => OutputOrder::Canonical,
                _ => OutputOrder::Arrival,
            },
            lag_bytes_max: self.number("output.lag.max"),
        }
    }

    pub(super) fn job(&self) -> JobConfig {
        JobConfig {
            take_limit: self.number("job.takeLimit") as usize,
            attempts_max: self.number("job.attempts.max") as u32,
            task_timeout: self.duration("task.timeout"),
            on_error: match self.text("job.onError").as_str() {
                "halt" => OnError::Halt,
                "quarantine" => OnError::Quarantine,
                _ => OnError::Fail,
            },
        }
    }

    pub(super) fn links(&self) -> LinksConfig {
        LinksConfig {
            depth_max: self.number("links.depth.max") as u32,
            page_max: self.number("links.page.max") as usize,
            drop_params: self.text("follow.dropParams"),
            urls_max: self.number("urls.max"),
            sitemap_urls_max: self.number("sitemap.urls.max") as usize,
            sitemap_files_max: self.number("sitemap.files.max"),
        }
    }

    pub(super) fn fetch(&self) -> FetchConfig {
        FetchConfig {
            resources_dir: self.value("resources.dir").map(|_| self.path("resources.dir")),
            delay: self.duration("loader.fetch.delay"),
            parallelism: self.number("loader.fetch.parallelism") as usize,
            retry_backoff: self.duration("loader.retry.backoff"),
            retry_backoff_max: self.duration("loader.retry.backoffMax"),
            retry_after_max: self.duration("loader.retryAfter.max"),
            connect_timeout: self.duration("loader.connect.timeout"),
            idle_timeout: self.duration("loader.idle.timeout"),
            total_timeout: self.duration("loader.total.timeout"),
            redirects_max: self.number("loader.redirects.max") as u32,
            body_bytes_max: self.number("loader.body.max"),
            user_agent: self.text("webClient.userAgent"),
        }
    }

    pub(super) fn parse(&self) -> ParseConfig {
        ParseConfig {
            nodes_max: self.number("parser.nodes.max") as usize,
            depth_max: self.number("parser.depth.max") as usize,
            rows_max: self.number("parser.rows.max") as usize,
            time_max: self.duration("parser.time.max"),
            threads: self.number("parser.threads") as usize,
        }
    }

    pub(super) fn script(&self) -> ScriptConfig {
        ScriptConfig {
            time_max: self.duration("script.time.max"),
            memory_bytes_max: self.number("script.memory.max"),
        }
    }

    pub(super) fn store(&self) -> StoreConfig {
        let enabled = self.boolean("datastore.enable");
        StoreConfig {
            data_dir: self.path("data.dir"),
            persist_pages: enabled && self.boolean("persist.locator"),
            keep_files: self.text("pages.keep") == "all",
            pages_bytes_max: self.number("pages.max"),
            persist_data: enabled && self.boolean("persist.data"),
            durability: match self.text("store.durability").as_str() {
                "none" => Durability::None,
                _ => Durability::Strict,
            },
            commit_interval: self.duration("store.commit.interval"),
            commit_max: self.number("store.commit.max") as usize,
            journal_max: self.number("store.journal.max"),
            seen_memory: self.number("store.seen.memory"),
        }
    }

    pub(super) fn run(&self) -> RunConfig {
        RunConfig {
            progress_interval: self.duration("progress.interval"),
            shutdown_timeout: self.duration("shutdown.timeout"),
        }
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)?.value.as_ref()
    }

    pub(super) fn text(&self, name: &str) -> String {
        match self.value(name) {
            Some(Value::Text(text)) => text.clone(),
            other => panic!("`{name}` is {other:?}, not a text"),
        }
    }

    pub(super) fn boolean(&self, name: &str) -> bool {
        match self.value(name) {
            Some(Value::Boolean(yes)) => *yes,
            other => panic!("`{name}` is {other:?}, not a boolean"),
        }
    }

    pub(super) fn number(&self, name: &str) -> u64 {
        match self.value(name) {
            Some(Value::Integer(number) | Value::Size(number)) => *number,
            other => panic!("`{name}` is {other:?}, not a number"),
        }
    }

    pub(super) fn duration(&self, name: &str) -> Duration {
        match self.value(name) {
            Some(Value::Duration(length)) => *length,
            other => panic!("`{name}` is {other:?}, not a duration"),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        match self.value(name) {
            Some(Value::Path(path)) => path.clone(),
            other => panic!("`{name}` is {other:?}, not a path"),
        }
    }
}
