//! The policies for a failed job: none, quarantine for its host, or the end of the run.

use super::*;

fn failed() -> Outcome {
    Outcome::Failed { reason: "status 404".to_owned(), tally: Tally::default() }
}

fn policy(on_error: OnError) -> Policy {
    Policy { on_error, ..unhurried() }
}

fn of_hosts(a: u64, b: u64) -> Vec<NewJob> {
    let of_a = (1..=a).map(|number| job(number, "a"));
    of_a.chain((a + 1..=a + b).map(|number| job(number, "b"))).collect()
}

impl Bench {
    fn reasons(&mut self) -> Vec<String> {
        let failed = self.ledger.tables_mut().failed(None, 10_000).unwrap();
        failed.into_iter().flat_map(|(_, failed)| failed.reasons).collect()
    }
}

#[test]
fn by_default_a_failed_job_has_no_consequence() {
    let (mut bench, session) = Bench::with(policy(OnError::Fail), of_hosts(2, 1));
    let grant = bench.take(session, 1).remove(0);
    bench.finish(session, &grant, failed());
    assert_eq!(bench.take(session, 9).len(), 2);
    assert!(!bench.ledger.standing().cancelled);
}

#[test]
fn quarantine_fails_the_jobs_of_one_host_only() {
    let (mut bench, session) = Bench::with(policy(OnError::Quarantine), of_hosts(3, 2));
    let grants = bench.take(session, 3);
    assert_eq!(numbers(&grants), ["1", "4", "2"]);
    assert_eq!(bench.finish(session, &grants[0], failed()), Reply::Ok);
    // Jobs in flight finish normally.
    bench.finish(session, &grants[2], done(vec![block(0)], vec![job(9, "a"), job(10, "b")]));
    assert_eq!(numbers(&bench.take(session, 9)), ["5", "10"]);
    let standing = bench.ledger.standing();
    assert_eq!((standing.failed, standing.pending, standing.rows), (3, 0, 1));
    let why = "`a` is in quarantine since `page 1` (g) failed: status 404";
    assert_eq!(bench.reasons(), ["status 404", why, why]);
    let skipped = &bench.ledger.core().run.as_ref().unwrap().tally.skipped;
    assert_eq!(skipped["of hosts in quarantine"], 2);
}

#[test]
fn a_quarantined_host_is_swept_in_portions_while_other_jobs_are_granted() {
    let (mut bench, session) = Bench::with(policy(OnError::Quarantine), of_hosts(1000, 0));
    let grant = bench.take(session, 1).remove(0);
    bench.finish(session, &grant, failed());
    let mut takes = 0;
    while !bench.ledger.standing().over {
        let before = bench.ledger.standing().failed;
        let number = bench.next_number(session);
        let reply = bench.apply(Command::Take { session, number, limit: 1, ahead: u32::MAX });
        assert!(bench.ledger.standing().failed - before <= 100);
        let over = bench.ledger.standing().over;
        let wait_ms = (!over).then_some(0);
        assert_eq!(reply, Reply::Granted { jobs: vec![], wait_ms });
        takes += 1;
    }
    assert_eq!((takes, bench.ledger.standing().failed), (10, 1000));
}

#[test]
fn quarantine_begins_after_the_last_attempt_or_a_failed_task() {
    let policy = Policy { attempts_max: 2, ..policy(OnError::Quarantine) };
    let (mut bench, session) = Bench::with(policy, of_hosts(3, 3));
    let grants = bench.take(session, 2);
    bench.finish(session, &grants[0], again(0, None));
    let failures = vec![("price".to_owned(), "no such block".to_owned())];
    let partial = Harvest { failures, ..Harvest::default() };
    bench.finish(session, &grants[1], Outcome::Done(Box::new(partial)));
    let grants = bench.take(session, 9);
    assert_eq!(numbers(&grants), ["1", "2", "3"], "host a is served, host b is quarantined");
    bench.finish(session, &grants[0], again(0, None));
    let reasons = bench.reasons();
    assert_eq!(reasons[0], "status 503 (tried 2 times)");
    assert_eq!(reasons[1], "task `price`: no such block");
    assert!(reasons[2].ends_with("since `page 4` (g) failed: task `price`: no such block"));
}

#[test]
fn later_jobs_of_a_quarantined_host_fail_too() {
    let policy = Policy { deaths_before_isolation: 1, ..policy(OnError::Quarantine) };
    let jobs = vec![job(1, "a"), job(2, "a"), job(3, "a"), job(4, "b"), job(5, "local")];
    let (mut bench, dead) = Bench::with(policy, jobs);
    assert_eq!(numbers(&bench.take(dead, 1)), ["1"]);
    let session = bench.join(false);
    bench.expire(&[session]);
    let grants = bench.take(session, 3);
    assert_eq!(numbers(&grants), ["4", "5", "2"]);
    bench.finish(session, &grants[2], failed());
    bench.finish(
        session,
        &grants[0],
        Outcome::Moved {
            url: "http://a/".to_owned(),
            lane: "a".to_owned(),
            polite: true,
            redirects: 1,
            tally: Tally::default(),
        },
    );
    assert_eq!(bench.take(session, 9), []);
    bench.finish(session, &grants[1], done(vec![], vec![]));
    // Jobs in isolation, after a redirect and in the queue have all failed.
    assert!(bench.ledger.standing().over);
    assert_eq!(bench.ledger.standing().failed, 4);
}

#[test]
fn a_quarantine_survives_a_restart_and_ends_with_its_policy_or_a_retry() {
    for on_error in [OnError::Quarantine, OnError::Fail] {
        let (mut bench, session) = Bench::with(policy(OnError::Quarantine), of_hosts(3, 0));
        let grant = bench.take(session, 1).remove(0);
        bench.finish(session, &grant, failed());
        let session = bench.restart();
        bench.open(session, plan(1, policy(on_error)), OpenMode::Continue);
        let kept = on_error == OnError::Quarantine;
        assert_eq!(bench.take(session, 9).len(), if kept { 0 } else { 2 });
        if kept {
            assert_eq!(bench.apply(Command::Close { session }), Reply::Ok);
            let session = bench.restart();
            bench.open(session, plan(1, policy(on_error)), OpenMode::Retry);
            assert_eq!(bench.take(session, 9).len(), 3);
        }
    }
}

#[test]
fn halt_ends_the_grants_and_the_next_process_continues() {
    let (mut bench, session) = Bench::with(policy(OnError::Halt), of_hosts(3, 2));
    let grants = bench.take(session, 3);
    bench.finish(session, &grants[0], failed());
    assert!(bench.ledger.standing().cancelled);
    assert_eq!(bench.take(session, 9), []);
    bench.finish(session, &grants[1], failed());
    bench.finish(session, &grants[2], done(vec![block(0)], vec![]));
    let run = bench.ledger.core().run.as_ref().unwrap();
    assert_eq!(run.halted.as_deref(), Some("`page 1` (g) failed: status 404"), "the first");
    assert_eq!((run.done, run.failed, run.pending), (1, 2, 2));

    bench.apply(Command::Leave { session });
    let session = bench.restart();
    bench.open(session, plan(1, policy(OnError::Halt)), OpenMode::Continue);
    assert_eq!(bench.ledger.core().run.as_ref().unwrap().halted, None);
    assert_eq!(bench.take(session, 9).len(), 2);
}
