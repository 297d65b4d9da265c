//! Following links, and other sources of addresses.

mod bounds;
mod links;
mod sequence;
mod sources;

use serde_json::Value;

use crate::harness::Workdir;

/// A dataDef with one row for each page: its address and its heading.
const TITLES: &str = r#"
dataDefs:
  page:
    query: { block: body, selector: h1 }
    items: [ item: { name: url, script: "document.getUrl()" } ]
"#;

/// A page with a heading and links. The classes of the links are `l0`, `l1` and so on.
fn page(title: &str, links: &[&str]) -> String {
    let link = |(number, href): (usize, &&str)| format!("<a class=l{number} href='{href}'>x</a>");
    let links: String = links.iter().enumerate().map(link).collect();
    format!("<html><body><h1>{title}</h1>{links}</body></html>")
}

/// The headings in the rows, sorted.
fn titles(rows: &[String]) -> Vec<&str> {
    let mut titles: Vec<&str> = rows.iter().filter_map(|row| row.rsplit('|').next()).collect();
    titles.sort_unstable();
    titles
}

/// The reasons why links were not followed, with their counts.
fn skipped(work: &Workdir) -> Value {
    work.report()["pages"]["skipped"].clone()
}
