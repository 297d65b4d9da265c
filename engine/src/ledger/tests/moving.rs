//! Redirects to another host: the job changes its lane and nothing else.

use super::*;

fn moved(host: &str, redirects: u32) -> Outcome {
    let tally = Tally { statuses: [(302, 1)].into(), ..Tally::default() };
    let url = format!("http://{host}/there");
    Outcome::Moved { url, lane: host.to_owned(), polite: true, redirects, tally }
}

fn two_slots() -> Policy {
    Policy { slots: 2, ..Policy::default() }
}

#[test]
fn a_redirected_job_waits_for_its_new_host() {
    let (mut bench, session) = Bench::with(two_slots(), vec![job(1, "a"), job(2, "b")]);
    let grants = bench.take(session, 9);
    assert_eq!(numbers(&grants), ["1", "2"]);
    assert_eq!((&grants[0].at, grants[0].redirects), (&None, 0));
    assert_eq!(bench.finish(session, &grants[0], moved("b", 3)), Reply::Ok);
    assert_eq!(bench.wait_ms(session), Some(1000), "host b has just got a request");
    bench.ms += 1000;
    let again = bench.take(session, 9).remove(0);
    assert_eq!((again.at.as_deref(), again.redirects), (Some("http://b/there"), 3));
    assert_eq!((again.id, again.attempts), (grants[0].id, 0));
    let (new, old) = (&again.job, &grants[0].job);
    assert_eq!((new.key, &new.name, &new.url), (old.key, &old.name, &old.url));
    let run = bench.ledger.core().run.as_ref().unwrap();
    assert_eq!((run.tally.retries, run.tally.statuses[&302]), (0, 1));
}

#[test]
fn the_grant_of_a_redirected_job_has_ended() {
    let (mut bench, session) = Bench::with(unhurried(), vec![job(1, "a")]);
    let old = bench.take(session, 1).remove(0);
    let (job, token) = (old.id, old.token);
    let outcome = moved("b", 1);
    assert_eq!(
        bench.twice(Command::Finish { session, job, token, since_start_ms: None, outcome }),
        Reply::Ok
    );
    assert_eq!(bench.finish(session, &old, done(vec![block(0)], vec![])), Reply::Stale);
    let new = bench.take(session, 1).remove(0);
    assert_eq!(bench.finish(session, &old, done(vec![block(0)], vec![])), Reply::Stale);
    assert_eq!(bench.finish(session, &new, done(vec![block(0)], vec![])), Reply::Ok);
    assert_eq!((bench.ledger.standing().rows, bench.ledger.standing().over), (1, true));
}

#[test]
fn a_late_redirect_counts_while_no_session_has_a_newer_token() {
    let (mut bench, late) = Bench::with(unhurried(), vec![job(1, "a")]);
    let grant = bench.take(late, 1).remove(0);
    bench.expire(&[]);
    assert_eq!(bench.finish(late, &grant, moved("b", 1)), Reply::Ok);
    let session = bench.join(false);
    assert_eq!(bench.take(session, 1)[0].at.as_deref(), Some("http://b/there"));
}

#[test]
fn only_the_host_that_asked_for_a_pause_is_paused() {
    let jobs = vec![job(1, "a"), job(2, "a"), job(3, "b")];
    let (mut bench, session) = Bench::with(unhurried(), jobs);
    let grants = bench.take(session, 1);
    bench.finish(session, &grants[0], moved("b", 1));
    let grants = bench.take(session, 2);
    assert_eq!(numbers(&grants), ["1", "2"], "each host in its turn");
    bench.finish(session, &grants[0], again(5000, Some(5000)));
    bench.finish(session, &grants[1], moved("a", 1));
    assert_eq!(numbers(&bench.take(session, 9)), ["2"], "host a is not paused");
    bench.ms += 5000;
    let grants = bench.take(session, 9);
    assert_eq!(numbers(&grants), ["3", "1"]);
    assert_eq!((grants[1].at.as_deref(), grants[1].attempts), (Some("http://b/there"), 1));
}

#[test]
fn an_isolated_job_keeps_to_the_delay_of_its_new_host() {
    let policy = Policy { deaths_before_isolation: 1, ..Policy::default() };
    let (mut bench, session) = Bench::with(policy, vec![job(1, "a"), job(2, "b")]);
    let grant = bench.take(session, 1).remove(0);
    bench.expire(&[]);
    let session = bench.join(false);
    let other = bench.take(session, 9).remove(0);
    bench.finish(session, &other, done(vec![], vec![]));
    bench.ms += 2000;
    let lone = bench.take(session, 9).remove(0);
    assert_eq!(lone.id, grant.id);
    bench.finish(session, &lone, moved("b", 1));
    let moved = bench.take(session, 9).remove(0);
    let taken = bench.ledger.core().taken[&moved.id];
    let lane = bench.ledger.lanes().find(|(id, _)| *id == taken.lane).unwrap().1;
    assert_eq!((taken.alone, lane.name.as_str()), (true, "b"));
}

#[test]
fn a_failed_job_is_retried_from_its_own_address() {
    let (mut bench, session) = Bench::with(unhurried(), vec![job(1, "a")]);
    for host in ["b", "c"] {
        let grant = bench.take(session, 1).remove(0);
        bench.finish(session, &grant, moved(host, 1));
    }
    let grant = bench.take(session, 1).remove(0);
    let outcome = Outcome::Failed { reason: "gone".to_owned(), tally: Tally::default() };
    bench.finish(session, &grant, outcome);
    bench.apply(Command::Close { session });
    let session = bench.restart();
    bench.open(session, plan(1, unhurried()), OpenMode::Retry);
    let grant = bench.take(session, 1).remove(0);
    assert_eq!((grant.at, grant.redirects, grant.job), (None, 0, job(1, "a")));
}
