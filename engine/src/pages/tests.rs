//! Pages saved and found again, on a disk of their own.

use std::fs;
use std::path::PathBuf;

use super::*;

fn kind() -> String {
    "host group".to_owned()
}

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

/// Text that nothing else is like.
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

/// Ends with everything committed: whoever looks for a page is answered before that.
async fn close(documents: Documents) {
    documents.keep_data([255; 16], Vec::new()).await.unwrap();
}

/// Saves pages 0 to 9 of one kind in a new folder and closes it.
async fn ten_pages(body: impl Fn(u8) -> String) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    for number in 0..10 {
        documents.keep([number; 16], kind(), page(&body(number)), None).await.unwrap();
    }
    close(documents).await;
    dir
}

/// Which of the pages 0 to 9 are found, each as it was.
async fn found_in(dir: &Path, body: impl Fn(u8) -> String) -> Vec<u8> {
    let documents = Documents::open(Some(dir), 1 << 30).unwrap();
    let mut found = Vec::new();
    for number in 0..10 {
        if let Some((page_found, _)) = documents.find([number; 16]).await {
            assert_eq!(page_found, page(&body(number)));
            found.push(number);
        }
    }
    close(documents).await;
    found
}

#[tokio::test]
async fn a_page_is_found_again_and_a_newer_one_drops_what_was_parsed() {
    let dir = tempfile::tempdir().unwrap();
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    assert_eq!(documents.find([1; 16]).await, None);
    documents.keep([1; 16], kind(), page("one"), None).await.unwrap();
    documents.keep_data([1; 16], vec![(b"key".to_vec(), b"data".to_vec())]).await.unwrap();
    let (found, parsed) = documents.find([1; 16]).await.unwrap();
    assert_eq!(found, page("one"));
    assert_eq!(parsed[&b"key"[..]], b"data");
    assert_eq!(documents.recall([9; 16], "http://a/").await, Some(page("one")));
    assert_eq!(documents.recall([9; 16], "http://b/").await, None);
    documents.keep([1; 16], kind(), page("two"), None).await.unwrap();
    let (found, parsed) = documents.find([1; 16]).await.unwrap();
    assert_eq!((found, parsed.len()), (page("two"), 0));
}

#[tokio::test]
async fn a_file_of_another_version_is_left_alone() {
    for format in [1, 2, 1000] {
        let dir = tempfile::tempdir().unwrap();
        let other = Connection::open(dir.path().join("pages.db")).unwrap();
        let make = format!("CREATE TABLE pages (url TEXT); PRAGMA user_version={format}");
        other.execute_batch(&make).unwrap();
        drop(other);
        let before = std::fs::read(dir.path().join("pages.db")).unwrap();
        let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
        let error = documents.keep([3; 16], kind(), page("new"), None).await.unwrap_err();
        assert!(error.contains("another version"), "{error}");
        assert_eq!(documents.find([3; 16]).await, None);
        assert!(vouch(dir.path()).unwrap_err().to_string().contains("version"));
        assert_eq!(std::fs::read(dir.path().join("pages.db")).unwrap(), before);
    }
}

#[test]
fn a_file_whose_maker_was_killed_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let made = Connection::open(dir.path().join("pages.db")).unwrap();
    made.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(())).unwrap();
    drop(made);
    assert_eq!(std::fs::metadata(dir.path().join("pages.db")).unwrap().len(), 4096);
    assert_eq!(examine(dir.path()), Vec::<String>::new());
    vouch(dir.path()).unwrap();
    // With pages beside it, it is.
    std::fs::write(dir.path().join("pages-000001.pack"), "a page").unwrap();
    assert_eq!(examine(dir.path()).len(), 1);
}

#[tokio::test]
async fn a_label_that_is_damaged_is_found_out() {
    for change in [
        "base = 'http://b/moved'",
        "status = 404",
        "size = size - 1",
        "fingerprint = x'04'",
        "content_type = NULL",
        "place = place + 1",
        "length = 1 << 60",
        "pack = -1",
        "model = 1 << 40",
        "body_mark = zeroblob(8)",
        "headers = x'ff'",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
        documents.keep([4; 16], kind(), page("whole"), None).await.unwrap();
        assert_eq!(documents.find([4; 16]).await.unwrap().0, page("whole"));
        assert!(examine(dir.path()).is_empty());
        let other = Connection::open(dir.path().join("pages.db")).unwrap();
        other.execute(&format!("UPDATE pages SET {change}"), []).unwrap();
        assert_eq!(documents.find([4; 16]).await, None, "{change}");
        assert_eq!(documents.recall([9; 16], "http://a/").await, None, "{change}");
        let said = examine(dir.path());
        assert!(said.len() == 1 && said[0].contains("pages.db`: a record"), "{change}: {said:?}");
        close(documents).await;
        let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
        documents.keep([4; 16], kind(), page("again"), None).await.unwrap();
        assert_eq!(documents.find([4; 16]).await.unwrap().0, page("again"), "{change}");
    }
}

#[tokio::test]
async fn flipped_bytes_in_a_pack_cost_the_pages_they_are_in() {
    let dir = ten_pages(noise).await;
    let pack = packs(dir.path()).remove(0);
    let whole = fs::read(&pack).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        fs::write(&pack, bad).unwrap();
        let found = found_in(dir.path(), noise).await;
        let said = examine(dir.path());
        assert_eq!(found.len() + said.len(), 10, "{at}: {said:?}");
        assert!(!said.is_empty(), "{at}");
        assert!(said.iter().all(|words| words.contains("pages-000001.pack`")), "{said:?}");
    }
    fs::write(&pack, whole).unwrap();
    assert_eq!(found_in(dir.path(), noise).await.len(), 10);
}

#[tokio::test]
async fn a_pack_cut_short_keeps_what_is_before_the_cut() {
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
    // What is fetched again is saved again, wherever the pack ends.
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    for number in 0..10 {
        documents.keep([number; 16], kind(), page(&noise(number)), None).await.unwrap();
    }
    close(documents).await;
    assert_eq!(found_in(dir.path(), noise).await.len(), 10);
    assert_eq!(examine(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_pack_that_is_gone_is_missed_and_its_pages_are_saved_again() {
    let dir = ten_pages(noise).await;
    fs::remove_file(packs(dir.path()).remove(0)).unwrap();
    let said = examine(dir.path());
    assert!(said.len() == 1 && said[0].contains("pages-000001.pack` is gone (pages: 10)"));
    assert_eq!(found_in(dir.path(), noise).await, Vec::<u8>::new());
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    for number in 0..10 {
        documents.keep([number; 16], kind(), page(&noise(number)), None).await.unwrap();
    }
    close(documents).await;
    assert_eq!(found_in(dir.path(), noise).await.len(), 10);
    assert_eq!(examine(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_restart_goes_on_in_the_same_folder() {
    let body = |number: u8| format!("{}{number}{}", noise(1), noise(2));
    let dir = ten_pages(body).await;
    // Bytes that a crash left without a row are in nobody's way.
    let pack = packs(dir.path()).remove(0);
    let mut bytes = fs::read(&pack).unwrap();
    bytes.extend_from_slice(b"a page that was never committed");
    fs::write(&pack, &bytes).unwrap();
    fs::write(dir.path().join("pages-000007.pack"), "of no row").unwrap();
    for round in 0..3 {
        let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
        for number in 5..10 {
            documents.keep([number; 16], kind(), page(&body(number)), None).await.unwrap();
        }
        close(documents).await;
        assert_eq!(found_in(dir.path(), body).await.len(), 10, "round {round}");
        assert_eq!(examine(dir.path()), Vec::<String>::new());
    }
    assert_eq!(packs(dir.path()), [pack], "a small pack is gone on with");
}

#[tokio::test]
async fn packs_without_pages_are_swept_away_and_a_lost_list_of_pages_begins_anew() {
    let dir = ten_pages(noise).await;
    for name in ["pages.db", "pages.db-wal", "pages.db-shm"] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    assert_eq!(found_in(dir.path(), noise).await, Vec::<u8>::new());
    assert_eq!(packs(dir.path()), Vec::<PathBuf>::new());
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    documents.keep([1; 16], kind(), page("one"), None).await.unwrap();
    assert_eq!(documents.find([1; 16]).await.unwrap().0, page("one"));
}

#[tokio::test]
async fn pages_are_kept_in_memory_within_their_bound() {
    let documents = Documents::open(None, 400 << 10).unwrap();
    for number in 0..100 {
        documents.keep([number; 16], kind(), page(&noise(number)), None).await.unwrap();
    }
    assert_eq!(documents.find([0; 16]).await, None);
    assert_eq!(documents.find([99; 16]).await.unwrap().0, page(&noise(99)));
}

#[tokio::test]
async fn beyond_the_bound_the_oldest_packs_go() {
    let dir = tempfile::tempdir().unwrap();
    let documents = Documents::open(Some(dir.path()), 400 << 10).unwrap();
    for number in 0..200 {
        documents.keep([number; 16], kind(), page(&noise(number)), None).await.unwrap();
        documents.keep_data([number; 16], vec![(vec![1], vec![number])]).await.unwrap();
        let bytes: u64 = packs(dir.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(bytes <= 420 << 10, "{bytes} after page {number}");
    }
    assert_eq!(documents.find([0; 16]).await, None);
    let (last, parsed) = documents.find([199; 16]).await.unwrap();
    assert_eq!((last, parsed.len()), (page(&noise(199)), 1));
    let mut kept = 0;
    for number in 0..200 {
        kept += u32::from(documents.find([number; 16]).await.is_some());
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
async fn pages_of_a_kind_are_packed_against_the_first_and_found_whole() {
    let dir = tempfile::tempdir().unwrap();
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    let frame = (0..400).map(|line| (line * line).to_string()).collect::<Vec<_>>().join("\n");
    let body = |number: u8| format!("{frame}<h1>{number}</h1>{frame}");
    let pack = dir.path().join("pages-000001.pack");
    let mut sizes = Vec::new();
    for number in 0..9 {
        let before = pack.metadata().map_or(0, |data| data.len());
        documents.keep([number; 16], kind(), page(&body(number)), None).await.unwrap();
        sizes.push(pack.metadata().unwrap().len() - before);
    }
    let before = pack.metadata().unwrap().len();
    documents.keep([9; 16], "other".to_owned(), page(&body(9)), None).await.unwrap();
    sizes.push(pack.metadata().unwrap().len() - before);
    assert!(sizes[8] * 5 < sizes[0] && sizes[9] > sizes[8] * 5, "{sizes:?}");
    for number in 0..10 {
        let (found, _) = documents.find([number; 16]).await.unwrap();
        assert_eq!(found, page(&body(number)));
    }
    close(documents).await;
    // The first piece of a model, without which nothing of its kind can be read.
    let mut bytes = fs::read(&pack).unwrap();
    bytes[100] ^= 1;
    fs::write(&pack, bytes).unwrap();
    assert_eq!(found_in(dir.path(), body).await, [9]);
    assert_eq!(examine(dir.path()).len(), 9);
}

#[tokio::test]
async fn pages_of_all_sizes_and_kinds_are_found_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    let body = |number: u8| {
        let length = usize::from(number) * usize::from(number) * 40;
        let text = (0..=number % 7).map(noise).collect::<String>().repeat(30);
        text[..length.min(text.len())].to_owned()
    };
    for number in 0..120 {
        let kind = format!("kind {}", number % 30);
        documents.keep([number; 16], kind, page(&body(number)), None).await.unwrap();
    }
    for reopened in [false, true] {
        let documents = if reopened {
            Documents::open(Some(dir.path()), 1 << 30).unwrap()
        } else {
            documents.clone()
        };
        for number in (0..120).rev() {
            let (found, _) = documents.find([number; 16]).await.unwrap();
            assert!(found == page(&body(number)), "page {number}");
        }
        close(documents).await;
    }
    assert_eq!(examine(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_new_file_is_sorted_when_somebody_looks_and_an_old_one_from_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    let other = || Connection::open(dir.path().join("pages.db")).unwrap();
    let number = |sql: &str| other().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let pages = "SELECT count(*) FROM pages";
    let indexes = "SELECT count(*) FROM sqlite_master WHERE name = 'pages_by_fingerprint'";
    documents.keep([1; 16], kind(), page("one"), None).await.unwrap();
    documents.keep([1; 16], kind(), page("two"), None).await.unwrap();
    assert_eq!((number(pages), number(indexes)), (2, 0));
    close(documents).await;
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    documents.keep([2; 16], kind(), page("three"), None).await.unwrap();
    assert_eq!((number(pages), number(indexes)), (2, 1));
    assert_eq!(documents.find([1; 16]).await.unwrap().0, page("two"));
}

#[tokio::test]
async fn packs_without_their_labels_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    documents.keep([1; 16], kind(), page("one"), None).await.unwrap();
    assert!(examine(dir.path()).is_empty());
    drop(documents);
    std::fs::remove_file(dir.path().join(FILE)).unwrap();
    assert!(examine(dir.path()).join("").contains("pages.db` is gone"));
}
