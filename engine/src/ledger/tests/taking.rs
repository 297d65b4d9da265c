//! Taking: turns, delays, slots and resends.

use super::*;

#[test]
fn lanes_are_served_in_turn() {
    let mut jobs: Vec<_> = (1..=6).map(|number| job(number, "big")).collect();
    jobs.extend([job(7, "small"), job(8, "tiny")]);
    let (mut bench, session) = Bench::with(unhurried(), jobs);
    assert_eq!(numbers(&bench.take(session, 5)), ["1", "7", "8", "2", "3"]);
    assert_eq!(numbers(&bench.take(session, 9)), ["4", "5", "6"]);
}

#[test]
fn a_new_lane_does_not_wait_for_a_long_one() {
    let jobs = (1..=9).map(|number| job(number, "big")).collect();
    let (mut bench, session) = Bench::with(unhurried(), jobs);
    let grants = bench.take(session, 2);
    bench.finish(session, &grants[0], done(vec![], vec![job(100, "new")]));
    assert_eq!(numbers(&bench.take(session, 2)), ["100", "3"]);
}

#[test]
fn starts_of_a_polite_lane_are_a_delay_apart() {
    let jobs = vec![job(1, "a"), job(2, "a"), job(3, "b"), job(4, "local"), job(5, "local")];
    let policy = Policy { slots: 9, ..Policy::default() };
    let (mut bench, session) = Bench::with(policy, jobs);
    assert_eq!(numbers(&bench.take(session, 9)), ["1", "3", "4", "5"]);
    assert_eq!(bench.wait_ms(session), Some(1000));
    bench.ms += 999;
    assert_eq!(bench.wait_ms(session), Some(1));
    bench.ms += 1;
    assert_eq!(numbers(&bench.take(session, 9)), ["2"]);
}

#[test]
fn a_lane_never_has_more_in_flight_than_its_slots() {
    let jobs = (1..=5).map(|number| job(number, "a")).collect();
    let policy = Policy { delay_ms: 0, slots: 2, ..Policy::default() };
    let (mut bench, session) = Bench::with(policy, jobs);
    let grants = bench.take(session, 9);
    assert_eq!(numbers(&grants), ["1", "2"]);
    assert_eq!(bench.wait_ms(session), None, "only the end of a job frees a slot");
    bench.finish(session, &grants[1], done(vec![], vec![]));
    assert_eq!(numbers(&bench.take(session, 9)), ["3"]);
}

#[test]
fn no_lane_takes_all_capacity_of_the_node() {
    let policy = Policy { lane_share_max: 3, ..unhurried() };
    let (mut bench, session) = Bench::with(policy, locals(9));
    assert_eq!(bench.take(session, 9).len(), 3);
}

#[test]
fn a_resent_take_gets_the_same_jobs_and_an_older_one_nothing() {
    let (mut bench, session) = Bench::with(unhurried(), locals(9));
    let take = |number| Command::Take { session, number, limit: 3, ahead: u32::MAX };
    let first = bench.apply(take(1));
    assert_eq!(bench.twice(take(1)), first);
    bench.apply(take(2));
    assert_eq!(bench.twice(take(1)), Reply::Stale);
    assert_eq!(bench.ledger.standing().taken, 6);
}

#[test]
fn a_resent_take_omits_jobs_that_have_ended() {
    let (mut bench, session) = Bench::with(unhurried(), locals(2));
    let grants = bench.take(session, 2);
    bench.finish(session, &grants[0], done(vec![], vec![]));
    let take = Command::Take { session, number: 1, limit: 2, ahead: u32::MAX };
    assert_eq!(bench.apply(take), Reply::Granted { jobs: vec![grants[1].clone()], wait_ms: None });
}

#[test]
fn a_resent_take_without_jobs_gets_the_time_of_the_next_one() {
    let (mut bench, session) = Bench::with(Policy::default(), vec![job(1, "a"), job(2, "a")]);
    let grants = bench.take(session, 1);
    bench.finish(session, &grants[0], done(vec![], vec![]));
    let take = Command::Take { session, number: 2, limit: 1, ahead: u32::MAX };
    let nothing = Reply::Granted { jobs: vec![], wait_ms: Some(1000) };
    assert_eq!(bench.apply(take.clone()), nothing);
    assert_eq!(bench.twice(take), nothing);
}

#[test]
fn a_retry_waits_for_its_pause_without_blocking_its_lane() {
    let (mut bench, session) = Bench::with(unhurried(), vec![job(1, "a"), job(2, "a")]);
    let grants = bench.take(session, 1);
    bench.finish(session, &grants[0], again(500, None));
    let next = bench.take(session, 9);
    assert_eq!(numbers(&next), ["2"]);
    assert_eq!(bench.wait_ms(session), Some(500));
    bench.ms += 500;
    let grants = bench.take(session, 9);
    assert_eq!((numbers(&grants), grants[0].attempts), (vec!["1"], 1));
}

#[test]
fn a_lane_knows_its_first_job_after_every_change() {
    let (mut bench, session) = Bench::with(unhurried(), vec![job(1, "a"), job(2, "a")]);
    let grants = bench.take(session, 2);
    bench.finish(session, &grants[0], again(900, None));
    bench.finish(session, &grants[1], again(300, None));
    assert_eq!(bench.wait_ms(session), Some(300));
    bench.ms += 300;
    let early = bench.take(session, 9);
    assert_eq!(numbers(&early), ["2"]);
    assert_eq!(bench.wait_ms(session), Some(600));
    bench.finish(session, &early[0], done(vec![], vec![job(3, "a")]));
    assert_eq!(numbers(&bench.take(session, 9)), ["3"]);
}

#[test]
fn a_busy_host_holds_its_whole_lane_and_no_other() {
    let (mut bench, session) =
        Bench::with(unhurried(), vec![job(1, "a"), job(2, "a"), job(3, "b")]);
    let grants = bench.take(session, 1);
    bench.finish(session, &grants[0], again(2000, Some(2000)));
    assert_eq!(numbers(&bench.take(session, 9)), ["3"]);
    assert_eq!(bench.wait_ms(session), Some(2000));
    bench.ms += 2000;
    assert_eq!(numbers(&bench.take(session, 9)), ["2", "1"]);
}

#[test]
fn tries_end() {
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    for attempt in 0..4 {
        let grants = bench.take(session, 1);
        assert_eq!(grants[0].attempts, attempt);
        assert_eq!(bench.finish(session, &grants[0], again(0, None)), Reply::Ok);
    }
    assert!(bench.ledger.standing().over);
    let failed = bench.ledger.tables_mut().failed(None, 9).unwrap();
    assert_eq!(failed[0].1.reasons, ["status 503 (tried 4 times)"]);
}

#[test]
fn ledger_time_adds_up_and_never_runs_back() {
    let (mut bench, session) = Bench::with(Policy::default(), vec![job(1, "a"), job(2, "a")]);
    bench.ms = 5000;
    bench.take(session, 1);
    bench.ms = 4000;
    bench.beat(&[session]);
    assert_eq!(bench.ledger.core().clock, 5000);
    (bench.leadership, bench.ms) = (2, 90_000_000);
    bench.beat(&[session]);
    assert_eq!(bench.ledger.core().clock, 5000);
}

#[test]
fn a_suspended_machine_expires_no_session_and_opens_no_lane() {
    let (mut bench, session) = Bench::with(Policy::default(), vec![job(1, "a"), job(2, "a")]);
    assert_eq!(bench.take(session, 1).len(), 1);
    let other = bench.join(false);
    // An hour later the first commands are a beat of one session, then a claim of another.
    bench.last.ms = 3_600_000;
    bench.send(Command::Beat { renewals: vec![session] });
    assert_eq!(bench.ledger.core().clock, 1000);
    assert_eq!(bench.ledger.core().taken_count(), 1);
    let claim = Command::Claim { session: other, name: "gate".to_owned() };
    assert!(matches!(bench.send(claim), Reply::Cross(_)));
}
