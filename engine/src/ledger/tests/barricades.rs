//! Sessions and barricades.

use super::*;

fn claim(session: SessionId) -> Command {
    Command::Claim { session, name: "setup".to_owned() }
}

fn release(session: SessionId, epoch: Epoch, result: Result<(), String>) -> Command {
    Command::Release { session, name: "setup".to_owned(), epoch, result }
}

fn newcomer(nonce: u64, seat: u32) -> JoinRequest {
    JoinRequest { nonce, life: nonce, seat: Seat(seat), votes: true, alone: false }
}

#[test]
fn a_resent_join_finds_its_session() {
    let mut bench = Bench::new();
    let first = bench.twice(Command::Join(newcomer(7, 1)));
    assert_eq!(bench.apply(Command::Join(newcomer(7, 1))), first);
    assert_ne!(bench.apply(Command::Join(newcomer(8, 2))), first);
}

#[test]
fn silence_ends_a_session_and_beats_keep_it() {
    let (mut bench, kept) = Bench::with(unhurried(), locals(1));
    let silent = bench.join(false);
    assert_eq!(bench.take(silent, 1).len(), 1);
    bench.ms += 3000;
    bench.twice(Command::Beat { renewals: vec![kept] });
    bench.ms += 3000;
    bench.beat(&[kept]);
    assert_eq!(
        bench.apply(Command::Take { session: silent, number: 2, limit: 1, ahead: u32::MAX }),
        Reply::Stale
    );
    assert_eq!(bench.take(kept, 1).len(), 1);
}

#[test]
fn a_beat_never_revives_a_session() {
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    bench.expire(&[]);
    bench.beat(&[session]);
    assert_eq!(bench.apply(claim(session)), Reply::Stale);
    assert_eq!(bench.apply(Command::Close { session }), Reply::Stale);
}

#[test]
fn a_leaving_session_returns_its_jobs_without_counting_a_death() {
    let (mut bench, session) = Bench::with(unhurried(), locals(1));
    for _ in 0..20 {
        let leaver = bench.join(false);
        assert_eq!(bench.take(leaver, 1).len(), 1);
        bench.twice(Command::Leave { session: leaver });
    }
    let grants = bench.take(session, 1);
    assert_eq!(bench.finish(session, &grants[0], done(vec![], vec![])), Reply::Ok);
    assert!(bench.ledger.standing().over);
}

#[test]
fn the_only_process_ends_all_earlier_sessions() {
    let (mut bench, first) = Bench::with(unhurried(), locals(1));
    bench.take(first, 1);
    let second = bench.restart();
    assert_eq!(
        bench.apply(Command::Take { session: first, number: 2, limit: 1, ahead: u32::MAX }),
        Reply::Stale
    );
    assert_eq!(bench.take(second, 1).len(), 1);
}

#[test]
fn one_node_crosses_and_every_other_gets_its_result() {
    let mut bench = Bench::new();
    let (a, b) = (bench.join(false), bench.join(false));
    let epoch = bench.cross(a, "setup");
    assert_eq!(bench.twice(claim(a)), Reply::Cross(epoch));
    assert_eq!(bench.twice(claim(b)), Reply::Wait);
    assert_eq!(bench.apply(release(b, epoch, Ok(()))), Reply::Stale);
    bench.ms += 1;
    assert_eq!(bench.twice(release(a, epoch, Ok(()))), Reply::Ok);
    assert_eq!(bench.apply(claim(b)), Reply::Crossed(Ok(())));
}

#[test]
fn every_claim_gets_the_error_of_a_failed_crossing() {
    let mut bench = Bench::new();
    let (a, b) = (bench.join(false), bench.join(false));
    let epoch = bench.cross(a, "setup");
    bench.ms += 1;
    bench.apply(release(a, epoch, Err("bad definitions".to_owned())));
    assert_eq!(bench.apply(claim(b)), Reply::Crossed(Err("bad definitions".to_owned())));
}

#[test]
fn when_the_owner_dies_another_crosses_and_a_late_release_changes_nothing() {
    let mut bench = Bench::new();
    let (a, b) = (bench.join(false), bench.join(false));
    let old = bench.cross(a, "setup");
    bench.expire(&[b]);
    let new = bench.cross(b, "setup");
    assert!(new > old);
    assert_eq!(bench.apply(release(a, old, Ok(()))), Reply::Stale);
    assert_eq!(bench.apply(claim(b)), Reply::Cross(new));
}

#[test]
fn a_new_process_crosses_again() {
    let (mut bench, _) = Bench::with(unhurried(), locals(1));
    let session = bench.restart();
    bench.cross(session, "setup");
}

#[test]
fn the_next_process_can_cross_after_a_failure() {
    let mut bench = Bench::new();
    let a = bench.join(true);
    let epoch = bench.cross(a, "setup");
    bench.apply(release(a, epoch, Err("bad".to_owned())));
    bench.apply(Command::Leave { session: a });
    let b = bench.join(true);
    bench.cross(b, "setup");
}

#[test]
fn a_new_session_does_not_get_a_result_that_only_dead_sessions_have() {
    let mut bench = Bench::new();
    let a = bench.join(false);
    let epoch = bench.cross(a, "setup");
    bench.ms += 1;
    bench.apply(release(a, epoch, Ok(())));
    // The whole cluster dies. Ledger time stops until a new leader sends a command.
    bench.leadership += 1;
    let b = bench.join(false);
    assert_eq!(bench.apply(claim(b)), Reply::Wait);
    bench.ms += 1;
    bench.expire(&[b]);
    bench.cross(b, "setup");
}

#[test]
fn a_session_heard_after_the_join_vouches_for_a_result() {
    let mut bench = Bench::new();
    let a = bench.join(false);
    let epoch = bench.cross(a, "setup");
    bench.apply(release(a, epoch, Ok(())));
    let b = bench.join(false);
    assert_eq!(bench.apply(claim(b)), Reply::Wait);
    bench.ms += 1;
    bench.beat(&[a]);
    assert_eq!(bench.apply(claim(b)), Reply::Crossed(Ok(())));
}

#[test]
fn a_take_vouches_for_a_result_too() {
    let (mut bench, a) = Bench::with(unhurried(), locals(1));
    let epoch = bench.cross(a, "gate");
    bench.apply(Command::Release { session: a, name: "gate".to_owned(), epoch, result: Ok(()) });
    let b = bench.join(false);
    let claim = Command::Claim { session: b, name: "gate".to_owned() };
    assert_eq!(bench.apply(claim.clone()), Reply::Wait);
    bench.ms += 1;
    bench.take(a, 1);
    assert_eq!(bench.apply(claim), Reply::Crossed(Ok(())));
}

#[test]
fn every_session_at_the_release_can_read_the_result() {
    let mut bench = Bench::new();
    let (a, b) = (bench.join(false), bench.join(false));
    let epoch = bench.cross(a, "setup");
    assert_eq!(bench.ledger.crossed(b, "setup"), None);
    bench.apply(release(a, epoch, Err("bad".to_owned())));
    let late = bench.join(false);
    assert_eq!(bench.ledger.crossed(b, "setup"), Some(Err("bad".to_owned())));
    assert_eq!(bench.ledger.crossed(late, "setup"), None);
    // The result stays readable after the session that crossed has left.
    bench.ms += 1;
    bench.expire(&[b, late]);
    assert_eq!(bench.apply(claim(late)), Reply::Crossed(Err("bad".to_owned())));
}

#[test]
fn a_node_without_a_vote_never_crosses() {
    let mut bench = Bench::new();
    let worker = JoinRequest { votes: false, ..newcomer(50, 70_000) };
    let Reply::Joined(worker) = bench.apply(Command::Join(worker)) else { panic!() };
    assert_eq!(bench.apply(claim(worker)), Reply::Wait);
    let voter = bench.join(false);
    bench.cross(voter, "setup");
    let standing = bench.ledger.standing();
    assert_eq!((standing.voters, standing.workers), (1, 1));
}

#[test]
fn a_seat_has_one_session_and_its_former_process_is_refused() {
    let (mut bench, first) = Bench::with(unhurried(), locals(1));
    assert_eq!(bench.take(first, 1).len(), 1);
    let Reply::Joined(second) = bench.apply(Command::Join(newcomer(77, 1))) else { panic!() };
    assert_eq!(bench.take(second, 1).len(), 1);
    bench.beat(&[second]);
    let former = JoinRequest { nonce: 78, life: 1, ..newcomer(0, 1) };
    assert_eq!(bench.apply(Command::Join(former)), Reply::Replaced);
    assert_eq!(bench.apply(claim(first)), Reply::Stale);
}

#[test]
fn a_late_join_of_a_dead_process_takes_no_seat() {
    let (mut bench, _) = Bench::with(unhurried(), locals(1));
    for life in [77, 78, 79] {
        let Reply::Joined(session) = bench.apply(Command::Join(newcomer(life, 1))) else {
            panic!()
        };
        bench.beat(&[session]);
    }
    let late = JoinRequest { nonce: 70, life: 77, ..newcomer(0, 1) };
    assert_eq!(bench.apply(Command::Join(late)), Reply::Replaced);
    let again = JoinRequest { nonce: 80, life: 79, ..newcomer(0, 1) };
    assert!(matches!(bench.apply(Command::Join(again)), Reply::Joined(_)));
    // A join may arrive so late that its process is dead. The ledger finds out because the process
    // never renews its session.
    let ghost = JoinRequest { nonce: 71, life: 76, ..newcomer(0, 1) };
    assert!(matches!(bench.apply(Command::Join(ghost)), Reply::Joined(_)));
    let again = Command::Join(JoinRequest { nonce: 81, life: 79, ..newcomer(0, 1) });
    assert_eq!(bench.apply(again.clone()), Reply::Wait);
    bench.expire(&[]);
    assert!(matches!(bench.twice(again), Reply::Joined(_)));
}

#[test]
fn a_fenced_seat_stays_out_until_it_is_admitted() {
    let policy = Policy { auto_fence: true, ..unhurried() };
    let (mut bench, first) = Bench::with(policy, locals(1));
    let other = bench.join(false);
    bench.expire(&[other]);
    assert_eq!(bench.apply(claim(first)), Reply::Stale);
    assert_eq!(bench.apply(Command::Join(newcomer(90, 1))), Reply::Fenced);
    bench.twice(Command::Admit { seat: Seat(1) });
    assert!(matches!(bench.apply(Command::Join(newcomer(90, 1))), Reply::Joined(_)));
    bench.twice(Command::Fence { seat: Seat(2) });
    assert_eq!(bench.apply(claim(other)), Reply::Stale);
}

#[test]
fn each_new_disk_of_a_seat_gets_another_number() {
    let mut bench = Bench::new();
    assert_eq!(bench.twice(Command::Mint { seat: Seat(2), nonce: 5 }), Reply::Minted(1));
    assert_eq!(bench.apply(Command::Mint { seat: Seat(2), nonce: 6 }), Reply::Minted(2));
    assert_eq!(bench.apply(Command::Mint { seat: Seat(3), nonce: 6 }), Reply::Minted(1));
}

#[test]
fn a_seat_with_a_live_process_gets_no_number_for_another_disk() {
    let (mut bench, _) = Bench::with(unhurried(), locals(1));
    let holder = bench.join(false);
    let seat = bench.ledger.core().sessions[&holder].seat;
    let mint = |nonce| Command::Mint { seat, nonce };
    assert_eq!(bench.twice(mint(5)), Reply::Wait);
    assert_eq!(bench.ledger.core().seats[&seat].incarnation, 0);
    // Its connections are closed, then it is renewed, then they are closed again.
    bench.twice(Command::Doubt { session: holder });
    bench.beat(&[holder]);
    assert_eq!(bench.apply(mint(5)), Reply::Wait);
    bench.twice(Command::Doubt { session: holder });
    assert_eq!(bench.twice(mint(5)), Reply::Minted(1));
    // A resend gets the same number even if a process lives. The next number needs the session to end.
    bench.beat(&[holder]);
    assert_eq!(bench.apply(mint(5)), Reply::Minted(1));
    assert_eq!(bench.apply(mint(6)), Reply::Wait);
    bench.apply(Command::Leave { session: holder });
    assert_eq!(bench.twice(mint(6)), Reply::Minted(2));
}

#[test]
fn a_leaving_node_passes_a_failure_on_to_nodes_that_have_not_claimed() {
    let mut bench = Bench::new();
    let (first, second) = (bench.join(false), bench.join(false));
    let Reply::Cross(epoch) = bench.apply(claim(first)) else { panic!("not let through") };
    bench.apply(release(first, epoch, Err("broken".to_owned())));
    bench.twice(Command::Leave { session: first });
    assert_eq!(bench.apply(claim(second)), Reply::Crossed(Err("broken".to_owned())));
    bench.apply(Command::Leave { session: second });
    // A later session crosses again.
    let third = bench.join(false);
    assert!(matches!(bench.apply(claim(third)), Reply::Cross(_)));
}

#[test]
fn the_seat_of_a_worker_without_a_session_is_removed() {
    let policy = Policy { auto_fence: true, ..unhurried() };
    let (mut bench, voter) = Bench::with(policy, locals(1));
    let worker = Seat(Seat::DRAWN_FROM + 7);
    let arrival =
        |life| JoinRequest { nonce: life, life, seat: worker, votes: false, alone: false };
    let Reply::Joined(session) = bench.apply(Command::Join(arrival(90))) else { panic!() };
    assert!(bench.ledger.core().seats.contains_key(&worker));
    bench.twice(Command::Leave { session });
    assert!(!bench.ledger.core().seats.contains_key(&worker));
    // The record of a fenced seat stays until the seat is admitted.
    bench.apply(Command::Join(arrival(91)));
    bench.expire(&[voter]);
    assert_eq!(bench.apply(Command::Join(arrival(91))), Reply::Fenced);
    bench.apply(Command::Admit { seat: worker });
    assert!(!bench.ledger.core().seats.contains_key(&worker));
    assert!(bench.ledger.core().seats.contains_key(&Seat(1)), "the record of a voter stays");
}
