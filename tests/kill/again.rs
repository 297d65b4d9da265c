//! `retry` and `replay`, killed after each step that writes something durable and started again. The
//! rows are those of a run without failures.

use crate::harness::defs::{TITLE, job, titled};
use crate::harness::{ProcessOutput, SiteResponse, TestSite, Workdir};

/// The number of pages. Every third one fails in the first run.
const PAGES: usize = 12;
/// Points at which a process is killed, each at its first and at its third time.
const POINTS: [&str; 12] = [
    "store.open.after",
    "store.commit.before",
    "store.commit.after",
    "store.settle.after",
    "crossing.end.after",
    "job.take.after",
    "page.load.after",
    "job.finish.before",
    "append.write.after",
    "append.ack.after",
    "append.finish.after",
    "run.close.before",
];

fn path(number: usize) -> String {
    format!("/{number}")
}

fn failed_at_first() -> (TestSite, Workdir) {
    let site = TestSite::start();
    for number in 0..PAGES {
        match number % 3 {
            0 => site.answer(&path(number), SiteResponse::status(404)),
            _ => site.page(&path(number), titled(&format!("title {number}"))),
        }
    }
    let locators: Vec<_> =
        (0..PAGES).map(|number| (format!("n{number:02}"), site.url(&path(number)))).collect();
    let locators: Vec<_> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    let work = Workdir::with_defs(&job(&locators, TITLE));
    let ending = with(&work, "run", None);
    assert_eq!(ending.code, 4, "{ending:?}");
    for number in (0..PAGES).step_by(3) {
        site.page(&path(number), titled(&format!("title {number}")));
    }
    (site, work)
}

/// Runs a command with a small journal and rows in canonical order. A point kills it there.
fn with(work: &Workdir, command: &str, kill: Option<&str>) -> ProcessOutput {
    let settings = ["loader.fetch.delay=0", "output.order=canonical", "store.journal.max=2KiB"];
    let mut arguments = vec![command, "defs", "--report", "report.json"];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let env: Vec<_> = kill.map(|point| ("FAILPOINT", point)).into_iter().collect();
    work.start_with_env(&arguments, &env).end()
}

fn complete_rows() -> Vec<String> {
    (0..PAGES).map(|number| format!("n{number:02}|g|title|title {number}")).collect()
}

#[test]
fn a_killed_retry_continues() {
    let mut killed = 0;
    for point in POINTS {
        for nth in [1, 3] {
            let (site, work) = failed_at_first();
            let order = format!("{point}:{nth}");
            if with(&work, "retry", Some(&order)).code == 137 {
                killed += 1;
                let ending = with(&work, "retry", None);
                assert_eq!(ending.code, 0, "{order}: {ending:?}");
            }
            let ending = work.spoonbill(&["fsck"]);
            assert_eq!(ending.code, 0, "{order}: {ending:?}");
            assert_eq!(work.lines("output/latest/data.txt"), complete_rows(), "{order}");
            for number in (0..PAGES).filter(|number| number % 3 != 0) {
                assert_eq!(site.hits(&path(number)), 1, "{order}: page {number}");
            }
        }
    }
    assert!(killed > POINTS.len(), "only {killed} kills");
}

#[test]
fn a_killed_replay_starts_again_and_changes_no_output() {
    let (site, work) = failed_at_first();
    assert_eq!(with(&work, "retry", None).code, 0);
    let (asked, run) = (site.log().len(), work.path("output/latest").canonicalize().unwrap());
    let rows = std::fs::read(run.join("data.txt")).unwrap();
    let mut killed = 0;
    for point in POINTS {
        for nth in [1, 3] {
            let order = format!("{point}:{nth}");
            killed += u32::from(with(&work, "replay", Some(&order)).code == 137);
            let ending = with(&work, "replay", None);
            assert_eq!(ending.code, 0, "{order}: {ending:?}");
            let report = work.report();
            let changes = report["replay"]["dataDefs"].as_object().unwrap();
            assert!(!changes.is_empty(), "{report}");
            for change in changes.values() {
                assert_eq!(change["same"], PAGES, "{order}: {report}");
            }
            assert_eq!(std::fs::read(run.join("data.txt")).unwrap(), rows, "{order}");
            assert_eq!(work.spoonbill(&["fsck"]).code, 0, "{order}");
        }
    }
    assert_eq!(site.log().len(), asked, "a page was fetched");
    assert!(killed > POINTS.len() as u32, "only {killed} kills");
}
