//! Output files: their folders, formats and order of rows.

use std::fs;

use crate::harness::Workdir;
use crate::harness::defs::{TITLE, indent, job, job_with, titled};

/// A task with these appenders.
fn appenders(plugins: &str) -> String {
    let head = r"
        steps:
          jsoupDefault:
            appender:
              class: data_appender
              previous: filter
              next: end
              plugins:
    ";
    indent(head, 0) + &indent(plugins, 8)
}

#[test]
fn values_that_hold_delimiter_quote_or_line_end_are_quoted() {
    let page = r#"<p title='a|b'></p><p title='say "x"'></p><p title="two
lines"></p><p title=' plain, '></p>"#;
    let data_def = r#"
        query: { block: body }
        items: [ item: { name: i, selector: "p:nth-child(%{index}) attribute: title", indexRange: 1-4 } ]
        facts: [ item: { name: fact, value: f } ]
    "#;
    let work = Workdir::with_defs(&job(&[("acme", "page.html")], data_def));
    work.write("page.html", page);
    assert_eq!(work.run(&[]).code, 0);
    let expect = "acme|g|\"a|b\"|f\nacme|g|\"say \"\"x\"\"\"|f\nacme|g|\"two\nlines\"|f\n\
                  acme|g| plain, |f\n";
    assert_eq!(work.read("output/latest/data.txt"), expect);
}

#[test]
fn every_appender_gets_all_rows_in_its_format() {
    let task = appenders(
        r#"
        - plugin: { name: a, class: file, file: output/a.csv,
            plugins: [ plugin: { name: c, class: csv } ] }
        - plugin: { name: b, class: "org.codetab.scoopi.plugin.appender.FileAppender",
            file: sub/b.txt, plugins: [ plugin: { name: c, class: csv, delimiter: ";",
            includeTags: true } ] }
        - plugin: { name: c, class: file, file: c.tsv,
            plugins: [ plugin: { name: c, class: csv, delimiter: "\\t" } ] }
        "#,
    );
    let defs = job_with(&[("acme", "one.html"), ("acme", "two.html")], &task, TITLE);
    let work = Workdir::with_defs(&defs);
    work.write("one.html", titled("1"));
    work.write("two.html", titled("1"));
    assert_eq!(work.run(&[]).code, 0);
    let sorted = |name: &str| {
        let mut lines = work.lines(name);
        lines.sort();
        lines
    };
    assert_eq!(sorted("output/latest/a.csv"), ["acme,g,title,1", "acme,g,title,1"]);
    assert_eq!(sorted("output/latest/sub/b.txt"), ["acme;g;1;1;1;title;1", "acme;g;2;1;1;title;1"]);
    assert_eq!(sorted("output/latest/c.tsv"), ["acme\tg\ttitle\t1", "acme\tg\ttitle\t1"]);
    assert_eq!(work.report()["rows"]["d"], 2, "rows were counted once for each file");
}

#[test]
fn every_run_has_its_folder_and_latest_is_the_newest() {
    let work = Workdir::with_defs(&job(&[("acme", "page.html")], TITLE));
    for (folder, title) in [("2020Jul01-102005", "old"), ("2020Jul01-102005-2", "new")] {
        work.write("page.html", titled(title));
        assert_eq!(work.rows(&[]), [format!("acme|g|title|{title}")]);
        assert_eq!(fs::read_link(work.path("output/latest")).unwrap().to_str(), Some(folder));
    }
    assert_eq!(work.list("output"), ["2020Jul01-102005", "2020Jul01-102005-2", "latest"]);
    assert_eq!(work.lines("output/2020Jul01-102005/data.txt"), ["acme|g|title|old"]);
}

#[test]
fn a_run_without_rows_leaves_an_empty_file() {
    let data_def = r#"
        query: { block: body, selector: h1 }
        items: [ item: { name: i, value: i, filters: [ filter: { type: value, pattern: i } ] } ]
    "#;
    let work = Workdir::with_defs(&job(&[("acme", "page.html")], data_def));
    work.write("page.html", titled("x"));
    assert_eq!(work.rows(&[]), [""; 0]);
    assert!(work.exists("output/latest/data.txt"));
}

#[test]
fn canonical_order_gives_equal_bytes() {
    let names: Vec<(String, String)> =
        (0..40).map(|n| (format!("n{n}"), format!("p{n}.html"))).collect();
    let locators: Vec<(&str, &str)> =
        names.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    let work = Workdir::with_defs(&job(&locators, TITLE));
    for (number, (_, file)) in names.iter().enumerate() {
        // Pages of different sizes, so that jobs end in another order than they begin.
        let weight = "<p>filler</p>".repeat((number * 37 % 11) * 200);
        work.write(file, titled(&format!("t{number}")) + &weight);
    }
    let bytes = |data: &str, threads: &str| {
        let ending = work.run(&["output.order=canonical", threads, "--data-dir", data]);
        assert_eq!(ending.code, 0, "{ending:?}");
        work.read("output/latest/data.txt")
    };
    let first = bytes("data1", "parser.threads=4");
    assert_eq!(first.lines().count(), 40);
    assert_eq!(first, bytes("data2", "parser.threads=1"));
    assert_eq!(work.list("output/latest"), ["data.txt"], "temporary files were left behind");
}

#[test]
fn the_output_directory_may_be_elsewhere_and_files_absolute() {
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("abs.txt");
    let task = appenders(&format!(
        "- plugin: {{ name: a, class: file, file: \"{}\", plugins: [ plugin: {{ name: c, class: csv \
         }} ] }}",
        file.display()
    ));
    let work = Workdir::with_defs(&job_with(&[("acme", "page.html")], &task, TITLE));
    work.write("page.html", titled("x"));
    assert_eq!(work.run(&["--output", "rows"]).code, 0);
    let written = elsewhere.path().join("2020Jul01-102005/abs.txt");
    assert_eq!(fs::read_to_string(written).unwrap(), "acme,g,title,x\n");
    assert!(!work.exists("output"));
}
