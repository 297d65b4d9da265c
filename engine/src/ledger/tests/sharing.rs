//! Several sessions on one lane: an exclusive lane has one holder, and all sessions share every other
//! lane. Two starts are a delay apart, even if different nodes make them or report them late.

use super::*;

fn of_host(count: u64) -> Vec<NewJob> {
    (1..=count).map(|number| job(number, "a")).collect()
}

fn slots(slots: u32) -> Policy {
    Policy { slots, ..Policy::default() }
}

impl Bench {
    fn finish_since(&mut self, session: SessionId, grant: &Grant, since_start_ms: Option<u64>) {
        let (job, token, outcome) = (grant.id, grant.token, done(vec![], vec![]));
        let finish = Command::Finish { session, job, token, since_start_ms, outcome };
        assert_eq!(self.apply(finish), Reply::Ok);
    }
}

#[test]
fn a_polite_lane_has_one_holder_at_a_time() {
    let (mut bench, one) = Bench::with(slots(2), of_host(5));
    let two = bench.join(false);
    let first = bench.take(one, 9);
    assert_eq!(numbers(&first), ["1"]);
    bench.ms += 1000;
    assert_eq!(bench.wait_ms(two), None, "only the end of a job frees the lane");
    let second = bench.take(one, 9);
    assert_eq!(numbers(&second), ["2"]);
    bench.finish_since(one, &first[0], Some(1000));
    bench.ms += 1000;
    assert_eq!(bench.take(two, 9), []);
    assert_eq!(numbers(&bench.take(one, 9)), ["3"]);
    bench.finish_since(one, &second[0], Some(1000));
    let third = (JobId(3), bench.ledger.core().taken[&JobId(3)].token);
    bench.apply(Command::Return { session: one, jobs: vec![third] });
    assert_eq!(bench.wait_ms(two), Some(1050));
    bench.ms += 1050;
    assert_eq!(numbers(&bench.take(two, 9)), ["3"]);
    assert_eq!(bench.take(one, 9), []);
}

#[test]
fn slots_of_a_lane_without_a_delay_are_counted_for_each_session() {
    let policy = Policy { delay_ms: 0, slots: 2, ..Policy::default() };
    let (mut bench, one) = Bench::with(policy, of_host(9));
    let two = bench.join(false);
    let first = bench.take(one, 9);
    assert_eq!(numbers(&first), ["1", "2"]);
    assert_eq!(numbers(&bench.take(two, 9)), ["3", "4"]);
    assert_eq!(bench.wait_ms(one), None);
    bench.finish(one, &first[0], done(vec![], vec![]));
    assert_eq!(bench.take(two, 9), [], "the slots are full");
    assert_eq!(numbers(&bench.take(one, 9)), ["5"]);
}

#[test]
fn a_session_gets_no_more_ahead_than_it_asks_for() {
    let policy = Policy { delay_ms: 0, slots: 2, ahead: 3, ..Policy::default() };
    let (mut bench, one) = Bench::with(policy, of_host(9));
    let ask = |number, ahead| Command::Take { session: one, number, limit: 9, ahead };
    for (number, ahead, granted) in [(1, 0, 2), (2, 1, 1), (3, 9, 2), (4, 9, 0)] {
        let Reply::Granted { jobs, .. } = bench.apply(ask(number, ahead)) else { panic!() };
        assert_eq!(jobs.len(), granted, "{ahead} ahead");
        assert_eq!(bench.apply(ask(number, ahead)), Reply::Granted { jobs, wait_ms: None });
    }
}

#[test]
fn no_lane_takes_all_capacity_of_a_node() {
    let policy = Policy { lane_share_max: 3, ..unhurried() };
    let (mut bench, one) = Bench::with(policy, locals(9));
    let two = bench.join(false);
    assert_eq!(bench.take(one, 9).len(), 3);
    assert_eq!(bench.take(two, 9).len(), 3);
    assert_eq!(bench.take(one, 9), []);
}

#[test]
fn a_full_lane_is_skipped_and_keeps_its_turn() {
    let mut jobs = of_host(9);
    jobs.extend([job(10, "b"), job(11, "c"), job(12, "b"), job(13, "c")]);
    let policy = Policy { delay_ms: 0, slots: 2, ..Policy::default() };
    let (mut bench, one) = Bench::with(policy, jobs);
    assert_eq!(numbers(&bench.take(one, 2)), ["1", "10"]);
    assert_eq!(numbers(&bench.take(one, 2)), ["11", "2"]);
    assert_eq!(numbers(&bench.take(one, 9)), ["12", "13"]);
    let two = bench.join(false);
    assert_eq!(numbers(&bench.take(two, 1)), ["3"]);
}

#[test]
fn a_lane_with_a_new_delay_waits_for_the_jobs_in_flight() {
    let policy = Policy { delay_ms: 0, slots: 1, ..Policy::default() };
    let (mut bench, one) = Bench::with(policy, of_host(5));
    bench.take(one, 1);
    let held = bench.ledger.core().taken[&JobId(1)].token;
    let lanes: Vec<_> = bench.ledger.lanes().map(|(id, lane)| (id, lane.clone())).collect();
    let mut core = bench.ledger.core().clone();
    core.run.as_mut().unwrap().plan.policy = slots(3);
    bench.ledger = Ledger::new(core, lanes, bench.ledger.tables().clone());
    let two = bench.join(false);
    bench.ms += 5000;
    assert_eq!(bench.take(two, 9), []);
    let (job, since_start_ms, outcome) = (JobId(1), None, done(vec![], vec![]));
    let finish = Command::Finish { session: one, job, token: held, since_start_ms, outcome };
    assert_eq!(bench.apply(finish), Reply::Ok);
    assert_eq!(numbers(&bench.take(two, 9)), ["2"]);
}

#[test]
fn a_pause_counts_from_the_start_and_not_from_the_grant() {
    let (mut bench, one) = Bench::with(Policy::default(), of_host(4));
    let two = bench.join(false);
    let grant = bench.take(one, 9).remove(0);
    // The request was sent 900 ms after the grant, and the page took 50 ms.
    bench.ms += 950;
    bench.finish_since(one, &grant, Some(50));
    assert_eq!(bench.wait_ms(two), Some(950));
    bench.ms += 950;
    let grant = bench.take(two, 9).remove(0);
    // A page that takes longer than the delay leaves no pause.
    bench.ms += 3000;
    bench.finish_since(two, &grant, Some(2900));
    let grant = bench.take(one, 9).remove(0);
    // A job without a request keeps the pause of its grant.
    bench.ms += 10;
    bench.finish_since(one, &grant, None);
    assert_eq!(bench.wait_ms(two), Some(990));
}

#[test]
fn a_page_from_the_store_does_not_undo_the_pause_of_another_start() {
    let (mut bench, one) = Bench::with(slots(2), of_host(4));
    let first = bench.take(one, 9).remove(0);
    bench.ms += 1000;
    let second = bench.take(one, 9).remove(0);
    // The request for the first page was sent 100 ms ago, and the second page was in the store.
    bench.ms += 50;
    bench.finish_since(one, &first, Some(100));
    let tally = Tally { stored: 1, ..Tally::default() };
    let stored = Outcome::Done(Box::new(Harvest { tally, ..Harvest::default() }));
    bench.finish(one, &second, stored);
    assert_eq!(bench.wait_ms(one), Some(900));
}

#[test]
fn a_redirect_to_another_host_keeps_the_pause_of_its_start() {
    let (mut bench, one) = Bench::with(Policy::default(), vec![job(1, "a"), job(2, "a")]);
    let grant = bench.take(one, 9).remove(0);
    bench.ms += 990;
    let outcome = Outcome::Moved {
        url: "http://b/".to_owned(),
        lane: "b".to_owned(),
        polite: true,
        redirects: 1,
        tally: Tally::default(),
    };
    let (job, token, since_start_ms) = (grant.id, grant.token, Some(10));
    bench.apply(Command::Finish { session: one, job, token, since_start_ms, outcome });
    let moved = bench.take(one, 9);
    assert_eq!(moved[0].at.as_deref(), Some("http://b/"));
    assert_eq!(bench.wait_ms(one), Some(990));
}

#[test]
fn a_late_result_pauses_its_lane_too() {
    let (mut bench, late) = Bench::with(Policy::default(), of_host(2));
    let other = bench.join(false);
    let grant = bench.take(late, 9).remove(0);
    bench.expire(&[other]);
    bench.ms += 500;
    bench.finish_since(late, &grant, Some(100));
    assert_eq!(bench.wait_ms(other), Some(900));
}

#[test]
fn a_fenced_node_may_send_requests_until_its_own_deadline() {
    let (mut bench, one) = Bench::with(Policy::default(), of_host(2));
    let two = bench.join(false);
    bench.take(one, 9);
    bench.ms += 1000;
    bench.beat(&[one, two]);
    bench.apply(Command::Fence { seat: Seat(1) });
    assert_eq!(bench.wait_ms(two), Some(5000 + 1050));
}

#[test]
fn a_host_without_a_delay_does_not_wait_for_a_fenced_node() {
    let policy = Policy { delay_ms: 0, ..Policy::default() };
    let (mut bench, one) = Bench::with(policy, of_host(1));
    let two = bench.join(false);
    assert_eq!(bench.take(one, 9).len(), 1);
    assert_eq!(bench.take(two, 9).len(), 0);
    bench.apply(Command::Fence { seat: Seat(1) });
    assert_eq!(bench.take(two, 9).len(), 1);
}

#[test]
fn a_lane_pauses_whenever_its_holder_ends() {
    for how in ["leaves", "returns", "starts over", "is replaced"] {
        let (mut bench, one) = Bench::with(Policy::default(), of_host(2));
        let two = bench.join(false);
        let grant = bench.take(one, 9).remove(0);
        bench.ms += 700;
        let again =
            |life| JoinRequest { nonce: 99, life, seat: Seat(1), votes: true, alone: false };
        bench.apply(match how {
            "leaves" => Command::Leave { session: one },
            "returns" => Command::Return { session: one, jobs: vec![(grant.id, grant.token)] },
            "starts over" => Command::Join(again(1)),
            _ => Command::Join(again(99)),
        });
        assert_eq!(bench.wait_ms(two), Some(1050), "{how}");
    }
}

#[test]
fn holders_are_known_after_a_restart() {
    let (mut bench, one) = Bench::with(slots(3), of_host(4));
    let two = bench.join(false);
    bench.take(one, 9);
    bench.ms += 1000;
    let lanes: Vec<_> = bench.ledger.lanes().map(|(id, lane)| (id, lane.clone())).collect();
    let (core, tables) = (bench.ledger.core().clone(), bench.ledger.tables().clone());
    bench.ledger = Ledger::new(core, lanes, tables);
    assert_eq!(bench.take(two, 9), []);
    assert_eq!(numbers(&bench.take(one, 9)), ["2"]);
}
