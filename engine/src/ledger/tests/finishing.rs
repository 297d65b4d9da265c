//! Finishing: a job ends atomically, once, with its latest token.

use super::*;

#[test]
fn rows_links_and_the_end_of_a_job_are_committed_together() {
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    let grants = bench.take(session, 1);
    let outcome = done(vec![block(0), block(1)], vec![job(2, "local"), job(2, "local")]);
    assert_eq!(bench.finish(session, &grants[0], outcome), Reply::Ok);
    let standing = bench.ledger.standing();
    assert_eq!((standing.done, standing.pending, standing.rows), (1, 1, 2));
    let run = bench.ledger.core().run.as_ref().unwrap();
    assert_eq!(run.tally.skipped["already known"], 1);
}

#[test]
fn a_resent_finish_changes_nothing() {
    for outcome in [
        done(vec![block(0)], vec![job(2, "local")]),
        again(10, Some(20)),
        Outcome::Failed { reason: "gone".to_owned(), tally: Tally::default() },
    ] {
        let (mut bench, session) = Bench::with(unhurried(), locals(1));
        let grant = bench.take(session, 1).remove(0);
        let (job, token) = (grant.id, grant.token);
        assert_eq!(
            bench.twice(Command::Finish { session, job, token, since_start_ms: None, outcome }),
            Reply::Ok
        );
    }
}

#[test]
fn a_page_that_links_to_itself_is_processed_once() {
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    let grants = bench.take(session, 1);
    bench.finish(session, &grants[0], done(vec![block(0)], locals(1)));
    assert!(bench.ledger.standing().over);
}

#[test]
fn a_late_result_counts_while_nobody_has_a_newer_token() {
    let (mut bench, late) = Bench::with(unhurried(), locals(1));
    let grants = bench.take(late, 1);
    bench.expire(&[]);
    assert_eq!(bench.finish(late, &grants[0], done(vec![block(0)], vec![])), Reply::Ok);
    assert!(bench.ledger.standing().over);
    assert_eq!(bench.ledger.standing().rows, 1);
}

#[test]
fn a_late_result_is_refused_once_another_has_the_job() {
    let (mut bench, late) = Bench::with(unhurried(), locals(1));
    let old = bench.take(late, 1).remove(0);
    let other = bench.join(false);
    bench.expire(&[other]);
    let new = bench.take(other, 1).remove(0);
    assert!(new.token > old.token);
    assert_eq!(bench.finish(late, &old, done(vec![block(0)], locals(5))), Reply::Stale);
    assert_eq!(bench.finish(other, &new, done(vec![block(0)], vec![])), Reply::Ok);
    assert_eq!(bench.finish(late, &old, done(vec![block(0)], locals(5))), Reply::Stale);
    assert_eq!(bench.ledger.standing().rows, 1);
}

#[test]
fn a_late_failure_counts_too() {
    let (mut bench, late) = Bench::with(unhurried(), locals(1));
    let grants = bench.take(late, 1);
    let other = bench.join(false);
    bench.expire(&[other]);
    assert_eq!(bench.finish(late, &grants[0], again(700, None)), Reply::Ok);
    assert_eq!(bench.finish(late, &grants[0], again(700, None)), Reply::Stale);
    assert_eq!(bench.wait_ms(other), Some(700));
}

#[test]
fn a_job_that_was_never_granted_cannot_be_finished() {
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    let (job, token) = (JobId(1), Token(0));
    let outcome = done(vec![block(0)], vec![]);
    let forged = Command::Finish { session, job, token, since_start_ms: None, outcome };
    assert_eq!(bench.apply(forged.clone()), Reply::Stale);
    let grants = bench.take(session, 1);
    bench.finish(session, &grants[0], again(0, None));
    assert_eq!(bench.apply(forged), Reply::Stale);
}

#[test]
fn returned_jobs_are_pending_again_at_once() {
    let (mut bench, session) = Bench::with(unhurried(), locals(3));
    let grants = bench.take(session, 3);
    let jobs = vec![(grants[0].id, grants[0].token), (grants[1].id, Token(999))];
    bench.twice(Command::Return { session, jobs });
    let next = bench.take(session, 9);
    assert_eq!((numbers(&next), next[0].attempts), (vec!["1"], 0));
}

#[test]
fn a_session_cannot_return_jobs_of_another() {
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    let grants = bench.take(session, 1);
    let other = bench.join(false);
    let jobs = vec![(grants[0].id, grants[0].token)];
    bench.apply(Command::Return { session: other, jobs });
    assert_eq!(bench.take(other, 1), []);
}

#[test]
fn a_failed_task_is_retried_without_the_rest_of_its_job() {
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    let grants = bench.take(session, 1);
    let harvest = Harvest {
        blocks: vec![block(0)],
        children: vec![job(2, "local")],
        failures: vec![("price".to_owned(), "no such block".to_owned())],
        tally: Tally::default(),
    };
    bench.finish(session, &grants[0], Outcome::Done(Box::new(harvest)));
    let standing = bench.ledger.standing();
    assert_eq!((standing.rows, standing.pending, standing.failed), (1, 1, 1));
    let child = bench.take(session, 1);
    bench.finish(session, &child[0], done(vec![], vec![]));
    let failed = bench.ledger.tables_mut().failed(None, 9).unwrap();
    assert_eq!(failed[0].1.reasons, ["task `price`: no such block"]);
    bench.apply(Command::Close { session });

    let session = bench.restart();
    bench.open(session, plan(1, unhurried()), OpenMode::Retry);
    let grants = bench.take(session, 9);
    assert_eq!(grants[0].tasks, ["price"]);
    bench.finish(session, &grants[0], done(vec![block(1)], vec![]));
    let standing = bench.ledger.standing();
    assert_eq!((standing.rows, standing.done, standing.failed), (2, 2, 0));
}
