//! Sets of definitions with their sites, each of a different kind.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::site::{LoggedRequest, SiteResponse, TestSite};

/// One request as a site answered it.
#[derive(Debug, Clone)]
pub(crate) struct SiteAnswer {
    /// Host and path.
    pub(crate) page: String,
    pub(crate) at: Instant,
    /// Whether the answer was the page and not a fault.
    pub(crate) good: bool,
}

#[derive(Default)]
struct AnswerLog {
    answers: Vec<SiteAnswer>,
    /// Requests for each page since the log was cleared.
    tries: HashMap<String, usize>,
    /// Extra time that every page takes.
    pace: Duration,
}

/// Definitions, their sites, and the expected result of a run.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) defs: String,
    pub(crate) settings: Vec<&'static str>,
    /// Pages that answer.
    pub(crate) pages: usize,
    /// Pages that always fail.
    pub(crate) lost: usize,
    /// Least time between two requests to one host.
    pub(crate) delay: Duration,
    book: Arc<Mutex<AnswerLog>>,
    sites: Vec<TestSite>,
}

impl Set {
    /// Answers since the log was cleared.
    pub(crate) fn answers(&self) -> Vec<SiteAnswer> {
        self.book.lock().unwrap().answers.clone()
    }

    /// Clears the log, so that pages that fail at first do so again.
    pub(crate) fn forget(&self) {
        let mut book = self.book.lock().unwrap();
        *book = AnswerLog { pace: book.pace, ..AnswerLog::default() };
    }

    /// Waits until the sites have seen everything that ended clients had sent.
    pub(crate) fn settle(&self) {
        for site in &self.sites {
            site.settle();
        }
    }

    /// The requests to each site since a time, in order of arrival.
    pub(crate) fn logs(&self, since: Instant) -> Vec<Vec<LoggedRequest>> {
        let log = |site: &TestSite| site.log().into_iter().filter(|hit| hit.at >= since).collect();
        self.sites.iter().map(log).collect()
    }

    /// Makes every page take longer.
    pub(crate) fn slow(&self, pace: Duration) {
        self.book.lock().unwrap().pace = pace;
    }
}

/// A host whose pages come from `page`, a function of the path and the number of the request. Without a
/// page it answers with status 503.
fn host(
    address: &str,
    book: &Arc<Mutex<AnswerLog>>,
    page: impl Fn(&str, usize) -> Option<SiteResponse> + Send + Sync + 'static,
) -> TestSite {
    let site = TestSite::start_on(address);
    let (book, lane) = (Arc::clone(book), site.lane());
    site.otherwise(move |request, _| {
        let name = format!("{lane}{}", request.path);
        let mut book = book.lock().unwrap();
        let tries = book.tries.entry(name.clone()).or_default();
        *tries += 1;
        let answer = page(&request.path, *tries);
        let good = answer.is_some();
        book.answers.push(SiteAnswer { page: name, at: Instant::now(), good });
        let wait = 1 + request.path.bytes().map(u64::from).sum::<u64>() % 7;
        let wait = Duration::from_millis(wait) + book.pace;
        answer.unwrap_or_else(|| SiteResponse::status(503)).delay(wait)
    });
    site
}

fn html(body: &str) -> SiteResponse {
    SiteResponse::html(format!("<!DOCTYPE html><title>t</title>{body}"))
}

fn number(path: &str) -> usize {
    path.rsplit('/').next().and_then(|last| last.parse().ok()).unwrap_or(0)
}

fn set(name: &'static str, defs: String, book: Arc<Mutex<AnswerLog>>, sites: Vec<TestSite>) -> Set {
    let settings = vec!["loader.fetch.delay=0", "loader.fetch.parallelism=8"];
    let delay = Duration::ZERO;
    Set { name, defs, settings, pages: 0, lost: 0, delay, book, sites }
}

pub(crate) fn all() -> Vec<Set> {
    vec![circles(), dates(), faults(), polite(), chain()]
}

const LINKS: &str = r#"steps: { jsoupDefault: { process: {
        class: "org.codetab.scoopi.step.process.LocatorCreator", previous: parser, next: seeder } } }"#;

/// Ninety pages that link to each other in circles, each with a note in another group.
fn circles() -> Set {
    const NODES: usize = 90;
    let book = Arc::new(Mutex::new(AnswerLog::default()));
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
    // The nodes that can be reached from the first one, and their notes.
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

/// A hundred pages with dates that are converted, written to two files.
fn dates() -> Set {
    const PAGES: usize = 100;
    let book = Arc::new(Mutex::new(AnswerLog::default()));
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

/// Every third page answers at the third attempt, and two pages never do.
fn faults() -> Set {
    const PAGES: usize = 70;
    const LOST: usize = 2;
    let book = Arc::new(Mutex::new(AnswerLog::default()));
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
    let book = Arc::new(Mutex::new(AnswerLog::default()));
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

/// Pages that each link to the next one, read by XPath.
fn chain() -> Set {
    const PAGES: usize = 60;
    let book = Arc::new(Mutex::new(AnswerLog::default()));
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
