//! Sets of definitions with the sites they are for, each of another kind.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::site::{Hit, Response, Site};

/// One request as a site answered it.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Host and path.
    pub(crate) page: String,
    pub(crate) at: Instant,
    /// Whether it was the page, not a fault.
    pub(crate) good: bool,
}

#[derive(Default)]
struct Book {
    answers: Vec<Answer>,
    /// Requests for each page since the book was opened.
    tries: HashMap<String, usize>,
    /// How much longer every page takes.
    pace: Duration,
}

/// Definitions, their sites, and what a run over them comes to.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) defs: String,
    pub(crate) settings: Vec<&'static str>,
    /// Pages that can be had.
    pub(crate) pages: usize,
    /// Pages that never can.
    pub(crate) lost: usize,
    /// Least time between two requests to one host.
    pub(crate) delay: Duration,
    book: Arc<Mutex<Book>>,
    sites: Vec<Site>,
}

impl Set {
    /// Answers since the book was opened.
    pub(crate) fn answers(&self) -> Vec<Answer> {
        self.book.lock().unwrap().answers.clone()
    }

    /// Opens a new book: what fails at first fails at first again.
    pub(crate) fn forget(&self) {
        let mut book = self.book.lock().unwrap();
        *book = Book { pace: book.pace, ..Book::default() };
    }

    /// Waits until the sites have seen everything that ended clients had sent.
    pub(crate) fn settle(&self) {
        for site in &self.sites {
            site.settle();
        }
    }

    /// What each site saw since then, in the order it came.
    pub(crate) fn logs(&self, since: Instant) -> Vec<Vec<Hit>> {
        let log = |site: &Site| site.log().into_iter().filter(|hit| hit.at >= since).collect();
        self.sites.iter().map(log).collect()
    }

    /// Makes every page take so much longer.
    pub(crate) fn slow(&self, pace: Duration) {
        self.book.lock().unwrap().pace = pace;
    }
}

/// A host whose pages `page` makes from their path; some faults come first.
fn host(
    address: &str,
    book: &Arc<Mutex<Book>>,
    page: impl Fn(&str, usize) -> Option<Response> + Send + Sync + 'static,
) -> Site {
    let site = Site::start_on(address);
    let (book, lane) = (Arc::clone(book), site.lane());
    site.otherwise(move |request, _| {
        let name = format!("{lane}{}", request.path);
        let mut book = book.lock().unwrap();
        let tries = book.tries.entry(name.clone()).or_default();
        *tries += 1;
        let answer = page(&request.path, *tries);
        let good = answer.is_some();
        book.answers.push(Answer { page: name, at: Instant::now(), good });
        let wait = 1 + request.path.bytes().map(u64::from).sum::<u64>() % 7;
        let wait = Duration::from_millis(wait) + book.pace;
        answer.unwrap_or_else(|| Response::status(503)).delay(wait)
    });
    site
}

fn html(body: &str) -> Response {
    Response::html(format!("<!DOCTYPE html><title>t</title>{body}"))
}

fn number(path: &str) -> usize {
    path.rsplit('/').next().and_then(|last| last.parse().ok()).unwrap_or(0)
}

fn set(name: &'static str, defs: String, book: Arc<Mutex<Book>>, sites: Vec<Site>) -> Set {
    let settings = vec!["loader.fetch.delay=0", "loader.fetch.parallelism=8"];
    let delay = Duration::ZERO;
    Set { name, defs, settings, pages: 0, lost: 0, delay, book, sites }
}

pub(crate) fn all() -> Vec<Set> {
    vec![circles(), dates(), faults(), polite(), chain()]
}

const LINKS: &str = r#"steps: { jsoupDefault: { process: {
        class: "org.codetab.scoopi.step.process.LocatorCreator", previous: parser, next: seeder } } }"#;

/// Ninety pages that lead to each other in circles, each with a note in another group.
fn circles() -> Set {
    const NODES: usize = 90;
    let book = Arc::new(Mutex::new(Book::default()));
    let site = host("127.0.0.1", &book, |path, _| {
        let n = number(path);
        let link = |to: String| format!("<li><a href='{to}'>x</a></li>");
        let (one, two) = (link(format!("/node/{}", (2 * n + 1) % NODES)), (3 * n + 2) % NODES);
        let note = format!("<p><a href='/note/{n}'>n</a></p>");
        if path.starts_with("/note") {
            return Some(html(&format!("<h1>Note {n}</h1><p><a href='/note/{n}'>self</a></p>")));
        }
        Some(html(&format!(
            "<h1>Node {n}</h1><ul>{one}{}</ul>{note}",
            link(format!("/node/{two}"))
        )))
    });
    let url = site.url("");
    let defs = format!(
        r#"
locatorGroups:
  node:
    locators: [ {{ name: graph, url: "{url}/node/0" }} ]
taskGroups:
  node:
    head: {{ dataDef: head }}
    next:
      dataDef: next
      {LINKS}
    notes:
      dataDef: notes
      {LINKS}
  note:
    head: {{ dataDef: head }}
dataDefs:
  head:
    query: {{ block: body, selector: h1 }}
    items: [ item: {{ name: head, value: Head }} ]
  next:
    query: {{ block: ul }}
    items: [ item: {{ name: link, linkGroup: node, indexRange: 1-2, prefix: [ "{url}" ],
                      selector: "li:nth-child(%{{index}}) > a attribute: href" }} ]
  notes:
    query: {{ block: p }}
    items: [ item: {{ name: link, linkGroup: note, prefix: [ "{url}" ],
                      selector: "a attribute: href" }} ]
"#
    );
    // Nodes that are reached from the first, and their notes.
    let mut reached = [false; NODES];
    let mut open = vec![0];
    while let Some(n) = open.pop() {
        if !std::mem::replace(&mut reached[n], true) {
            open.extend([(2 * n + 1) % NODES, (3 * n + 2) % NODES]);
        }
    }
    let nodes = reached.iter().filter(|reached| **reached).count();
    Set { pages: 2 * nodes, ..set("circles", defs, book, vec![site]) }
}

fn locators(urls: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for (place, url) in urls.enumerate() {
        writeln!(text, "      - {{ name: loc{place}, url: \"{url}\" }}").unwrap();
    }
    text
}

/// A hundred pages with dates that are converted, in two files.
fn dates() -> Set {
    const PAGES: usize = 100;
    let book = Arc::new(Mutex::new(Book::default()));
    let site = host("127.0.0.1", &book, |path, _| {
        let n = number(path);
        let rows: String = (1..6)
            .map(|day| {
                format!(
                    "<tr><td>{} Feb 20{:02}</td><td>{}</td></tr>",
                    day + n % 20,
                    n % 30,
                    n * day
                )
            })
            .collect();
        Some(html(&format!("<table><tbody>{rows}</tbody></table><b>{n}, \"q\"</b>")))
    });
    let list = locators((0..PAGES).map(|n| site.url(&format!("/day/{n}"))));
    let defs = format!(
        r#"
locatorGroups:
  day:
    locators:
{list}
taskGroups:
  day:
    values: {{ dataDef: values, steps: mine }}
    marks: {{ dataDef: marks, steps: mine }}
steps:
  mine:
    jsoupDefault:
      converter:
        class: data_converter
        previous: filter
        next: appender
        plugins: [
          plugin: {{ name: r, class: date_roller, item: date, inPattern: "d MMM yyyy",
                     outPattern: "yyyy-MM-dd", roll: "DAY_OF_MONTH=ceil" }},
        ]
      appender:
        class: data_appender
        previous: converter
        next: end
        plugins: [
          plugin: {{ name: table, class: file, file: values.csv,
                     plugins: [ plugin: {{ name: csv, class: csv, delimiter: "," }} ] }},
          plugin: {{ name: archive, class: file, file: deep/values.tsv,
                     plugins: [ plugin: {{ name: tsv, class: csv, delimiter: "\t" }} ] }},
        ]
dataDefs:
  values:
    query: {{ block: "table tr:nth-child(%{{dim.index}})", selector: "td:nth-child(2)" }}
    items: [ item: {{ name: item, value: Value }} ]
    dims: [ item: {{ name: date, selector: "td:nth-child(1)", indexRange: 1-5 }} ]
  marks:
    query: {{ block: body, selector: b }}
    items: [ item: {{ name: item, value: Mark }} ]
    dims: [ item: {{ name: date, value: "1 Jan 2020" }} ]
"#
    );
    Set { pages: PAGES, ..set("dates", defs, book, vec![site]) }
}

/// Every third page works at the third try, and two never do.
fn faults() -> Set {
    const PAGES: usize = 70;
    const LOST: usize = 2;
    let book = Arc::new(Mutex::new(Book::default()));
    let site = host("127.0.0.1", &book, |path, tries| {
        let n = number(path);
        if n >= PAGES || n.is_multiple_of(3) && tries <= 2 {
            return None;
        }
        Some(html(&format!("<h1>Page {n}</h1>")))
    });
    let list = locators((0..PAGES + LOST).map(|n| site.url(&format!("/p/{n}"))));
    let defs = format!(
        r#"
locatorGroups:
  page:
    locators:
{list}
taskGroups: {{ page: {{ head: {{ dataDef: head }} }} }}
dataDefs:
  head:
    query: {{ block: body, selector: h1 }}
    items: [ item: {{ name: head, value: Head }} ]
"#
    );
    let mut set = Set { pages: PAGES, lost: LOST, ..set("faults", defs, book, vec![site]) };
    set.settings.extend(["loader.retry.backoff=10ms", "loader.retry.backoffMax=40ms"]);
    set
}

/// Two hosts that want a pause between requests.
fn polite() -> Set {
    const PAGES: usize = 12;
    let book = Arc::new(Mutex::new(Book::default()));
    let page = |path: &str, _| Some(html(&format!("<h1>Polite {}</h1>", number(path))));
    let sites = ["127.0.0.2", "127.0.0.3"].map(|address| host(address, &book, page));
    let urls = sites.iter().flat_map(|site| (0..PAGES).map(|n| site.url(&format!("/q/{n}"))));
    let list = locators(urls);
    let defs = format!(
        r#"
locatorGroups:
  quiet:
    locators:
{list}
taskGroups: {{ quiet: {{ head: {{ dataDef: head }} }} }}
dataDefs:
  head:
    query: {{ block: body, selector: h1 }}
    items: [ item: {{ name: head, value: Head }} ]
"#
    );
    let mut set = Set { pages: 2 * PAGES, ..set("polite", defs, book, sites.into()) };
    set.settings = vec!["loader.fetch.delay=100ms", "loader.fetch.parallelism=1"];
    set.delay = Duration::from_millis(100);
    set
}

/// Pages that are known one at a time, by XPath.
fn chain() -> Set {
    const PAGES: usize = 60;
    let book = Arc::new(Mutex::new(Book::default()));
    let site = host("127.0.0.1", &book, |path, _| {
        let n = number(path);
        let next = (n + 1) % PAGES;
        Some(html(&format!("<h1>Link {n}</h1><a class='next' href='/c/{next}'>next</a>")))
    });
    let url = site.url("");
    let defs = format!(
        r#"
locatorGroups:
  link:
    locators: [ {{ name: chain, url: "{url}/c/0" }} ]
taskGroups:
  link:
    head: {{ dataDef: head, steps: htmlUnitDefault }}
    next:
      dataDef: next
      {LINKS}
dataDefs:
  head:
    query: {{ block: "//body", selector: "h1" }}
    items: [ item: {{ name: head, value: Head }} ]
  next:
    query: {{ block: body }}
    items: [ item: {{ name: link, linkGroup: link, prefix: [ "{url}" ],
                      selector: "a.next attribute: href" }} ]
"#
    );
    Set { pages: PAGES, ..set("chain", defs, book, vec![site]) }
}
