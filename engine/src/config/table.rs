//! The table of settings, in the order of the reference. A new setting is a row here and a field in
//! `groups.rs`; a test fails when a row that claims an effect changes no field.

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
const ENGINE: &str = "Scoopi's machinery";

const ON: Preset = Preset::Is("true");
const OFF: Preset = Preset::Is("false");

/// Every setting there is.
// One row, one or two lines: the formatter would make it four times as long.
#[rustfmt::skip]
pub(super) const TABLE: &[Key] = &[
    row("defs.defaultSteps", DEFINITIONS, Kind::Text, is("jsoupDefault"),
        "Chain of steps for tasks that name none."),
    row("fact.blank.replace", DEFINITIONS, Kind::Boolean, ON,
        "Whether a fact that was found but is blank is replaced."),
    row("fact.blank.replaceWith", DEFINITIONS, Kind::Text, is("-"),
        "What stands in for a blank fact."),
    row("fact.notFound.replaceWith", DEFINITIONS, Kind::Text, is("not found"),
        "What stands in for a fact whose query matches nothing."),
    accepted("defs.dir", DEFINITIONS, Kind::Path, Preset::Unset,
        "Directory of the definitions; here it is the argument of the command."),
    accepted("defs.defaultStepsFile", DEFINITIONS, Kind::Text, is("/steps-default.yml"),
        "File of the default chains; ours are built in."),
    accepted("defs.definedSchema", DEFINITIONS, Kind::Text, Preset::Unset,
        "Schema of definitions as written; `spoonbill schema` prints ours."),
    accepted("defs.effectiveSchema", DEFINITIONS, Kind::Text, Preset::Unset,
        "Schema of definitions after normalising."),

    row("runDateTimeText", DATES, Kind::Text, Preset::Unset,
        "Date and time the run pretends to start at, written in `dateTimePattern`; the clock when \
         unset."),
    row("dateTimePattern", DATES, Kind::Text, is("yyyy-MM-dd'T'HH:mm:ss.SSSZ"),
        "How dates with a time are written and read: in scripts, in `live`, for the run date."),
    row("highDate", DATES, Kind::Text, is("2037-12-31T23:59:59.999"),
        "The date that means \"for ever\"."),

    row("output.dir", OUTPUT, Kind::Path, Preset::Like("appender.file.baseDir", "output"),
        "Directory that the relative files of appenders are placed under."),
    row("appender.file.baseDir", OUTPUT, Kind::Path, Preset::Unset,
        "Scoopi's name for `output.dir`, used where that one is not set."),
    row("outputDirTimestampPattern", OUTPUT, Kind::Text, is("yyyyMMMdd-HHmmss"),
        "Pattern of the directory, named after the run date, that holds the files of one run."),
    row("output.order", OUTPUT, Kind::Choice(&["arrival", "canonical"]), is("arrival"),
        "Order of rows: as jobs finish, or always the same for the same pages."),
    row("output.lag.max", OUTPUT, size(1), is("1GiB"),
        "Rows that wait to be written, in bytes; above it no new jobs are taken."),
    accepted("appender.queueSize", OUTPUT, integer(1, 1_000_000), is("4096"),
        "Appenders read committed rows in bounded portions instead."),

    row("job.takeLimit", JOBS, integer(1, 100_000), is("64"),
        "Jobs in flight at the same time on one node."),
    row("job.attempts.max", JOBS, integer(1, 100), is("4"),
        "How often a failing job is tried before it counts as failed."),
    row("job.onError", JOBS, Kind::Choice(&["fail", "quarantine", "halt"]), is("fail"),
        "What a failed job means for the others: nothing; no more jobs of its host, and those that \
         wait are failed too; or the end of the run, which the next `run` continues."),
    row("task.timeout", JOBS, with_unit(1000), is("30m"),
        "How long a node of a cluster may have a job in hand from when its turn has come, before it is \
         given to another as well: what works on it may be stuck. The first result counts. Longer than \
         any page takes with all its tasks, and far above `loader.total.timeout`."),
    row("links.depth.max", JOBS, integer(0, 1_000_000_000), is("10000"),
        "Links followed one after the other from one locator."),
    row("links.page.max", JOBS, integer(0, 1_000_000_000), is("1000000"),
        "Locators made from one page."),
    row("follow.dropParams", JOBS, Kind::Text,
        is("utm_*, gclid, fbclid, msclkid, dclid, yclid, mc_cid, mc_eid, _ga, igshid"),
        "Parameters that `follow` takes out of addresses, since they only track the visitor; a `*` \
         at the end stands for anything."),
    row("urls.max", JOBS, integer(1, 1_000_000_000_000), is("10000000"),
        "Addresses that the ranges and files below `urls` may give to one run."),
    row("sitemap.urls.max", JOBS, integer(1, 1_000_000_000), is("100000"),
        "Addresses taken from one sitemap."),
    row("sitemap.files.max", JOBS, integer(1, 1_000_000_000), is("50000"),
        "Sitemaps that the indexes of sitemaps may add to one run."),

    row("resources.dir", FETCHING, Kind::Path, Preset::Unset,
        "What the path of a locator is resolved against when no such file exists; the directory of \
         the definitions, unless set."),
    row("loader.fetch.delay", FETCHING, millis(0), is("1000ms"),
        "Pause between two fetches from one host."),
    row("loader.fetch.parallelism", FETCHING, integer(1, 1000), is("1"),
        "Pages fetched from one host at the same time. In a cluster a host without a pause \
         (`loader.fetch.delay=0`) is everybody's: so many at the same time by each node."),
    row("loader.retry.backoff", FETCHING, with_unit(0), is("500ms"),
        "Pause before the first retry of a page; doubled each time."),
    row("loader.retry.backoffMax", FETCHING, with_unit(0), is("60s"),
        "Longest pause between two retries."),
    row("loader.retryAfter.max", FETCHING, with_unit(0), is("10m"),
        "Longest `Retry-After` of a server that is waited for."),
    row("loader.connect.timeout", FETCHING, with_unit(1), is("10s"),
        "Time to reach a server."),
    row("loader.idle.timeout", FETCHING, with_unit(1), is("30s"),
        "Time without a byte after which a fetch is given up."),
    row("loader.total.timeout", FETCHING, millis(1), Preset::Like("webClient.timeout", "120s"),
        "Time one fetch from one host may take, its redirects and the body included."),
    row("loader.redirects.max", FETCHING, integer(0, 100), is("10"),
        "Redirects followed for one page."),
    row("loader.body.max", FETCHING, size(1), is("16MiB"),
        "Size of a page after decompression; a larger one fails."),
    row("webClient.userAgent", FETCHING, Kind::Text,
        is(concat!("spoonbill/", env!("CARGO_PKG_VERSION"))),
        "The `User-Agent` sent to servers."),
    row("webClient.timeout", FETCHING, millis(1), is("120s"),
        "Scoopi's name for `loader.total.timeout`, used where that one is not set."),
    accepted("webDriver.driverPath", FETCHING, Kind::Path, is(".gecko/geckodriver"),
        "Driver of the browser."),
    accepted("webDriver.log", FETCHING, Kind::Path, is("geckodriver.log"),
        "Log of the browser's driver."),
    accepted("webDriver.waitType", FETCHING, Kind::Text, is("explicit"),
        "How the browser waits for elements."),
    accepted("webDriver.timeout.explicitWait", FETCHING, seconds(), is("10s"),
        "How long the browser waits for one element."),
    accepted("webDriver.timeout.implicitWait", FETCHING, seconds(), is("10s"),
        "How long the browser waits for any element."),

    row("parser.nodes.max", PARSING, integer(1, 100_000_000), is("4000000"),
        "Nodes of one page; a larger page fails."),
    row("parser.depth.max", PARSING, integer(1, 1_000_000), is("5000"),
        "Elements inside each other on one page."),
    row("parser.rows.max", PARSING, integer(1, 1_000_000_000), is("1000000"),
        "Rows one task may take from one page."),
    row("parser.time.max", PARSING, with_unit(1), is("30s"),
        "Time one task may take on one page."),
    row("parser.threads", PARSING, integer(0, 1024), is("0"),
        "Threads that parse pages; 0 is one per core."),
    row("script.time.max", PARSING, with_unit(1), is("2s"),
        "Time one call of a script may take."),
    row("script.memory.max", PARSING, size(1 << 20), is("32MiB"),
        "Memory the scripts of one thread may use."),

    row("data.dir", STORE, Kind::Path, is("data"),
        "Directory of the durable state: ledger of jobs, stored pages, parsed data."),
    row("datastore.enable", STORE, Kind::Boolean, ON,
        "Whether pages and parsed data are kept for later runs at all."),
    row("persist.locator", STORE, Kind::Boolean, ON,
        "Whether pages are kept and, while they are live, not fetched again."),
    row("pages.keep", STORE, Kind::Choice(&["web", "all"]), is("web"),
        "Which pages are kept for `replay` and `live`: those from the network, or files too. A file \
         that is not kept is its own copy."),
    row("pages.max", STORE, size(1), is("8GiB"),
        "Size of the kept pages, compressed, on disk; above it the oldest go."),
    row("persist.data", STORE, Kind::Boolean, ON,
        "Whether parsed data is kept and, while its page is live, not parsed again."),
    row("store.durability", STORE, Kind::Choice(&["strict", "none"]), is("strict"),
        "Whether work survives the process; `none` keeps everything in memory, for measuring only."),
    row("store.commit.interval", STORE, with_unit(0), is("5ms"),
        "How long commands gather before they are committed together."),
    row("store.commit.max", STORE, integer(1, 1_000_000), is("1000"),
        "Commands committed together at most."),
    row("store.journal.max", STORE, size(1), is("4MiB"),
        "Size of the journal of commits; above it they are brought to the ledger's tables at once."),
    row("store.seen.memory", STORE, size(1 << 20), is("128MiB"),
        "Memory for the set of known addresses; the set itself lies on disk."),
    accepted("datastore.type", STORE, Kind::Text, is("jar:file:"),
        "Kind of Scoopi's store."),
    accepted("datastore.path", STORE, Kind::Path, is("data"),
        "Place of Scoopi's store; ours is `data.dir`."),

    row("progress.interval", RUN, with_unit(1), is("30s"),
        "Time between two lines of progress where there is no terminal."),
    accepted("monitor.timerPeriod", RUN, millis(1), is("1000ms"),
        "The monitor wakes on facts, not on a timer."),
    row("shutdown.timeout", RUN, named_by("shutdown.timeoutUnit"), is("18s"),
        "How long a cancelled run waits for the jobs in flight."),
    row("shutdown.timeoutUnit", RUN, Kind::Choice(UNITS), is("SECONDS"),
        "What a `shutdown.timeout` without a unit counts."),
    accepted("metrics.server.enable", RUN, Kind::Boolean, ON,
        "Whether metrics are served over HTTP."),
    accepted("metrics.server.port", RUN, integer(1, 65_535), is("9010"),
        "Port of the metrics."),
    accepted("metrics.serializer.period", RUN, seconds(), is("5s"),
        "Time between two snapshots of the metrics."),
    accepted("log.dir", RUN, Kind::Path, is("logs"),
        "Directory of log files; we log to standard error."),

    row("cluster.enable", CLUSTER, Kind::Boolean, OFF,
        "Whether the run is shared by several nodes; the option `--cluster` says so too."),
    row("cluster.node.id", CLUSTER, Kind::Text, Preset::Unset,
        "This node's number among the peers, from 1; `auto` takes it from the end of the machine's \
         name, where a StatefulSet counts from 0. `--node-id` says so too."),
    row("cluster.listen", CLUSTER, Kind::Text, Preset::Unset,
        "Address and port this node listens on; its own among the peers, unless set. `--listen`."),
    row("cluster.peers", CLUSTER, Kind::Text, Preset::Unset,
        "Numbers and addresses of all nodes with a vote, the same on every node: \
         `1=host-a:7400,2=host-b:7400,3=host-c:7400`. Nodes with different lists refuse each other; \
         a worker may know only some. `--peers`."),
    row("cluster.role", CLUSTER, Kind::Choice(&["voter", "worker"]), is("voter"),
        "Whether this node keeps the ledger and has a vote, or only works. `--role`."),
    row("cluster.name", CLUSTER, Kind::Text, is("spoonbill"),
        "What all nodes of a cluster call it; a node of another name is turned away."),
    row("cluster.secretFile", CLUSTER, Kind::Path, Preset::Unset,
        "File with the secret that nodes prove to each other, 32 bytes or more."),
    row("cluster.secret", CLUSTER, Kind::Text, Preset::Unset,
        "The secret itself, from the environment or the settings file, never from the command line."),
    row("cluster.insecure", CLUSTER, Kind::Boolean, OFF,
        "Whether a node may listen beyond this machine without a secret."),
    row("cluster.quorum.size", CLUSTER, integer(1, 1000), Preset::Unset,
        "Nodes with a vote that must be there before a run starts; more than half, unless set. \
         `--quorum`."),
    row("cluster.quorum.timeout", CLUSTER, seconds(), is("60s"),
        "How long to wait for those nodes."),
    row("cluster.quorum.lossExit", CLUSTER, with_unit(1000), is("10m"),
        "How long a node goes on trying when too few others are left."),
    row("cluster.session.ttl", CLUSTER, with_unit(1000), is("3500ms"),
        "How long a node may be silent before its jobs go to others."),
    row("cluster.end.wait", CLUSTER, with_unit(0), is("20s"),
        "How long the end of a run waits for nodes that are away, so that they get its files too."),
    row("cluster.autoFence", CLUSTER, Kind::Boolean, OFF,
        "Whether a node that was silent for too long stays out until `spoonbill admit` lets it in."),
    row("cluster.placement", CLUSTER,
        Kind::Choice(&["any", "listed", "leastLoaded", "mostLoaded"]), is("any"),
        "Who gets jobs first when several nodes wait for some: whoever asks first, the first among \
         the peers, the one with the fewest jobs in hand, or the one with the most."),
    row("cluster.snapshot.bytes", CLUSTER, size(1 << 10), is("64MiB"),
        "Size of the log between nodes after which a copy of the ledger takes its place."),
    accepted("cluster.mode", CLUSTER, Kind::Text, is("server"),
        "Member or client of Scoopi's cluster; see `cluster.role`."),
    accepted("cluster.config.file", CLUSTER, Kind::Text, Preset::Unset,
        "Configuration of Scoopi's cluster library."),
    accepted("cluster.tx.timeout", CLUSTER, named_by("cluster.tx.timeoutUnit"), is("10s"),
        "Longest transaction on Scoopi's store of jobs."),
    accepted("cluster.tx.timeoutUnit", CLUSTER, Kind::Choice(UNITS), is("SECONDS"),
        "What a `cluster.tx.timeout` without a unit counts."),
    accepted("cluster.tx.type", CLUSTER, Kind::Text, is("TWO_PHASE"),
        "Kind of those transactions."),
    accepted("cluster.shutdown.timeout", CLUSTER, named_by("cluster.shutdown.timeoutUnit"),
        is("60s"), "How long a node may take to leave."),
    accepted("cluster.shutdown.timeoutUnit", CLUSTER, Kind::Choice(UNITS), is("SECONDS"),
        "What a `cluster.shutdown.timeout` without a unit counts."),
    accepted("cluster.startCrashCleaner.minThreshold", CLUSTER, integer(0, 1_000_000_000),
        is("10"), "Queued jobs below which jobs of dead nodes are reset; we do so at once."),
    accepted("cluster.log.path.suffixUid", CLUSTER, Kind::Boolean, ON,
        "Whether each node logs into its own directory."),

    accepted("poolsize.<step>", ENGINE, integer(1, 10_000), is("4"),
        "Threads of one step; see `parser.threads` and `job.takeLimit`."),
    accepted("seeder.class", ENGINE, Kind::Text, is("LocatorSeeder"),
        "Class that makes the first jobs."),
    accepted("seeder.seedRetryTimes", ENGINE, integer(0, 1000), is("3"),
        "Attempts to queue a first job; ours are queued in one commit."),
    accepted("job.takeTimeout", ENGINE, millis(0), is("1000ms"),
        "How long to wait for leave to take a job."),
    accepted("job.takeRetryDelay", ENGINE, millis(0), is("50ms"),
        "Pause when there is no job to take; we wait for a signal instead."),
    accepted("task.takeTimeout", ENGINE, millis(0), is("500ms"),
        "How often an empty queue of tasks is looked at."),
    accepted("mode", ENGINE, Kind::Text, Preset::Unset,
        "Picked the settings file of developers."),
    accepted("propertyFile", ENGINE, Kind::Path, Preset::Unset,
        "Name of the settings file; here it is the option `--config`."),
    accepted("propertyPattern", ENGINE, Kind::Text, Preset::Unset,
        "Not read by Scoopi either."),
    accepted("fork.locator", ENGINE, Kind::Text, Preset::Unset,
        "Not read by Scoopi either."),
    accepted("wait", ENGINE, Kind::Text, Preset::Unset,
        "Not read by Scoopi either."),
];

const fn row(
    name: &'static str,
    group: &'static str,
    kind: Kind,
    preset: Preset,
    doc: &'static str,
) -> Key {
    Key { name, group, kind, preset, doc, effective: true }
}

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
