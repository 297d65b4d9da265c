//! Pages of many kinds: a proposal must give the right rows for all items, not only the samples.

#![allow(clippy::needless_raw_string_hashes, clippy::format_collect, reason = "pages as they come")]

mod details;
mod lists;
mod more;
mod sites;

use super::{Proposal, Sample, propose};
use crate::html::{Document, TreeLimits};

fn proposal(html: &str, samples: &[&str]) -> Proposal {
    let page = Document::parse(html, TreeLimits::default()).unwrap();
    let samples: Vec<Sample> = samples.iter().map(|sample| Sample::read(sample)).collect();
    let base = url::Url::parse("https://shop.example/list/index.html").unwrap();
    propose(&page, &samples, Some(&base)).unwrap()
}

/// Compares rows, a line each, values parted by `|`.
fn check(html: &str, samples: &[&str], expect: &str) -> Proposal {
    let found = proposal(html, samples);
    let rows: Vec<String> = (0..found.rows)
        .map(|row| {
            let values = found.columns.iter().map(|column| column.values[row].clone());
            values.map(Option::unwrap_or_default).collect::<Vec<_>>().join("|")
        })
        .collect();
    let expect: Vec<&str> = expect.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(rows, expect, "\nblock {:?}\n{:#?}", found.block, takes(&found));
    found
}

fn takes(found: &Proposal) -> Vec<(&str, &super::Take)> {
    found.columns.iter().map(|column| (column.name.as_str(), &column.take)).collect()
}

fn names(found: &Proposal) -> Vec<&str> {
    found.columns.iter().map(|column| column.name.as_str()).collect()
}
