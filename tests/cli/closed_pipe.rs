//! Output to a pipe that nobody reads any more is dropped, and changes nothing else.

use std::process::{Command, Stdio};

use crate::harness::{SiteResponse, TITLE, TestSite, Workdir, job, titled, wait_until};

const PAGES: usize = 40;

/// Runs the binary with both outputs going to a reader that reads `lines` lines and ends. Returns the
/// exit code of the binary.
fn piped_to_head(work: &Workdir, arguments: &str, lines: usize) -> i32 {
    let binary = env!("CARGO_BIN_EXE_spoonbill");
    let script = format!("( {binary} {arguments}; echo $? > code ) 2>&1 | head -n {lines} > head");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(work.root()).stdin(Stdio::null());
    assert!(shell.status().unwrap().success());
    // `head` may end first, and the shell waits only for it.
    wait_until("the binary has ended", || work.read("code").ends_with('\n'));
    work.read("code").trim().parse().unwrap()
}

#[test]
fn a_run_whose_log_is_not_read_to_the_end_keeps_all_pages() {
    for options in ["-v", "-vv", "-v --log-format json", ""] {
        let site = TestSite::start();
        site.otherwise(|request, _| SiteResponse::html(titled(&request.path)));
        let urls: Vec<(String, String)> =
            (0..PAGES).map(|n| (format!("n{n}"), site.url(&format!("/{n}")))).collect();
        let urls: Vec<(&str, &str)> = urls.iter().map(|(n, u)| (n.as_str(), u.as_str())).collect();
        let work = Workdir::with_defs(&job(&urls, TITLE));
        let run = format!("run defs --report report.json --set loader.fetch.delay=0 {options}");
        let lines = usize::from(!options.is_empty());
        assert_eq!(piped_to_head(&work, &run, lines), 0, "{options}");
        let report = work.report();
        assert_eq!(report["jobs"]["done"], PAGES, "{options}: {report}");
        assert_eq!(report["jobs"]["failed"], 0, "{options}: {report}");
        assert_eq!(work.latest().len(), PAGES, "{options}");
        assert_eq!(site.log().len(), PAGES, "{options}");
        for command in ["failed", "fsck", "status", "--help", "config"] {
            let code = piped_to_head(&work, command, 0);
            assert!(code == i32::from(command == "status"), "{command}: {code}");
        }
    }
}
