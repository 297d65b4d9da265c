//! The data directory: one process and one run at a time, and no row lost when output fails.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::harness::defs::{TITLE, indent, job, job_with, titled};
use crate::harness::{PageGate, Running, SiteResponse, TestSite, Workdir, wait_until};

/// A run that waits for a page that never answers.
fn hanging(work: &Workdir, site: &TestSite) -> Running {
    let before = site.hits("/silent");
    let running = work.start_run(&[]);
    wait_until("the silent page is asked for", || site.hits("/silent") > before);
    running
}

fn silent_site() -> TestSite {
    let site = TestSite::start();
    site.answer("/silent", SiteResponse::silence());
    site
}

fn stop_now(running: Running) {
    assert_eq!(running.end_now().code, 130);
}

#[test]
fn a_directory_in_use_is_refused() {
    let site = silent_site();
    let work = Workdir::with_defs(&job(&[("acme", &site.url("/silent"))], TITLE));
    let running = hanging(&work, &site);
    insta::assert_snapshot!(work.run(&[]).shown(&work), @r#"
    exit 10
    --- stderr
    error: data directory `data` is in use by another process
    "#);
    assert_eq!(work.spoonbill(&["failed"]).code, 10);
    assert_eq!(site.hits("/silent"), 1);
    // Another data directory can be used meanwhile.
    work.write("page.html", titled("x"));
    work.write("other/job.yml", job(&[("acme", "page.html")], TITLE));
    let other = ["run", "other", "--data-dir", "data2", "--output", "output2"];
    assert_eq!(work.spoonbill(&other).code, 0);
    stop_now(running);
}

#[test]
fn an_unfinished_run_of_other_definitions_is_refused_until_it_is_discarded() {
    let site = silent_site();
    site.page("/quick", titled("quick"));
    let (silent, quick) = (site.url("/silent"), site.url("/quick"));
    let work = Workdir::with_defs(&job(&[("a", &silent)], TITLE));
    stop_now(hanging(&work, &site));

    let other = TITLE.replace("name: title, value: title", "name: heading, value: heading");
    work.write("defs/job.yml", job(&[("b", &quick)], &other));
    insta::assert_snapshot!(work.run(&[]).shown(&work), @r#"
    exit 3
    --- stderr
    error: the data directory holds an unfinished run of other definitions or settings: locator group `g` has changed, dataDef `d` has changed; to finish it, run with the old ones; to discard it, add `--fresh`; to keep it, name another `--data-dir`
    "#);
    assert_eq!(site.hits("/quick"), 0);
    assert_eq!(work.rows(&["--fresh"]), ["b|g|heading|quick"]);
    assert_eq!(work.report()["jobs"]["done"], 1);
    assert_eq!(work.rows(&[]), ["b|g|heading|quick"]);
}

#[test]
fn a_comment_or_another_delay_still_continues_the_run() {
    let site = TestSite::start();
    site.recovers("/", 1, SiteResponse::silence(), SiteResponse::html(titled("x")));
    let defs = job(&[("a", &site.url("/"))], TITLE);
    let work = Workdir::with_defs(&defs);
    let running = work.start_run(&[]);
    wait_until("the page is asked for", || site.hits("/") == 1);
    stop_now(running);
    work.write("defs/job.yml", format!("# a remark\n{}", defs.replace("  g:", "  g:  # group")));
    let ending = work.run(&["loader.fetch.delay=1ms"]);
    insta::assert_snapshot!(ending.shown(&work), @r#"
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
    assert_eq!(work.latest(), ["a|g|title|x"]);
}

#[test]
fn unwritable_output_keeps_the_rows_for_the_next_run() {
    let site = TestSite::start();
    site.page("/", titled("kept"));
    let work = Workdir::with_defs(&job(&[("acme", &site.url("/"))], TITLE));
    work.write("output", "a file where the directory should be");
    insta::assert_snapshot!(work.run(&[]).shown(&work), @r#"
    exit 8
    --- stderr
           run  finished after [time]
          jobs  1 done, 0 failed, 0 pending
         pages  1 fetched, 0 from store, 0 failed, 0 retries, 39 bytes
       answers  200: 1
          rows  1
                1 d
        output  `output/2020Jul01-102005/data.txt` could not be written: Not a directory (os error 20); its rows are kept, run again
        memory  [memory] MB at most
    "#);
    fs::remove_file(work.path("output")).unwrap();
    insta::assert_snapshot!(work.run(&[]).shown(&work), @r#"
    exit 0
    --- stderr
    continuing the unfinished run of this data directory: 1 job done, 0 to do
    continued the unfinished run of this data directory
           run  finished after [time]
          jobs  1 done, 0 failed, 0 pending
         pages  1 fetched, 0 from store, 0 failed, 0 retries, 39 bytes
       answers  200: 1
          rows  1
                1 d
        output  output/2020Jul01-102005/data.txt
        memory  [memory] MB at most
    "#);
    assert_eq!(work.latest(), ["acme|g|title|kept"]);
    assert_eq!(site.log().len(), 1, "the page was loaded again");
    // The run after that is a new one.
    assert_eq!(work.rows(&[]), ["acme|g|title|kept"]);
    assert_eq!(site.log().len(), 2);
}

/// A task with two appenders: one to the output folder and one to another file.
fn two_appenders(second: &Path) -> String {
    let encoder = "plugins: [ plugin: { name: c, class: csv } ]";
    let plugins = format!(
        "- plugin: {{ name: a, class: file, file: a.txt, {encoder} }}\n\
         - plugin: {{ name: b, class: file, file: \"{}\", {encoder} }}\n",
        second.display()
    );
    "steps:\n  jsoupDefault:\n    appender:\n      class: data_appender\n      previous: filter\n      \
     next: end\n      plugins:\n"
        .to_owned()
        + &indent(&plugins, 8)
}

#[test]
fn a_failing_appender_does_not_affect_another_one() {
    let work = Workdir::new();
    work.write("blocked", "a file");
    work.write("page.html", titled("x"));
    let task = two_appenders(&work.path("blocked/deep/b.txt"));
    work.write("defs/job.yml", job_with(&[("p", "page.html")], &task, TITLE));
    assert_eq!(work.run(&[]).code, 8);
    assert_eq!(work.lines("output/latest/a.txt"), ["p,g,title,x"]);
    fs::remove_file(work.path("blocked")).unwrap();
    assert_eq!(work.run(&[]).code, 0);
    assert_eq!(work.lines("output/latest/a.txt"), ["p,g,title,x"], "the row was written twice");
    assert_eq!(work.lines("blocked/deep/2020Jul01-102005/b.txt"), ["p,g,title,x"]);
}

#[test]
fn a_full_disk_below_one_output_file_ends_with_8() {
    let work = Workdir::new();
    work.write("page.html", titled("x"));
    work.write("defs/job.yml", {
        let task = two_appenders(&work.path("full/b.txt"));
        job_with(&[("p", "page.html")], &task, TITLE)
    });
    fs::create_dir_all(work.path("full/2020Jul01-102005")).unwrap();
    let file = work.path("full/2020Jul01-102005/b.txt");
    symlink("/dev/full", &file).unwrap();
    let ending = work.run(&[]);
    assert_eq!(ending.code, 8, "{ending:?}");
    assert!(ending.stderr.contains("No space left"), "{}", ending.stderr);
    fs::remove_file(&file).unwrap();
    assert_eq!(work.run(&[]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "p,g,title,x\n");
}

#[test]
fn a_ledger_that_cannot_grow_fails_the_run_and_loses_no_row() {
    let data_def = r#"
        query: { block: body, selector: h1 }
        items: [ item: { name: i, script: "new Array(200).join('x')", indexRange: 1-1000 } ]
    "#;
    let locators: Vec<(String, &str)> = (0..8).map(|n| (format!("n{n}"), "page.html")).collect();
    let locators: Vec<(&str, &str)> = locators.iter().map(|(name, url)| (&**name, *url)).collect();
    let work = Workdir::with_defs(&job(&locators, data_def));
    work.write("page.html", titled("x"));
    // No file may grow beyond half a megabyte, and the rows need more than one.
    let limited = "trap '' XFSZ; ulimit -f 1000; exec \"$0\" run defs --report report.json";
    let binary = env!("CARGO_BIN_EXE_spoonbill");
    let ending = work.start_program("sh", &["-c", limited, binary], &[]).end();
    assert!(ending.code == 1 || ending.code == 9, "{ending:?}");
    assert!(ending.stderr.contains("data/state."), "{}", ending.stderr);
    assert_eq!(work.report()["finishReason"], "failed");
    let ending = work.spoonbill(&["run", "defs"]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert_eq!(work.latest().len(), 8000);
}

#[test]
fn a_directory_of_an_older_version_is_refused() {
    let work = Workdir::with_defs(&job(&[("a", "a.html")], TITLE));
    work.write("a.html", titled("a"));
    assert_eq!(work.run(&[]).code, 0);
    let ledger = rusqlite::Connection::open(work.path("data/state.db")).unwrap();
    ledger.execute_batch("PRAGMA user_version=1").unwrap();
    drop(ledger);
    insta::assert_snapshot!(work.run(&[]).shown(&work), @r#"
    exit 10
    --- stderr
    error: data directory `data/state.db` was written by an older version (format 1, this is 9): let that version finish its run, or name another directory with `data.dir`
    "#);
}

#[test]
fn a_directory_of_a_newer_version_is_refused() {
    let work = Workdir::with_defs(&job(&[("a", "a.html")], TITLE));
    work.write("a.html", titled("a"));
    assert_eq!(work.run(&[]).code, 0);
    let ledger = rusqlite::Connection::open(work.path("data/state.db")).unwrap();
    ledger.execute_batch("PRAGMA user_version=1000").unwrap();
    drop(ledger);
    insta::assert_snapshot!(work.run(&[]).shown(&work), @r#"
    exit 10
    --- stderr
    error: data directory `data/state.db` was written by a newer version (format 1000, this is 9)
    "#);
}

#[test]
fn a_data_directory_that_cannot_be_created_ends_with_1() {
    let work = Workdir::with_defs(&job(&[("a", "a.html")], TITLE));
    work.write("data", "a file");
    insta::assert_snapshot!(work.run(&[]).shown(&work), @r#"
    exit 1
    --- stderr
    error: store failed: data directory `data`: File exists (os error 17)
    "#);
}

#[test]
fn a_damaged_ledger_is_reported_and_not_overwritten() {
    let work = Workdir::with_defs(&job(&[("a", "a.html")], TITLE));
    work.write("a.html", titled("a"));
    assert_eq!(work.run(&["store.journal.max=1"]).code, 0);
    let rubbish = "no database at all ".repeat(1000);
    for leftover in ["data/state.db-wal", "data/state.db-shm"] {
        fs::remove_file(work.path(leftover)).ok();
    }
    work.write("data/state.db", &rubbish);
    let ending = work.run(&[]);
    assert_eq!(ending.code, 1, "{ending:?}");
    assert!(ending.stderr.contains("state.db") || ending.stderr.contains("data"), "{ending:?}");
    assert_eq!(work.read("data/state.db"), rubbish);
}

#[test]
fn output_removed_during_a_run_is_written_again() {
    let site = TestSite::start();
    site.page("/", titled("first"));
    let gate = PageGate::at(0);
    site.answer("/late", SiteResponse::html(titled("late")).held_by(&gate, 0));
    let work = Workdir::with_defs(&job(&[("a", &site.url("/")), ("b", &site.url("/late"))], TITLE));
    let running = work.start_run(&["loader.fetch.parallelism=2"]);
    wait_until("a row is written", || work.lines("output/latest/data.txt").len() == 1);
    fs::remove_dir_all(work.path("output")).unwrap();
    gate.open();
    let ending = running.end();
    assert_eq!(ending.code, 0, "{ending:?}");
    assert!(ending.stderr.contains("was removed or changed meanwhile"), "{}", ending.stderr);
    let mut rows = work.lines("output/2020Jul01-102005/data.txt");
    rows.sort();
    assert_eq!(rows, ["a|g|title|first", "b|g|title|late"]);
}
