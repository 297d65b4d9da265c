//! The table of settings, in the order of `docs/settings.md`. A row is everything about a setting: its
//! field, type, name, form, default and meaning. The typed structs, the checks, `spoonbill config` and
//! the reference page follow from it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::choices::{ClusterRole, Durability, OutputOrder, PagesKeep, Placement};
use super::keys::{Bare, Key, Kind, Preset, Scope, UNITS};
use super::value::{Setting, read};
use crate::ledger::OnError;

const DEFINITIONS: &str = "Definitions and facts";
const DATES: &str = "Dates";
const OUTPUT: &str = "Output";
const JOBS: &str = "Jobs and links";
const FETCHING: &str = "Fetching";
const PARSING: &str = "Parsing and scripts";
const STORE: &str = "Store";
const RUN: &str = "Progress and shutdown";
const CLUSTER: &str = "Cluster";

const ON: Preset = Preset::Is("true");
const OFF: Preset = Preset::Is("false");

/// Makes the typed structs of the settings and the rows of [`EFFECTIVE`].
macro_rules! settings {
    ($($(#[$about:meta])* $group:ident: $Group:ident, $heading:ident {
        $($field:ident: $type:ty = $scope:ident($name:literal, $kind:expr, $preset:expr, $doc:expr);)*
    })*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $Group {
                $(#[doc = concat!("`", $name, "`: ", $doc)] pub $field: $type,)*
            }
        )*

        /// Every setting of a run. Its serialised form is a map of names to texts, which the node that
        /// sets the run up publishes.
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[serde(into = "BTreeMap<String, String>", try_from = "BTreeMap<String, String>")]
        pub struct Config {
            $($(#[$about])* pub $group: $Group,)*
            pub(super) settings: BTreeMap<String, Setting>,
        }

        impl Config {
            /// Reads the typed fields of checked settings.
            pub(super) fn of(settings: BTreeMap<String, Setting>) -> Self {
                Self {
                    $($group: $Group { $($field: read(&settings, $name),)* },)*
                    settings,
                }
            }
        }

        /// The settings that have an effect.
        const EFFECTIVE: &[Key] = &[$($(Key {
            name: $name,
            group: $heading,
            kind: $kind,
            preset: $preset,
            doc: $doc,
            scope: Scope::$scope,
        },)*)*];
    };
}

settings! {
    /// Defaults of definitions.
    defs: DefsConfig, DEFINITIONS {
        default_steps: String = Run("defs.defaultSteps", Kind::Text, is("jsoupDefault"),
            "Chain of steps for tasks that name none.");
    }

    /// Replacements for missing values.
    fact: FactConfig, DEFINITIONS {
        blank_replace: bool = Rows("fact.blank.replace", Kind::Boolean, ON,
            "Whether a value that is found but blank is replaced, in the classic form.");
        blank_replace_with: String = Rows("fact.blank.replaceWith", Kind::Text, is("-"),
            "Text that replaces a blank value.");
        not_found_replace_with: String = Rows("fact.notFound.replaceWith", Kind::Text, is("not found"),
            "Text for a value whose query matches nothing.");
    }

    /// Dates, and their patterns in the letters of Java.
    dates: DatesConfig, DATES {
        run_date_time_text: Option<String> = Rows("runDateTimeText", Kind::Text, Preset::Unset,
            "Start date and time of the run, in the form of `dateTimePattern`. Unset means the clock.");
        pattern: String = Rows("dateTimePattern", Kind::Text, is("yyyy-MM-dd'T'HH:mm:ss.SSSZ"),
            "Pattern for dates with a time, in scripts, in `live` and for the run date.");
        high_date: String = Run("highDate", Kind::Text, is("2037-12-31T23:59:59.999"),
            "The date that stands for \"never expires\".");
    }

    /// Where and how rows are written.
    output: OutputConfig, OUTPUT {
        dir: PathBuf = Machine("output.dir", Kind::Path, Preset::Like("appender.file.baseDir", "output"),
            "Directory for the relative files of appenders.");
        base_dir: Option<PathBuf> = Machine("appender.file.baseDir", Kind::Path, Preset::Unset,
            "Scoopi's name for `output.dir`, used if `output.dir` is unset.");
        dir_timestamp_pattern: String = Run("outputDirTimestampPattern", Kind::Text, is("yyyyMMMdd-HHmmss"),
            "Pattern for the name of a run's output folder, filled in with the run date.");
        order: OutputOrder = Rows("output.order", Kind::Choice(OutputOrder::WORDS), is("arrival"),
            "Order of rows: as jobs finish, or a fixed order that is equal for equal pages.");
        lag_bytes_max: u64 = Run("output.lag.max", size(1), is("1GiB"),
            "Most bytes of rows that may wait to be written. Above it, the run starts no new jobs.");
    }

    /// How a node takes jobs.
    job: JobConfig, JOBS {
        take_limit: usize = Run("job.takeLimit", integer(1, 100_000), is("64"),
            "Most jobs in flight at the same time on one node.");
        attempts_max: u32 = Run("job.attempts.max", integer(1, 100), is("4"),
            "Most attempts for one job before it counts as failed.");
        on_error: OnError = Run("job.onError", Kind::Choice(&["fail", "quarantine", "halt"]), is("fail"),
            "What a failed job does to other jobs. `fail`: nothing. `quarantine`: the run starts no \
         more jobs of its host, and its waiting jobs fail. `halt`: the run stops, and the next \
         `run` continues it.");
        task_timeout: Duration = Run("task.timeout", with_unit(1000), is("30m"),
            "Longest time a node of a cluster may hold a job, counted from its turn. Then the job \
         also goes to another node, and the first result counts. Keep it far above \
         `loader.total.timeout` and the longest time a page takes.");
    }

    /// Limits on links.
    links: LinksConfig, JOBS {
        depth_max: u32 = Rows("links.depth.max", integer(0, 1_000_000_000), is("10000"),
            "Most links from a start address to a page.");
        page_max: usize = Rows("links.page.max", integer(0, 1_000_000_000), is("1000000"),
            "Most links taken from one page.");
        drop_params: String = Rows("follow.dropParams", Kind::Text, is("utm_*, gclid, fbclid, msclkid, dclid, yclid, mc_cid, mc_eid, _ga, igshid"),
            "Query parameters that `follow` removes from addresses because they only track visitors. \
         A trailing `*` matches any ending.");
        urls_max: u64 = Run("urls.max", integer(1, 1_000_000_000_000), is("10000000"),
            "Most addresses that the ranges and files below `urls` may add to one run.");
        sitemap_urls_max: usize = Rows("sitemap.urls.max", integer(1, 1_000_000_000), is("100000"),
            "Most addresses taken from one sitemap.");
        sitemap_files_max: u64 = Rows("sitemap.files.max", integer(1, 1_000_000_000), is("50000"),
            "Most sitemaps that sitemap indexes may add to one run.");
    }

    /// How pages are fetched.
    fetch: FetchConfig, FETCHING {
        resources_dir: Option<PathBuf> = Machine("resources.dir", Kind::Path, Preset::Unset,
            "Directory for the path of a local page that does not exist as written. Unset means the \
         directory of the definitions.");
        delay: Duration = Run("loader.fetch.delay", millis(0), is("1000ms"),
            "Pause between two requests to one host.");
        parallelism: usize = Run("loader.fetch.parallelism", integer(1, 1000), is("1"),
            "Most requests in flight to one host. With `loader.fetch.delay=0`, the limit holds for \
         each node of a cluster.");
        retry_backoff: Duration = Run("loader.retry.backoff", with_unit(0), is("500ms"),
            "Pause before the first retry of a page. It doubles with each retry.");
        retry_backoff_max: Duration = Run("loader.retry.backoffMax", with_unit(0), is("60s"),
            "Longest pause between two retries.");
        retry_after_max: Duration = Run("loader.retryAfter.max", with_unit(0), is("10m"),
            "Longest `Retry-After` of a server that the engine honours.");
        connect_timeout: Duration = Run("loader.connect.timeout", with_unit(1), is("10s"),
            "Longest time to connect to a server.");
        idle_timeout: Duration = Run("loader.idle.timeout", with_unit(1), is("30s"),
            "Longest time without a byte before a request is aborted.");
        total_timeout: Duration = Run("loader.total.timeout", millis(1), Preset::Like("webClient.timeout", "120s"),
            "Longest time for one request, with its redirects and its body.");
        redirects_max: u32 = Run("loader.redirects.max", integer(0, 100), is("10"),
            "Most redirects followed for one page.");
        body_bytes_max: u64 = Rows("loader.body.max", size(1), is("16MiB"),
            "Largest page after decompression. A larger page fails.");
        user_agent: String = Run("webClient.userAgent", Kind::Text, is(concat!("spoonbill/", env!("CARGO_PKG_VERSION"))),
            "The `User-Agent` header of requests.");
        client_timeout: Duration = Run("webClient.timeout", millis(1), is("120s"),
            "Scoopi's name for `loader.total.timeout`, used if that one is unset.");
    }

    /// Limits on parsing one page.
    parse: ParseConfig, PARSING {
        nodes_max: usize = Run("parser.nodes.max", integer(1, 100_000_000), is("4000000"),
            "Most nodes of one page. A larger page fails.");
        depth_max: usize = Run("parser.depth.max", integer(1, 1_000_000), is("5000"),
            "Deepest nesting of elements on one page.");
        rows_max: usize = Run("parser.rows.max", integer(1, 1_000_000_000), is("1000000"),
            "Most rows one task may take from one page.");
        time_max: Duration = Run("parser.time.max", with_unit(1), is("30s"),
            "Longest time one task may spend on one page.");
        threads: usize = Machine("parser.threads", integer(0, 1024), is("0"),
            "Threads that parse pages. 0 means one thread for each core.");
    }

    /// Limits on scripts.
    script: ScriptConfig, PARSING {
        time_max: Duration = Run("script.time.max", with_unit(1), is("2s"),
            "Longest time one call of a script may take.");
        memory_bytes_max: u64 = Run("script.memory.max", size(1 << 20), is("32MiB"),
            "Most memory for the scripts of one thread.");
    }

    /// The data directory: what is saved there, and how safely.
    store: StoreConfig, STORE {
        data_dir: PathBuf = Machine("data.dir", Kind::Path, is("data"),
            "Directory of the durable state: the ledger of jobs, saved pages and parsed data.");
        enable: bool = Run("datastore.enable", Kind::Boolean, ON,
            "Whether pages and parsed data are saved for later runs.");
        persist_locator: bool = Run("persist.locator", Kind::Boolean, ON,
            "Whether pages are saved and, while they are live, not fetched again.");
        pages_keep: PagesKeep = Run("pages.keep", Kind::Choice(PagesKeep::WORDS), is("web"),
            "Pages saved for `replay` and `live`: those from the network (`web`), or files too \
         (`all`). `replay` reads other files from their own path.");
        pages_bytes_max: u64 = Machine("pages.max", size(1), is("8GiB"),
            "Most disk space for saved pages, compressed. Above it, the oldest pages are deleted.");
        persist_data: bool = Run("persist.data", Kind::Boolean, ON,
            "Whether parsed data is saved and, while its page is live, not parsed again.");
        durability: Durability = Machine("store.durability", Kind::Choice(Durability::WORDS), is("strict"),
            "Whether work survives a kill of the process. `none` keeps everything in memory and is \
         for measurements only.");
        commit_interval: Duration = Run("store.commit.interval", with_unit(0), is("5ms"),
            "Longest time that commands wait to be committed in one batch.");
        commit_max: usize = Run("store.commit.max", integer(1, 1_000_000), is("1000"),
            "Most commands in one batch.");
        journal_max: u64 = Machine("store.journal.max", size(1), is("4MiB"),
            "Largest size of the journal of commits. Above it, the ledger's tables are synced and the \
         journal starts over.");
        seen_memory: u64 = Machine("store.seen.memory", size(1 << 20), is("128MiB"),
            "Memory for the index of known addresses. The addresses lie on disk.");
    }

    /// Progress and shutdown.
    run: RunConfig, RUN {
        progress_interval: Duration = Machine("progress.interval", with_unit(1), is("30s"),
            "Time between two lines of progress if standard error is no terminal.");
        shutdown_timeout: Duration = Machine("shutdown.timeout", named_by("shutdown.timeoutUnit"), is("18s"),
            "Longest time that a stopped run waits for jobs in flight.");
        shutdown_timeout_unit: String = Machine("shutdown.timeoutUnit", Kind::Choice(UNITS), is("SECONDS"),
            "Unit of a `shutdown.timeout` that has none.");
    }

    /// How nodes form a cluster.
    cluster: ClusterConfig, CLUSTER {
        enable: bool = Machine("cluster.enable", Kind::Boolean, OFF,
            "Whether several nodes share the run. Same as `--cluster`.");
        node_id: Option<String> = Machine("cluster.node.id", Kind::Text, Preset::Unset,
            "Number of this node in `cluster.peers`, from 1. `auto` adds 1 to the number at the end \
         of the host name, as in a StatefulSet. Same as `--node-id`.");
        listen: Option<String> = Machine("cluster.listen", Kind::Text, Preset::Unset,
            "Address and port on which this node listens. Unset means its own address in \
         `cluster.peers`. Same as `--listen`.");
        peers: Option<String> = Machine("cluster.peers", Kind::Text, Preset::Unset,
            "Numbers and addresses of all nodes with a vote, equal on every node: \
         `1=host-a:7400,2=host-b:7400,3=host-c:7400`. Nodes with different lists refuse each \
         other. A worker may list only some. Same as `--peers`.");
        role: ClusterRole = Machine("cluster.role", Kind::Choice(ClusterRole::WORDS), is("voter"),
            "`voter` keeps the ledger and votes, `worker` only works. Same as `--role`.");
        name: String = Machine("cluster.name", Kind::Text, is("spoonbill"),
            "Name of the cluster. A node with another name is refused.");
        secret_file: Option<PathBuf> = Machine("cluster.secretFile", Kind::Path, Preset::Unset,
            "File with the shared secret of all nodes, at least 32 bytes.");
        secret: Option<String> = Machine("cluster.secret", Kind::Text, Preset::Unset,
            "The shared secret, from the environment or the settings file. It is refused on the \
         command line.");
        insecure: bool = Machine("cluster.insecure", Kind::Boolean, OFF,
            "Whether a node may listen beyond this machine without a secret.");
        quorum_size: Option<usize> = Machine("cluster.quorum.size", integer(1, 1000), Preset::Unset,
            "Nodes with a vote that must be connected before a run starts. Unset means more than \
         half. Same as `--quorum`.");
        quorum_timeout: Duration = Machine("cluster.quorum.timeout", seconds(), is("60s"),
            "Longest wait for those nodes.");
        loss_exit: Duration = Machine("cluster.quorum.lossExit", with_unit(1000), is("10m"),
            "Time without a quorum after which a node exits with code 75.");
        session_ttl: Duration = Machine("cluster.session.ttl", with_unit(1000), is("3500ms"),
            "Longest silence of a node before its jobs go to other nodes.");
        end_wait: Duration = Machine("cluster.end.wait", with_unit(0), is("20s"),
            "Longest wait at the end of a run for disconnected nodes, so that they complete their \
         files too.");
        auto_fence: bool = Machine("cluster.autoFence", Kind::Boolean, OFF,
            "Whether a node that was silent too long is locked out until `spoonbill admit`.");
        placement: Placement = Machine("cluster.placement", Kind::Choice(Placement::WORDS), is("any"),
            "Which waiting node gets jobs first. `any`: the first to ask. `listed`: the first in \
         `cluster.peers`. `leastLoaded`, `mostLoaded`: the node with the fewest or the most jobs \
         in flight.");
        snapshot_bytes: u64 = Machine("cluster.snapshot.bytes", size(1 << 10), is("64MiB"),
            "Size of the replicated log at which a snapshot of the ledger replaces it.");
    }
}

/// Scoopi's settings that have no effect here. They are accepted so that its files load.
// The formatter would put each part on a separate line.
#[rustfmt::skip]
const ACCEPTED: &[(&str, Kind, Preset, &str)] = &[
    ("defs.dir", Kind::Path, Preset::Unset,
        "Directory of the definitions. Use the argument of the command."),
    ("defs.defaultStepsFile", Kind::Text, is("/steps-default.yml"),
        "File with the default chains of steps. They are built in."),
    ("defs.definedSchema", Kind::Text, Preset::Unset,
        "Schema of definitions as written. `spoonbill schema` prints the schema."),
    ("defs.effectiveSchema", Kind::Text, Preset::Unset,
        "Schema of definitions after merging."),
    ("appender.queueSize", integer(1, 1_000_000), is("4096"),
        "Length of an appender's queue. Appenders read committed rows in batches instead."),
    ("webDriver.driverPath", Kind::Path, is(".gecko/geckodriver"),
        "Driver of the browser."),
    ("webDriver.log", Kind::Path, is("geckodriver.log"),
        "Log of the browser's driver."),
    ("webDriver.waitType", Kind::Text, is("explicit"),
        "How the browser waits for elements."),
    ("webDriver.timeout.explicitWait", seconds(), is("10s"),
        "Longest wait of the browser for one element."),
    ("webDriver.timeout.implicitWait", seconds(), is("10s"),
        "Longest wait of the browser for any element."),
    ("datastore.type", Kind::Text, is("jar:file:"),
        "Kind of Scoopi's store."),
    ("datastore.path", Kind::Path, is("data"),
        "Path of Scoopi's store. See `data.dir`."),
    ("monitor.timerPeriod", millis(1), is("1000ms"),
        "Interval of Scoopi's monitor. The run ends on events, without a timer."),
    ("metrics.server.enable", Kind::Boolean, ON,
        "Whether metrics are served over HTTP."),
    ("metrics.server.port", integer(1, 65_535), is("9010"),
        "Port of the metrics."),
    ("metrics.serializer.period", seconds(), is("5s"),
        "Time between two snapshots of the metrics."),
    ("log.dir", Kind::Path, is("logs"),
        "Directory of log files. Logs go to standard error."),
    ("cluster.mode", Kind::Text, is("server"),
        "Member or client of Scoopi's cluster. See `cluster.role`."),
    ("cluster.config.file", Kind::Text, Preset::Unset,
        "Configuration of Scoopi's cluster library."),
    ("cluster.tx.timeout", named_by("cluster.tx.timeoutUnit"), is("10s"),
        "Longest transaction on Scoopi's store of jobs."),
    ("cluster.tx.timeoutUnit", Kind::Choice(UNITS), is("SECONDS"),
        "Unit of a `cluster.tx.timeout` that has none."),
    ("cluster.tx.type", Kind::Text, is("TWO_PHASE"),
        "Kind of those transactions."),
    ("cluster.shutdown.timeout", named_by("cluster.shutdown.timeoutUnit"), is("60s"),
        "Longest time a node may take to leave."),
    ("cluster.shutdown.timeoutUnit", Kind::Choice(UNITS), is("SECONDS"),
        "Unit of a `cluster.shutdown.timeout` that has none."),
    ("cluster.startCrashCleaner.minThreshold", integer(0, 1_000_000_000), is("10"),
        "Count of queued jobs below which jobs of dead nodes are reset. They are reset at once."),
    ("cluster.log.path.suffixUid", Kind::Boolean, ON,
        "Whether each node logs into its own directory."),
    ("poolsize.<step>", integer(1, 10_000), is("4"),
        "Threads of one step. See `parser.threads` and `job.takeLimit`."),
    ("seeder.class", Kind::Text, is("LocatorSeeder"),
        "Class that creates the first jobs."),
    ("seeder.seedRetryTimes", integer(0, 1000), is("3"),
        "Most attempts to queue a first job. The first jobs are queued in one commit."),
    ("job.takeTimeout", millis(0), is("1000ms"),
        "Longest wait for permission to take a job."),
    ("job.takeRetryDelay", millis(0), is("50ms"),
        "Pause after an unsuccessful request for a job. The engine waits for a signal instead."),
    ("task.takeTimeout", millis(0), is("500ms"),
        "Interval for polling an empty queue of tasks."),
    ("mode", Kind::Text, Preset::Unset,
        "Selected the settings file of Scoopi's developers."),
    ("propertyFile", Kind::Path, Preset::Unset,
        "Name of the settings file. Use the option `--config`."),
    ("propertyPattern", Kind::Text, Preset::Unset,
        "Scoopi does not read it either."),
    ("fork.locator", Kind::Text, Preset::Unset,
        "Scoopi does not read it either."),
    ("wait", Kind::Text, Preset::Unset,
        "Scoopi does not read it either."),
];

/// All settings: first those with an effect, in the order of the reference.
pub(super) fn table() -> impl Iterator<Item = Key> {
    let accepted = |(name, kind, preset, doc): &(&'static str, Kind, Preset, &'static str)| Key {
        name,
        group: "",
        kind: *kind,
        preset: *preset,
        doc,
        scope: Scope::NoEffect,
    };
    EFFECTIVE.iter().copied().chain(ACCEPTED.iter().map(accepted))
}

const fn is(text: &'static str) -> Preset {
    Preset::Is(text)
}

const fn integer(min: u64, max: u64) -> Kind {
    Kind::Integer { min, max }
}

const fn size(min: u64) -> Kind {
    Kind::Size { min }
}

const fn with_unit(min_ms: u64) -> Kind {
    duration(Bare::Refused, min_ms)
}

const fn millis(min_ms: u64) -> Kind {
    duration(Bare::Millis, min_ms)
}

const fn seconds() -> Kind {
    duration(Bare::Seconds, 0)
}

const fn named_by(unit: &'static str) -> Kind {
    duration(Bare::NamedBy(unit), 0)
}

const fn duration(bare: Bare, min_ms: u64) -> Kind {
    Kind::Duration { bare, min: Duration::from_millis(min_ms) }
}
