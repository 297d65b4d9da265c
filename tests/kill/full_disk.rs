//! A full disk ends a run with a clear message, and with exit code 9 (data directory) or 8 (output).
//! With space the run continues to the right rows.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::needs::SMALL_DISKS;

use super::shop::{self, ShopDir, folders_in, rows_in, sorted, words};

/// A small file system in memory. It is unmounted when dropped.
pub(crate) struct Tmpfs {
    dir: tempfile::TempDir,
}

impl Tmpfs {
    pub(crate) fn mount(kib: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={kib}k");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(dir.path())
            .status();
        assert!(mounted.unwrap().success());
        Self { dir }
    }

    pub(crate) fn resize(&self, kib: u64) {
        let options = format!("remount,size={kib}k");
        let status = Command::new("mount").args(["-o", &options]).arg(self.path()).status();
        assert!(status.unwrap().success());
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.dir.path()).status().ok();
    }
}

/// Runs with one directory on a small file system of each size, and then with enough space.
fn fill(sizes: &[u64], code: i32, on_tmpfs: fn(&Path, &Path) -> (PathBuf, PathBuf)) {
    if !SMALL_DISKS.are_there() {
        return;
    }
    let site = shop::open();
    let golden = shop::golden(&site);
    let mut full = 0;
    for size in sizes {
        let small = Tmpfs::mount(*size);
        let place = ShopDir::new(&site, true);
        let elsewhere = tempfile::tempdir().unwrap();
        let (data, output) = on_tmpfs(small.path(), elsewhere.path());
        let ended = place.run_in(&data, &output);
        let said = words(&ended);
        println!(
            "{size} KiB: exit {:?}: {}",
            ended.status.code(),
            said.lines().next().unwrap_or("")
        );
        assert!(!said.contains("panicked"), "{said}");
        if ended.status.code() != Some(0) {
            full += 1;
            assert_eq!(ended.status.code(), Some(code), "{size} KiB: {said}");
            let clear = ["disk is full", "No space left"].iter().any(|words| said.contains(words));
            assert!(clear, "{size} KiB: {said}");
            small.resize(200_000);
            let again = place.run_in(&data, &output);
            assert_eq!(again.status.code(), Some(0), "{size} KiB, then enough: {}", words(&again));
        }
        let rows = rows_in(folders_in(&output).last().unwrap());
        assert!(sorted(&rows) == sorted(&golden), "{size} KiB: the rows differ");
    }
    assert!(full >= 2, "too few runs filled their disk");
}

#[test]
fn a_full_data_directory_ends_with_9_and_the_run_continues_with_space() {
    let place = |small: &Path, other: &Path| (small.join("data"), other.join("output"));
    fill(&[40, 200, 600, 1200, 1800], 9, place);
}

#[test]
fn a_full_output_directory_ends_with_8_and_the_run_continues_with_space() {
    let place = |small: &Path, other: &Path| (other.join("data"), small.join("output"));
    fill(&[4, 8, 16], 8, place);
}
