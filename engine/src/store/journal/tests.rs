//! Journals that are written, cut, damaged, started over and read again.

use super::*;

fn records(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut journal = Journal::of(path).unwrap();
    journal
        .read(|record| {
            found.push((record.number, record.bytes.to_vec()));
            Ok(())
        })
        .unwrap();
    assert_eq!(journal.first().unwrap(), found.first().map(|(number, _)| *number));
    found
}

fn body(number: u64) -> Vec<u8> {
    vec![number as u8; 3 + number as usize * 700 % 5000]
}

/// A journal with these records, each with its own sync.
fn written(path: &Path, numbers: std::ops::RangeInclusive<u64>) -> Journal {
    let mut journal = Journal::of(path).unwrap();
    journal.begin_at(*numbers.start());
    for number in numbers {
        journal.append(&body(number)).unwrap();
        journal.sync().unwrap();
    }
    journal
}

#[test]
fn records_are_read_again_and_followed_by_new_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    assert_eq!(records(&path), vec![]);
    assert!(!path.exists(), "opening creates no file");
    written(&path, 1..=99);
    assert_eq!(records(&path), (1..=99).map(|n| (n, body(n))).collect::<Vec<_>>());
    let mut journal = Journal::of(&path).unwrap();
    journal.read(|_| Ok(())).unwrap();
    assert_eq!(journal.next(), 100);
    journal.append(&body(100)).unwrap();
    journal.append(&[]).unwrap();
    journal.sync().unwrap();
    drop(journal);
    let found = records(&path);
    assert_eq!((found.len(), found[99].clone()), (101, (100, body(100))));
    assert_eq!(found[100], (101, Vec::new()));
}

#[test]
fn old_records_are_ignored_after_the_journal_starts_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    let mut journal = written(&path, 1..=20);
    let size = std::fs::metadata(&path).unwrap().len();
    for round in 0..5 {
        let from = journal.next();
        journal.begin_at(from);
        for number in from..from + round {
            journal.append(&body(number)).unwrap();
            journal.sync().unwrap();
        }
        let found = records(&path);
        if round > 0 {
            assert_eq!(found, (from..from + round).map(|n| (n, body(n))).collect::<Vec<_>>());
        }
    }
    assert_eq!(std::fs::metadata(&path).unwrap().len(), size, "the file keeps its size");
}

#[test]
fn a_journal_cut_anywhere_ends_before_the_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    let end = written(&path, 5..=9).size() as usize;
    let whole = std::fs::read(&path).unwrap();
    let all = records(&path);
    for at in (0..end).step_by(97) {
        for zeros in [false, true] {
            let mut cut = whole[..at].to_vec();
            cut.resize(if zeros { whole.len() } else { at }, 0);
            std::fs::write(&path, &cut).unwrap();
            let mut journal = Journal::of(&path).unwrap();
            let mut found = Vec::new();
            let read = journal.read(|record| {
                found.push((record.number, record.bytes.to_vec()));
                Ok(())
            });
            // A file shorter than its head is an error, unless it is empty.
            assert!(read.is_ok() || (1..HEAD).contains(&at), "cut at {at}: {read:?}");
            assert!(all.starts_with(&found) && found.len() < all.len(), "cut at {at}");
        }
    }
}

#[test]
fn a_flipped_bit_ends_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    let end = written(&path, 5..=9).size() as usize;
    let whole = std::fs::read(&path).unwrap();
    let all = records(&path);
    for at in (0..end - 2000).step_by(41) {
        let mut bad = whole.clone();
        bad[at] ^= 1 << (at % 8);
        std::fs::write(&path, &bad).unwrap();
        let mut found = Vec::new();
        let read = Journal::of(&path).and_then(|mut journal| {
            journal.read(|record| {
                found.push((record.number, record.bytes.to_vec()));
                Ok(())
            })
        });
        if (MAGIC.len()..HEAD).contains(&at) {
            continue; // The flipped id names another journal.
        }
        assert!(read.is_ok() || at < MAGIC.len(), "bit at {at}: {read:?}");
        assert!(all.starts_with(&found) && found.len() < all.len(), "bit at {at}");
    }
    // A journal continued from there never returns records behind the damage.
    let mut journal = Journal::of(&path).unwrap();
    journal.read(|_| Ok(())).unwrap();
    let number = journal.next();
    assert!(number < 9);
    journal.append(&body(number)).unwrap();
    assert_eq!(records(&path).last().unwrap().0, number);
}

#[test]
fn another_format_and_another_kind_of_file_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    std::fs::write(&path, b"journal\x09and more and more").unwrap();
    let error = Journal::of(&path).unwrap_err();
    assert!(matches!(error, StoreError::Newer { .. }), "{error}");
    std::fs::write(&path, b"something else altogether").unwrap();
    let error = Journal::of(&path).unwrap_err().to_string();
    assert!(error.contains("/j`: it is no journal"), "{error}");
}

#[test]
fn a_wrong_length_reserves_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    let mut bytes = [MAGIC, [7; 8]].concat();
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    bytes.extend_from_slice(&1_u64.to_le_bytes());
    bytes.resize(200, 7);
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(records(&path), vec![]);
}

#[test]
fn a_journal_of_another_data_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    let owner = written(&one, 1..=3).id();
    written(&other, 1..=3);
    let mut journal = Journal::of(&one).unwrap();
    assert_eq!(journal.id(), owner);
    journal.belong_to(owner, "state.db").unwrap();
    let error = Journal::of(&other).unwrap().belong_to(owner, "state.db").unwrap_err().to_string();
    assert!(error.contains("/other`: it belongs to another data directory"), "{error}");
    // A journal without an id accepts any data directory.
    std::fs::write(&other, [0; 4096]).unwrap();
    let mut journal = Journal::of(&other).unwrap();
    journal.belong_to(owner, "state.db").unwrap();
    journal.append(&body(1)).unwrap();
    assert_eq!(Journal::of(&other).unwrap().id(), owner);
}
