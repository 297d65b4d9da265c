//! Groups that wait for groups.

use super::*;

fn of(group: &str, number: u64, host: &str, depth: u32) -> NewJob {
    NewJob { group: group.to_owned(), depth, ..job(number, host) }
}

fn ordered(by_level: bool, jobs: Vec<NewJob>) -> (Bench, SessionId) {
    let mut bench = Bench::new();
    let session = bench.join(false);
    let sequence = [("second".to_owned(), 1), ("third".to_owned(), 2)].into();
    let plan = RunPlan { by_level, sequence, ..plan(1, unhurried()) };
    bench.open(session, plan, OpenMode::Continue);
    bench.seed(session, jobs);
    (bench, session)
}

#[test]
fn a_group_starts_after_all_groups_with_smaller_numbers() {
    let jobs = vec![of("third", 1, "a", 0), of("second", 2, "b", 0), of("g", 3, "a", 0)];
    let (mut bench, session) = ordered(false, jobs);
    let grants = bench.take(session, 9);
    assert_eq!(numbers(&grants), ["3"]);
    assert_eq!(bench.take(session, 9), [], "it is in flight");
    bench.finish(session, &grants[0], again(500, None));
    assert_eq!(bench.wait_ms(session), Some(500), "its retry comes first");
    bench.ms += 500;
    let grants = bench.take(session, 9);
    assert_eq!(numbers(&grants), ["3"]);
    // Its links get the level of the group to which they belong.
    let found = vec![of("third", 4, "c", 1), of("g", 5, "c", 1)];
    bench.finish(session, &grants[0], done(vec![], found));
    for wanted in [vec!["5"], vec!["2"], vec!["1", "4"]] {
        let grants = bench.take(session, 9);
        assert_eq!(numbers(&grants), wanted);
        for grant in &grants {
            bench.finish(session, grant, done(vec![], vec![]));
        }
    }
    assert!(bench.ledger.standing().over);
}

#[test]
fn a_link_back_to_an_earlier_group_goes_first() {
    let jobs = vec![of("second", 1, "a", 0), of("second", 2, "a", 0), of("second", 3, "a", 0)];
    let (mut bench, session) = ordered(false, jobs);
    let grants = bench.take(session, 2);
    bench.finish(session, &grants[0], done(vec![], vec![of("g", 9, "b", 1)]));
    let back = bench.take(session, 9);
    assert_eq!(numbers(&back), ["9"]);
    assert_eq!(bench.take(session, 9), []);
    bench.finish(session, &back[0], done(vec![], vec![]));
    assert_eq!(numbers(&bench.take(session, 9)), ["3"]);
    bench.finish(session, &grants[1], done(vec![], vec![]));
}

#[test]
fn the_group_decides_before_the_depth() {
    let jobs = vec![of("second", 1, "a", 0), of("g", 2, "a", 5), of("g", 3, "a", 4)];
    let (mut bench, session) = ordered(true, jobs);
    for wanted in ["3", "2", "1"] {
        let grants = bench.take(session, 9);
        assert_eq!(numbers(&grants), [wanted]);
        bench.finish(session, &grants[0], done(vec![], vec![]));
    }
}

#[test]
fn a_failed_or_quarantined_group_opens_the_next() {
    let jobs = vec![of("second", 1, "a", 0), of("g", 2, "b", 0)];
    let (mut bench, session) = ordered(false, jobs);
    let grants = bench.take(session, 9);
    let tally = Tally::default();
    bench.finish(session, &grants[0], Outcome::Failed { reason: "404".to_owned(), tally });
    assert_eq!(numbers(&bench.take(session, 9)), ["1"]);
}
