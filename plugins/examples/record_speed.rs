//! Measures how long records take on catalogue pages, and compares the rows with the expected ones.
//!
//! `cargo run --release -p spoonbill-plugins --example record_speed -- FOLDER`
//!
//! FOLDER is an output of the generator in `bench/`: pages in `catalog/`, rows in `catalog.csv`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use spoonbill_defs::{Field, Query, Record, Text};
use spoonbill_plugins::dates::DateSetup;
use spoonbill_plugins::html::{Document, TreeLimits};
use spoonbill_plugins::records::{FieldScripts, RecordLimits, RecordPage, RecordPlan};
use spoonbill_plugins::script::ScriptError;

struct IdentityScripts;

impl FieldScripts for IdentityScripts {
    fn eval(&mut self, _: &str, value: &str) -> Result<Option<String>, ScriptError> {
        Ok(Some(value.to_owned()))
    }
}

fn field(name: &str, css: Option<&str>, xpath: Option<&str>, attribute: Option<&str>) -> Field {
    let query = Query {
        css: css.map(Text::new),
        xpath: xpath.map(Text::new),
        attribute: attribute.map(Text::new),
        ..Query::default()
    };
    Field { name: Text::new(name), queries: vec![query], ..Field::default() }
}

fn catalogue() -> Record {
    let cell = |name: &str| format!("//table[@class='attrs']//tr[normalize-space(th)='{name}']/td");
    let mut description = field("description", Some("#description"), None, None);
    description.regex = Some(Text::new("^.{0,200}"));
    Record {
        fields: vec![
            field("title", Some("h1.product-title"), None, None),
            field("price", Some("span.price"), None, None),
            field("sku", Some("span.sku"), None, None),
            field("availability", Some("#availability"), None, None),
            field("breadcrumb", Some("ol.breadcrumb li:last-child"), None, None),
            field("rating", Some("span.rating"), None, Some("data-score")),
            description,
            field("weight", None, Some(&cell("Weight")), None),
            field("material", None, Some(&cell("Material")), None),
            field("image", Some("#main-image"), None, Some("src")),
        ],
        ..Record::default()
    }
}

fn pages(folder: &Path, found: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if path.is_dir() {
            pages(&path, found)?;
        } else if name.is_some_and(|name| name.starts_with("item-")) {
            found.push(std::fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

fn least(mut call: impl FnMut() -> bool) -> u128 {
    let time = |_| {
        let start = Instant::now();
        assert!(call());
        start.elapsed().as_nanos()
    };
    (0..20).map(time).min().unwrap_or_default()
}

#[expect(clippy::print_stdout, reason = "prints its results")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: record_speed FOLDER")?;
    let mut texts = Vec::new();
    pages(&Path::new(&folder).join("catalog"), &mut texts)?;
    let expected = std::fs::read_to_string(Path::new(&folder).join("catalog.csv"))?;
    let setup = DateSetup { zone: jiff::tz::TimeZone::UTC, run_year: 2026 };
    let plan = RecordPlan::compile(&catalogue(), &setup).map_err(|all| format!("{all:?}"))?;
    let name: Arc<str> = "x".into();
    let mut alone = Vec::new();
    for field in catalogue().fields {
        let record = Record { fields: vec![field], ..Record::default() };
        let plan = RecordPlan::compile(&record, &setup).map_err(|all| format!("{all:?}"))?;
        alone.push((plan, 0));
    }
    let (mut parsing, mut taking, mut wrong) = (0, 0, 0);
    for text in &texts {
        // The minimum of several runs, because other processes can only make a run slower.
        let parse = || Document::parse(text, TreeLimits::default());
        parsing += least(|| parse().is_ok());
        let tree = parse()?;
        let page = RecordPage {
            tree: Some(&tree),
            json: None,
            base: "http://localhost/",
            locator: &name,
            group: &name,
            url: "",
            fetched_at: jiff::Timestamp::UNIX_EPOCH,
            depth: 0,
        };
        let limits = RecordLimits::default();
        taking += least(|| plan.extract(&page, &mut IdentityScripts, &limits).is_ok());
        for (plan, time) in &mut alone {
            *time += least(|| plan.extract(&page, &mut IdentityScripts, &limits).is_ok());
        }
        let made = plan.extract(&page, &mut IdentityScripts, &limits)?;
        let cell = |value: Option<&str>| match value.unwrap_or_default() {
            value if value.contains([',', '"']) => format!("\"{}\"", value.replace('"', "\"\"")),
            value => value.to_owned(),
        };
        let cells = made.rows[0].axes.iter().map(|axis| cell(axis.value.as_deref()));
        let line = cells.collect::<Vec<_>>().join(",");
        if !expected.lines().any(|known| known.trim_end() == line) {
            wrong += 1;
            if wrong < 5 {
                println!("not among the expected rows: {line}");
            }
        }
    }
    let count = texts.len() as u128;
    let bytes: usize = texts.iter().map(String::len).sum();
    println!("{} pages of {} KB", texts.len(), bytes / 1000 / texts.len());
    println!("parse {} us, ten fields {} us", parsing / count / 1000, taking / count / 1000);
    for (plan, time) in alone {
        println!("  {}: {} us", plan.field_names()[0], time / count / 1000);
    }
    println!("{wrong} rows are not among the expected ones");
    Ok(())
}
