//! Every kind of value, good and bad.

use std::path::PathBuf;
use std::time::Duration;

use super::super::*;
use super::{file, problems, resolve, sets, value_of};

#[test]
fn durations() {
    let delay = |text: &str| value_of(&format!("loader.fetch.delay={text}")).fetch.delay;
    for (text, ms) in [
        ("500ms", 500),
        ("2s", 2000),
        ("1h", 3_600_000),
        ("1m30s", 90_000),
        ("7d", 7 * 86_400_000),
        ("P1W", 7 * 86_400_000),
        ("PT30S", 30_000),
        ("PT0.5S", 500),
        ("250", 250),
        (" 1.5s ", 1500),
        ("0", 0),
    ] {
        assert_eq!(delay(text), Duration::from_millis(ms), "{text}");
    }
    for text in ["", "fast", "-1s", "-5", "1.5", "P1M", "1y", "99999999999999999999", "40000000d"] {
        let problem = problems(&sets(&[&format!("loader.fetch.delay={text}")]));
        assert!(problem.contains("must be a duration, or a number of milliseconds ("), "{problem}");
    }
    insta::assert_snapshot!(
        problems(&sets(&["loader.connect.timeout=10", "loader.idle.timeout=0s"])),
        @r#"
        `--set`: `loader.connect.timeout` is `10`, but must be a duration with its unit, at least 1ms (such as `500ms`, `2s`, `1m30s`, `7d` or `PT30S`)
        `--set`: `loader.idle.timeout` is `0s`, but must be a duration with its unit, at least 1ms (such as `500ms`, `2s`, `1m30s`, `7d` or `PT30S`)
        "#
    );
    assert_eq!(value_of("store.commit.interval=0").store.commit_interval, Duration::ZERO);
}

#[test]
fn a_bare_timeout_counts_in_its_unit() {
    let timeout = |given: &[&str]| resolve(&sets(given)).run.shutdown_timeout.as_secs();
    assert_eq!(timeout(&[]), 18);
    assert_eq!(timeout(&["shutdown.timeout=10"]), 10);
    assert_eq!(timeout(&["shutdown.timeout=2", "shutdown.timeoutUnit=minutes"]), 120);
    assert_eq!(timeout(&["shutdown.timeout=2s", "shutdown.timeoutUnit=HOURS"]), 2);
    assert_eq!(timeout(&["shutdown.timeoutUnit=HOURS"]), 18);
    let (_dir, mut inputs) = file("shutdown.timeout: 1500\n");
    inputs.sets = vec!["scoopi.shutdown.timeoutUnit=MILLISECONDS".to_owned()];
    assert_eq!(resolve(&inputs).run.shutdown_timeout, Duration::from_millis(1500));
}

#[test]
fn sizes() {
    let size = |text: &str| value_of(&format!("loader.body.max={text}")).fetch.body_bytes_max;
    assert_eq!(size("16MiB"), 16 << 20);
    assert_eq!(size("1GB"), 1_000_000_000);
    assert_eq!(size("4096"), 4096);
    assert_eq!(size("2 kib"), 2048);
    for text in ["", "0", "16M", "-1", "1.5GiB", "99999999999TiB", "MiB"] {
        let problem = problems(&sets(&[&format!("loader.body.max={text}")]));
        assert!(problem.contains("must be a size in bytes (such as `16MiB`"), "{problem}");
    }
}

#[test]
fn booleans_integers_choices_and_paths() {
    for (text, expect) in
        [("true", true), ("YES", true), ("on", true), ("no", false), ("Off", false)]
    {
        assert_eq!(value_of(&format!("fact.blank.replace={text}")).fact.blank_replace, expect);
    }
    assert!(!value_of("datastore.enable=false").store.saves_pages());
    assert!(value_of("persist.locator=false").store.persist_data);
    assert_eq!(value_of("store.durability=NONE").store.durability, Durability::None);
    assert_eq!(value_of("resources.dir=a b").fetch.resources_dir, Some(PathBuf::from("a b")));
    insta::assert_snapshot!(
        problems(&sets(&[
            "fact.blank.replace=1",
            "job.takeLimit=0",
            "parser.threads=+1",
            "job.attempts.max=four",
            "output.order=random",
            "data.dir=",
            "poolsize.x=0",
            "poolsize.=1",
            "script.memory.max=1kB",
        ])),
        @r#"
        `--set`: unknown setting `poolsize.` (`spoonbill config` lists every setting)
        `--set`: `fact.blank.replace` is `1`, but must be true or false (also yes, no, on, off) (such as `true`)
        `--set`: `job.takeLimit` is `0`, but must be a whole number from 1 to 100000 (such as `4`)
        `--set`: `parser.threads` is `+1`, but must be a whole number from 0 to 1024 (such as `4`)
        `--set`: `job.attempts.max` is `four`, but must be a whole number from 1 to 100 (such as `4`)
        `--set`: `output.order` is `random`, but must be one of `arrival` or `canonical` (such as `arrival`)
        `--set`: `data.dir` is empty, but must be a path (such as `some/dir`)
        `--set`: `poolsize.x` is `0`, but must be a whole number from 1 to 10000 (such as `4`)
        `--set`: `script.memory.max` is `1kB`, but must be a size of at least 1048576 bytes (such as `16MiB` or `1GB`)
        "#
    );
}

#[test]
fn an_empty_value_unsets_what_has_no_default() {
    let (_dir, mut inputs) = file("resources.dir: r\nappender.file.baseDir: b\n");
    let config = resolve(&inputs);
    assert_eq!(config.output.dir, PathBuf::from("b"));
    assert_eq!(config.get("output.dir"), Some("b"));
    inputs.sets = vec!["resources.dir=".to_owned(), "appender.file.baseDir=".to_owned()];
    let config = resolve(&inputs);
    assert_eq!(config.fetch.resources_dir, None);
    assert_eq!(config.output.dir, PathBuf::from("output"));
    assert_eq!(config.get("resources.dir"), None);
}

#[test]
fn our_names_win_over_scoopis_older_ones() {
    let config = value_of("webClient.timeout=5000");
    assert_eq!(config.fetch.total_timeout, Duration::from_secs(5));
    let config = resolve(&sets(&["webClient.timeout=5000", "loader.total.timeout=7s"]));
    assert_eq!(config.fetch.total_timeout, Duration::from_secs(7));
    let config = resolve(&sets(&["appender.file.baseDir=a", "output.dir=b"]));
    assert_eq!(config.output.dir, PathBuf::from("b"));
}
