//! Tests of precedence, kinds, places of problems, and Scoopi's names.

mod sources;
mod values;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use spoonbill_defs::{Problem, Problems, Severity};

use super::keys::{Kind, Preset};
use super::table::table;
use super::*;

fn sets(sets: &[&str]) -> Inputs {
    Inputs { sets: sets.iter().map(ToString::to_string).collect(), ..Inputs::default() }
}

fn vars(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(k, v)| (k.into(), v.into())).collect()
}

/// A settings file in its own directory. Dropping the guard removes it.
fn file(text: &str) -> (tempfile::TempDir, Inputs) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spoonbill.yml");
    fs::write(&path, text).unwrap();
    let inputs = Inputs { config_file: Some(path), ..Inputs::default() };
    (dir, inputs)
}

fn resolve(inputs: &Inputs) -> Config {
    match Config::resolve(inputs) {
        Ok((config, warnings)) => {
            assert!(warnings.is_empty(), "{warnings:?}");
            config
        }
        Err(problems) => panic!("{}", render(&problems.0)),
    }
}

fn problems(inputs: &Inputs) -> String {
    match Config::resolve(inputs) {
        Ok(_) => "no problem".to_owned(),
        Err(Problems(problems)) => render(&problems),
    }
}

fn render(problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        let place = problem.place.as_ref().map_or_else(String::new, |place| {
            format!("{}:{}+{} ", place.line, place.column, place.width)
        });
        let severity = match problem.severity {
            Severity::Warning => "warning: ",
            Severity::Error => "",
        };
        let help = problem.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
        format!("{place}{severity}{}{help}", problem.message)
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn value_of(set: &str) -> Config {
    resolve(&sets(&[set]))
}

#[test]
fn defaults_are_those_the_engine_is_written_against() {
    let lines = fields(&Config::default()).replace("Config {", "\nConfig {");
    insta::assert_snapshot!(lines, @r#"
    Config { defs: Defs
    Config { default_steps: "jsoupDefault" }, fact: Fact
    Config { blank_replace: true, blank_replace_with: "-", not_found_replace_with: "not found" }, dates: Dates
    Config { run_date_time_text: None, pattern: "yyyy-MM-dd'T'HH:mm:ss.SSSZ", high_date: "2037-12-31T23:59:59.999" }, output: Output
    Config { dir: "output", base_dir: None, dir_timestamp_pattern: "yyyyMMMdd-HHmmss", order: Arrival, lag_bytes_max: 1073741824 }, job: Job
    Config { take_limit: 64, attempts_max: 4, on_error: Fail, task_timeout: 1800s }, links: Links
    Config { depth_max: 10000, page_max: 1000000, drop_params: "utm_*, gclid, fbclid, msclkid, dclid, yclid, mc_cid, mc_eid, _ga, igshid", urls_max: 10000000, sitemap_urls_max: 100000, sitemap_files_max: 50000 }, fetch: Fetch
    Config { resources_dir: None, delay: 1s, parallelism: 1, retry_backoff: 500ms, retry_backoff_max: 60s, retry_after_max: 600s, connect_timeout: 10s, idle_timeout: 30s, total_timeout: 120s, redirects_max: 10, body_bytes_max: 16777216, user_agent: "spoonbill/0.1.0", client_timeout: 120s }, parse: Parse
    Config { nodes_max: 4000000, depth_max: 5000, rows_max: 1000000, time_max: 30s, threads: 0 }, script: Script
    Config { time_max: 2s, memory_bytes_max: 33554432 }, store: Store
    Config { data_dir: "data", enable: true, persist_locator: true, pages_keep: Web, pages_bytes_max: 8589934592, persist_data: true, durability: Strict, commit_interval: 5ms, commit_max: 1000, journal_max: 4194304, seen_memory: 134217728 }, run: Run
    Config { progress_interval: 30s, shutdown_timeout: 18s, shutdown_timeout_unit: "SECONDS" }, cluster: Cluster
    Config { enable: false, node_id: None, listen: None, peers: None, role: Voter, name: "spoonbill", secret_file: None, secret: None, insecure: false, quorum_size: None, quorum_timeout: 60s, loss_exit: 600s, session_ttl: 3.5s, end_wait: 20s, auto_fence: false, placement: Any, snapshot_bytes: 67108864 }, settings: {} }
    "#);
}

#[test]
fn every_default_is_a_good_value() {
    for key in table() {
        let (Preset::Is(text) | Preset::Like(_, text)) = key.preset else {
            continue;
        };
        assert!(value::parse(key.kind, text, "SECONDS").is_ok(), "{key:?}");
    }
    assert!(Config::resolve(&Inputs::default()).is_ok());
}

#[test]
fn names_are_unique_and_docs_are_sentences() {
    let names: std::collections::BTreeSet<_> = table().map(|key| key.name).collect();
    assert_eq!(names.len(), table().count());
    for key in table() {
        assert!(key.doc.ends_with('.') && !key.doc.contains('|'), "{key:?}");
    }
}

/// The fields of the engine, without the texts they came from.
fn fields(config: &Config) -> String {
    let mut config = config.clone();
    config.settings.clear();
    format!("{config:?}")
}

#[test]
fn every_setting_with_an_effect_changes_a_field() {
    let default = fields(&Config::default());
    for key in table() {
        let text = match key.kind {
            Kind::Text | Kind::Path => "other".to_owned(),
            Kind::Choice(choices) => choices[1].to_owned(),
            Kind::Boolean if key.preset == Preset::Is("true") => "no".to_owned(),
            Kind::Boolean => "yes".to_owned(),
            Kind::Integer { min, .. } => (min + 77).to_string(),
            Kind::Duration { .. } => "77s".to_owned(),
            Kind::Size { .. } => "77MiB".to_owned(),
        };
        // The unit shows only beside a number without one.
        let mut given = sets(&[&format!("{}={text}", key.name.replace("<step>", "x"))]);
        let mut before = default.clone();
        if key.name == "shutdown.timeoutUnit" {
            given.sets.push("shutdown.timeout=5".to_owned());
            before = fields(&value_of("shutdown.timeout=5"));
        }
        let changed = fields(&resolve(&given)) != before;
        assert_eq!(changed, key.is_effective(), "{}", key.name);
    }
}

#[test]
fn a_map_carries_the_settings_to_other_nodes() {
    let config = resolve(&sets(&[
        "shutdown.timeout=2",
        "shutdown.timeoutUnit=MINUTES",
        "appender.file.baseDir=there",
        "poolsize.mine=7",
        "webClient.timeout=5000",
    ]));
    let map = config.to_map();
    let there = Config::from_map(&map).unwrap();
    assert_eq!(fields(&there), fields(&config));
    assert_eq!(there.to_map(), map);

    let json = serde_json::to_string(&config).unwrap();
    let read: BTreeMap<String, String> = serde_json::from_str(&json).unwrap();
    assert_eq!(read, map);
    let read: Config = serde_json::from_str(&json).unwrap();
    assert_eq!(fields(&read), fields(&config));
    let wrong = serde_json::from_str::<Config>(r#"{"job.takeLimit": "no"}"#).unwrap_err();
    assert!(wrong.to_string().contains("`job.takeLimit` is `no`"), "{wrong}");
}

#[test]
fn entries_list_every_setting_once_in_the_order_of_the_table() {
    let config = value_of("scoopi.poolsize.b=7");
    let names: Vec<_> = config.entries().map(|entry| entry.key).collect();
    let table: Vec<_> = table().map(|key| key.name.replace("<step>", "b")).collect();
    assert_eq!(names, table);
    let unset = config.entries().find(|entry| entry.key == "resources.dir");
    let unset = unset.unwrap();
    assert_eq!((unset.value, unset.source), (None, &Source::Default));
    assert!(unset.effective);
}

#[test]
fn secrets_are_not_shown() {
    let config = resolve(&sets(&["poolsize.myToken=7", "poolsize.monkey=8"]));
    let shown: Vec<_> = config
        .entries()
        .filter(|entry| entry.key.starts_with("poolsize"))
        .map(|entry| entry.value)
        .collect();
    assert_eq!(shown, [Some("***"), Some("***")]);
    assert_eq!(config.get("poolsize.myToken"), Some("7"));
    assert!(!problems(&sets(&["poolsize.apiSecret=hush"])).contains("hush"));
}

/// The names of section 6.2 of the behavioural reference.
const SCOOPI: &str = "
    defs.dir defs.defaultStepsFile defs.defaultSteps defs.definedSchema defs.effectiveSchema
    fact.blank.replace fact.blank.replaceWith fact.notFound.replaceWith seeder.class
    seeder.seedRetryTimes poolsize.start poolsize.loader poolsize.parser poolsize.process
    poolsize.filter poolsize.appender poolsize.seeder appender.queueSize appender.file.baseDir
    dateTimePattern runDateTimeText highDate outputDirTimestampPattern datastore.enable
    datastore.type datastore.path persist.locator persist.data cluster.enable cluster.mode
    cluster.config.file cluster.quorum.size cluster.quorum.timeout cluster.tx.timeout
    cluster.tx.timeoutUnit cluster.tx.type cluster.shutdown.timeout cluster.shutdown.timeoutUnit
    cluster.startCrashCleaner.minThreshold cluster.log.path.suffixUid job.takeLimit job.takeTimeout
    job.takeRetryDelay task.takeTimeout monitor.timerPeriod loader.fetch.parallelism
    loader.fetch.delay metrics.server.enable metrics.server.port metrics.serializer.period
    shutdown.timeout shutdown.timeoutUnit webClient.timeout webClient.userAgent
    webDriver.driverPath webDriver.log webDriver.waitType webDriver.timeout.explicitWait
    webDriver.timeout.implicitWait log.dir mode propertyFile wait fork.locator propertyPattern";

#[test]
fn every_name_of_scoopi_is_accepted_with_and_without_prefix() {
    let names: Vec<&str> = SCOOPI.split_whitespace().collect();
    assert_eq!(names.len(), 65);
    let default = Config::default();
    for prefix in ["", "scoopi.", "spoonbill."] {
        let given: Vec<String> = names
            .iter()
            .map(|name| format!("{prefix}{name}={}", default.get(name).unwrap_or("3")))
            .collect();
        let inputs = Inputs { sets: given, ..Inputs::default() };
        let config = resolve(&inputs);
        assert!(names.iter().all(|name| config.get(name).is_some()));
    }
}

#[test]
fn scoopis_numbers_are_read_in_its_units() {
    resolve(&sets(&[
        "cluster.quorum.timeout=60",
        "cluster.tx.timeout=10",
        "cluster.tx.timeoutUnit=SECONDS",
        "metrics.serializer.period=5",
        "webDriver.timeout.explicitWait=10",
        "job.takeTimeout=1000",
        "task.takeTimeout=500",
    ]));
    let config = resolve(&sets(&["monitor.timerPeriod=1000", "webClient.timeout=120000"]));
    assert_eq!(config.fetch.total_timeout, Duration::from_mins(2));
}

#[test]
fn the_page_of_settings_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
    let page = reference();
    if std::env::var_os("BLESS").is_some_and(|bless| bless == "1") {
        fs::write(path, &page).unwrap();
    }
    let stored = fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == page,
        "docs/settings.md is stale: run `just bless`, or this test with BLESS=1"
    );
}
