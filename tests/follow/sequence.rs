//! `startSequence`: groups that wait for other groups.

use std::time::Duration;

use crate::harness::{SiteResponse, TestSite, Workdir};

#[test]
fn a_group_waits_for_those_with_smaller_numbers_and_for_what_they_lead_to() {
    let site = TestSite::start();
    site.otherwise(|request, _| {
        let links = match request.path.as_str() {
            "/list" => "<a class=next href=/list-2>2</a><a class=item href=/item-1>1</a>",
            "/list-2" => "<a class=item href=/item-2>2</a>",
            _ => "",
        };
        // Without the sequence, the slow list pages would be done last.
        let slow = if request.path.starts_with("/list") { 200 } else { 0 };
        SiteResponse::html(format!("<h1>x</h1>{links}")).delay(Duration::from_millis(slow))
    });
    let work = Workdir::with_defs(&format!(
        "groups:
  last: {{ urls: '{0}/last', fields: {{ title: h1 }}, startSequence: 20 }}
  item: {{ fields: {{ title: h1 }}, startSequence: 10 }}
  list:
    urls: {0}/list
    follow: [ a.next, {{ selector: a.item, group: item }} ]
",
        site.url("")
    ));
    let ending = work.run(&["loader.fetch.delay=0", "loader.fetch.parallelism=9"]);
    assert_eq!(ending.code, 0, "{ending:?}");
    let log = site.log();
    let mut order: Vec<&str> = log.iter().map(|hit| hit.path.as_str()).collect();
    order[2..4].sort_unstable();
    assert_eq!(order, ["/list", "/list-2", "/item-1", "/item-2", "/last"]);
}
