//! Rows with named columns, from definitions to files, and the reports about values that do not fit.

mod expectations;
mod fields;
mod secrets;
mod try_page;

use crate::harness::Workdir;

/// A workdir with one group `g` on the page `page.html`.
fn with_page(rest: &str, html: &str) -> Workdir {
    let indented = crate::harness::indent(rest, 4);
    let work = Workdir::with_defs(&format!("groups:\n  g:\n    urls: page.html\n{indented}"));
    work.write("page.html", html);
    work
}
