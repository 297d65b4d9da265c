//! Pages saved and found again, on a disk of their own.

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
    for format in [1, 1000] {
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

#[tokio::test]
async fn an_address_that_is_damaged_is_found_out() {
    let dir = tempfile::tempdir().unwrap();
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    documents.keep([4; 16], kind(), page("whole"), None).await.unwrap();
    assert!(examine(dir.path()).is_empty());
    let other = Connection::open(dir.path().join("pages.db")).unwrap();
    other.execute("UPDATE pages SET base = 'http://b/moved'", []).unwrap();
    assert_eq!(documents.find([4; 16]).await, None);
    assert_eq!(examine(dir.path()).len(), 1);
}

#[tokio::test]
async fn a_damaged_page_counts_as_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    documents.keep([2; 16], kind(), page("whole"), None).await.unwrap();
    let other = Connection::open(dir.path().join("pages.db")).unwrap();
    other.execute("UPDATE pages SET body = zeroblob(20)", []).unwrap();
    assert_eq!(documents.find([2; 16]).await, None);
}

#[tokio::test]
async fn beyond_the_bound_the_oldest_pages_go() {
    let dir = tempfile::tempdir().unwrap();
    let documents = Documents::open(Some(dir.path()), 400 << 10).unwrap();
    let body = |number: u8| -> String {
        let hash = |part: u32| blake3::hash(&[&part.to_le_bytes()[..], &[number]].concat());
        (0..200).map(|part| hash(part).to_hex().to_string()).collect()
    };
    for number in 0..200 {
        documents.keep([number; 16], kind(), page(&body(number)), None).await.unwrap();
    }
    assert_eq!(documents.find([0; 16]).await, None);
    let (last, _) = documents.find([199; 16]).await.unwrap();
    assert_eq!(last, page(&body(199)));
    let mut kept = 0;
    for number in 0..200 {
        kept += u32::from(documents.find([number; 16]).await.is_some());
    }
    assert!((10..80).contains(&kept), "{kept} pages are kept");
}

#[tokio::test]
async fn pages_of_a_kind_are_packed_against_the_first_and_found_whole() {
    let dir = tempfile::tempdir().unwrap();
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    let frame = (0..400).map(|line| (line * line).to_string()).collect::<Vec<_>>().join("\n");
    let body = |number: u8| format!("{frame}<h1>{number}</h1>{frame}");
    for number in 0..9 {
        documents.keep([number; 16], kind(), page(&body(number)), None).await.unwrap();
    }
    documents.keep([9; 16], "other".to_owned(), page(&body(9)), None).await.unwrap();
    let other = Connection::open(dir.path().join("pages.db")).unwrap();
    let sizes = "SELECT length(body) FROM pages ORDER BY id";
    let mut statement = other.prepare(sizes).unwrap();
    let sizes = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
    let sizes: Vec<i64> = sizes.map(Result::unwrap).collect();
    assert!(sizes[8] * 5 < sizes[0] && sizes[9] > sizes[8] * 5, "{sizes:?}");
    for number in 0..10 {
        let (found, _) = documents.find([number; 16]).await.unwrap();
        assert_eq!(found, page(&body(number)));
    }
    other.execute("UPDATE models SET body = zeroblob(3000)", []).unwrap();
    drop(documents);
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    assert_eq!(documents.find([8; 16]).await, None);
    assert!(documents.find([0; 16]).await.is_some());
    assert_eq!(examine(dir.path()).len(), 2);
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
    drop(documents);
    let documents = Documents::open(Some(dir.path()), 1 << 30).unwrap();
    documents.keep([2; 16], kind(), page("three"), None).await.unwrap();
    assert_eq!((number(pages), number(indexes)), (2, 1));
    assert_eq!(documents.find([1; 16]).await.unwrap().0, page("two"));
}
