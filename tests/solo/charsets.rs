//! The encoding of pages: header, byte order mark and meta element.

use crate::harness::defs::{TITLE, job};
use crate::harness::{SiteResponse, TestSite, Workdir};

fn check(response: SiteResponse, expect: &str) {
    let site = TestSite::start();
    site.answer("/", response);
    let work = Workdir::with_defs(&job(&[("acme", &site.url("/"))], TITLE));
    assert_eq!(work.rows(&[]), [format!("acme|g|title|{expect}")]);
}

fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect()
}

#[test]
fn the_header_says_latin1() {
    let body = latin1("<h1>Käse £5</h1>");
    check(SiteResponse::raw(&[("Content-Type", "text/html; charset=ISO-8859-1")], body), "Käse £5");
}

#[test]
fn the_page_itself_says_latin1() {
    let body = latin1("<head><meta charset=latin1></head><h1>Käse £5</h1>");
    check(SiteResponse::raw(&[("Content-Type", "text/html")], body), "Käse £5");
}

#[test]
fn the_header_outranks_the_page() {
    let body = "<head><meta charset=latin1></head><h1>Käse £5</h1>";
    check(SiteResponse::html(body), "Käse £5");
}

#[test]
fn a_byte_order_mark_outranks_the_header() {
    let text = "\u{feff}<h1>Käse £5 ✓</h1>";
    let body: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(SiteResponse::raw(&[("Content-Type", "text/html; charset=latin1")], body), "Käse £5 ✓");
}

#[test]
fn a_page_without_a_charset_is_recognised_as_utf8() {
    check(SiteResponse::raw(&[], "<h1>Käse £5 ✓</h1>"), "Käse £5 ✓");
}

#[test]
fn a_wrong_charset_costs_letters_but_not_the_row() {
    let body = latin1("<h1>K\u{e4}se</h1>");
    check(SiteResponse::html(body), "K\u{fffd}se");
}

#[test]
fn local_files_are_decoded_by_byte_order_mark_and_meta() {
    let work = Workdir::with_defs(&job(&[("a", "a.html"), ("b", "b.html")], TITLE));
    work.write("a.html", latin1("<meta charset=windows-1252><h1>K\u{e4}se</h1>"));
    let text = "\u{feff}<h1>Käse</h1>";
    work.write("b.html", text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>());
    let mut rows = work.rows(&[]);
    rows.sort();
    assert_eq!(rows, ["a|g|title|Käse", "b|g|title|Käse"]);
}
