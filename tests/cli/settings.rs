//! Settings and usage: the sources of values, and the errors for mistakes.

use crate::harness::Workdir;
use crate::harness::defs::{TITLE, job, titled};

#[test]
fn unknown_settings_and_bad_values_are_refused_together() {
    let work = Workdir::with_defs(&job(&[("a", "a.html")], TITLE));
    let ending = work.spoonbill(&[
        "run",
        "defs",
        "--set",
        "loader.fetch.dealy=1",
        "--set",
        "loader.fetch.parallelism=0",
        "--set",
        "output.order=random",
        "--set",
        "novalue",
    ]);
    insta::assert_snapshot!(ending.shown(&work), @r#"
    exit 3
    --- stderr
    error: `--set`: unknown setting `loader.fetch.dealy`
      did you mean `loader.fetch.delay`?
    error: `--set novalue` gives no value
      write `--set KEY=VALUE`, such as `--set loader.fetch.delay=2s`
    error: `--set`: `loader.fetch.parallelism` is `0`, but must be a whole number from 1 to 1000
      such as `4`
    error: `--set`: `output.order` is `random`, but must be one of `arrival` or `canonical`
      such as `arrival`
    4 errors
    "#);
    assert_eq!(work.list("."), [".logs", "defs"]);
}

#[test]
fn every_source_of_settings_outranks_the_next() {
    let work = Workdir::new();
    work.write(
        "spoonbill.yml",
        "loader.fetch.delay: 1s\nloader.fetch.parallelism: 2\nloader: { redirects.max: 3 }\n",
    );
    std::fs::create_dir(work.path("defs")).unwrap();
    let arguments = ["config", "--defs-dir", "defs", "--set", "scoopi.loader.fetch.delay=5s"];
    let env =
        [("SPOONBILL_LOADER__FETCH__DELAY", "4s"), ("SPOONBILL_LOADER__FETCH__PARALLELISM", "4")];
    let ending = work.start_with_env(&arguments, &env).end();
    let wanted =
        ["loader.fetch.delay", "loader.fetch.parallelism", "loader.redirects.max", "data.dir"];
    let lines: Vec<&str> = ending
        .stdout
        .lines()
        .filter(|line| wanted.contains(&line.split_whitespace().next().unwrap()))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    loader.fetch.delay                     = 5s  (`--set`)
    loader.fetch.parallelism               = 4  (environment variable `SPOONBILL_LOADER__FETCH__PARALLELISM`)
    loader.redirects.max                   = 3  (spoonbill.yml:3)
    data.dir                               = data  (default)
    "#);
    assert_eq!(ending.code, 0);
}

#[test]
fn mistakes_in_a_settings_file_are_shown_with_their_lines() {
    let work = Workdir::with_defs(&job(&[("a", "a.html")], TITLE));
    work.write("my.yml", "loader:\n  fetch:\n    delay: soon\n    paralelism: 2\n");
    let ending = work.spoonbill(&["check", "defs", "--config", "my.yml"]);
    insta::assert_snapshot!(ending.shown(&work), @r#"
    exit 3
    --- stderr
    error: `loader.fetch.delay` is `soon`, but must be a duration, or a number of milliseconds
     --> my.yml:3:12
      |
    3 |     delay: soon
      |            ^^^^ such as `500ms`, `2s`, `1m30s`, `7d` or `PT30S`
    error: unknown setting `loader.fetch.paralelism`
     --> my.yml:4:5
      |
    4 |     paralelism: 2
      |     ^^^^^^^^^^ did you mean `loader.fetch.parallelism`?
    2 errors
    "#);
    let missing = work.spoonbill(&["check", "defs", "--config", "none.yml"]);
    insta::assert_snapshot!(missing.shown(&work), @r#"
    exit 3
    --- stderr
    error: settings file `none.yml` cannot be read: No such file or directory (os error 2)
    1 error
    "#);
}

#[test]
fn the_settings_file_beside_the_definitions_is_read() {
    let work = Workdir::with_defs(&job(&[("acme", "page.html")], TITLE));
    work.write("page.html", "<p>no heading</p>");
    work.write("spoonbill.yml", "fact.notFound.replaceWith: nothing\n");
    assert_eq!(work.rows(&[]), ["acme|g|title|nothing"]);
}

#[test]
fn a_run_date_that_fits_no_pattern_is_refused() {
    let work = Workdir::with_defs(&job(&[("acme", "page.html")], TITLE));
    let ending = work.run(&["runDateTimeText=tomorrow"]);
    insta::assert_snapshot!(ending.shown(&work), @r#"
    exit 3
    --- stderr
    error: setting `runDateTimeText`: `tomorrow` does not fit the pattern `yyyy-MM-dd'T'HH:mm:ss.SSSZ`
    1 error
    "#);
}

#[test]
fn usage_errors_end_with_2() {
    let work = Workdir::new();
    insta::assert_snapshot!(work.spoonbill(&["rnu"]).shown(&work), @r#"
    exit 2
    --- stderr
    error: unrecognized subcommand 'rnu'

    Usage: spoonbill <COMMAND>

    For more information, try '--help'.
    "#);
    insta::assert_snapshot!(work.spoonbill(&["run"]).shown(&work), @r#"
    exit 2
    --- stderr
    error: the following required arguments were not provided:
      <DEFS_DIR>

    Usage: spoonbill run <DEFS_DIR>

    For more information, try '--help'.
    "#);
    insta::assert_snapshot!(work.spoonbill(&["run", "defs", "--outptu", "x"]).shown(&work), @r#"
    exit 2
    --- stderr
    error: unexpected argument '--outptu' found

      tip: a similar argument exists: '--output'

    Usage: spoonbill run --output <DIR> <DEFS_DIR>

    For more information, try '--help'.
    "#);
    assert_eq!(work.spoonbill(&[]).code, 2);
    assert_eq!(work.spoonbill(&["run", "defs", "--log-format", "xml"]).code, 2);
    assert_eq!(work.list("."), [".logs"]);
}

#[test]
fn help_and_version_go_to_stdout() {
    let work = Workdir::new();
    let version = work.spoonbill(&["--version"]);
    assert_eq!((version.code, version.stderr.as_str()), (0, ""));
    assert!(version.stdout.starts_with("spoonbill "));
    let help = work.spoonbill(&["run", "--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    for option in ["--output", "--data-dir", "--set", "--config", "--fresh", "--report"] {
        assert!(help.stdout.contains(option), "{option}");
    }
}

#[test]
fn quiet_says_nothing_and_json_logs_are_json() {
    let work = Workdir::with_defs(&job(&[("acme", "page.html")], TITLE));
    work.write("page.html", titled("x"));
    let quiet = work.run(&["-q"]);
    assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (0, "", ""));
    let json = work.run(&["--log-format", "json", "-v"]);
    let logs: Vec<&str> = json.stderr.lines().filter(|line| line.starts_with('{')).collect();
    assert!(!logs.is_empty(), "{}", json.stderr);
    for line in logs {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}
