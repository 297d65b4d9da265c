//! Pages are saved and looked up in a temporary data directory.

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;

use super::*;

fn page(body: &str) -> StoredPage {
    StoredPage {
        url: "http://a/".to_owned(),
        base: "http://a/moved".to_owned(),
        from_date: "2020-07-01T10:00:00+00:00[UTC]".to_owned(),
        status: 200,
        content_type: Some("text/html".to_owned()),
        headers: "content-type: text/html".to_owned(),
        body: Bytes::from(body.to_owned()),
    }
}

/// 12,800 characters that no other number gives.
fn noise(number: u8) -> String {
    let hash = |part: u32| blake3::hash(&[&part.to_le_bytes()[..], &[number]].concat());
    (0..200).map(|part| hash(part).to_hex().to_string()).collect()
}

/// The packs in a folder, the oldest first.
fn packs(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut packs: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "pack")).collect();
    packs.sort();
    packs
}

/// Waits until everything is committed; the answer to a lookup comes before that.
async fn close(pages: PageStore) {
    pages.keep_data([255; 16], Vec::new()).await.unwrap();
}

/// Saves pages 0 to 9 in a new folder.
async fn ten_pages(body: impl Fn(u8) -> String) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
    for number in 0..10 {
        pages.keep([number; 16], page(&body(number)), None).await.unwrap();
    }
    close(pages).await;
    dir
}

/// The pages of 0 to 9 that are found; each must be as it was saved.
async fn found_in(dir: &Path, body: impl Fn(u8) -> String) -> Vec<u8> {
    let pages = PageStore::open(Some(dir), 1 << 30).unwrap();
    let mut found = Vec::new();
    for number in 0..10 {
        if let Some((page_found, _)) = pages.find([number; 16]).await {
            assert_eq!(page_found, page(&body(number)));
            found.push(number);
        }
    }
    close(pages).await;
    found
}

#[tokio::test]
async fn a_newer_page_replaces_the_older_one_and_its_parsed_data() {
    let dir = tempfile::tempdir().unwrap();
    let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
    assert_eq!(pages.find([1; 16]).await, None);
    pages.keep([1; 16], page("one"), None).await.unwrap();
    pages.keep_data([1; 16], vec![(b"key".to_vec(), b"data".to_vec())]).await.unwrap();
    let (found, parsed) = pages.find([1; 16]).await.unwrap();
    assert_eq!(found, page("one"));
    assert_eq!(parsed[&b"key"[..]], b"data");
    assert_eq!(pages.recall([9; 16], "http://a/").await, Some(page("one")));
    assert_eq!(pages.recall([9; 16], "http://b/").await, None);
    pages.keep([1; 16], page("two"), None).await.unwrap();
    let (found, parsed) = pages.find([1; 16]).await.unwrap();
    assert_eq!((found, parsed.len()), (page("two"), 0));
}

#[tokio::test]
async fn a_file_of_another_version_is_refused_and_not_changed() {
    for format in [1, 4, 1000] {
        let dir = tempfile::tempdir().unwrap();
        let other = Connection::open(dir.path().join("pages.db")).unwrap();
        let make = format!("CREATE TABLE pages (url TEXT); PRAGMA user_version={format}");
        other.execute_batch(&make).unwrap();
        drop(other);
        let before = std::fs::read(dir.path().join("pages.db")).unwrap();
        let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
        let error = pages.keep([3; 16], page("new"), None).await.unwrap_err();
        assert!(error.contains("another version"), "{error}");
        assert_eq!(pages.find([3; 16]).await, None);
        assert!(check_usable(dir.path()).unwrap_err().to_string().contains("version"));
        let found = examine(dir.path());
        assert!(found.len() == 1 && found[0].contains("version"), "{found:?}");
        assert_eq!(std::fs::read(dir.path().join("pages.db")).unwrap(), before);
    }
}

#[test]
fn a_file_without_tables_is_damaged_only_if_there_are_packs() {
    let dir = tempfile::tempdir().unwrap();
    let made = Connection::open(dir.path().join("pages.db")).unwrap();
    made.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
    drop(made);
    assert_eq!(std::fs::metadata(dir.path().join("pages.db")).unwrap().len(), 4096);
    assert_eq!(examine(dir.path()), Vec::<String>::new());
    check_usable(dir.path()).unwrap();
    std::fs::write(dir.path().join("pages-000001.pack"), "a page").unwrap();
    assert_eq!(examine(dir.path()).len(), 1);
}

#[tokio::test]
async fn a_change_in_any_column_is_detected() {
    for change in [
        "base = 'http://b/moved'",
        "status = 404",
        "body_size = body_size - 1",
        "fingerprint = x'04'",
        "content_type = NULL",
        "body_offset = body_offset + 1",
        "frame_length = 1 << 60",
        "frame_offset = 1",
        "pack = -1",
        "body_mark = zeroblob(8)",
        "headers = x'ff'",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
        pages.keep([4; 16], page("whole"), None).await.unwrap();
        assert_eq!(pages.find([4; 16]).await.unwrap().0, page("whole"));
        assert!(examine(dir.path()).is_empty());
        let other = Connection::open(dir.path().join("pages.db")).unwrap();
        other.execute(&format!("UPDATE pages SET {change}"), []).unwrap();
        assert_eq!(pages.find([4; 16]).await, None, "{change}");
        assert_eq!(pages.recall([9; 16], "http://a/").await, None, "{change}");
        let found = examine(dir.path());
        assert!(
            found.len() == 1 && found[0].contains("pages.db`: a record"),
            "{change}: {found:?}"
        );
        close(pages).await;
        let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
        pages.keep([4; 16], page("again"), None).await.unwrap();
        assert_eq!(pages.find([4; 16]).await.unwrap().0, page("again"), "{change}");
    }
}

#[tokio::test]
async fn a_flipped_byte_costs_no_page_before_it() {
    let dir = ten_pages(noise).await;
    let pack = packs(dir.path()).remove(0);
    let whole = fs::read(&pack).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        fs::write(&pack, bad).unwrap();
        let found = found_in(dir.path(), noise).await;
        let before = u8::try_from(at * 10 / whole.len()).unwrap();
        assert!((0..before).all(|number| found.contains(&number)), "{at}: {found:?}");
        let damage = examine(dir.path());
        assert_eq!(found.len() + damage.len(), 10, "{at}: {damage:?}");
        assert!(!damage.is_empty(), "{at}");
        assert!(damage.iter().all(|line| line.contains("pages-000001.pack`")), "{damage:?}");
    }
    fs::write(&pack, whole).unwrap();
    assert_eq!(found_in(dir.path(), noise).await.len(), 10);
}

#[tokio::test]
async fn a_pack_that_is_cut_keeps_the_pages_before_the_cut() {
    let dir = ten_pages(noise).await;
    let pack = packs(dir.path()).remove(0);
    let whole = fs::read(&pack).unwrap();
    for (part, zeros) in [(9, false), (6, true), (3, false), (0, true), (0, false)] {
        let mut bad = whole.clone();
        bad.truncate(whole.len() * part / 10);
        bad.resize(if zeros { whole.len() } else { bad.len() }, 0);
        fs::write(&pack, bad).unwrap();
        let found = found_in(dir.path(), noise).await;
        assert!(found.len() <= part && found.len() + 2 > part, "{part}: {found:?}");
        assert!(found.iter().enumerate().all(|(at, number)| at == usize::from(*number)));
        assert_eq!(examine(dir.path()).len(), 10 - found.len());
    }
    // The pages can be saved again, wherever the pack ends.
    let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
    for number in 0..10 {
        pages.keep([number; 16], page(&noise(number)), None).await.unwrap();
    }
    close(pages).await;
    assert_eq!(found_in(dir.path(), noise).await.len(), 10);
    assert_eq!(examine(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_missing_pack_is_listed_and_its_pages_are_saved_again() {
    let dir = ten_pages(noise).await;
    fs::remove_file(packs(dir.path()).remove(0)).unwrap();
    let damage = examine(dir.path());
    assert!(damage.len() == 1 && damage[0].contains("pages-000001.pack` is gone (pages: 10)"));
    assert_eq!(found_in(dir.path(), noise).await, Vec::<u8>::new());
    let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
    for number in 0..10 {
        pages.keep([number; 16], page(&noise(number)), None).await.unwrap();
    }
    close(pages).await;
    assert_eq!(found_in(dir.path(), noise).await.len(), 10);
    assert_eq!(examine(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_restart_continues_a_small_pack() {
    let body = |number: u8| format!("{}{number}{}", noise(1), noise(2));
    let dir = ten_pages(body).await;
    // A crash has left bytes without a row, and a pack without rows.
    let pack = packs(dir.path()).remove(0);
    let mut bytes = fs::read(&pack).unwrap();
    bytes.extend_from_slice(b"a page that was never committed");
    fs::write(&pack, &bytes).unwrap();
    fs::write(dir.path().join("pages-000007.pack"), "a pack without rows").unwrap();
    for round in 0..3 {
        let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
        for number in 5..10 {
            pages.keep([number; 16], page(&body(number)), None).await.unwrap();
        }
        close(pages).await;
        assert_eq!(found_in(dir.path(), body).await.len(), 10, "round {round}");
        assert_eq!(examine(dir.path()), Vec::<String>::new());
    }
    assert_eq!(packs(dir.path()), [pack]);
}

#[tokio::test]
async fn packs_are_removed_if_pages_db_is_gone() {
    let dir = ten_pages(noise).await;
    for name in ["pages.db", "pages.db-wal", "pages.db-shm"] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    assert_eq!(found_in(dir.path(), noise).await, Vec::<u8>::new());
    assert_eq!(packs(dir.path()), Vec::<PathBuf>::new());
    let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
    pages.keep([1; 16], page("one"), None).await.unwrap();
    assert_eq!(pages.find([1; 16]).await.unwrap().0, page("one"));
}

#[tokio::test]
async fn pages_in_memory_stay_within_their_bound() {
    let pages = PageStore::open(None, 400 << 10).unwrap();
    for number in 0..100 {
        pages.keep([number; 16], page(&noise(number)), None).await.unwrap();
    }
    assert_eq!(pages.find([0; 16]).await, None);
    assert_eq!(pages.find([99; 16]).await.unwrap().0, page(&noise(99)));
}

#[tokio::test]
async fn the_oldest_packs_are_removed_above_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    let pages = PageStore::open(Some(dir.path()), 400 << 10).unwrap();
    for number in 0..200 {
        pages.keep([number; 16], page(&noise(number)), None).await.unwrap();
        pages.keep_data([number; 16], vec![(vec![1], vec![number])]).await.unwrap();
        let bytes: u64 = packs(dir.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(bytes <= 420 << 10, "{bytes} after page {number}");
    }
    assert_eq!(pages.find([0; 16]).await, None);
    let (last, parsed) = pages.find([199; 16]).await.unwrap();
    assert_eq!((last, parsed.len()), (page(&noise(199)), 1));
    let mut kept = 0;
    for number in 0..200 {
        kept += u32::from(pages.find([number; 16]).await.is_some());
    }
    assert!((10..80).contains(&kept), "{kept} pages are kept");
    let other = Connection::open(dir.path().join("pages.db")).unwrap();
    let count = |sql: &str| other.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM pages"), kept);
    assert_eq!(count("SELECT count(*) FROM parsed"), kept);
    let files = packs(dir.path());
    assert_eq!(count("SELECT count(*) FROM packs") as usize, files.len());
    assert!(files.len() > 2 && !files[0].ends_with("pages-000001.pack"), "{files:?}");
    assert_eq!(examine(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn pages_of_all_sizes_are_found_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
    let body = |number: u8| {
        let length = usize::from(number) * usize::from(number) * 40;
        let text = (0..=number % 7).map(noise).collect::<String>().repeat(30);
        text[..length.min(text.len())].to_owned()
    };
    for number in 0..120 {
        pages.keep([number; 16], page(&body(number)), None).await.unwrap();
        let earlier = number / 2;
        let (found, _) = pages.find([earlier; 16]).await.unwrap();
        assert!(found == page(&body(earlier)), "page {earlier}");
    }
    for reopened in [false, true] {
        let pages = if reopened {
            PageStore::open(Some(dir.path()), 1 << 30).unwrap()
        } else {
            pages.clone()
        };
        for number in (0..120).rev() {
            let (found, _) = pages.find([number; 16]).await.unwrap();
            assert!(found == page(&body(number)), "page {number}");
        }
        close(pages).await;
    }
    assert_eq!(examine(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_batch_that_fails_is_reported_and_the_next_one_is_saved() {
    let dir = tempfile::tempdir().unwrap();
    let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
    pages.keep([1; 16], page("one"), None).await.unwrap();
    assert_eq!(pages.find([1; 16]).await.unwrap().0, page("one"));
    let other = Connection::open(dir.path().join("pages.db")).unwrap();
    let fail = "CREATE TRIGGER fail BEFORE INSERT ON pages BEGIN SELECT RAISE(ABORT, 'no'); END";
    other.execute_batch(fail).unwrap();
    let error = pages.keep([2; 16], page("two"), None).await.unwrap_err();
    assert!(error.contains("page could not be saved"), "{error}");
    other.execute_batch("DROP TRIGGER fail").unwrap();
    pages.keep([3; 16], page("three"), None).await.unwrap();
    pages.keep([1; 16], page("newer"), None).await.unwrap();
    for (number, body) in [(1, Some("newer")), (2, None), (3, Some("three"))] {
        assert_eq!(pages.find([number; 16]).await.map(|found| found.0), body.map(page));
    }
    close(pages).await;
    assert_eq!(examine(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn fingerprints_are_indexed_at_the_first_lookup_or_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
    let other = || Connection::open(dir.path().join("pages.db")).unwrap();
    let number = |sql: &str| other().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let rows = "SELECT count(*) FROM pages";
    let indexes = "SELECT count(*) FROM sqlite_master WHERE name = 'pages_by_fingerprint'";
    pages.keep([1; 16], page("one"), None).await.unwrap();
    pages.keep([1; 16], page("two"), None).await.unwrap();
    assert_eq!((number(rows), number(indexes)), (2, 0));
    close(pages).await;
    let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
    pages.keep([2; 16], page("three"), None).await.unwrap();
    assert_eq!((number(rows), number(indexes)), (2, 1));
    assert_eq!(pages.find([1; 16]).await.unwrap().0, page("two"));
}

#[tokio::test]
async fn fsck_reports_packs_without_pages_db() {
    let dir = tempfile::tempdir().unwrap();
    let pages = PageStore::open(Some(dir.path()), 1 << 30).unwrap();
    pages.keep([1; 16], page("one"), None).await.unwrap();
    assert!(examine(dir.path()).is_empty());
    drop(pages);
    std::fs::remove_file(dir.path().join(PAGES_FILE)).unwrap();
    assert!(examine(dir.path()).join("").contains("pages.db` is gone"));
}
