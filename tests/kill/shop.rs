//! A shop of a few hundred linked pages, its definitions, and a working directory for runs over them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::site::{SiteResponse, TestSite};
use crate::harness::workdir::DEADLINE;

/// List pages of each of the two roots, and items on each list.
const LISTS: usize = 12;
const ITEMS: usize = 14;
/// Pages of the shop. All of them can be reached by links, some of which form cycles.
pub(super) const PAGES: usize = 2 * LISTS * (ITEMS + 1);
/// `job.takeLimit` of all runs here.
pub(super) const TAKE_LIMIT: usize = 64;

/// Pseudo-random numbers. The same seed gives the same numbers.
pub(crate) struct SeededRandom(pub(crate) u64);

impl SeededRandom {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}

/// Starts the shop. Every page takes a few milliseconds.
pub(super) fn open() -> TestSite {
    open_with(LISTS)
}

/// Starts a shop with another number of lists below each root.
pub(super) fn open_with(lists: usize) -> TestSite {
    let site = TestSite::start();
    let url = |path: String| site.url(&path);
    for root in 0..2 {
        for list in 0..lists {
            // The last list leads back to the first.
            let next = url(format!("/{root}/list/{}", (list + 1) % lists));
            let items = (0..ITEMS).map(|item| url(format!("/{root}/item/{list}-{item}")));
            let items: Vec<String> =
                items.map(|url| format!("<li><a href='{url}'>i</a></li>")).collect();
            let items = items.concat();
            serve(
                &site,
                &format!("/{root}/list/{list}"),
                &format!("<h1>List {list}</h1><p><a href='{next}'>n</a></p><ul>{items}</ul>"),
            );
            for item in 0..ITEMS {
                let back = url(format!("/{root}/list/{list}"));
                serve(
                    &site,
                    &format!("/{root}/item/{list}-{item}"),
                    &format!(
                        "<h1>Item {list}-{item}</h1><div>{}</div><p><a href='{back}'>b</a></p>",
                        list * 100 + item
                    ),
                );
            }
        }
    }
    site
}

fn serve(site: &TestSite, path: &str, body: &str) {
    let page = format!("<!DOCTYPE html><title>t</title>{body}");
    let delay = 2 + (path.len() as u64 * 7 + path.bytes().map(u64::from).sum::<u64>()) % 6;
    site.answer(path, SiteResponse::html(page).delay(Duration::from_millis(delay)));
}

const DEFS: &str = r#"
locatorGroups:
  lists:
    locators: [
      { name: first, url: "SITE/0/list/0" },
      { name: second, url: "SITE/1/list/0" },
    ]
taskGroups:
  lists:
    headTask: { dataDef: head }
    nextTask:
      dataDef: next
      steps: { jsoupDefault: { process: {
        class: "org.codetab.scoopi.step.process.LocatorCreator", previous: parser, next: seeder } } }
    itemTask:
      dataDef: items
      steps: { jsoupDefault: { process: {
        class: "org.codetab.scoopi.step.process.LocatorCreator", previous: parser, next: seeder } } }
  items:
    nameTask: { dataDef: head }
    priceTask: { dataDef: price }
    backTask:
      dataDef: back
      steps: { jsoupDefault: { process: {
        class: "org.codetab.scoopi.step.process.LocatorCreator", previous: parser, next: seeder } } }
dataDefs:
  head:
    query: { block: "h1", selector: "*" }
    items: [ item: { name: head, value: "Head" } ]
  price:
    query: { block: "div", selector: "*" }
    items: [ item: { name: price, value: "Price" } ]
  next:
    query: { block: "p" }
    items: [ item: { name: link, linkGroup: lists, selector: "a attribute: href" } ]
  back:
    query: { block: "p" }
    items: [ item: { name: link, linkGroup: lists, selector: "a attribute: href" } ]
  items:
    query: { block: "ul" }
    items: [ item: { name: link, linkGroup: items, indexRange: "1-14",
                     selector: "li:nth-child(%{index}) > a attribute: href" } ]
"#;

/// A directory with definitions, data and output.
pub(super) struct ShopDir {
    dir: tempfile::TempDir,
    canonical: bool,
}

impl ShopDir {
    pub(super) fn new(site: &TestSite, canonical: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("defs")).unwrap();
        let defs = DEFS.replace("SITE", site.url("").trim_end_matches('/'));
        std::fs::write(dir.path().join("defs/job.yml"), defs).unwrap();
        Self { dir, canonical }
    }

    /// A copy of everything as it is now.
    pub(super) fn copy(&self) -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy_dir(self.dir.path(), dir.path());
        Self { dir, canonical: self.canonical }
    }

    pub(super) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn command(&self, data: &Path, output: &Path) -> Command {
        let order = if self.canonical { "canonical" } else { "arrival" };
        let mut command = Command::new(env!("CARGO_BIN_EXE_spoonbill"));
        command.current_dir(self.dir.path()).arg("run").arg("defs");
        command.arg("--data-dir").arg(data).arg("--output").arg(output);
        command.args(["--report", "report.json"]);
        for setting in [
            "loader.fetch.delay=0",
            "loader.fetch.parallelism=8",
            &format!("job.takeLimit={TAKE_LIMIT}"),
            &format!("output.order={order}"),
            // So small that the tables are synced many times in a run.
            "store.journal.max=12KiB",
        ] {
            command.args(["--set", setting]);
        }
        command.env("RUST_BACKTRACE", "0").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(super) fn start(&self) -> Child {
        self.start_with(&[])
    }

    pub(super) fn start_with(&self, env: &[(&str, &str)]) -> Child {
        // Relative paths, so that a copy of the directory does not use the original.
        let mut command = self.command(Path::new("data"), Path::new("output"));
        command.envs(env.iter().copied()).spawn().unwrap()
    }

    /// The path of a file or folder in this directory.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs to the end. At the deadline the process is killed and has no exit code.
    pub(super) fn run(&self) -> Output {
        self.run_with(&[])
    }

    pub(super) fn run_with(&self, env: &[(&str, &str)]) -> Output {
        let mut child = self.start_with(env);
        let deadline = Instant::now() + DEADLINE;
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.wait_with_output().unwrap()
    }

    pub(super) fn run_in(&self, data: &Path, output: &Path) -> Output {
        self.command(data, output).output().unwrap()
    }

    /// The rows of the latest run.
    pub(super) fn rows(&self) -> Vec<u8> {
        self.folders().pop().map_or_else(Vec::new, |folder| rows_in(&folder))
    }

    /// The folders of all runs, the latest last.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        folders_in(&self.dir.path().join("output"))
    }
}

/// The folders of all runs below an output directory, the latest last.
pub(super) fn folders_in(output: &Path) -> Vec<PathBuf> {
    let Ok(folders) = std::fs::read_dir(output) else { return Vec::new() };
    let folders = folders.map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = folders.filter(|path| path.is_dir() && !path.is_symlink()).collect();
    folders.sort();
    folders
}

/// The one data file in the folder of a run.
pub(super) fn rows_in(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("data.txt")).unwrap_or_default()
}

pub(crate) fn sorted(rows: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = rows.split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

pub(super) fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn copy_dir(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_dir(&entry.path(), &target);
        } else if entry.file_type().unwrap().is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The rows of an undisturbed run.
pub(super) fn golden(site: &TestSite) -> Vec<u8> {
    golden_with(site, LISTS)
}

pub(super) fn golden_with(site: &TestSite, lists: usize) -> Vec<u8> {
    let pages = 2 * lists * (ITEMS + 1);
    let place = ShopDir::new(site, true);
    let before = site.log().len();
    let output = place.run();
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    assert_eq!(site.log().len() - before, pages, "an undisturbed run loaded a page twice");
    let rows = place.rows();
    // Each page has a head, and each item a price.
    assert_eq!(sorted(&rows).len() - 1, pages + 2 * lists * ITEMS);
    rows
}
