//! `fsck` on sound and on damaged data directories.

use crate::harness::Workdir;
use crate::harness::defs::{TITLE, job, titled};

/// Changes a database of the data directory directly.
fn tamper(work: &Workdir, file: &str, sql: &str) {
    let connection = rusqlite::Connection::open(work.path(file)).unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0);
}

fn finished() -> Workdir {
    let work = Workdir::with_defs(&job(&[("a", "a.html"), ("gone", "gone.html")], TITLE));
    work.write("a.html", titled("a"));
    assert_eq!(work.run(&["store.journal.max=1"]).code, 4);
    work
}

#[test]
fn fsck_finds_a_finished_run_whole() {
    let work = finished();
    insta::assert_snapshot!(work.spoonbill(&["fsck"]).shown(&work), @r#"
    exit 0
    --- stderr
    `data` is undamaged
    "#);
}

#[test]
fn every_damaged_record_and_wrong_count_is_named() {
    let work = finished();
    tamper(&work, "data/state.db", "UPDATE output SET bytes = zeroblob(20)");
    tamper(&work, "data/state.db", "DELETE FROM failed");
    insta::assert_snapshot!(work.spoonbill(&["fsck"]).shown(&work), @r#"
    exit 1
    --- stdout
    output block 1 of `data/state.db` is damaged
    `data/state.db`: failed jobs: 1 by the ledger, 0 by count
    "#);
}

#[test]
fn fsck_does_not_create_a_data_directory() {
    let work = Workdir::new();
    assert_eq!(work.spoonbill(&["fsck"]).code, 1);
    assert!(!work.exists("data"));
}
