//! A node that seems to be dead: other nodes soon get its jobs where two may work on the same one.

use super::*;

fn doubt(bench: &mut Bench, session: SessionId) -> Reply {
    bench.twice(Command::Doubt { session })
}

/// Advances the time while these sessions are renewed.
fn pass(bench: &mut Bench, ms: u64, living: &[SessionId]) {
    bench.ms += ms;
    bench.beat(living);
}

#[test]
fn jobs_of_a_shared_lane_are_queued_again_a_second_after_a_doubt() {
    let (mut bench, gone) = Bench::with(unhurried(), locals(2));
    let other = bench.join(false);
    let grants = bench.take(gone, 9);
    assert_eq!(doubt(&mut bench, gone), Reply::Ok);
    pass(&mut bench, 999, &[other]);
    assert_eq!(bench.take(other, 9), []);
    pass(&mut bench, 1, &[other]);
    assert!(bench.ledger.core().sessions.contains_key(&gone), "a doubt does not end the session");
    let again = bench.take(other, 1);
    assert_eq!(numbers(&again), ["1"]);
    // The first node may finish a job that no other node has; it may not finish the rest.
    assert_eq!(bench.finish(gone, &grants[0], done(vec![block(0)], vec![])), Reply::Stale);
    assert_eq!(bench.finish(gone, &grants[1], done(vec![block(0)], vec![])), Reply::Ok);
    assert_eq!(bench.finish(other, &again[0], done(vec![block(0)], vec![])), Reply::Ok);
    assert!(bench.ledger.standing().over);
}

#[test]
fn a_renewal_ends_the_doubt() {
    let (mut bench, node) = Bench::with(unhurried(), locals(2));
    bench.take(node, 9);
    doubt(&mut bench, node);
    pass(&mut bench, 900, &[node]);
    pass(&mut bench, 900, &[]);
    assert_eq!(bench.ledger.standing().taken, 2);
    assert_eq!(bench.apply(Command::Doubt { session: SessionId(99) }), Reply::Stale);
}

#[test]
fn exclusive_lanes_and_isolated_jobs_wait_until_the_session_ends() {
    let policy = Policy { deaths_before_isolation: 1, ..Policy::default() };
    let (mut bench, node) = Bench::with(policy, vec![job(1, "a"), job(2, "local")]);
    let other = bench.join(false);
    assert_eq!(bench.take(node, 9).len(), 2);
    doubt(&mut bench, node);
    pass(&mut bench, 1000, &[other]);
    assert_eq!(bench.ledger.standing().taken, 1, "the job of the polite host stays in flight");
    // The death counts against each job of the session: page 2 is isolated from now on.
    assert!(bench.take(other, 9)[0].alone);
    doubt(&mut bench, other);
    pass(&mut bench, 1000, &[]);
    assert_eq!(bench.ledger.standing().taken, 2);
    pass(&mut bench, 5000, &[]);
    assert_eq!(bench.ledger.standing().taken, 0);
}
