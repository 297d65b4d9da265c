//! Measures the speed of our HTML parser and of html5ever in MB/s of CPU time:
//!
//! `cargo run --release -p spoonbill-plugins --example html_speed -- FOLDER...`
//!
//! It parses all `.html` files below each folder. With `--own` or `--html5ever` before the folders,
//! it parses every page once with that parser alone, for a profiler.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use spoonbill_plugins::html::{Document, TreeLimits};

#[path = "../src/html/tests/reference.rs"]
mod reference;

/// Rounds for each parser, alternating. The fastest counts.
const ROUNDS: usize = 15;

fn collect(folder: &Path, pages: &mut Vec<String>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|end| end == "html") {
            pages.push(String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned());
        }
    }
}

fn own(pages: &[String]) -> usize {
    let parse =
        |page: &String| black_box(Document::parse(page, TreeLimits::default()).unwrap()).len();
    pages.iter().map(parse).sum()
}

fn html5ever(pages: &[String]) -> usize {
    pages.iter().map(|page| black_box(reference::parse(page, false)).len()).sum()
}

fn seconds(pages: &[String], parse: fn(&[String]) -> usize) -> f64 {
    let start = clock();
    black_box(parse(pages));
    clock().saturating_sub(start).as_secs_f64()
}

/// CPU time of this process if the system reports it, so that other processes do not count.
fn clock() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").ok();
    let nanos = schedstat.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let only = arguments.first().filter(|first| first.starts_with("--")).cloned();
    if only.is_some() {
        arguments.remove(0);
    }
    for folder in arguments {
        let mut pages = vec![];
        collect(Path::new(&folder), &mut pages);
        let bytes: usize = pages.iter().map(String::len).sum();
        match only.as_deref() {
            Some("--own") => println!("{} nodes", own(&pages)),
            Some(_) => println!("{} nodes", html5ever(&pages)),
            None => {
                // Repeats the pages so that a round takes long compared with the clock's
                // resolution.
                let times = 1 + (4_000_000 / bytes.max(1));
                let pages: Vec<String> = (0..times).flat_map(|_| pages.clone()).collect();
                let (mut ours, mut theirs) = (f64::MAX, f64::MAX);
                for _ in 0..ROUNDS {
                    ours = ours.min(seconds(&pages, own));
                    theirs = theirs.min(seconds(&pages, html5ever));
                }
                let speed = |seconds: f64| (bytes * times) as f64 / seconds / 1e6;
                println!(
                    "{folder}: {} pages, {bytes} bytes: own {:.0} MB/s, html5ever {:.0} MB/s, {:.2} times",
                    pages.len() / times,
                    speed(ours),
                    speed(theirs),
                    theirs / ours
                );
            }
        }
    }
}
