//! The tests that every kind of appender passes: `appender_suite!(name, make)`, where `make` gets an
//! empty directory and returns a target of a local kind whose blocks can be read back as they were.

/// Writes the suite for one kind.
macro_rules! appender_suite {
    ($kind:ident, $make:expr) => {
        mod $kind {
            use std::path::Path;

            use super::*;
            use $crate::appender::{Appender, AppenderMark, OpenedAt, OutputTarget, RunOutput};

            const HEADER: &[u8] = b"a,b\n";

            struct OpenedTarget {
                dir: tempfile::TempDir,
                target: Box<dyn OutputTarget>,
            }

            impl OpenedTarget {
                fn new() -> Self {
                    let dir = tempfile::tempdir().unwrap();
                    let make: fn(&Path) -> Box<dyn OutputTarget> = $make;
                    let target = make(dir.path());
                    Self { dir, target }
                }

                fn run(&self) -> RunOutput<'_> {
                    let dir = self.dir.path();
                    RunOutput { dir, folder: "run", is_whole: false, is_durable: true }
                }

                /// A new process opens the target.
                fn open(&self, mark: Option<&AppenderMark>) -> (Box<dyn Appender>, OpenedAt) {
                    let mut appender = self.target.appender(self.run(), HEADER);
                    let at = appender.open(mark).unwrap();
                    (appender, at)
                }

                fn content(&self) -> Vec<u8> {
                    std::fs::read(self.target.name_in(self.run())).unwrap()
                }
            }

            #[test]
            fn blocks_follow_the_header_in_order() {
                let case = OpenedTarget::new();
                let (mut appender, at) = case.open(None);
                assert_eq!(at, OpenedAt::Start);
                appender.append(b"1,2\n").unwrap();
                appender.append(b"3,4\n").unwrap();
                appender.sync().unwrap();
                appender.finish().unwrap();
                assert_eq!(case.content(), b"a,b\n1,2\n3,4\n");
            }

            #[test]
            fn a_crash_after_a_mark_keeps_the_rows_before_it_and_repeats_none() {
                for unsynced in [&b""[..], b"3", b"3,4\n"] {
                    let case = OpenedTarget::new();
                    let (mut appender, _) = case.open(None);
                    appender.append(b"1,2\n").unwrap();
                    let mark = appender.sync().unwrap();
                    appender.append(unsynced).unwrap();
                    appender.flush().unwrap();
                    drop(appender);
                    let (mut appender, at) = case.open(Some(&mark));
                    assert_eq!(at, OpenedAt::Mark);
                    appender.append(b"3,4\n").unwrap();
                    appender.sync().unwrap();
                    appender.finish().unwrap();
                    assert_eq!(case.content(), b"a,b\n1,2\n3,4\n");
                }
            }

            #[test]
            fn an_older_mark_goes_back_to_its_rows() {
                let case = OpenedTarget::new();
                let (mut appender, _) = case.open(None);
                let empty = appender.sync().unwrap();
                appender.append(b"1,2\n").unwrap();
                appender.sync().unwrap();
                drop(appender);
                let (mut appender, at) = case.open(Some(&empty));
                assert_eq!(at, OpenedAt::Mark);
                appender.sync().unwrap();
                assert_eq!(case.content(), HEADER);
            }

            #[test]
            fn a_lost_target_starts_without_rows() {
                let case = OpenedTarget::new();
                let (mut appender, _) = case.open(None);
                appender.append(b"1,2\n").unwrap();
                let mark = appender.sync().unwrap();
                assert!(appender.is_intact());
                std::fs::remove_file(case.target.name_in(case.run())).unwrap();
                assert!(!appender.is_intact());
                let (mut appender, at) = case.open(Some(&mark));
                assert_eq!(at, OpenedAt::Start);
                appender.sync().unwrap();
                assert_eq!(case.content(), HEADER);
            }

            #[test]
            fn a_mark_of_another_kind_starts_without_rows() {
                let case = OpenedTarget::new();
                for mark in [&b""[..], b"x", &[255; 64]] {
                    let (_, at) = case.open(Some(&AppenderMark(mark.to_vec())));
                    assert_eq!(at, OpenedAt::Start);
                }
            }

            #[test]
            fn an_abandoned_target_holds_whole_blocks_up_to_the_mark() {
                let case = OpenedTarget::new();
                let (mut appender, _) = case.open(None);
                appender.append(b"1,2\n").unwrap();
                let mark = appender.sync().unwrap();
                appender.append(b"3").unwrap();
                appender.abandon(Some(&mark)).unwrap();
                assert_eq!(case.content(), b"a,b\n1,2\n");
            }
        }
    };
}

pub(super) use appender_suite;
