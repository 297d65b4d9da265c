//! Tests of the sources of settings, their precedence, and the places of problems.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use spoonbill_defs::Problems;

use super::super::*;
use super::{file, problems, resolve, sets, vars};

#[test]
fn a_higher_source_wins() {
    let (_dir, mut inputs) = file("loader.fetch.delay: 1s\njob.takeLimit: 1\n");
    let delay = |inputs: &Inputs| {
        let config = resolve(inputs);
        let entry = config
            .entries()
            .find(|entry| entry.key == "loader.fetch.delay")
            .map(|entry| entry.source.clone());
        (config.fetch.delay.as_secs(), entry.unwrap())
    };
    assert_eq!(delay(&inputs), (1, Source::File(inputs.config_file.clone().unwrap(), 1)));
    inputs.env = vars(&[("SPOONBILL_LOADER__FETCH__DELAY", "2s"), ("PATH", "/bin")]);
    assert_eq!(delay(&inputs), (2, Source::Env("SPOONBILL_LOADER__FETCH__DELAY".to_owned())));
    inputs.sets =
        vec!["loader.fetch.delay=3s".to_owned(), "scoopi.loader.fetch.delay=4s".to_owned()];
    assert_eq!(delay(&inputs), (4, Source::Set));
    inputs.flags = vec![("loader.fetch.delay".to_owned(), "5s".to_owned())];
    assert_eq!(delay(&inputs), (5, Source::Flag));
    assert_eq!(resolve(&inputs).job.take_limit, 1);
}

#[test]
fn the_settings_file_lies_beside_the_definitions() {
    let dir = tempfile::tempdir().unwrap();
    let defs = dir.path().join("defs");
    fs::create_dir_all(defs.join("deep")).unwrap();
    let inputs = |defs_dir: PathBuf| Inputs { defs_dir: Some(defs_dir), ..Inputs::default() };
    assert_eq!(inputs(defs.clone()).settings_file(), None);
    // Inside the directory it is a definition.
    fs::write(defs.join("spoonbill.yml"), "job.takeLimit: 8").unwrap();
    assert_eq!(inputs(defs.clone()).settings_file(), None);

    fs::write(dir.path().join("spoonbill.yml"), "job.takeLimit: 9").unwrap();
    assert_eq!(resolve(&inputs(defs.clone())).job.take_limit, 9);
    assert_eq!(resolve(&inputs(defs.join("."))).job.take_limit, 9);
    assert_eq!(resolve(&inputs(defs.join("deep/.."))).job.take_limit, 9);
    let other = dir.path().join("other.yml");
    fs::write(&other, "").unwrap();
    let mut inputs = inputs(defs);
    inputs.config_file = Some(other);
    assert_eq!(resolve(&inputs).job.take_limit, 64);
}

#[test]
fn nested_and_dotted_names_mix_in_a_file() {
    let (_dir, inputs) = file(
        "# settings\n\
         loader:\n  fetch.delay: 250\n  retry: {backoff: 1s, backoffMax: 2m}\n\
         scoopi:\n  fact:\n    notFound: {replaceWith: '-'}\n\
         spoonbill.output.order: Canonical\n\
         runDateTimeText: 2024-01-01T00:00:00.000+0000\n\
         highDate: 0x10\n\
         webClient.userAgent: \"a: b\"\n\
         persist:\n\
         poolsize: {start: 4, parser: 8}\n",
    );
    let config = resolve(&inputs);
    assert_eq!(config.fetch.delay, Duration::from_millis(250));
    assert_eq!(config.fetch.retry_backoff, Duration::from_secs(1));
    assert_eq!(config.fetch.retry_backoff_max, Duration::from_mins(2));
    assert_eq!(config.fact.not_found_replace_with, "-");
    assert_eq!(config.output.order, OutputOrder::Canonical);
    assert_eq!(config.dates.high_date, "0x10");
    assert_eq!(config.fetch.user_agent, "a: b");
    assert_eq!(config.get("poolsize.parser"), Some("8"));
    assert_eq!(config.get("scoopi.poolsize.any"), Some("4"));
}

#[test]
fn all_problems_of_a_file_are_told_with_their_places() {
    let (_dir, inputs) = file(
        "loader:\n\
         \x20 fetch:\n\
         \x20   dealy: 1s\n\
         \x20   parallelism: \"many\" # words\n\
         jobs.takeLimit: 3\n\
         output: [a, {b: c}]\n\
         persist.data:\n\
         nonsense: {deep: er}\n\
         loader.fetch.delay: 1\n\
         scoopi.loader.fetch.delay: 2\n\
         api.token: hush\n\
         ? {a: b}\n\
         : {c: d}\n\
         wait: &x 3\n\
         job.takeLimit: *x\n\
         poolsize.apiKey: hush\n",
    );
    insta::assert_snapshot!(problems(&inputs), @r#"
    3:5+5 unknown setting `loader.fetch.dealy` (did you mean `loader.fetch.delay`?)
    4:18+6 `loader.fetch.parallelism` is `many`, but must be a whole number from 1 to 1000 (such as `4`)
    5:1+14 unknown setting `jobs.takeLimit` (did you mean `job.takeLimit`?)
    6:9+1 setting `output` takes one value, not a list
    7:1+12 setting `persist.data` has no value (write '' for an empty text, or leave the line out)
    8:12+4 unknown setting `nonsense.deep` (`spoonbill config` lists every setting)
    10:1+25 setting `loader.fetch.delay` is given twice (line 9 has it too)
    11:1+9 unknown setting `api.token` (`spoonbill config` lists every setting)
    12:3+1 the name of a setting is a text, not a mapping
    15:16+2 setting `job.takeLimit` takes one value, not an alias
    16:18+4 `poolsize.apiKey` is `***`, but must be a whole number from 1 to 10000 (such as `4`)
    "#);
    let Err(Problems(all)) = Config::resolve(&inputs) else {
        panic!("no problem");
    };
    let lines: Vec<_> = all.iter().filter_map(|p| Some(&p.place.as_ref()?.source)).collect();
    assert!(lines.iter().any(|line| *line == "api.token: ***"), "{lines:?}");
    assert!(!format!("{all:?}").contains("hush"));
}

#[test]
fn a_file_must_be_there_and_be_a_mapping() {
    let gone = Inputs { config_file: Some("/no/such/file.yml".into()), ..Inputs::default() };
    assert!(problems(&gone).starts_with("settings file `/no/such/file.yml` cannot be read"));
    let told = |text: &str| {
        let (_dir, inputs) = file(text);
        problems(&inputs)
    };
    insta::assert_snapshot!(told("loader.fetch.delay=5"), @r"1:1+20 a settings file is a mapping of names to values, not one text");
    insta::assert_snapshot!(told("- a\n- b"), @r"1:1+1 a settings file is a mapping of names to values, not a list");
    insta::assert_snapshot!(told("a: {b: c"), @r#"
    1:4+1 not valid YAML: unclosed bracket '{'
    1:5+1 unknown setting `a.b` (`spoonbill config` lists every setting)
    "#);
    insta::assert_snapshot!(told("wait: 1\n---\nwait: 2\n"), @r#"
    2:1+3 a settings file holds one document only
    3:1+4 setting `wait` is given twice (line 1 has it too)
    "#);
    assert_eq!(told(""), "no problem");
    assert_eq!(told("# nothing yet\n"), "no problem");
    assert_eq!(told("\u{feff}wait: 1\n"), "no problem");
}

#[test]
fn unknown_names_are_refused_and_unknown_variables_reported() {
    let mut inputs = sets(&["loader.fetchDelay=1", "fetch.delay=1", "xyzzy=1", "novalue"]);
    inputs.flags = vec![("outputdir".to_owned(), "x".to_owned())];
    inputs.env = vars(&[
        ("SPOONBILL_LOADER__FETCH__DELY", "1"),
        ("SPOONBILL_LOG", "debug"),
        ("OTHER_LOADER__FETCH__DELY", "1"),
    ]);
    insta::assert_snapshot!(problems(&inputs), @r#"
    environment variable `SPOONBILL_LOADER__FETCH__DELY` names no setting (did you mean `SPOONBILL_LOADER__FETCH__DELAY`?)
    `--set`: unknown setting `loader.fetchDelay` (did you mean `loader.fetch.delay`?)
    `--set`: unknown setting `fetch.delay` (did you mean `loader.fetch.delay`?)
    `--set`: unknown setting `xyzzy` (`spoonbill config` lists every setting)
    `--set novalue` gives no value (write `--set KEY=VALUE`, such as `--set loader.fetch.delay=2s`)
    command line: unknown setting `outputdir` (did you mean `output.dir`?)
    "#);
    inputs.sets.clear();
    inputs.flags.clear();
    // Without `__` it may be somebody else's, unless it is all but a setting.
    inputs.env = vars(&[("SPOONBILL_BIN", "x"), ("SPOONBILL_DATETIMEPATERN", "yyyy")]);
    let (_, warnings) = Config::resolve(&inputs).unwrap();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].help.as_deref(), Some("did you mean `SPOONBILL_DATETIMEPATTERN`?"));
}

#[test]
fn variables_name_settings_in_any_case() {
    let mut inputs = Inputs {
        env: vars(&[
            ("SPOONBILL_WEBCLIENT__USERAGENT", "me"),
            ("SPOONBILL_fact__blank__replaceWith", ""),
            ("SPOONBILL_POOLSIZE__PARSER", "3"),
        ]),
        ..Inputs::default()
    };
    let config = resolve(&inputs);
    assert_eq!(config.fetch.user_agent, "me");
    assert_eq!(config.fact.blank_replace_with, "");
    assert_eq!(config.get("poolsize.parser"), Some("3"));
    inputs.env = vars(&[("SPOONBILL_JOB__TAKELIMIT", "0")]);
    insta::assert_snapshot!(problems(&inputs), @r"environment variable `SPOONBILL_JOB__TAKELIMIT`: `job.takeLimit` is `0`, but must be a whole number from 1 to 100000 (such as `4`)");
}
