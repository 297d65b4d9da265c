//! Opening, continuing, refusing and retrying runs; seeding; acknowledging and closing.

use super::*;

fn open_command(session: SessionId, epoch: Epoch, identity: u8, mode: OpenMode) -> Command {
    let publish = Publication { defs: b"d".to_vec(), config: b"c".to_vec() };
    Command::OpenRun { session, epoch, plan: plan(identity, unhurried()), publish, mode }
}

/// Opens without releasing, in a new process.
fn reopen(bench: &mut Bench, identity: u8, mode: OpenMode) -> (SessionId, Reply) {
    let session = bench.restart();
    let epoch = bench.cross(session, "setup");
    let reply = bench.apply(open_command(session, epoch, identity, mode));
    (session, reply)
}

fn at(seq: u64) -> Command {
    Command::Ack { appender: 0, position: Position { seq, bytes: seq * 6, mark: vec![seq as u8] } }
}

/// A closed run with one job done and one failed.
fn closed() -> (Bench, SessionId) {
    let (mut bench, session) = Bench::with(unhurried(), locals(2));
    let grants = bench.take(session, 2);
    bench.finish(session, &grants[0], done(vec![block(0)], vec![]));
    let reason = "status 404".to_owned();
    bench.finish(session, &grants[1], Outcome::Failed { reason, tally: Tally::default() });
    bench.apply(at(1));
    assert_eq!(bench.twice(Command::Close { session }), Reply::Ok);
    (bench, session)
}

#[test]
fn only_the_crossing_session_opens_and_seeds() {
    let mut bench = Bench::new();
    let session = bench.join(false);
    let open = open_command(session, Epoch(1), 1, OpenMode::Continue);
    assert_eq!(bench.apply(open), Reply::Stale);
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    let group = "g".to_owned();
    let seed = Command::Seed { session, epoch: Epoch(2), group, jobs: locals(3), last: true };
    assert_eq!(bench.apply(seed), Reply::Stale);
    assert_eq!(bench.ledger.standing().pending, 1);
}

#[test]
fn an_unfinished_run_is_continued_or_refused_or_discarded() {
    let (mut bench, _) = Bench::with(unhurried(), locals(3));
    let (_, reply) = reopen(&mut bench, 1, OpenMode::Continue);
    assert_eq!(reply, Reply::Opened { continued: true });
    let (_, reply) = reopen(&mut bench, 2, OpenMode::Continue);
    assert_eq!(reply, Reply::Unfinished { defs: [1; 32], config: [99; 32] });
    let (_, reply) = reopen(&mut bench, 1, OpenMode::Retry);
    assert_eq!(reply, Reply::NotEnded);
    assert_eq!(bench.ledger.standing().pending, 3);
    let (_, reply) = reopen(&mut bench, 2, OpenMode::Fresh);
    assert_eq!(reply, Reply::Opened { continued: false });
    let fresh = Standing { voters: 1, crossings: 1, ..Standing::default() };
    assert_eq!(bench.ledger.standing(), fresh);
    assert_eq!(bench.ledger.tables().blobs.len(), 2);
}

#[test]
fn opening_twice_changes_nothing() {
    for mode in [OpenMode::Continue, OpenMode::Fresh] {
        let mut bench = Bench::new();
        let session = bench.join(false);
        let epoch = bench.cross(session, "setup");
        bench.twice(open_command(session, epoch, 1, mode));
    }
}

#[test]
fn late_results_of_a_discarded_run_change_nothing() {
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    let grants = bench.take(session, 1);
    let (_, reply) = reopen(&mut bench, 1, OpenMode::Fresh);
    assert_eq!(reply, Reply::Opened { continued: false });
    assert_eq!(bench.finish(session, &grants[0], done(vec![block(0)], vec![])), Reply::Stale);
}

#[test]
fn politeness_may_change_from_start_to_start() {
    let slow = Policy { delay_ms: 60_000, ..Policy::default() };
    let (mut bench, session) = Bench::with(slow, vec![job(1, "a"), job(2, "a")]);
    let first = bench.take(session, 2);
    bench.finish(session, &first[0], done(vec![], vec![]));
    bench.apply(Command::Leave { session });
    bench.leadership += 1;
    let session = bench.join(true);
    let epoch = bench.cross(session, "setup");
    let open = open_command(session, epoch, 1, OpenMode::Continue);
    assert_eq!(bench.apply(open), Reply::Opened { continued: true });
    assert_eq!(bench.ledger.policy().delay_ms, 0);
}

#[test]
fn seeding_is_idempotent_and_a_closed_group_stays_closed() {
    let mut bench = Bench::new();
    let session = bench.join(false);
    bench.open(session, plan(1, unhurried()), OpenMode::Continue);
    let epoch = bench.cross(session, "seed");
    let seed = |jobs, last, group: &str| {
        let group = group.to_owned();
        Command::Seed { session, epoch, group, jobs, last }
    };
    bench.twice(seed(locals(2), false, "g"));
    assert!(!bench.ledger.standing().over);
    bench.twice(seed(locals(4), true, "g"));
    assert_eq!(bench.ledger.standing().pending, 4);
    assert_eq!(bench.twice(seed(locals(9), true, "g")), Reply::Ok);
    assert_eq!(bench.apply(seed(locals(9), true, "other")), Reply::Stale);
    assert_eq!(bench.ledger.standing().pending, 4);
}

#[test]
fn a_run_is_over_only_after_its_last_job_and_stays_over() {
    let mut bench = Bench::new();
    let session = bench.join(false);
    bench.open(session, plan(1, unhurried()), OpenMode::Continue);
    let epoch = bench.cross(session, "seed");
    let group = || "g".to_owned();
    bench.apply(Command::Seed { session, epoch, group: group(), jobs: locals(1), last: false });
    let grants = bench.take(session, 1);
    bench.finish(session, &grants[0], done(vec![], vec![]));
    assert!(!bench.ledger.standing().over, "the group may still bring more");
    bench.apply(Command::Seed { session, epoch, group: group(), jobs: locals(2), last: true });
    let grants = bench.take(session, 1);
    assert!(!bench.ledger.standing().over);
    bench.finish(session, &grants[0], done(vec![], vec![]));
    assert!(bench.ledger.standing().over);
    bench.apply(Command::Seed { session, epoch, group: group(), jobs: locals(5), last: true });
    bench.finish(session, &grants[0], done(vec![block(0)], locals(7)));
    bench.apply(Command::Return { session, jobs: vec![(grants[0].id, grants[0].token)] });
    bench.expire(&[]);
    assert!(bench.ledger.standing().over);
}

#[test]
fn positions_only_grow_and_never_pass_the_output() {
    let (mut bench, _) = closed();
    assert_eq!(bench.twice(at(1)), Reply::Ok);
    assert_eq!(bench.apply(at(0)), Reply::Stale);
    assert_eq!(bench.apply(at(2)), Reply::Stale);
    let other = Command::Ack { appender: 1, position: Position::default() };
    assert_eq!(bench.apply(other), Reply::Stale);
}

#[test]
fn a_run_is_closed_only_when_it_is_over() {
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    assert_eq!(bench.apply(Command::Close { session }), Reply::Stale);
    let (mut bench, _) = closed();
    let (told, reply) = reopen(&mut bench, 1, OpenMode::Continue);
    assert_eq!(reply, Reply::Opened { continued: true }, "its end is not reported yet");
    bench.apply(Command::Leave { session: told });
    let (_, reply) = reopen(&mut bench, 1, OpenMode::Continue);
    assert_eq!(reply, Reply::Opened { continued: false }, "the next run is a new one");
    assert_eq!(bench.ledger.tables().output, []);
}

#[test]
fn retry_queues_the_failed_jobs_and_nothing_else() {
    let (mut bench, _) = closed();
    let session = bench.restart();
    let epoch = bench.cross(session, "setup");
    let retry = open_command(session, epoch, 1, OpenMode::Retry);
    assert_eq!(bench.twice(retry), Reply::Opened { continued: true });
    let grants = bench.take(session, 9);
    assert_eq!(numbers(&grants), ["2"]);
    assert_eq!(grants[0].attempts, 0);
    bench.finish(session, &grants[0], done(vec![block(0)], vec![job(3, "b")]));
    let grants = bench.take(session, 9);
    bench.finish(session, &grants[0], done(vec![], vec![job(1, "local")]));
    let standing = bench.ledger.standing();
    assert!(standing.over);
    assert_eq!((standing.done, standing.failed, standing.output_seq), (3, 0, 2));
}

#[test]
fn an_interrupted_retry_is_continued_by_run_and_by_retry() {
    let (mut bench, _) = closed();
    reopen(&mut bench, 1, OpenMode::Retry);
    for mode in [OpenMode::Continue, OpenMode::Retry] {
        let (session, reply) = reopen(&mut bench, 1, mode);
        assert_eq!(reply, Reply::Opened { continued: true });
        assert_eq!(numbers(&bench.take(session, 9)), ["2"]);
    }
}

#[test]
fn retry_needs_failed_jobs_and_accepts_changed_definitions() {
    let mut bench = Bench::new();
    let (_, reply) = reopen(&mut bench, 1, OpenMode::Retry);
    assert_eq!(reply, Reply::NothingToRetry);
    let (mut bench, _) = closed();
    let (session, reply) = reopen(&mut bench, 2, OpenMode::Retry);
    assert_eq!(reply, Reply::Opened { continued: true });
    assert_eq!(numbers(&bench.take(session, 9)), ["2"]);
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    let grants = bench.take(session, 1);
    bench.finish(session, &grants[0], done(vec![], vec![]));
    bench.apply(Command::Close { session });
    let (_, reply) = reopen(&mut bench, 1, OpenMode::Retry);
    assert_eq!(reply, Reply::NothingToRetry);
}

#[test]
fn a_failed_job_of_isolation_is_retried_on_its_own_lane() {
    let policy = Policy { deaths_before_isolation: 1, poison_max: 1, ..unhurried() };
    let (mut bench, mut session) = Bench::with(policy, vec![job(1, "a")]);
    for _ in 0..2 {
        let grants = bench.take(session, 1);
        bench.begin(session, &grants[0]);
        session = bench.restart();
    }
    assert_eq!(bench.apply(Command::Close { session }), Reply::Ok);
    let (session, reply) = reopen(&mut bench, 1, OpenMode::Retry);
    assert_eq!(reply, Reply::Opened { continued: true });
    let grants = bench.take(session, 1);
    assert_eq!(numbers(&grants), ["1"]);
    assert!(!bench.ledger.core().taken[&grants[0].id].alone);
}

/// A run over one job on three seats, all connected.
fn of_three() -> (Bench, [SessionId; 3]) {
    let mut bench = Bench::new();
    let sessions = [(); 3].map(|()| bench.join(false));
    let plan = RunPlan { seats: vec![Seat(1), Seat(2), Seat(3)], ..plan(1, unhurried()) };
    bench.open(sessions[0], plan, OpenMode::Continue);
    bench.seed(sessions[0], locals(1));
    let grants = bench.take(sessions[0], 1);
    bench.finish(sessions[0], &grants[0], done(vec![], vec![]));
    (bench, sessions)
}

#[test]
fn a_run_is_closed_when_every_seat_has_written_it() {
    let (mut bench, sessions) = of_three();
    for session in &sessions[..2] {
        assert_eq!(bench.twice(Command::Close { session: *session }), Reply::Ok);
        assert!(!bench.ledger.standing().closed);
    }
    bench.apply(Command::Close { session: sessions[2] });
    assert!(bench.ledger.standing().closed);
    let owed = |bench: &Bench, seat| {
        bench.ledger.core().run.as_ref().unwrap().lacks_end_report(Seat(seat))
    };
    assert!(owed(&bench, 1));
    bench.apply(Command::Leave { session: sessions[0] });
    assert!(!owed(&bench, 1) && owed(&bench, 2));
    // A session that joins after the end begins another run.
    let again = bench.join(false);
    bench.cross(again, "setup");
}

#[test]
fn the_end_waits_for_a_disconnected_seat_for_a_limited_time() {
    let (mut bench, sessions) = of_three();
    let there = &sessions[..2];
    bench.beat(there);
    for session in there {
        bench.apply(Command::Close { session: *session });
    }
    for _ in 0..19 {
        bench.ms += 1000;
        bench.beat(there);
        assert!(!bench.ledger.standing().closed);
    }
    bench.ms += 1000;
    bench.beat(there);
    assert!(bench.ledger.standing().closed);
}

#[test]
fn a_node_that_leaves_after_writing_all_output_has_reported_the_end() {
    let (mut bench, sessions) = of_three();
    bench.apply(Command::Close { session: sessions[0] });
    bench.apply(Command::Leave { session: sessions[0] });
    for session in &sessions[1..] {
        bench.apply(Command::Close { session: *session });
    }
    let run = bench.ledger.core().run.as_ref().unwrap();
    assert!(run.closed && !run.lacks_end_report(Seat(1)) && run.lacks_end_report(Seat(2)));
}

#[test]
fn a_worker_that_joins_after_the_end_waits_for_a_node_with_a_vote() {
    let (mut bench, sessions) = of_three();
    let arrival = |nonce, seat, votes| {
        Command::Join(JoinRequest { nonce, life: nonce, seat: Seat(seat), votes, alone: false })
    };
    for session in sessions {
        bench.apply(Command::Close { session });
    }
    for session in sessions {
        bench.apply(Command::Leave { session });
    }
    assert_eq!(bench.twice(arrival(70, 9, false)), Reply::Wait);
    assert!(bench.ledger.core().sessions.is_empty(), "no session waits for the worker");
    assert!(matches!(bench.apply(arrival(71, 1, true)), Reply::Joined(_)));
    assert!(matches!(bench.apply(arrival(70, 9, false)), Reply::Joined(_)));
}

#[test]
fn the_end_does_not_wait_for_a_fenced_seat() {
    let (mut bench, sessions) = of_three();
    bench.apply(Command::Close { session: sessions[0] });
    bench.apply(Command::Fence { seat: Seat(3) });
    bench.beat(&sessions[..2]);
    assert!(!bench.ledger.standing().closed, "another seat has not written its files");
    bench.apply(Command::Close { session: sessions[1] });
    assert!(bench.ledger.standing().closed);
    assert!(
        bench.ledger.core().run.as_ref().unwrap().lacks_end_report(Seat(3)),
        "its end is not reported"
    );
}

#[test]
fn the_next_run_waits_for_a_seat_that_must_still_write_files_of_the_last_one() {
    // The third node stays disconnected, joins for the next run, or completes its files.
    for (comes, completes) in [(false, false), (true, false), (true, true)] {
        let (mut bench, sessions) = of_three();
        bench.apply(Command::Leave { session: sessions[2] });
        for session in &sessions[..2] {
            bench.apply(Command::Close { session: *session });
        }
        bench.ms += Policy::default().end_wait_ms;
        bench.beat(&sessions[..2]);
        for session in &sessions[..2] {
            bench.apply(Command::Leave { session: *session });
        }
        assert!(bench.ledger.core().run.as_ref().unwrap().lacks_end_report(Seat(3)));
        let mut join = |life, seat| {
            let arrival =
                JoinRequest { nonce: life, life, seat: Seat(seat), votes: true, alone: false };
            let Reply::Joined(session) = bench.apply(Command::Join(arrival)) else { panic!() };
            session
        };
        let one = join(81, 1);
        let third = comes.then(|| join(83, 3));
        let epoch = bench.cross(one, "setup");
        let opens = |bench: &mut Bench| {
            let (plan, publish) = (plan(1, unhurried()), Publication::default());
            let mode = OpenMode::Continue;
            bench.apply(Command::OpenRun { session: one, epoch, plan, publish, mode })
        };
        if let Some(third) = third.filter(|_| completes) {
            bench.cross(third, &completion(Seat(3)));
        }
        let patience = if comes { 2000 } else { 3000 };
        bench.ms += patience - 1;
        assert_eq!(opens(&mut bench), Reply::Wait, "{comes} {completes}");
        bench.ms += 1;
        if let Some(third) = third.filter(|_| completes) {
            assert_eq!(opens(&mut bench), Reply::Wait);
            bench.apply(Command::Close { session: third });
        }
        assert_eq!(opens(&mut bench), Reply::Opened { continued: false }, "{comes} {completes}");
    }
}

#[test]
fn a_cancelled_run_grants_nothing_until_it_is_opened_again() {
    let (mut bench, session) = Bench::with(unhurried(), locals(2));
    bench.twice(Command::Cancel);
    assert!(bench.ledger.standing().cancelled);
    assert_eq!(bench.take(session, 1), []);
    let (session, reply) = reopen(&mut bench, 1, OpenMode::Continue);
    assert_eq!(reply, Reply::Opened { continued: true });
    assert!(!bench.ledger.standing().cancelled);
    assert_eq!(bench.take(session, 2).len(), 2);
}

#[test]
fn a_node_reports_the_end_of_the_last_run_before_it_begins_another() {
    for (mode, identity, again) in [
        (OpenMode::Continue, 1, false),
        // Other definitions or `Fresh` begin another run.
        (OpenMode::Continue, 2, true),
        (OpenMode::Fresh, 1, true),
    ] {
        let mut bench = Bench::new();
        let (one, two) = (bench.join(false), bench.join(false));
        let seats = vec![Seat(1), Seat(2)];
        bench.open(one, RunPlan { seats, ..plan(1, unhurried()) }, OpenMode::Continue);
        bench.seed(one, vec![]);
        bench.apply(Command::Close { session: two });
        // The node dies after it has written all output, and joins again after the run was closed.
        let arrival = JoinRequest { nonce: 9, life: 9, seat: Seat(2), votes: true, alone: false };
        let Reply::Joined(two) = bench.apply(Command::Join(arrival)) else { panic!() };
        bench.apply(Command::Close { session: one });
        assert!(bench.ledger.standing().closed);
        let number = bench.ledger.core().run.as_ref().unwrap().number;
        let reply = bench.open(two, plan(identity, unhurried()), mode);
        assert_eq!(reply, Reply::Opened { continued: !again });
        let run = bench.ledger.core().run.as_ref().unwrap();
        assert_eq!((run.number != number, run.closed), (again, !again));
        if !again {
            bench.apply(Command::Leave { session: two });
            assert!(!bench.ledger.core().run.as_ref().unwrap().lacks_end_report(Seat(2)));
        }
    }
}
