//! Chains of steps: insertion, inheritance, converters, script steps and several tasks of a page.

use crate::harness::Workdir;
use crate::harness::defs::{TITLE, indent, job_with, titled};

fn rows(page: &str, task: &str, data_def: &str) -> Vec<String> {
    let work = Workdir::with_defs(&job_with(&[("acme", "page.html")], task, data_def));
    work.write("page.html", page);
    work.rows(&[])
}

const DAY: &str = r#"
query: { block: body, selector: "p:nth-of-type(1)" }
items: [ item: { name: i, value: i } ]
dims: [ item: { name: day, selector: "p:nth-of-type(%{index})", indexRange: 1-2 } ]
"#;

/// A task with these converters in its chain.
fn converters(plugins: &str) -> String {
    let head = r"
        steps:
          jsoupDefault:
            converter:
              class: data_converter
              previous: filter
              next: appender
              plugins:
    ";
    indent(head, 0) + &indent(plugins, 8)
}

#[test]
fn the_date_formatter_tries_every_pattern() {
    let task = converters(
        r#"- plugin: { name: f, class: "org.codetab.scoopi.plugin.converter.DateFormater",
               item: day, inPattern: "dd.MM.yyyy HH:mm Z|yyyy/MM/dd HH:mm Z",
               outPattern: "yyyy-MM-dd" }"#,
    );
    let page = "<p>31.12.2019 10:00 +0000</p><p>2020/01/02 11:00 +0000</p>";
    let rows = rows(page, &task, DAY);
    assert_eq!(
        rows,
        [
            "acme|g|i|2019-12-31|31.12.2019 10:00 +0000",
            "acme|g|i|2020-01-02|31.12.2019 10:00 +0000"
        ]
    );
}

#[test]
fn dates_roll_to_either_end_or_to_a_number() {
    let days = |roll: &str| {
        let task = converters(&format!(
            r#"- plugin: {{ name: r, class: date_roller, item: day, inPattern: "dd MMM yyyy",
                   outPattern: "yyyy-MM-dd", roll: "{roll}" }}"#
        ));
        let rows = rows("<p>10 Feb 2020</p><p>20 Apr 2019</p>", &task, DAY);
        rows.iter().map(|row| row.split('|').nth(3).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(days("DAY_OF_MONTH=ceil"), ["2020-02-29", "2019-04-30"]);
    assert_eq!(days("DAY_OF_MONTH=floor"), ["2020-02-01", "2019-04-01"]);
    assert_eq!(days("DAY_OF_MONTH=round"), ["2020-02-01", "2019-04-30"]);
    assert_eq!(days("DAY_OF_MONTH=5"), ["2020-02-05", "2019-04-05"]);
    // Months count from 0 here.
    assert_eq!(days("MONTH=11 DAY_OF_MONTH=1"), ["2020-12-01", "2019-12-01"]);
}

#[test]
fn converters_of_one_item_apply_in_order() {
    let task = converters(
        r#"
        - plugin: { name: a, class: date_roller, item: day, inPattern: "MMM ''YY",
              outPattern: "yyyy-MM-dd", roll: "DAY_OF_MONTH=ceil" }
        - plugin: { name: b, class: date_roller, item: day, inPattern: "yyyy-MM-dd",
              outPattern: "dd/MM/yy", roll: "DAY_OF_MONTH=floor" }
        "#,
    );
    let rows = rows("<p>Dec '16</p><p>Feb '17</p>", &task, DAY);
    assert_eq!(rows, ["acme|g|i|01/12/16|Dec '16", "acme|g|i|01/02/17|Dec '16"]);
}

#[test]
fn a_date_that_fits_no_pattern_fails_its_job_and_is_named() {
    let task = converters(
        r#"- plugin: { name: r, class: date_roller, item: day, inPattern: "dd MMM yyyy",
               outPattern: "yyyy", roll: "MONTH=floor" }"#,
    );
    let work = Workdir::with_defs(&job_with(&[("acme", "page.html")], &task, DAY));
    work.write("page.html", "<p>10 Feb 2020</p><p>soon</p>");
    let ending = work.run(&[]);
    assert_eq!(ending.code, 4, "{ending:?}");
    let reason = work.report()["failures"][0]["reasons"][0].to_string();
    assert!(reason.contains("soon"), "{reason}");
    assert_eq!(work.latest(), [""; 0]);
}

#[test]
fn steps_are_inserted_into_inherited_chains() {
    let mut defs = job_with(&[("acme", "page.html")], "steps: mine", TITLE);
    defs.push_str(&indent(
        r"
        steps:
          base:
            jsoupDefault:
              first:
                class: scripter
                previous: parser
                next: filter
                plugins: [ plugin: { name: s, class: script, script: first.js } ]
          mine:
            base:
              second:
                class: scripter
                previous: first
                next: filter
                plugins: [ plugin: { name: s, class: script, script: second.js, entryPoint: go } ]
        ",
        0,
    ));
    let work = Workdir::with_defs(&defs);
    work.write("page.html", titled("start"));
    let add = |name: &str, word: &str| {
        format!(
            "function {name}(data) {{
               var row = data.getItems().get(0);
               row.setValue('fact', row.getValue('fact') + '{word}');
               return data;
             }}"
        )
    };
    work.write("defs/first.js", add("execute", " one"));
    work.write("defs/second.js", add("go", " two"));
    assert_eq!(work.rows(&[]), ["acme|g|title|start one two"]);
}

#[test]
fn two_tasks_of_one_page_load_it_once_and_both_give_rows() {
    let site = crate::harness::TestSite::start();
    site.page("/", titled("both"));
    let defs = format!(
        r#"
locatorGroups: {{ g: {{ locators: [ {{ name: acme, url: "{}" }} ] }} }}
taskGroups:
  g:
    css: {{ dataDef: css }}
    xpath: {{ dataDef: xpath, steps: htmlUnitDefault }}
dataDefs:
  css:
    query: {{ block: body, selector: h1 }}
    items: [ item: {{ name: i, value: css }} ]
  xpath:
    query: {{ block: //body, selector: .//h1 }}
    items: [ item: {{ name: i, value: xpath }} ]
"#,
        site.url("/")
    );
    let work = Workdir::with_defs(&defs);
    let mut rows = work.rows(&[]);
    rows.sort();
    assert_eq!(rows, ["acme|g|css|both", "acme|g|xpath|both"]);
    assert_eq!(site.log().len(), 1);
    let report = work.report();
    assert_eq!(report["rows"], serde_json::json!({ "css": 1, "xpath": 1 }));
    assert_eq!(report["pages"]["fetched"], 1);
}

#[test]
fn a_task_that_fails_costs_only_its_own_rows() {
    let defs = r#"
locatorGroups: { g: { locators: [ { name: acme, url: page.html } ] } }
taskGroups:
  g:
    bad: { dataDef: bad }
    good: { dataDef: good }
dataDefs:
  bad:
    query: { block: body, selector: h1 }
    items: [ item: { name: i, script: "nobody.knows()" } ]
  good:
    query: { block: body, selector: h1 }
    items: [ item: { name: i, value: good } ]
"#;
    let work = Workdir::with_defs(defs);
    work.write("page.html", titled("here"));
    let ending = work.run(&[]);
    assert_eq!(ending.code, 4, "{ending:?}");
    assert_eq!(work.latest(), ["acme|g|good|here"]);
    let failures = work.report()["failures"].clone();
    assert_eq!(failures.as_array().unwrap().len(), 1);
    assert!(failures[0]["reasons"][0].as_str().unwrap().contains("nobody"), "{failures}");
}
