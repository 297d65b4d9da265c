//! Dead workers: a harmless job survives all of them, and a job that kills workers fails in the end.

use super::*;

#[test]
fn a_job_whose_workers_die_is_isolated_and_then_fails() {
    let (mut bench, mut session) = Bench::with(unhurried(), locals(4));
    let mut deaths = 0;
    // Page 1 kills its worker. A worker that gets to another page first finishes it.
    while !bench.ledger.standing().over {
        let grants = bench.take(session, 9);
        if let Some(grant) = grants.iter().find(|grant| numbers(&[(*grant).clone()]) == ["1"]) {
            let alone = bench.ledger.core().taken[&grant.id].alone;
            assert_eq!(alone, deaths >= 3, "after three deaths it is isolated");
            assert!(!alone || grants.len() == 1);
            deaths += 1;
            if alone {
                bench.begin(session, grant);
            }
            session = bench.restart();
        } else {
            for grant in &grants {
                bench.finish(session, grant, done(vec![block(0)], vec![]));
            }
        }
        assert!(deaths < 99);
    }
    assert_eq!(deaths, 3 + 5);
    assert_eq!(bench.ledger.standing().rows, 3);
    let failed = bench.ledger.tables_mut().failed(None, 9).unwrap();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].1.reasons, ["its worker died or hung 5 times while it held no other job"]);
}

#[test]
fn deaths_with_other_jobs_in_flight_never_fail_a_job() {
    let policy = Policy { deaths_before_isolation: 50, poison_max: 1, ..unhurried() };
    let (mut bench, mut session) = Bench::with(policy, locals(3));
    for _ in 0..49 {
        assert_eq!(bench.take(session, 9).len(), 3);
        session = bench.restart();
    }
    // A stricter policy of a later start does not count those deaths as deaths in isolation.
    let strict = Policy { deaths_before_isolation: 1, poison_max: 1, ..unhurried() };
    bench.open(session, plan(1, strict), OpenMode::Continue);
    assert_eq!(bench.take(session, 9).len(), 3);
    session = bench.restart();
    assert_eq!(bench.ledger.standing().failed, 0);
    for _ in 0..3 {
        let grants = bench.take(session, 9);
        assert_eq!(grants.len(), 1);
        bench.finish(session, &grants[0], done(vec![], vec![]));
    }
    assert!(bench.ledger.standing().over);
}

#[test]
fn a_job_survives_any_number_of_deaths_before_its_tasks_begin() {
    let (mut bench, mut session) = Bench::with(unhurried(), locals(2));
    for _ in 0..200 {
        // The worker dies while it loads the page, as on a machine that fails repeatedly.
        assert_ne!(bench.take(session, 9), []);
        session = bench.restart();
    }
    for _ in 0..2 {
        let grants = bench.take(session, 9);
        assert_eq!((grants.len(), grants[0].alone), (1, true));
        bench.begin(session, &grants[0]);
        bench.finish(session, &grants[0], done(vec![block(0)], vec![]));
    }
    let standing = bench.ledger.standing();
    assert!(standing.over);
    assert_eq!((standing.rows, standing.failed), (2, 0));
}

#[test]
fn only_the_holder_of_the_latest_token_begins() {
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    let grant = bench.take(session, 1).remove(0);
    let (job, token) = (grant.id, grant.token);
    assert_eq!(bench.twice(Command::Begin { session, job, token }), Reply::Ok);
    let other = Command::Begin { session, job, token: Token(99) };
    assert_eq!(bench.apply(other), Reply::Stale);
    bench.restart();
    assert_eq!(bench.apply(Command::Begin { session, job, token }), Reply::Stale);
}

#[test]
fn jobs_in_flight_at_a_death_go_to_the_end_of_the_queue() {
    let (mut bench, session) = Bench::with(unhurried(), locals(5));
    bench.ms += 10;
    assert_eq!(numbers(&bench.take(session, 2)), ["1", "2"]);
    let session = bench.restart();
    assert_eq!(numbers(&bench.take(session, 9)), ["3", "4", "5", "1", "2"]);
}

#[test]
fn an_isolated_job_waits_for_an_empty_worker_and_stays_alone() {
    let policy = Policy { deaths_before_isolation: 1, ..unhurried() };
    let (mut bench, session) = Bench::with(policy, locals(1));
    bench.take(session, 1);
    let session = bench.restart();
    let epoch = bench.cross(session, "seed");
    let _ = epoch;
    let grants = bench.take(session, 9);
    assert!(bench.ledger.core().taken[&grants[0].id].alone);
    bench.finish(session, &grants[0], done(vec![], (10..13).map(|n| job(n, "local")).collect()));
    let house = bench.take(session, 9);
    assert_eq!(house.len(), 3);
    let other = bench.join(false);
    bench.take(other, 9);
    bench.expire(&[other]);
    // Three jobs are isolated now, and `other` holds none: it gets one at a time.
    let one = bench.take(other, 9);
    assert_eq!(one.len(), 1);
    let third = bench.join(false);
    assert_eq!(bench.take(other, 9), []);
    assert_eq!(bench.take(third, 9).len(), 1, "another empty worker may have the next");
}

#[test]
fn a_worker_with_an_isolated_job_gets_no_other_job() {
    let policy = Policy { deaths_before_isolation: 1, ..unhurried() };
    let (mut bench, dead) = Bench::with(policy, locals(1));
    bench.take(dead, 1);
    let session = bench.join(false);
    bench.expire(&[session]);
    let alone = bench.take(session, 9);
    assert_eq!(alone.len(), 1);
    bench.apply(Command::Return { session, jobs: vec![] });
    let take = Command::Take { session, number: 1, limit: 9, ahead: u32::MAX };
    assert_eq!(bench.apply(take), Reply::Granted { jobs: alone.clone(), wait_ms: None });
    bench.finish(session, &alone[0], again(0, None));
    let grants = bench.take(session, 9);
    assert!(bench.ledger.core().taken[&grants[0].id].alone);
}

#[test]
fn isolated_jobs_keep_to_the_delay_of_their_host() {
    let policy = Policy { deaths_before_isolation: 1, ..Policy::default() };
    let (mut bench, session) = Bench::with(policy, vec![job(1, "a"), job(2, "a")]);
    bench.take(session, 1);
    let session = bench.restart();
    bench.ms += 2000;
    assert_eq!(numbers(&bench.take(session, 9)), ["2"]);
    let other = bench.join(false);
    assert_eq!(bench.take(other, 9), [], "the only slot of the host is occupied");
    let (job, token) = (JobId(2), bench.ledger.core().taken[&JobId(2)].token);
    let outcome = done(vec![], vec![]);
    bench.apply(Command::Finish { session, job, token, since_start_ms: None, outcome });
    assert_eq!(bench.wait_ms(other), Some(1000));
    bench.ms += 1000;
    let grants = bench.take(other, 9);
    assert_eq!(numbers(&grants), ["1"]);
    bench.finish(other, &grants[0], again(5000, Some(5000)));
    assert_eq!(bench.wait_ms(other), Some(5000), "its backoff holds in isolation too");
}

#[test]
fn a_process_after_a_dead_one_waits_for_the_delay_first() {
    let (mut bench, session) = Bench::with(Policy::default(), vec![job(1, "a"), job(2, "local")]);
    // The dead process may have started page 1 without making the grant durable.
    let _ = session;
    let session = bench.restart();
    assert_eq!(numbers(&bench.take(session, 9)), ["2"]);
    assert_eq!(bench.wait_ms(session), Some(1000));
    bench.ms += 1000;
    assert_eq!(numbers(&bench.take(session, 9)), ["1"]);
}

#[test]
fn a_process_after_one_that_left_does_not_wait() {
    let (mut bench, session) = Bench::with(Policy::default(), vec![job(1, "a")]);
    bench.apply(Command::Leave { session });
    let session = bench.restart();
    assert_eq!(numbers(&bench.take(session, 9)), ["1"]);
}

#[test]
fn a_polite_lane_pauses_when_its_worker_expires() {
    let (mut bench, dead) = Bench::with(Policy::default(), vec![job(1, "a")]);
    let other = bench.join(false);
    bench.take(dead, 1);
    bench.expire(&[other]);
    assert_eq!(bench.wait_ms(other), Some(1050));
}

#[test]
fn an_expired_session_holds_nothing() {
    let (mut bench, dead) = Bench::with(unhurried(), locals(5));
    let other = bench.join(false);
    bench.take(dead, 5);
    bench.expire(&[other]);
    assert_eq!(bench.ledger.standing().taken, 0);
    assert_eq!(bench.take(other, 9).len(), 5);
}
