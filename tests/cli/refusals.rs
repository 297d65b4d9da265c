//! A run is not continued with other definitions or settings. The error names what differs.

use std::fs;

use crate::harness::defs::{TITLE, indent, job, job_with, titled};
use crate::harness::{SiteResponse, TestSite, Workdir, wait_until};

/// A run that was stopped while it waited for its first page.
fn unfinished(
    defs: impl FnOnce(&TestSite) -> String,
    more: &[(&str, &str)],
) -> (TestSite, Workdir) {
    let site = TestSite::start();
    site.recovers("/silent", 1, SiteResponse::silence(), SiteResponse::html(titled("x")));
    let work = Workdir::with_defs(&defs(&site));
    for (name, text) in more {
        work.write(name, text);
    }
    let running = work.start_run(&[]);
    wait_until("the silent page is asked for", || site.hits("/silent") == 1);
    assert_eq!(running.end_now().code, 130);
    (site, work)
}

fn plain(site: &TestSite) -> String {
    job(&[("a", &site.url("/silent"))], TITLE)
}

#[test]
fn a_refusal_names_the_changed_setting_with_both_values() {
    let (site, work) = unfinished(plain, &[]);
    let changed = ["links.depth.max=5", "loader.body.max=1MiB", "fact.notFound.replaceWith=none"];
    insta::assert_snapshot!(work.run(&changed).shown(&work), @r#"
    exit 3
    --- stderr
    error: the data directory holds an unfinished run of other definitions or settings: setting `fact.notFound.replaceWith` was `not found` and is `none`, setting `links.depth.max` was `10000` and is `5`, setting `loader.body.max` was `16MiB` and is `1MiB`; to finish it, run with the old ones; to discard it, add `--fresh`; to keep it, name another `--data-dir`
    "#);
    let ending = work.run(&["runDateTimeText="]);
    let words = "setting `runDateTimeText` was `2020-07-01T10:20:05.000+0000` and is not set";
    assert!(ending.code == 3 && ending.stderr.contains(words), "{ending:?}");
    assert_eq!(site.hits("/silent"), 1);
    // Settings that do not affect the rows may change.
    assert_eq!(work.run(&["loader.fetch.parallelism=3", "job.takeLimit=7"]).code, 0);
}

#[test]
fn a_refusal_names_the_changed_list() {
    let defs = |site: &TestSite| {
        let group = "groups:\n  g:\n    urls:\n      - SITE/silent\n      - { file: more.txt }\n";
        let fields = "    fields:\n      title: h1\n";
        format!("{group}{fields}").replace("SITE", site.url("").trim_end_matches('/'))
    };
    let (site, work) = unfinished(defs, &[("more.txt", "http://127.0.0.1:9/1\n")]);
    work.write("more.txt", "http://127.0.0.1:9/2\n");
    let ending = work.run(&[]);
    assert_eq!(ending.code, 3, "{ending:?}");
    let words = "definitions or settings: list `more.txt` has changed; to finish";
    assert!(ending.stderr.contains(words), "{}", ending.stderr);
    assert_eq!(site.hits("/silent"), 1);
}

#[test]
fn a_refusal_names_the_changed_script() {
    let steps = r"
        steps:
          mine:
            jsoupDefault:
              own:
                class: scripter
                previous: parser
                next: filter
                plugins: [ plugin: { name: s, class: script, script: own.js } ]
    ";
    let defs = |site: &TestSite| {
        let group = job_with(&[("a", &site.url("/silent"))], "steps: mine", TITLE);
        group + &indent(steps, 0)
    };
    let script = "function execute(data) { return data; }";
    let (_site, work) = unfinished(defs, &[("defs/own.js", script)]);
    work.write("defs/own.js", format!("{script} // changed"));
    let ending = work.run(&[]);
    assert_eq!(ending.code, 3, "{ending:?}");
    assert!(ending.stderr.contains("script `own.js` has changed; to finish"), "{ending:?}");
}

#[test]
fn a_run_that_is_continued_says_so_at_the_start_and_at_the_end() {
    let (site, work) = unfinished(plain, &[]);
    insta::assert_snapshot!(work.run(&[]).shown(&work), @r#"
    exit 0
    --- stderr
    continuing the unfinished run of this data directory: 0 jobs done, 1 to do
    continued the unfinished run of this data directory
           run  finished after [time]
          jobs  1 done, 0 failed, 0 pending
         pages  1 fetched, 0 from store, 0 failed, 0 retries, 36 bytes
       answers  200: 1
          rows  1
                1 d
        output  output/2020Jul01-102005/data.txt
        memory  [memory] MB at most
    "#);
    assert_eq!(site.hits("/silent"), 2);
    assert!(!work.run(&[]).stderr.contains("contin"), "the next run was continued");
    let quiet = work.run(&["--quiet"]);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn retry_and_replay_do_not_offer_to_discard_the_run_they_need() {
    let work = Workdir::with_defs(&job(&[("a", "a.html")], TITLE));
    work.write("a.html", titled("a"));
    assert_eq!(work.run(&[]).code, 0);
    for command in ["retry", "replay"] {
        let ending = work.spoonbill(&[command, "defs", "--fresh"]);
        assert_eq!(ending.code, 2, "{command}: {ending:?}");
        assert!(ending.stderr.contains("unexpected argument '--fresh'"), "{ending:?}");
        let help = work.spoonbill(&[command, "--help"]).stdout;
        assert!(!help.contains("--fresh") && !help.contains("--complete"), "{help}");
    }
    assert_eq!(fs::read_dir(work.path("output")).unwrap().count(), 2, "one run and `latest`");
}
