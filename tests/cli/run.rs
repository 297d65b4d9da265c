//! `run`, `failed` and `retry`: their reports, and the steps after failures.

use serde_json::Value;

use crate::harness::defs::{TITLE, job, titled};
use crate::harness::{SiteResponse, TestSite, Workdir};

#[test]
fn a_run_without_failures_prints_its_report() {
    let site = TestSite::start();
    site.page("/", titled("x"));
    let work = Workdir::with_defs(&job(&[("acme", &site.url("/")), ("file", "page.html")], TITLE));
    work.write("page.html", titled("y"));
    insta::assert_snapshot!(work.run(&[]).shown(&work), @r#"
    exit 0
    --- stderr
           run  finished after [time]
          jobs  2 done, 0 failed, 0 pending
         pages  2 fetched, 0 from store, 0 failed, 0 retries, 72 bytes
       answers  200: 1
          rows  2
                2 d
        output  output/2020Jul01-102005/data.txt
        memory  [memory] MB at most
    "#);
}

#[test]
fn the_json_report_has_all_keys() {
    let work = Workdir::with_defs(&job(&[("file", "page.html")], TITLE));
    work.write("page.html", titled("y"));
    assert_eq!(work.run(&[]).code, 0);
    let mut report = work.report();
    let number = |value: &Value| value.as_f64().unwrap();
    assert!(number(&report["elapsedSeconds"]) > 0.0);
    assert!(number(&report["peakMemoryBytes"]) > 1e6);
    assert!(report["start"].as_str().unwrap() < report["end"].as_str().unwrap());
    for key in ["elapsedSeconds", "peakMemoryBytes", "start", "end"] {
        report[key] = Value::from(format!("[{key}]"));
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap(), @r#"
    {
      "finishReason": "finished",
      "error": null,
      "continued": false,
      "start": "[start]",
      "end": "[end]",
      "elapsedSeconds": "[elapsedSeconds]",
      "pages": {
        "fetched": 1,
        "fromStore": 0,
        "failed": 0,
        "skipped": {}
      },
      "httpStatus": {},
      "retries": 0,
      "bytes": 36,
      "rows": {
        "d": 1
      },
      "jobs": {
        "done": 1,
        "failed": 0,
        "pending": 0
      },
      "failures": [],
      "fields": [],
      "unmet": [],
      "notes": {},
      "outputs": [
        {
          "path": "output/2020Jul01-102005/data.txt",
          "error": null
        }
      ],
      "peakMemoryBytes": "[peakMemoryBytes]",
      "node": 1
    }
    "#);
}

#[test]
fn failed_jobs_are_listed_and_only_they_are_retried() {
    let site = TestSite::start();
    site.page("/good", titled("good"));
    site.answer("/gone", SiteResponse::status(404));
    site.answer("/down", SiteResponse::status(503));
    let (good, gone, down) = (site.url("/good"), site.url("/gone"), site.url("/down"));
    let work =
        Workdir::with_defs(&job(&[("good", &good), ("gone", &gone), ("down", &down)], TITLE));
    insta::assert_snapshot!(work.run(&["job.attempts.max=2"]).shown(&work), @r#"
    exit 4
    --- stderr
           run  finished after [time], with 2 failed jobs
          jobs  1 done, 2 failed, 0 pending
         pages  1 fetched, 0 from store, 2 failed, 1 retry, 39 bytes
       answers  200: 1, 404: 1, 503: 2
          rows  1
                1 d
        failed  gone (g): cannot load `http://127.0.0.1:[port]/gone`: status 404 Not Found
        failed  down (g): cannot load `http://127.0.0.1:[port]/down`: status 503 Service Unavailable (tried 2 times)
        output  output/2020Jul01-102005/data.txt
        memory  [memory] MB at most
    "#);

    let failed = work.spoonbill(&["failed"]);
    let mut lines: Vec<&str> = failed.stdout.lines().collect();
    lines.sort_unstable();
    let lines = crate::harness::shown::filtered(&lines.join("\n"), &work);
    insta::assert_snapshot!(lines, @r#"
    {"name":"down","group":"g","url":"http://127.0.0.1:[port]/down","depth":0,"tasks":[],"reasons":["cannot load `http://127.0.0.1:[port]/down`: status 503 Service Unavailable (tried 2 times)"]}
    {"name":"gone","group":"g","url":"http://127.0.0.1:[port]/gone","depth":0,"tasks":[],"reasons":["cannot load `http://127.0.0.1:[port]/gone`: status 404 Not Found"]}
    "#);

    site.page("/down", titled("up"));
    insta::assert_snapshot!(work.retry(&[]).shown(&work), @r#"
    exit 4
    --- stderr
    retried the failed jobs of the last run
           run  finished after [time], with 1 failed job
          jobs  2 done, 1 failed, 0 pending
         pages  2 fetched, 0 from store, 1 failed, 1 retry, 76 bytes
       answers  200: 2, 404: 2, 503: 2
          rows  2
                2 d
        failed  gone (g): cannot load `http://127.0.0.1:[port]/gone`: status 404 Not Found
        output  output/2020Jul01-102005/data.txt
        memory  [memory] MB at most
    "#);
    assert_eq!(site.hits("/good"), 1, "a finished page was loaded again");
    assert_eq!(
        work.latest(),
        ["down|g|title|up", "good|g|title|good"],
        "the rows are not in the same file"
    );

    site.page("/gone", titled("back"));
    assert_eq!(work.retry(&[]).code, 0);
    assert_eq!(work.latest().len(), 3);
    assert_eq!(work.spoonbill(&["failed"]).stdout, "");
    insta::assert_snapshot!(work.retry(&[]).shown(&work), @r#"
    exit 0
    --- stderr
    nothing to retry: no job of the last run in this data directory failed
    "#);
}

#[test]
fn there_is_nothing_to_list_or_retry_without_a_run() {
    let work = Workdir::with_defs(&job(&[("a", "a.html")], TITLE));
    insta::assert_snapshot!(work.spoonbill(&["failed"]).shown(&work), @r#"
    exit 1
    --- stderr
    error: `data` holds no run
    "#);
    assert!(!work.exists("data"));
    insta::assert_snapshot!(work.retry(&[]).shown(&work), @r#"
    exit 1
    --- stderr
    error: `data` holds no run whose failed jobs could be retried
    "#);
    assert!(!work.exists("data"));
}

#[test]
fn an_unwritable_report_path_is_refused_before_the_run() {
    let work = Workdir::with_defs(&job(&[("a", "a.html")], TITLE));
    work.write("a.html", titled("a"));
    let ending = work.spoonbill(&["run", "defs", "--report", "no/such/dir/report.json"]);
    assert_eq!(ending.code, 2, "{ending:?}");
    assert!(ending.stderr.contains("no/such/dir/report.json"), "{}", ending.stderr);
    assert!(!work.exists("data"));
}
