//! A rolling restart, as for an upgrade: every node is restarted once and the run continues.

use super::{PATIENT, same_everywhere, three_at_gate};
use crate::harness::{TestCluster, wait_until};

const PAGES: usize = 120;
/// Pages that the gate lets through during each restart.
const PAGES_PER_RESTART: usize = 30;

#[test]
fn a_rolling_restart_loads_no_page_twice() {
    let own = ["job.takeLimit=2", "loader.fetch.parallelism=2", "output.order=canonical", PATIENT];
    let (site, mut cluster, gate) = three_at_gate(PAGES, 5, &own);
    cluster.start_all();
    cluster.done(5);
    for node in cluster.seats() {
        let before = site.log().len();
        cluster.signal(node, "TERM");
        cluster.wait_until_stopping(node);
        gate.let_through(node * PAGES_PER_RESTART);
        let ending = cluster.end(node);
        assert_eq!(ending.code, 143, "node {node}: {ending:?}");
        wait_until("two nodes load pages", || site.log().len() > before + PAGES_PER_RESTART / 2);
        cluster.start(node);
        // An orchestrator waits for readiness in the same way.
        let ready = |cluster: &TestCluster| {
            let dir = format!("d{node}");
            cluster.work.spoonbill(&["status", "--ready", "--data-dir", &dir]).code == 0
        };
        let took = wait_until("the node is ready again", || ready(&cluster));
        println!("node {node} was ready after {took:.1?}");
    }
    gate.open();
    cluster.all_end_with(0);
    assert_eq!(site.log().len(), PAGES, "a page was loaded twice");
    let written = same_everywhere(&cluster);
    for node in cluster.seats() {
        let report = cluster.report(node);
        assert_eq!(report["jobs"]["failed"], 0, "{report}");
        assert_eq!(report["jobs"]["done"], PAGES, "{report}");
    }
    assert!(written == cluster.solo(0), "the bytes differ from those of a single node");
    cluster.fsck();
}
