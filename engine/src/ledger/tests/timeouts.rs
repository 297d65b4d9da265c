//! A job past its timeout goes to another node; the remaining jobs of its node stay.

use super::*;

fn patient() -> Policy {
    Policy { slots: 100, delay_ms: 0, task_timeout_ms: 10_000, ..Policy::default() }
}

/// Advances the time by some seconds while every session is renewed.
fn pass(bench: &mut Bench, seconds: u64, living: &[SessionId]) {
    for _ in 0..seconds {
        bench.ms += 1000;
        bench.beat(living);
    }
}

#[test]
fn a_job_past_its_timeout_goes_to_another_node() {
    let mut jobs = locals(1);
    jobs.push(job(2, "b"));
    let (mut bench, stuck) = Bench::with(patient(), jobs);
    let other = bench.join(false);
    let first = bench.take(stuck, 1).remove(0);
    pass(&mut bench, 5, &[stuck, other]);
    assert_eq!(bench.take(stuck, 1).len(), 1);
    pass(&mut bench, 4, &[stuck, other]);
    assert_eq!(bench.take(other, 9), []);
    pass(&mut bench, 1, &[stuck, other]);
    let again = bench.take(other, 9);
    assert_eq!(numbers(&again), ["1"], "later jobs stay on their node");
    assert_eq!(bench.finish(other, &again[0], done(vec![block(0)], vec![])), Reply::Ok);
    assert_eq!(bench.finish(stuck, &first, done(vec![block(0)], vec![])), Reply::Stale);
    assert!(bench.ledger.core().sessions.contains_key(&stuck));
}

#[test]
fn a_result_after_the_timeout_counts_while_no_other_session_has_the_job() {
    let (mut bench, slow) = Bench::with(patient(), locals(1));
    let grant = bench.take(slow, 1).remove(0);
    pass(&mut bench, 11, &[slow]);
    assert_eq!(bench.ledger.standing().pending, 1);
    assert_eq!(bench.finish(slow, &grant, done(vec![block(0)], vec![])), Reply::Ok);
    assert!(bench.ledger.standing().over);
}

#[test]
fn a_job_that_waits_for_its_turn_is_not_timed() {
    let (mut bench, node) = Bench::with(patient(), locals(4));
    let grants = bench.take(node, 9);
    // Nine seconds each, one after another: the last job is in flight for 36 s.
    for grant in &grants {
        pass(&mut bench, 9, &[node]);
        assert_eq!(bench.finish(node, grant, done(vec![], vec![])), Reply::Ok);
    }
    assert!(bench.ledger.standing().over);
}

#[test]
fn the_end_of_a_later_job_does_not_extend_the_timeout() {
    let (mut bench, node) = Bench::with(patient(), locals(4));
    let grants = bench.take(node, 9);
    for grant in &grants[1..] {
        pass(&mut bench, 3, &[node]);
        bench.finish(node, grant, done(vec![], vec![]));
    }
    assert_eq!(bench.ledger.standing().taken, 1);
    pass(&mut bench, 1, &[node]);
    assert_eq!(bench.ledger.standing().taken, 0);
}

#[test]
fn a_job_behind_a_hanging_one_is_timed_after_it() {
    let (mut bench, node) = Bench::with(patient(), locals(2));
    bench.take(node, 9);
    pass(&mut bench, 10, &[node]);
    assert_eq!(bench.ledger.standing().taken, 1);
    pass(&mut bench, 10, &[node]);
    assert_eq!(bench.ledger.standing().taken, 0);
}

#[test]
fn a_page_that_hangs_on_every_node_fails_in_the_end() {
    let (mut bench, node) = Bench::with(patient(), locals(1));
    for round in 0..3 + 5 {
        let grant = bench.take(node, 9).remove(0);
        assert_eq!(grant.alone, round >= 3);
        if grant.alone {
            bench.begin(node, &grant);
        }
        pass(&mut bench, 10, &[node]);
    }
    assert_eq!(bench.ledger.standing().failed, 1);
}
