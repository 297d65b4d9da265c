//! The query console: a person types queries at a terminal and sees what they match.

use std::io::{self, BufRead, Write};
use std::sync::Mutex;

use spoonbill_plugins::html::Document;
use spoonbill_plugins::page::Page;

use crate::plan::prepare::Dialect;
use crate::steps::query;

/// One page uses the console at a time.
static CONSOLE: Mutex<()> = Mutex::new(());

const HELP: &str = "blank line: end, 1: show the source, 2: write the source to a file, \
                    3: set the lines shown, other text: a query on the whole page";

/// Reads queries until a blank line, the end of the input, or a closed output.
pub(super) fn converse(document: &Document, dialect: Dialect, page: &Page) -> Result<(), String> {
    let _one =
        CONSOLE.lock().map_err(|_| "another page failed while it used the console".to_owned())?;
    match ask_queries(document, dialect, page) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("the console failed: {error}"))
        }
        _ => Ok(()),
    }
}

fn ask_queries(document: &Document, dialect: Dialect, page: &Page) -> io::Result<()> {
    let (mut input, mut out) = (io::stdin().lock(), io::stdout().lock());
    let mut shown = 5;
    writeln!(out, "page: {}\n{HELP}", page.url)?;
    loop {
        write!(out, "query> ").and_then(|()| out.flush())?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok(());
        }
        let reply = match line.trim() {
            "1" => head_and_tail(&String::from_utf8_lossy(&page.body), shown),
            "2" => write_source(page),
            "3" => {
                write!(out, "lines> ").and_then(|()| out.flush())?;
                let mut number = String::new();
                input.read_line(&mut number)?;
                shown = number.trim().parse().unwrap_or(shown);
                format!("showing {shown} lines of head and tail")
            }
            question => answer(document, dialect, question),
        };
        writeln!(out, "{reply}")?;
    }
}

fn answer(document: &Document, dialect: Dialect, question: &str) -> String {
    match query::ask(document, dialect, question, None) {
        Ok(matches) => {
            let mut lines: Vec<String> =
                matches.iter().map(|found| format!("  {found:?}")).collect();
            lines.push(format!("{} found", matches.len()));
            lines.join("\n")
        }
        Err(error) => format!("error: {error}"),
    }
}

fn head_and_tail(source: &str, count: usize) -> String {
    let lines: Vec<&str> = source.lines().collect();
    if lines.len() <= count * 2 {
        return lines.join("\n");
    }
    let left_out = format!("  ... {} lines ...", lines.len() - count * 2);
    let (head, tail) = (lines[..count].join("\n"), lines[lines.len() - count..].join("\n"));
    format!("{head}\n{left_out}\n{tail}")
}

fn write_source(page: &Page) -> String {
    let path = std::env::temp_dir().join(format!("{}-{}.html", page.group, page.name));
    match std::fs::write(&path, &page.body) {
        Ok(()) => format!("written to {}", path.display()),
        Err(error) => format!("`{}` could not be written: {error}", path.display()),
    }
}
