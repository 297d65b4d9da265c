//! A ledger that has lost committed records. Every command reports it, no run starts over silently, and
//! the run continues only after the user has accepted the loss.

use std::fs;

use crate::harness::defs::{TITLE, job, titled};
use crate::harness::{ProcessOutput, Running, SiteResponse, TestSite, Workdir, wait_until};

/// The number of pages that answer. One more never does.
const PAGES: usize = 12;

/// A run killed after some pages, with everything still in its journal.
fn killed() -> (TestSite, Workdir) {
    killed_with("4MiB")
}

/// A run killed after some pages, with all but the last in its tables.
fn settled() -> (TestSite, Workdir) {
    killed_with("2KiB")
}

fn killed_with(journal_max: &str) -> (TestSite, Workdir) {
    let site = TestSite::start();
    site.answer("/silent", SiteResponse::silence());
    let mut locators = vec![("silent".to_owned(), site.url("/silent"))];
    for number in 0..PAGES {
        let path = format!("/{number}");
        site.page(&path, titled(&format!("title {number}")));
        locators.push((format!("n{number}"), site.url(&path)));
    }
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    let work = Workdir::with_defs(&job(&locators, TITLE));
    let journal_max = format!("store.journal.max={journal_max}");
    let running: Running = work.start_run(&["loader.fetch.parallelism=4", &journal_max]);
    wait_until("every page is asked for", || site.log().len() > PAGES);
    wait_until("rows are written", || work.lines("output/latest/data.txt").len() == PAGES);
    running.signal("KILL");
    assert_eq!(running.end().code, 137);
    site.page("/silent", titled("silent"));
    (site, work)
}

/// Every command that reads the ledger reports the error and changes no file.
fn refused_by_all(work: &Workdir, wanted: &str) {
    let ledger = |work: &Workdir| {
        let mut names = work.list("data");
        names.retain(|name| name.starts_with("state."));
        names
    };
    let before = ledger(work);
    let refused = |ending: ProcessOutput| {
        assert_eq!(ending.code, 1, "{ending:?}");
        let said = ending.stderr + &ending.stdout;
        assert!(said.contains(wanted) && said.contains("state.db"), "{said}");
    };
    refused(work.run(&[]));
    refused(work.retry(&[]));
    refused(work.spoonbill(&["replay", "defs"]));
    refused(work.spoonbill(&["failed"]));
    refused(work.spoonbill(&["fsck"]));
    assert_eq!(ledger(work), before);
}

#[test]
fn a_missing_ledger_is_refused() {
    let (site, work) = settled();
    let asked = site.log().len();
    for ending in ["", "-wal"] {
        fs::remove_file(work.path(&format!("data/state.db{ending}"))).unwrap();
    }
    refused_by_all(&work, "is missing, but `state.mark` beside it belongs to a run");
    fs::remove_file(work.path("data/state.mark")).unwrap();
    refused_by_all(&work, "is missing, but `state.journal` beside it belongs to a run");
    fs::remove_file(work.path("data/state.journal")).unwrap();
    refused_by_all(&work, "is missing, but `pages.db` beside it belongs to a run");
    assert_eq!(site.log().len(), asked, "a page was asked for");
    // The advice in the message works.
    fs::remove_dir_all(work.path("data")).unwrap();
    assert_eq!(work.run(&[]).code, 0);
    assert_eq!(work.latest().len(), PAGES + 1);
}

#[test]
fn an_emptied_ledger_is_refused() {
    let (_site, work) = settled();
    fs::write(work.path("data/state.db"), "").unwrap();
    refused_by_all(&work, "is empty, but `state.mark` beside it belongs to a run");
}

#[test]
fn lost_tables_are_rebuilt_from_a_complete_journal() {
    for endings in [&["", "-wal"][..], &["-wal"], &[""]] {
        let (site, work) = killed();
        for ending in endings {
            fs::remove_file(work.path(&format!("data/state.db{ending}"))).unwrap();
        }
        let ending = work.spoonbill(&["fsck"]);
        assert_eq!(ending.code, 0, "{ending:?}");
        let asked = site.log().len();
        assert_eq!(work.run(&[]).code, 0);
        assert_eq!(work.latest().len(), PAGES + 1);
        assert_eq!(
            site.log().len(),
            asked + 1,
            "pages were asked for again that had been answered"
        );
    }
}

#[test]
fn a_missing_journal_or_log_is_refused() {
    let (_site, work) = killed();
    fs::remove_file(work.path("data/state.journal")).unwrap();
    refused_by_all(&work, "ends at commit 0, but ");
    let (_site, work) = settled();
    fs::remove_file(work.path("data/state.db-wal")).unwrap();
    refused_by_all(&work, "is empty, but `state.mark` beside it belongs to a run");
}

#[test]
fn tables_older_than_their_journal_are_refused() {
    let (_site, work) = settled();
    // A WAL that is cut behind a commit looks complete to SQLite.
    let log = fs::read(work.path("data/state.db-wal")).unwrap();
    fs::write(work.path("data/state.db-wal"), &log[..log.len() * 2 / 3]).unwrap();
    refused_by_all(&work, "ends at commit ");
    fs::remove_file(work.path("data/state.mark")).unwrap();
    refused_by_all(&work, "but its journal `state.journal` begins with commit ");
    fs::write(work.path("data/state.db-wal"), log).unwrap();
    assert_eq!(work.run(&[]).code, 0);
    assert_eq!(work.latest().len(), PAGES + 1);
}

#[test]
fn a_journal_of_another_directory_is_refused() {
    let (_site, work) = settled();
    let (_other_site, other) = settled();
    let own = fs::read(work.path("data/state.journal")).unwrap();
    fs::copy(other.path("data/state.journal"), work.path("data/state.journal")).unwrap();
    refused_by_all(&work, "it belongs to another data directory");
    fs::write(work.path("data/state.journal"), own).unwrap();
    assert_eq!(work.run(&[]).code, 0);
    assert_eq!(work.latest().len(), PAGES + 1);
}

/// Where the records of a journal end and its zeros begin.
fn length(journal: &[u8]) -> usize {
    journal.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

#[test]
fn a_journal_that_ends_early_is_refused_until_the_user_accepts_the_loss() {
    let (site, work) = killed();
    let journal = fs::read(work.path("data/state.journal")).unwrap();
    let (asked, end) = (site.log().len(), length(&journal));
    // A journal that is cut or changed somewhere ends at the record before.
    for (at, flip) in [(end * 2 / 3, false), (end * 2 / 3, true), (end - 9, true)] {
        let mut bad = journal.clone();
        if flip {
            bad[at] ^= 1;
        } else {
            bad.truncate(at);
        }
        fs::write(work.path("data/state.journal"), bad).unwrap();
        let ending = work.run(&[]);
        assert_eq!(ending.code, 1, "{ending:?}");
        let words = ["ends at commit ", "state.journal", "remove `data/state.mark` to continue"];
        assert!(words.iter().all(|word| ending.stderr.contains(word)), "{}", ending.stderr);
        let ending = work.spoonbill(&["fsck"]);
        assert!(ending.code == 1 && ending.stdout.contains("ends at commit "), "{ending:?}");
    }
    assert_eq!(site.log().len(), asked, "a page was asked for");
    fs::remove_file(work.path("data/state.mark")).unwrap();
    assert_eq!(work.run(&[]).code, 0);
    assert_eq!(work.latest().len(), PAGES + 1, "a row is missing or there twice");
    assert_eq!(work.spoonbill(&["fsck"]).code, 0);
}

#[test]
fn a_journal_that_is_put_back_continues_the_run() {
    let (site, work) = killed();
    let journal = fs::read(work.path("data/state.journal")).unwrap();
    fs::remove_file(work.path("data/state.journal")).unwrap();
    assert_eq!(work.run(&[]).code, 1);
    fs::write(work.path("data/state.journal"), journal).unwrap();
    let asked = site.log().len();
    assert_eq!(work.run(&[]).code, 0);
    assert_eq!(work.latest().len(), PAGES + 1);
    assert_eq!(site.log().len(), asked + 1, "pages were asked for again that had been answered");
}

/// A finished run whose pages live for a day, so that the next run takes them from the store.
fn saved() -> (TestSite, Workdir) {
    let site = TestSite::start();
    site.page("/", titled("kept"));
    let defs = job(&[("acme", &site.url("/"))], TITLE);
    let defs = defs.replace("taskGroups:\n  g:\n", "taskGroups:\n  g:\n    live: P1D\n");
    let work = Workdir::with_defs(&defs);
    assert_eq!(work.run(&[]).code, 0);
    (site, work)
}

/// Every command names a damaged file of stored pages, and a run fetches the missing pages.
fn is_reported_and_fetched_again(work: &Workdir, file: &str) {
    let ending = work.spoonbill(&["fsck"]);
    assert!(ending.code == 1 && ending.stdout.contains(&format!("{file}`")), "{ending:?}");
    let told = format!("{file}` is damaged");
    let ending = work.spoonbill(&["replay", "defs"]);
    assert!(ending.stderr.contains(&told), "{ending:?}");
    let ending = work.run(&[]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert!(ending.stderr.contains(&told), "{ending:?}");
    assert!(ending.stderr.contains("spoonbill fsck"), "{ending:?}");
    assert_eq!(work.spoonbill(&["fsck"]).code, 0);
}

#[test]
fn damaged_stored_pages_are_reported_and_fetched_again() {
    let (site, work) = saved();
    let pack = "data/pages-000001.pack";
    let length = fs::metadata(work.path(pack)).unwrap().len() as usize;
    fs::write(work.path(pack), vec![0; length]).unwrap();
    is_reported_and_fetched_again(&work, pack);
    assert_eq!((work.latest().len(), site.log().len()), (1, 2));
    let pages = rusqlite::Connection::open(work.path("data/pages.db")).unwrap();
    pages.execute("UPDATE pages SET status = 201", []).unwrap();
    drop(pages);
    is_reported_and_fetched_again(&work, "data/pages.db");
    assert_eq!((work.latest().len(), site.log().len()), (1, 3));
    for name in work.list("data").iter().filter(|name| name.starts_with("pages-")) {
        fs::remove_file(work.path(&format!("data/{name}"))).unwrap();
    }
    is_reported_and_fetched_again(&work, ".pack");
    assert_eq!((work.latest().len(), site.log().len()), (1, 4));
    // The page was stored again.
    assert!(!work.run(&[]).stderr.contains("damaged"));
}

#[test]
fn a_run_goes_without_a_pages_file_that_is_no_database_and_a_replay_refuses_it() {
    let (site, work) = saved();
    for name in work.list("data").iter().filter(|name| name.starts_with("pages.db")) {
        fs::write(work.path(&format!("data/{name}")), "no pages at all ".repeat(500)).unwrap();
    }
    let ending = work.spoonbill(&["replay", "defs"]);
    assert_eq!(ending.code, 1, "{ending:?}");
    assert!(ending.stderr.contains("pages.db"), "{ending:?}");
    let ending = work.run(&[]);
    assert_eq!(ending.code, 0, "{ending:?}");
    let told = ["saved pages cannot be used", "no row is lost", "pages.db"];
    assert!(told.iter().all(|word| ending.stderr.contains(word)), "{}", ending.stderr);
    assert_eq!((work.latest().len(), site.log().len()), (1, 2));
    assert!(work.read("data/pages.db").starts_with("no pages"), "the file was changed");
}

#[test]
fn stored_pages_of_another_version_are_reported_and_kept() {
    let (_site, work) = saved();
    let pages = rusqlite::Connection::open(work.path("data/pages.db")).unwrap();
    pages.execute_batch("PRAGMA user_version=1").unwrap();
    drop(pages);
    let ending = work.run(&[]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert!(ending.stderr.contains("another version has written it"), "{ending:?}");
    assert_eq!(work.latest().len(), 1);
    let ending = work.spoonbill(&["replay", "defs"]);
    assert_eq!(ending.code, 10, "{ending:?}");
    assert!(ending.stderr.contains("pages.db"), "{ending:?}");
    let pages = rusqlite::Connection::open(work.path("data/pages.db")).unwrap();
    let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    assert_eq!(pages.query_row("SELECT count(*) FROM pages", [], count).unwrap(), 1);
}
