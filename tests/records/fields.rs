//! Fields, their types and the files of their columns.

use super::with_page;
use crate::harness::{SiteResponse, TestSite, Workdir};

const SHELF: &str = "<ul><li data-id=1><b>One</b> 1,50</li><li data-id=2><b>Two</b> n/a</li><li>\
                     <b>Three, \"3\"</b> 3,00</li></ul>";

#[test]
fn each_block_gives_one_row_below_the_header() {
    let work = with_page(
        r#"
block: li
columns: [ group, depth ]
fields:
  name: b
  id: "@data-id"
  price: { selector: ., text: own, type: decimal, decimal: "," }
"#,
        SHELF,
    );
    let ending = work.run(&[]);
    assert_eq!(ending.code, 0, "{}", ending.stderr);
    assert_eq!(
        work.read("output/latest/g.csv"),
        "group,depth,name,id,price\ng,0,One,1,1.50\ng,0,Two,2,\ng,0,\"Three, \"\"3\"\"\",,3.00\n"
    );
    assert!(ending.stderr.contains("g.price: 1 value does not fit: `n/a`"), "{}", ending.stderr);
    assert!(ending.stderr.contains("page.html"), "{}", ending.stderr);
    let report = work.report();
    assert_eq!(report["fields"][0]["field"], "price");
    assert_eq!(report["fields"][0]["misfits"], 1);
    assert_eq!(report["fields"][0]["value"], "n/a");
}

#[test]
fn a_row_without_a_required_value_is_dropped_and_counted() {
    let work = with_page(
        "block: li\nfields: { name: b, id: { selector: '@data-id', required: true } }\n",
        SHELF,
    );
    assert_eq!(work.run(&[]).code, 0);
    assert_eq!(work.read("output/latest/g.csv"), "name,id\nOne,1\nTwo,2\n");
    assert_eq!(work.report()["fields"][0]["rowsDropped"], 1);
}

#[test]
fn the_extension_of_a_file_chooses_its_format() {
    let work = with_page(
        r#"
tasks:
  one: { block: li, fields: { name: b, id: { selector: "@data-id", type: integer } }, output: one.jsonl }
  two: { block: li, fields: { name: b }, output: two.tsv }
"#,
        SHELF,
    );
    assert_eq!(work.run(&[]).code, 0);
    assert_eq!(
        work.read("output/latest/one.jsonl"),
        "{\"name\":\"One\",\"id\":1}\n{\"name\":\"Two\",\"id\":2}\n\
         {\"name\":\"Three, \\\"3\\\"\",\"id\":null}\n"
    );
    assert_eq!(work.read("output/latest/two.tsv"), "name\nOne\nTwo\n\"Three, \"\"3\"\"\"\n");
}

#[test]
fn a_file_cannot_have_two_headers() {
    let work = with_page(
        "tasks:\n  one: { fields: { a: b }, output: x.csv }\n  two: { fields: { c: b }, output: x.csv }\n",
        SHELF,
    );
    let ending = work.run(&[]);
    assert_eq!(ending.code, 3);
    assert!(
        ending.stderr.contains("another task writes `x.csv` with other columns"),
        "{}",
        ending.stderr
    );
}

#[test]
fn json_pages_are_read_by_json_paths() {
    let site = TestSite::start();
    let body = r#"{"results":[{"id":7,"price":{"amount":"1.5"}},{"id":8}],"next":null}"#;
    site.page("/api", body);
    let work = Workdir::with_defs(&format!(
        "groups:\n  api:\n    urls: \"{}\"\n    block: {{ json: '$.results[*]' }}\n    \
         fields: {{ id: id, amount: {{ json: price.amount, type: decimal, default: 0 }} }}\n",
        site.url("/api")
    ));
    assert_eq!(work.run(&[]).code, 0);
    assert_eq!(work.read("output/latest/api.csv"), "id,amount\n7,1.5\n8,0\n");
}

#[test]
fn converters_and_filters_work_on_fields() {
    let work = with_page(
        r#"
fields: { day: h1 }
steps:
  recordDefault:
    roll: { class: data_converter, previous: parser, next: filter, plugins: [ plugin: { name: r, class: date_formatter, item: day, inPattern: dd.MM.yyyy, outPattern: yyyy } ] }
"#,
        "<h1>24.12.2026</h1>",
    );
    let ending = work.run(&[]);
    assert_eq!(work.read("output/latest/g.csv"), "day\n2026\n", "{}", ending.stderr);
}

#[test]
fn a_feed_is_read_as_xml() {
    let site = TestSite::start();
    let feed = "<?xml version='1.0'?><rss><item><title><![CDATA[One & two]]></title>\
        <link>/a?x=1&amp;y=2</link><pubDate>2026-01-02</pubDate><dc:creator>me</dc:creator>\
        </item></rss>";
    site.answer("/feed", SiteResponse::html(feed).header("Content-Type", "application/rss+xml"));
    let work = Workdir::with_defs(&format!(
        "groups:\n  g:\n    urls: \"{}\"\n    block: item\n    fields:\n      title: title\n      \
         link: {{ selector: link, type: url }}\n      date: {{ xpath: pubDate, type: date }}\n      \
         by: dc|creator\n    follow: {{ selector: link, group: item }}\n  item:\n    fields: {{ h: h1 }}\n",
        site.url("/feed")
    ));
    site.page("/a?x=1&y=2", "<h1>a</h1>");
    work.run(&[]);
    assert_eq!(work.read("output/latest/item.csv"), "h\na\n");
    assert_eq!(
        work.lines("output/latest/g.csv")[1],
        format!("One & two,{},2026-01-02,me", site.url("/a?x=1&y=2"))
    );
}

#[test]
fn a_retry_does_not_put_other_columns_below_a_header() {
    let site = TestSite::start();
    site.answer("/x", crate::harness::SiteResponse::status(404));
    let defs = |fields: &str| {
        format!("groups:\n  g:\n    urls: \"{}\"\n    fields: {{ {fields} }}\n", site.url("/x"))
    };
    let work = Workdir::with_defs(&defs("a: h1, b: h2"));
    assert_eq!(work.run(&[]).code, 4);
    site.page("/x", "<h1>1</h1><h2>2</h2>");
    work.write("defs/job.yml", defs("b: h2, a: h1"));
    let ending = work.retry(&[]);
    assert_eq!(ending.code, 3);
    assert!(ending.stderr.contains("has other columns than in the run"), "{}", ending.stderr);
    work.write("defs/job.yml", defs("a: h1, b: '.x, h2'"));
    assert_eq!(work.retry(&[]).code, 0);
    assert_eq!(work.read("output/latest/g.csv"), "a,b\n1,2\n");
}
