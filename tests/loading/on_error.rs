//! `job.onError`: the effect of a failed page on the rest of the run.

use crate::harness::defs::{TITLE, job, titled};
use crate::harness::{SiteResponse, TestSite, Workdir};

/// A site whose first page does not exist.
fn broken(host: &str) -> TestSite {
    let site = TestSite::start_on(host);
    site.otherwise(|_, _| SiteResponse::html(titled("x")));
    site.answer("/0", SiteResponse::status(404));
    site
}

fn pages_of(sites: &[&TestSite]) -> Workdir {
    let locators: Vec<(String, String)> = sites
        .iter()
        .enumerate()
        .flat_map(|(place, site)| {
            (0..5).map(move |n| (format!("s{place}p{n}"), site.url(&format!("/{n}"))))
        })
        .collect();
    let locators: Vec<(&str, &str)> =
        locators.iter().map(|(name, url)| (name.as_str(), url.as_str())).collect();
    Workdir::with_defs(&job(&locators, TITLE))
}

const QUICK: &str = "loader.fetch.delay=20";

#[test]
fn a_failed_page_does_not_stop_other_pages() {
    let site = broken("127.0.0.2");
    let work = pages_of(&[&site]);
    assert_eq!(work.run(&[QUICK]).code, 4);
    assert_eq!(work.latest().len(), 4);
}

#[test]
fn quarantine_skips_the_host_and_continues_with_other_hosts() {
    let (bad, good) = (broken("127.0.0.2"), TestSite::start_on("127.0.0.3"));
    good.otherwise(|_, _| SiteResponse::html(titled("x")));
    let work = pages_of(&[&bad, &good]);
    let ending = work.run(&[QUICK, "job.onError=quarantine"]);
    assert_eq!(ending.code, 4, "{ending:?}");
    assert_eq!((work.latest().len(), bad.log().len(), good.log().len()), (5, 1, 5));
    let report = work.report();
    assert_eq!(report["finishReason"], "finished");
    assert_eq!(report["jobs"]["failed"], 5);
    assert_eq!(report["pages"]["skipped"]["of hosts in quarantine"], 4);
    let reason = report["failures"][1]["reasons"][0].as_str().unwrap();
    assert!(reason.starts_with("`127.0.0.2:"), "{reason}");
    assert!(reason.contains("is in quarantine since `s0p0` (g) failed: "), "{reason}");
    assert!(reason.contains("404"), "{reason}");
}

#[test]
fn halt_stops_the_run_and_the_next_command_continues_it() {
    let site = broken("127.0.0.2");
    let work = pages_of(&[&site]);
    let ending = work.run(&[QUICK, "job.onError=halt"]);
    assert_eq!(ending.code, 4, "{ending:?}");
    assert!(ending.stderr.contains("with 4 jobs to go, since `s0p0` (g) failed: "), "{ending:?}");
    assert_eq!(site.log().len(), 1);
    let report = work.report();
    assert_eq!(report["finishReason"], "halted");
    assert!(report["error"].as_str().unwrap().contains("404"));
    assert_eq!(report["jobs"]["pending"], 4);

    assert_eq!(work.run(&[QUICK, "job.onError=halt"]).code, 4, "one job has failed");
    assert_eq!((work.latest().len(), site.log().len()), (4, 5));
    assert_eq!(work.report()["finishReason"], "finished");
}
