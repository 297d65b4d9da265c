//! A node that seems to be gone: others have its jobs soon, where two may work on one by mistake.

use super::*;

fn doubt(bench: &mut Bench, session: SessionId) -> Reply {
    bench.twice(Command::Doubt { session })
}

/// Time goes by, and these live.
fn pass(bench: &mut Bench, ms: u64, living: &[SessionId]) {
    bench.ms += ms;
    bench.beat(living);
}

#[test]
fn jobs_of_a_shared_lane_come_back_a_second_after_their_node_seems_gone() {
    let (mut bench, gone) = Bench::with(unhurried(), locals(2));
    let other = bench.join(false);
    let grants = bench.take(gone, 9);
    assert_eq!(doubt(&mut bench, gone), Reply::Ok);
    pass(&mut bench, 999, &[other]);
    assert_eq!(bench.take(other, 9), []);
    pass(&mut bench, 1, &[other]);
    assert!(bench.ledger.core().sessions.contains_key(&gone), "that takes more than a hint");
    let again = bench.take(other, 1);
    assert_eq!(numbers(&again), ["1"]);
    // What nobody else has by now may still come from the first; the rest may not.
    assert_eq!(bench.finish(gone, &grants[0], done(vec![block(0)], vec![])), Reply::Stale);
    assert_eq!(bench.finish(gone, &grants[1], done(vec![block(0)], vec![])), Reply::Ok);
    assert_eq!(bench.finish(other, &again[0], done(vec![block(0)], vec![])), Reply::Ok);
    assert!(bench.ledger.standing().over);
}

#[test]
fn a_sign_of_life_ends_the_doubt() {
    let (mut bench, node) = Bench::with(unhurried(), locals(2));
    bench.take(node, 9);
    doubt(&mut bench, node);
    pass(&mut bench, 900, &[node]);
    pass(&mut bench, 900, &[]);
    assert_eq!(bench.ledger.standing().taken, 2);
    assert_eq!(bench.apply(Command::Doubt { session: SessionId(99) }), Reply::Stale);
}

#[test]
fn a_lane_with_a_pause_and_a_job_alone_wait_for_proof() {
    let policy = Policy { deaths_before_isolation: 1, ..Policy::default() };
    let (mut bench, node) = Bench::with(policy, vec![job(1, "a"), job(2, "local")]);
    let other = bench.join(false);
    assert_eq!(bench.take(node, 9).len(), 2);
    doubt(&mut bench, node);
    pass(&mut bench, 1000, &[other]);
    assert_eq!(bench.ledger.standing().taken, 1, "the polite host is not asked by two");
    // The death of a full house counts: page 2 is alone from now on.
    assert!(bench.take(other, 9)[0].alone);
    doubt(&mut bench, other);
    pass(&mut bench, 1000, &[]);
    assert_eq!(bench.ledger.standing().taken, 2);
    pass(&mut bench, 5000, &[]);
    assert_eq!(bench.ledger.standing().taken, 0);
}
