//! Compares each step from a page to a row with a call of a library: `cargo bench -p spoonbill-plugins`.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, unreachable_pub)]

use std::fmt::Write as _;
use std::sync::Arc;

use scraper::{Html, Selector as ScraperSelector};
use spoonbill_defs::{Field, PluginDef, Query, Record, Text};
use spoonbill_plugins::css::{Selector, TextCache};
use spoonbill_plugins::data::Data;
use spoonbill_plugins::dates::DateSetup;
use spoonbill_plugins::encoder::{Csv, Encoder, PageTags};
use spoonbill_plugins::html::{Document, TreeLimits};
use spoonbill_plugins::records::{FieldScripts, RecordLimits, RecordPage, RecordPlan};
use spoonbill_plugins::script::ScriptError;

mod measure;

use measure::compare;

const FIELDS: [&str; 6] =
    ["h1.title", "#price", "ol.crumbs li:last-child", "span.rating", "#text", "table.attrs td"];

/// A page of a shop. Some of its markup is malformed.
fn page() -> String {
    let mut page = String::from("<!doctype html><html><head><title>Item</title></head><body>");
    for number in 0..200 {
        write!(page, "<li><a class=menu href=\"m{number}.html\">Menu &amp; more</a>").unwrap();
    }
    page.push_str("<ol class=crumbs><li>Shop<li>Tools<li>Hammers</ol><h1 class=title>Hammer</h1>");
    page.push_str("<p id=price>12.50 EUR<p><span class=rating>4</span><table class=attrs>");
    for number in 0..200 {
        write!(page, "<tr><th>Key {number}<td>Value {number}</tr>").unwrap();
    }
    page.push_str("</table><div id=text>");
    for number in 0..300 {
        write!(page, "<p>Some words about the thing, <b>part {number}</b>.").unwrap();
    }
    page
}

struct NoScripts;

impl FieldScripts for NoScripts {
    fn eval(&mut self, _: &str, _: &str) -> Result<Option<String>, ScriptError> {
        Ok(None)
    }
}

fn plan() -> RecordPlan {
    let field = |(place, selector): (usize, &&'static str)| Field {
        name: Text::new(format!("field{place}")),
        queries: vec![Query { css: Some(Text::new(*selector)), ..Query::default() }],
        ..Field::default()
    };
    let fields = FIELDS.iter().enumerate().map(field).collect();
    let setup = DateSetup { zone: jiff::tz::TimeZone::UTC, run_year: 2026 };
    RecordPlan::compile(&Record { fields, ..Record::default() }, &setup).unwrap()
}

fn extract(plan: &RecordPlan, tree: &Document) -> Data {
    let name: Arc<str> = "page".into();
    let page = RecordPage {
        tree: Some(tree),
        json: None,
        base: "http://localhost/",
        locator: &name,
        group: &name,
        url: "http://localhost/",
        fetched_at: jiff::Timestamp::UNIX_EPOCH,
        depth: 0,
    };
    let rows = plan.extract(&page, &mut NoScripts, &RecordLimits::default()).unwrap().rows;
    Data { rows, named: true, ..Data::default() }
}

fn main() {
    let page = page();
    let limits = TreeLimits::default();
    let parse = || Document::parse(&page, limits).unwrap();
    compare("parse a page of 38 KB (html5ever)", parse, || Html::parse_document(&page));

    let (tree, plain) = (parse(), Html::parse_document(&page));
    let own = FIELDS.map(|text| Selector::parse(text).unwrap());
    let others = FIELDS.map(|text| ScraperSelector::parse(text).unwrap());
    let select = || {
        let mut texts = TextCache::default();
        own.each_ref().map(|it| it.select_first(&tree, tree.root(), &mut texts).unwrap())
    };
    let select_plain = || others.each_ref().map(|it| plain.select(it).next().map(|it| it.id()));
    compare("select six elements (scraper)", select, select_plain);

    let plan = plan();
    let expand_plain = || {
        let text = |it| plain.select(it).next().map(|it| it.text().collect::<String>());
        others.each_ref().map(text)
    };
    compare("expand to a row of six fields (scraper)", || extract(&plan, &tree), expand_plain);

    let data = extract(&plan, &tree);
    let class = Text::new("csv");
    let def = PluginDef { name: class.clone(), class, options: Vec::new(), plugins: Vec::new() };
    let csv = Csv::from_def(&def).unwrap();
    let encode = || {
        let mut out = Vec::new();
        csv.encode(&data, PageTags { page: 1 }, &mut out);
        out
    };
    let encode_plain = || {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in &data.rows {
            let cells = row.axes.iter().map(|axis| axis.value.as_deref().unwrap_or_default());
            writer.write_record(cells).unwrap();
        }
        writer.into_inner().unwrap()
    };
    compare("encode the row as CSV (csv)", encode, encode_plain);
}
