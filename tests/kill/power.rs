//! Power cuts. Each sector that was not synced may or may not be on the disk afterwards.
//!
//! A hook of debug builds copies the files at each sync, so the copies are certainly on the disk. The
//! process is killed at the end of a later commit, before the commit is reported, or at a random time.
//! Then random sectors of what it has written since are added to the copies, as if the power had failed
//! before the sync. The run continues from there.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use super::shop::{self, SeededRandom, ShopDir, rows_in, sorted, words};

const SECTOR: usize = 512;

/// The synced bytes with random sectors of what was written later.
pub(crate) fn tear(synced: &[u8], written: &[u8], dice: &mut SeededRandom) -> Vec<u8> {
    // A file may have its new length without the new bytes. Then they read as zeros.
    let grown = written.len() > synced.len();
    let length = match dice.below(3) {
        0 => synced.len(),
        1 if grown => synced.len() + dice.below((written.len() - synced.len()) as u64) as usize,
        _ => written.len(),
    };
    let mut image = synced.to_vec();
    image.resize(length, 0);
    let share = dice.below(101);
    for at in (0..length.min(written.len())).step_by(SECTOR) {
        let end = (at + SECTOR).min(length).min(written.len());
        if dice.below(100) < share {
            image[at..end].copy_from_slice(&written[at..end]);
        }
    }
    image
}

/// Changes the ledger as a power cut could. Returns how many bytes had not been synced. Tables that were
/// never synced may be gone.
fn cut_ledger(place: &ShopDir, images: &Path, dice: &mut SeededRandom) -> usize {
    let data = place.data();
    if copying(images) || !images.join("state.journal").exists() {
        // Killed between the sync and the copy or before the first sync: nothing is in doubt.
        return 0;
    }
    let read = |dir: &Path, name: &str| std::fs::read(dir.join(name)).unwrap_or_default();
    let mut doubt = 0;
    for name in ["state.journal", "state.db", "state.db-wal"] {
        let (synced, written) = (read(images, name), read(&data, name));
        doubt += differing(&synced, &written);
        let torn = tear(&synced, &written, dice);
        if torn.is_empty() {
            std::fs::remove_file(data.join(name)).ok();
        } else {
            std::fs::write(data.join(name), torn).unwrap();
        }
    }
    doubt
}

/// Whether the process was killed while it copied what it had synced.
fn copying(images: &Path) -> bool {
    let mut names = std::fs::read_dir(images).unwrap().map(|entry| entry.unwrap().file_name());
    names.any(|name| name.to_string_lossy().starts_with("copying"))
}

pub(crate) fn differing(one: &[u8], other: &[u8]) -> usize {
    let same = one.iter().zip(other).filter(|(one, other)| one == other).count();
    one.len().max(other.len()) - same
}

/// Cuts the end of a file that is synced later or only at the end, or fills it with zeros.
pub(crate) fn cut_tail(file: &Path, dice: &mut SeededRandom) {
    let Ok(mut bytes) = std::fs::read(file) else { return };
    let length = bytes.len();
    bytes.truncate(dice.below(length as u64 + 1) as usize);
    match dice.below(3) {
        0 => return,
        1 => {}
        _ => bytes.resize(length, 0),
    }
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn after_a_power_cut_the_rows_are_those_of_an_undisturbed_run() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (first, cuts) = (number("SEED").unwrap_or(3000), number("CUTS").unwrap_or(24));
    let site = shop::open();
    let golden = shop::golden(&site);
    let (mut done, mut in_doubt, mut seed) = (0, 0_u64, first);
    while done < cuts {
        let mut dice = SeededRandom(seed);
        let canonical = seed.is_multiple_of(2);
        let place = ShopDir::new(&site, canonical);
        let images = place.path("images");
        std::fs::create_dir(&images).unwrap();
        // Several cuts in the life of one run.
        for _ in 0..=dice.below(3) {
            let order = format!("data/state.db:{}", images.display());
            let point = match dice.below(4) {
                0 => format!("store.settle.after:{}", 1 + dice.below(12)),
                _ => format!("store.commit.after:{}", 1 + dice.below(120)),
            };
            let at_random = dice.below(4) == 0;
            let mut child = if at_random {
                place.start_with(&[("FAILPOINT_IMAGE", &order)])
            } else {
                place.start_with(&[("FAILPOINT_IMAGE", &order), ("FAILPOINT", &point)])
            };
            if at_random {
                std::thread::sleep(Duration::from_millis(100 + dice.below(900)));
                child.kill().ok();
            }
            let ended = child.wait_with_output().unwrap();
            if ended.status.signal() != Some(9) {
                assert_eq!(ended.status.code(), Some(0), "seed {seed}: {}", words(&ended));
                break;
            }
            done += 1;
            in_doubt += u64::from(cut_ledger(&place, &images, &mut dice) > 0);
            cut_tail(&place.data().join("pages.db-wal"), &mut dice);
            std::fs::remove_file(place.data().join("pages.db-shm")).ok();
            for entry in std::fs::read_dir(place.data()).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|end| end == "pack") {
                    cut_tail(&path, &mut dice);
                }
            }
            for folder in place.folders() {
                cut_tail(&folder.join("data.txt"), &mut dice);
            }
        }
        let output = place.run();
        assert_eq!(output.status.code(), Some(0), "seed {seed}: {}", words(&output));
        let rows = place.rows();
        assert!(!canonical || rows == golden, "seed {seed}: the bytes differ");
        assert!(sorted(&rows) == sorted(&golden), "seed {seed}: the rows differ");
        let whole = |folder: &std::path::PathBuf| sorted(&rows_in(folder)) == sorted(&golden);
        assert!(place.folders().iter().any(whole), "seed {seed}");
        seed += 1;
        assert!(seed < first + 400, "too many power cuts come after the end of the run");
    }
    println!("{done} power cuts in {} runs, {in_doubt} with bytes in doubt", seed - first);
    assert!(in_doubt * 2 > done, "too few power cuts lost bytes");
}
