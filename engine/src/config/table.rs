//! The table of settings, in the order of `docs/settings.md`. A new setting is a row here and a field in
//! `groups.rs`. A test fails if a row of `row` changes no field.

use std::time::Duration;

use super::keys::{Bare, Key, Kind, Preset};
use super::value::UNITS;

const DEFINITIONS: &str = "Definitions and facts";
const DATES: &str = "Dates";
const OUTPUT: &str = "Output";
const JOBS: &str = "Jobs and links";
const FETCHING: &str = "Fetching";
const PARSING: &str = "Parsing and scripts";
const STORE: &str = "Store";
const RUN: &str = "Progress and shutdown";
const CLUSTER: &str = "Cluster";
const ENGINE: &str = "Scoopi's engine";

const ON: Preset = Preset::Is("true");
const OFF: Preset = Preset::Is("false");

/// Every setting: name, heading, kind, default and meaning.
// The formatter would put each argument on a line of its own.
#[rustfmt::skip]
pub(super) const TABLE: &[Key] = &[
    row("defs.defaultSteps", DEFINITIONS, Kind::Text, is("jsoupDefault"),
        "Chain of steps for tasks that name none."),
    row("fact.blank.replace", DEFINITIONS, Kind::Boolean, ON,
        "Whether a value that is found but blank is replaced, in the classic form."),
    row("fact.blank.replaceWith", DEFINITIONS, Kind::Text, is("-"),
        "Text that replaces a blank value."),
    row("fact.notFound.replaceWith", DEFINITIONS, Kind::Text, is("not found"),
        "Text for a value whose query matches nothing."),
    accepted("defs.dir", DEFINITIONS, Kind::Path, Preset::Unset,
        "Directory of the definitions. Use the argument of the command."),
    accepted("defs.defaultStepsFile", DEFINITIONS, Kind::Text, is("/steps-default.yml"),
        "File with the default chains of steps. They are built in."),
    accepted("defs.definedSchema", DEFINITIONS, Kind::Text, Preset::Unset,
        "Schema of definitions as written. `spoonbill schema` prints the schema."),
    accepted("defs.effectiveSchema", DEFINITIONS, Kind::Text, Preset::Unset,
        "Schema of definitions after merging."),

    row("runDateTimeText", DATES, Kind::Text, Preset::Unset,
        "Start date and time of the run, in the form of `dateTimePattern`. Unset means the clock."),
    row("dateTimePattern", DATES, Kind::Text, is("yyyy-MM-dd'T'HH:mm:ss.SSSZ"),
        "Pattern for dates with a time, in scripts, in `live` and for the run date."),
    row("highDate", DATES, Kind::Text, is("2037-12-31T23:59:59.999"),
        "The date that stands for \"never expires\"."),

    row("output.dir", OUTPUT, Kind::Path, Preset::Like("appender.file.baseDir", "output"),
        "Directory for the relative files of appenders."),
    row("appender.file.baseDir", OUTPUT, Kind::Path, Preset::Unset,
        "Scoopi's name for `output.dir`, used if `output.dir` is unset."),
    row("outputDirTimestampPattern", OUTPUT, Kind::Text, is("yyyyMMMdd-HHmmss"),
        "Pattern for the name of a run's output folder, filled in with the run date."),
    row("output.order", OUTPUT, Kind::Choice(&["arrival", "canonical"]), is("arrival"),
        "Order of rows: as jobs finish, or a fixed order that is equal for equal pages."),
    row("output.lag.max", OUTPUT, size(1), is("1GiB"),
        "Most bytes of rows that may wait to be written. Above it, the run starts no new jobs."),
    accepted("appender.queueSize", OUTPUT, integer(1, 1_000_000), is("4096"),
        "Length of an appender's queue. Appenders read committed rows in batches instead."),

    row("job.takeLimit", JOBS, integer(1, 100_000), is("64"),
        "Most jobs in flight at the same time on one node."),
    row("job.attempts.max", JOBS, integer(1, 100), is("4"),
        "Most attempts for one job before it counts as failed."),
    row("job.onError", JOBS, Kind::Choice(&["fail", "quarantine", "halt"]), is("fail"),
        "What a failed job does to other jobs. `fail`: nothing. `quarantine`: the run starts no \
         more jobs of its host, and its waiting jobs fail. `halt`: the run stops, and the next \
         `run` continues it."),
    row("task.timeout", JOBS, with_unit(1000), is("30m"),
        "Longest time a node of a cluster may hold a job, counted from its turn. Then the job \
         also goes to another node, and the first result counts. Keep it far above \
         `loader.total.timeout` and the longest time a page takes."),
    row("links.depth.max", JOBS, integer(0, 1_000_000_000), is("10000"),
        "Most links from a start address to a page."),
    row("links.page.max", JOBS, integer(0, 1_000_000_000), is("1000000"),
        "Most links taken from one page."),
    row("follow.dropParams", JOBS, Kind::Text,
        is("utm_*, gclid, fbclid, msclkid, dclid, yclid, mc_cid, mc_eid, _ga, igshid"),
        "Query parameters that `follow` removes from addresses because they only track visitors. \
         A trailing `*` matches any ending."),
    row("urls.max", JOBS, integer(1, 1_000_000_000_000), is("10000000"),
        "Most addresses that the ranges and files below `urls` may add to one run."),
    row("sitemap.urls.max", JOBS, integer(1, 1_000_000_000), is("100000"),
        "Most addresses taken from one sitemap."),
    row("sitemap.files.max", JOBS, integer(1, 1_000_000_000), is("50000"),
        "Most sitemaps that sitemap indexes may add to one run."),

    row("resources.dir", FETCHING, Kind::Path, Preset::Unset,
        "Directory for the path of a local page that does not exist as written. Unset means the \
         directory of the definitions."),
    row("loader.fetch.delay", FETCHING, millis(0), is("1000ms"),
        "Pause between two requests to one host."),
    row("loader.fetch.parallelism", FETCHING, integer(1, 1000), is("1"),
        "Most requests in flight to one host. With `loader.fetch.delay=0`, the limit holds for \
         each node of a cluster."),
    row("loader.retry.backoff", FETCHING, with_unit(0), is("500ms"),
        "Pause before the first retry of a page. It doubles with each retry."),
    row("loader.retry.backoffMax", FETCHING, with_unit(0), is("60s"),
        "Longest pause between two retries."),
    row("loader.retryAfter.max", FETCHING, with_unit(0), is("10m"),
        "Longest `Retry-After` of a server that the engine honours."),
    row("loader.connect.timeout", FETCHING, with_unit(1), is("10s"),
        "Longest time to connect to a server."),
    row("loader.idle.timeout", FETCHING, with_unit(1), is("30s"),
        "Longest time without a byte before a request is aborted."),
    row("loader.total.timeout", FETCHING, millis(1), Preset::Like("webClient.timeout", "120s"),
        "Longest time for one request, with its redirects and its body."),
    row("loader.redirects.max", FETCHING, integer(0, 100), is("10"),
        "Most redirects followed for one page."),
    row("loader.body.max", FETCHING, size(1), is("16MiB"),
        "Largest page after decompression. A larger page fails."),
    row("webClient.userAgent", FETCHING, Kind::Text,
        is(concat!("spoonbill/", env!("CARGO_PKG_VERSION"))),
        "The `User-Agent` header of requests."),
    row("webClient.timeout", FETCHING, millis(1), is("120s"),
        "Scoopi's name for `loader.total.timeout`, used if that one is unset."),
    accepted("webDriver.driverPath", FETCHING, Kind::Path, is(".gecko/geckodriver"),
        "Driver of the browser."),
    accepted("webDriver.log", FETCHING, Kind::Path, is("geckodriver.log"),
        "Log of the browser's driver."),
    accepted("webDriver.waitType", FETCHING, Kind::Text, is("explicit"),
        "How the browser waits for elements."),
    accepted("webDriver.timeout.explicitWait", FETCHING, seconds(), is("10s"),
        "Longest wait of the browser for one element."),
    accepted("webDriver.timeout.implicitWait", FETCHING, seconds(), is("10s"),
        "Longest wait of the browser for any element."),

    row("parser.nodes.max", PARSING, integer(1, 100_000_000), is("4000000"),
        "Most nodes of one page. A larger page fails."),
    row("parser.depth.max", PARSING, integer(1, 1_000_000), is("5000"),
        "Deepest nesting of elements on one page."),
    row("parser.rows.max", PARSING, integer(1, 1_000_000_000), is("1000000"),
        "Most rows one task may take from one page."),
    row("parser.time.max", PARSING, with_unit(1), is("30s"),
        "Longest time one task may spend on one page."),
    row("parser.threads", PARSING, integer(0, 1024), is("0"),
        "Threads that parse pages. 0 means one thread for each core."),
    row("script.time.max", PARSING, with_unit(1), is("2s"),
        "Longest time one call of a script may take."),
    row("script.memory.max", PARSING, size(1 << 20), is("32MiB"),
        "Most memory for the scripts of one thread."),

    row("data.dir", STORE, Kind::Path, is("data"),
        "Directory of the durable state: the ledger of jobs, saved pages and parsed data."),
    row("datastore.enable", STORE, Kind::Boolean, ON,
        "Whether pages and parsed data are saved for later runs."),
    row("persist.locator", STORE, Kind::Boolean, ON,
        "Whether pages are saved and, while they are live, not fetched again."),
    row("pages.keep", STORE, Kind::Choice(&["web", "all"]), is("web"),
        "Pages saved for `replay` and `live`: those from the network (`web`), or files too \
         (`all`). `replay` reads other files from their own path."),
    row("pages.max", STORE, size(1), is("8GiB"),
        "Most disk space for saved pages, compressed. Above it, the oldest pages are deleted."),
    row("persist.data", STORE, Kind::Boolean, ON,
        "Whether parsed data is saved and, while its page is live, not parsed again."),
    row("store.durability", STORE, Kind::Choice(&["strict", "none"]), is("strict"),
        "Whether work survives a kill of the process. `none` keeps everything in memory and is \
         for measurements only."),
    row("store.commit.interval", STORE, with_unit(0), is("5ms"),
        "Longest time that commands wait to be committed in one batch."),
    row("store.commit.max", STORE, integer(1, 1_000_000), is("1000"),
        "Most commands in one batch."),
    row("store.journal.max", STORE, size(1), is("4MiB"),
        "Largest size of the journal of commits. Above it, the ledger's tables are synced and the \
         journal starts over."),
    row("store.seen.memory", STORE, size(1 << 20), is("128MiB"),
        "Memory for the index of known addresses. The addresses lie on disk."),
    accepted("datastore.type", STORE, Kind::Text, is("jar:file:"),
        "Kind of Scoopi's store."),
    accepted("datastore.path", STORE, Kind::Path, is("data"),
        "Path of Scoopi's store. See `data.dir`."),

    row("progress.interval", RUN, with_unit(1), is("30s"),
        "Time between two lines of progress if standard error is no terminal."),
    accepted("monitor.timerPeriod", RUN, millis(1), is("1000ms"),
        "Interval of Scoopi's monitor. The run ends on events, without a timer."),
    row("shutdown.timeout", RUN, named_by("shutdown.timeoutUnit"), is("18s"),
        "Longest time that a stopped run waits for jobs in flight."),
    row("shutdown.timeoutUnit", RUN, Kind::Choice(UNITS), is("SECONDS"),
        "Unit of a `shutdown.timeout` that has none."),
    accepted("metrics.server.enable", RUN, Kind::Boolean, ON,
        "Whether metrics are served over HTTP."),
    accepted("metrics.server.port", RUN, integer(1, 65_535), is("9010"),
        "Port of the metrics."),
    accepted("metrics.serializer.period", RUN, seconds(), is("5s"),
        "Time between two snapshots of the metrics."),
    accepted("log.dir", RUN, Kind::Path, is("logs"),
        "Directory of log files. Logs go to standard error."),

    row("cluster.enable", CLUSTER, Kind::Boolean, OFF,
        "Whether several nodes share the run. Same as `--cluster`."),
    row("cluster.node.id", CLUSTER, Kind::Text, Preset::Unset,
        "Number of this node in `cluster.peers`, from 1. `auto` adds 1 to the number at the end \
         of the host name, as in a StatefulSet. Same as `--node-id`."),
    row("cluster.listen", CLUSTER, Kind::Text, Preset::Unset,
        "Address and port on which this node listens. Unset means its own address in \
         `cluster.peers`. Same as `--listen`."),
    row("cluster.peers", CLUSTER, Kind::Text, Preset::Unset,
        "Numbers and addresses of all nodes with a vote, equal on every node: \
         `1=host-a:7400,2=host-b:7400,3=host-c:7400`. Nodes with different lists refuse each \
         other. A worker may list only some. Same as `--peers`."),
    row("cluster.role", CLUSTER, Kind::Choice(&["voter", "worker"]), is("voter"),
        "`voter` keeps the ledger and votes, `worker` only works. Same as `--role`."),
    row("cluster.name", CLUSTER, Kind::Text, is("spoonbill"),
        "Name of the cluster. A node with another name is refused."),
    row("cluster.secretFile", CLUSTER, Kind::Path, Preset::Unset,
        "File with the shared secret of all nodes, at least 32 bytes."),
    row("cluster.secret", CLUSTER, Kind::Text, Preset::Unset,
        "The shared secret, from the environment or the settings file. It is refused on the \
         command line."),
    row("cluster.insecure", CLUSTER, Kind::Boolean, OFF,
        "Whether a node may listen beyond this machine without a secret."),
    row("cluster.quorum.size", CLUSTER, integer(1, 1000), Preset::Unset,
        "Nodes with a vote that must be connected before a run starts. Unset means more than \
         half. Same as `--quorum`."),
    row("cluster.quorum.timeout", CLUSTER, seconds(), is("60s"),
        "Longest wait for those nodes."),
    row("cluster.quorum.lossExit", CLUSTER, with_unit(1000), is("10m"),
        "Time without a quorum after which a node exits with code 75."),
    row("cluster.session.ttl", CLUSTER, with_unit(1000), is("3500ms"),
        "Longest silence of a node before its jobs go to other nodes."),
    row("cluster.end.wait", CLUSTER, with_unit(0), is("20s"),
        "Longest wait at the end of a run for disconnected nodes, so that they complete their \
         files too."),
    row("cluster.autoFence", CLUSTER, Kind::Boolean, OFF,
        "Whether a node that was silent too long is locked out until `spoonbill admit`."),
    row("cluster.placement", CLUSTER, Kind::Choice(&["any", "listed", "leastLoaded",
        "mostLoaded"]), is("any"),
        "Which waiting node gets jobs first. `any`: the first to ask. `listed`: the first in \
         `cluster.peers`. `leastLoaded`, `mostLoaded`: the node with the fewest or the most jobs \
         in flight."),
    row("cluster.snapshot.bytes", CLUSTER, size(1 << 10), is("64MiB"),
        "Size of the replicated log at which a snapshot of the ledger replaces it."),
    accepted("cluster.mode", CLUSTER, Kind::Text, is("server"),
        "Member or client of Scoopi's cluster. See `cluster.role`."),
    accepted("cluster.config.file", CLUSTER, Kind::Text, Preset::Unset,
        "Configuration of Scoopi's cluster library."),
    accepted("cluster.tx.timeout", CLUSTER, named_by("cluster.tx.timeoutUnit"), is("10s"),
        "Longest transaction on Scoopi's store of jobs."),
    accepted("cluster.tx.timeoutUnit", CLUSTER, Kind::Choice(UNITS), is("SECONDS"),
        "Unit of a `cluster.tx.timeout` that has none."),
    accepted("cluster.tx.type", CLUSTER, Kind::Text, is("TWO_PHASE"),
        "Kind of those transactions."),
    accepted("cluster.shutdown.timeout", CLUSTER, named_by("cluster.shutdown.timeoutUnit"),
        is("60s"),
        "Longest time a node may take to leave."),
    accepted("cluster.shutdown.timeoutUnit", CLUSTER, Kind::Choice(UNITS), is("SECONDS"),
        "Unit of a `cluster.shutdown.timeout` that has none."),
    accepted("cluster.startCrashCleaner.minThreshold", CLUSTER, integer(0, 1_000_000_000), is("10"),
        "Count of queued jobs below which jobs of dead nodes are reset. They are reset at once."),
    accepted("cluster.log.path.suffixUid", CLUSTER, Kind::Boolean, ON,
        "Whether each node logs into its own directory."),

    accepted("poolsize.<step>", ENGINE, integer(1, 10_000), is("4"),
        "Threads of one step. See `parser.threads` and `job.takeLimit`."),
    accepted("seeder.class", ENGINE, Kind::Text, is("LocatorSeeder"),
        "Class that creates the first jobs."),
    accepted("seeder.seedRetryTimes", ENGINE, integer(0, 1000), is("3"),
        "Most attempts to queue a first job. The first jobs are queued in one commit."),
    accepted("job.takeTimeout", ENGINE, millis(0), is("1000ms"),
        "Longest wait for permission to take a job."),
    accepted("job.takeRetryDelay", ENGINE, millis(0), is("50ms"),
        "Pause after an unsuccessful request for a job. The engine waits for a signal instead."),
    accepted("task.takeTimeout", ENGINE, millis(0), is("500ms"),
        "Interval for polling an empty queue of tasks."),
    accepted("mode", ENGINE, Kind::Text, Preset::Unset,
        "Selected the settings file of Scoopi's developers."),
    accepted("propertyFile", ENGINE, Kind::Path, Preset::Unset,
        "Name of the settings file. Use the option `--config`."),
    accepted("propertyPattern", ENGINE, Kind::Text, Preset::Unset,
        "Scoopi does not read it either."),
    accepted("fork.locator", ENGINE, Kind::Text, Preset::Unset,
        "Scoopi does not read it either."),
    accepted("wait", ENGINE, Kind::Text, Preset::Unset,
        "Scoopi does not read it either."),
];

/// A setting that has an effect.
const fn row(
    name: &'static str,
    group: &'static str,
    kind: Kind,
    preset: Preset,
    doc: &'static str,
) -> Key {
    Key { name, group, kind, preset, doc, effective: true }
}

/// A setting of Scoopi's that is accepted without effect.
const fn accepted(
    name: &'static str,
    group: &'static str,
    kind: Kind,
    preset: Preset,
    doc: &'static str,
) -> Key {
    Key { effective: false, ..row(name, group, kind, preset, doc) }
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
