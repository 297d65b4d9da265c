//! Nodes that are restarted one after the other, as for an upgrade: nobody notices but the operator.

use std::time::Duration;

use super::{QUICK, same_everywhere, slow_site};
use crate::harness::nodes::within;
use crate::harness::{Cluster, Site};

const PAGES: usize = 120;
/// A page takes that long: less than whoever leaves has for what is in hand.
const TAKES: Duration = Duration::from_millis(200);
/// Longest time without a request, with room for a busy machine.
const STILL_MOST: Duration = Duration::from_secs(5);

/// Times between two requests, longest first.
fn stills(site: &Site) -> Vec<Duration> {
    let log = site.log();
    let mut gaps: Vec<Duration> = log.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    gaps.sort_by(|a, b| b.cmp(a));
    gaps
}

#[test]
fn nodes_are_restarted_one_after_the_other_and_no_page_is_asked_for_twice() {
    let (site, defs) = slow_site(PAGES, TAKES);
    let own = ["job.takeLimit=2", "loader.fetch.parallelism=2", "output.order=canonical"];
    let settings: Vec<&str> = QUICK.iter().chain(&own).copied().collect();
    let mut cluster = Cluster::of(3, &defs, &settings);
    cluster.start_all();
    cluster.done(5);
    for node in cluster.seats() {
        cluster.signal(node, "TERM");
        let ending = cluster.end(node);
        assert_eq!(ending.code, 143, "node {node}: {ending:?}");
        cluster.start(node);
        // An orchestrator waits for this, too.
        let ready = |cluster: &Cluster| {
            let dir = format!("d{node}");
            cluster.work.spoonbill(&["status", "--ready", "--data-dir", &dir]).code == 0
        };
        let took = within(Duration::from_secs(30), || ready(&cluster)).expect("it is back");
        println!("node {node} was ready after {took:.1?}");
    }
    let asked = site.log().len();
    assert!(asked < PAGES, "it was over before all were restarted");
    cluster.all_end_with(0);
    let stills = stills(&site);
    println!("{asked} pages meanwhile; longest times without a request: {:.1?}", &stills[..4]);
    assert!(stills[0] < STILL_MOST, "nobody worked for {:?}", stills[0]);
    assert_eq!(site.log().len(), PAGES, "no page was loaded twice");
    let written = same_everywhere(&cluster);
    for node in cluster.seats() {
        let report = cluster.report(node);
        assert_eq!(report["jobs"]["failed"], 0, "{report}");
        assert_eq!(report["jobs"]["done"], PAGES, "{report}");
    }
    site.otherwise(|request, _| {
        let page = crate::harness::titled(&request.path.replace('/', "page "));
        crate::harness::Response::html(page)
    });
    assert!(written == cluster.solo(0), "other bytes than alone");
    cluster.fsck();
}
