//! Levels, and rules with a quota.

use super::*;

fn deep(number: u64, host: &str, depth: u32) -> NewJob {
    NewJob { depth, ..job(number, host) }
}

fn by_level(jobs: Vec<NewJob>) -> (Bench, SessionId) {
    by_level_with(unhurried(), jobs)
}

fn by_level_with(policy: Policy, jobs: Vec<NewJob>) -> (Bench, SessionId) {
    let mut bench = Bench::new();
    let session = bench.join(false);
    let plan = RunPlan { by_level: true, ..plan(1, policy) };
    bench.open(session, plan, OpenMode::Continue);
    bench.seed(session, jobs);
    (bench, session)
}

fn limited(number: u64, max: u64) -> NewJob {
    NewJob { quota: Some(Quota { rule: 3, max }), ..deep(number, "local", 1) }
}

#[test]
fn deeper_jobs_wait_for_all_of_a_smaller_depth_on_every_lane() {
    let (mut bench, session) = by_level(vec![job(1, "a"), job(2, "b")]);
    let grants = bench.take(session, 9);
    assert_eq!(numbers(&grants), ["1", "2"]);
    bench.finish(session, &grants[0], done(vec![], vec![deep(3, "a", 1), deep(4, "c", 1)]));
    assert_eq!(bench.wait_ms(session), None);
    bench.finish(session, &grants[1], done(vec![], vec![deep(5, "b", 1)]));
    let grants = bench.take(session, 9);
    assert_eq!(grants.len(), 3);
    assert!(grants.iter().all(|grant| grant.job.depth == 1));
}

#[test]
fn a_retry_comes_before_deeper_jobs_of_its_lane() {
    let (mut bench, session) = by_level(vec![job(1, "a"), job(2, "a")]);
    let grants = bench.take(session, 9);
    bench.finish(session, &grants[0], done(vec![], vec![deep(3, "a", 1)]));
    bench.finish(session, &grants[1], again(700, None));
    assert_eq!(bench.wait_ms(session), Some(700));
    bench.ms += 700;
    let grants = bench.take(session, 9);
    assert_eq!(numbers(&grants), ["2"]);
    bench.finish(session, &grants[0], done(vec![], vec![]));
    assert_eq!(numbers(&bench.take(session, 9)), ["3"]);
}

#[test]
fn a_returned_job_keeps_its_level_across_a_restart() {
    let (mut bench, session) = by_level(vec![job(1, "a"), job(2, "a")]);
    let grants = bench.take(session, 9);
    bench.finish(session, &grants[0], done(vec![], vec![deep(3, "b", 1)]));
    let jobs = vec![(grants[1].id, grants[1].token)];
    bench.apply(Command::Return { session, jobs });
    assert_eq!(numbers(&bench.take(session, 9)), ["2"]);
    let session = bench.restart();
    let grants = bench.take(session, 9);
    assert_eq!(numbers(&grants), ["2"]);
    let failed = Outcome::Failed { reason: "404".to_owned(), tally: Tally::default() };
    bench.finish(session, &grants[0], failed);
    assert_eq!(numbers(&bench.take(session, 9)), ["3"]);
}

#[test]
fn isolated_jobs_wait_for_their_level_too() {
    let policy = Policy { deaths_before_isolation: 1, ..unhurried() };
    let (mut bench, first) = by_level_with(policy, vec![job(1, "local"), job(2, "local")]);
    let grants = bench.take(first, 1);
    bench.finish(first, &grants[0], done(vec![], vec![deep(3, "local", 1)]));
    bench.take(first, 9);
    let session = bench.restart();
    let grants = bench.take(session, 9);
    assert_eq!((numbers(&grants), grants[0].alone), (vec!["2"], true));
    bench.finish(session, &grants[0], done(vec![], vec![]));
    let grants = bench.take(session, 9);
    assert_eq!(numbers(&grants), ["3"]);
    let session = bench.restart();
    let grants = bench.take(session, 9);
    assert_eq!((numbers(&grants), grants[0].alone), (vec!["3"], true));
}

#[test]
fn a_moved_job_keeps_its_depth() {
    let (mut bench, session) = by_level(vec![job(1, "a"), job(2, "b")]);
    let grants = bench.take(session, 9);
    bench.finish(session, &grants[0], done(vec![], vec![deep(3, "a", 1)]));
    let moved = Outcome::Moved {
        url: "http://a/2".to_owned(),
        lane: "a".to_owned(),
        polite: true,
        redirects: 1,
        tally: Tally::default(),
    };
    bench.finish(session, &grants[1], moved);
    assert_eq!(numbers(&bench.take(session, 9)), ["2"]);
}

#[test]
fn a_rule_keeps_to_its_quota_and_known_pages_are_counted_separately() {
    let (mut bench, session) = Bench::with(unhurried(), locals(2));
    let grants = bench.take(session, 9);
    let links = vec![limited(3, 2), limited(4, 2), limited(5, 2), limited(3, 2)];
    bench.finish(session, &grants[0], done(vec![], links));
    let session = bench.restart();
    let skipped = |bench: &Bench| bench.ledger.core().run.clone().unwrap().tally.skipped;
    assert_eq!(skipped(&bench)["links beyond maxPages"], 1);
    assert_eq!(skipped(&bench)["already known"], 1);
    let grants = bench.take(session, 9);
    let second = grants.iter().find(|grant| grant.job.name == "page 2").unwrap();
    // Another rule may still add the page.
    let other = NewJob { quota: None, ..limited(5, 0) };
    bench.finish(session, second, done(vec![], vec![limited(6, 2), limited(1, 2), other]));
    assert_eq!(skipped(&bench)["links beyond maxPages"], 2);
    assert_eq!(skipped(&bench)["already known"], 2);
    assert_eq!(bench.ledger.core().run.as_ref().unwrap().known, 5);
}

#[test]
fn failed_jobs_are_retried_level_by_level() {
    let (mut bench, session) = by_level(vec![job(1, "a"), job(2, "b")]);
    let failed = || Outcome::Failed { reason: "404".to_owned(), tally: Tally::default() };
    let grants = bench.take(session, 9);
    bench.finish(session, &grants[0], failed());
    bench.finish(session, &grants[1], done(vec![], vec![deep(3, "a", 1)]));
    let grants = bench.take(session, 9);
    bench.finish(session, &grants[0], failed());
    assert_eq!(bench.apply(Command::Close { session }), Reply::Ok);
    let session = bench.restart();
    let again = RunPlan { by_level: true, ..plan(1, unhurried()) };
    assert_eq!(bench.open(session, again, OpenMode::Retry), Reply::Opened { continued: true });
    let grants = bench.take(session, 9);
    assert_eq!(numbers(&grants), ["1"]);
    bench.finish(session, &grants[0], done(vec![], vec![]));
    assert_eq!(numbers(&bench.take(session, 9)), ["3"]);
}

#[test]
fn changed_definitions_may_change_the_order_of_a_retry() {
    for by_level in [false, true] {
        let mut bench = Bench::new();
        let session = bench.join(false);
        let first = RunPlan { by_level: !by_level, ..plan(1, unhurried()) };
        bench.open(session, first, OpenMode::Continue);
        bench.seed(session, vec![deep(1, "a", 0), deep(2, "a", 1)]);
        for _ in 0..2 {
            for grant in bench.take(session, 9) {
                let tally = Tally::default();
                let failed = Outcome::Failed { reason: "404".to_owned(), tally };
                bench.finish(session, &grant, failed);
            }
        }
        assert_eq!(bench.apply(Command::Close { session }), Reply::Ok);
        let session = bench.restart();
        let mended = RunPlan { by_level, ..plan(2, unhurried()) };
        bench.open(session, mended, OpenMode::Retry);
        assert_eq!(bench.take(session, 9).len(), if by_level { 1 } else { 2 });
    }
}
