//! When to stand for election. Raft's own timer is off: it draws its patience once for the life of a
//! process, so that two nodes can tie for ever. Here every wait is drawn anew, and a leader whose
//! connection is gone is given less of it. A leader that is about to go has another stand at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use openraft::{BasicNode, RaftMetrics, ServerState};
use tokio::time::{Instant, sleep_until, timeout};

use crate::cluster::client;
use crate::cluster::messages::{LogId, PeerRequest, PeerResponse, Raft, seat_of};
use crate::cluster::node::{Hub, Voter, locked, random_between};
use crate::ledger::Seat;

/// A node that has heard its leader within this time votes for nobody else.
pub(crate) const LEASE: Duration = Duration::from_millis(500);
/// Patience with a silent leader: some heartbeats may be late on a busy machine.
const SILENCE: (Duration, Duration) = (Duration::from_millis(900), Duration::from_millis(1400));
/// Patience with a leader whose connection is gone.
const GONE: (Duration, Duration) = (Duration::from_millis(550), Duration::from_millis(850));
/// Patience between two candidacies.
const AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_millis(700));
/// Patience with the answers before an election.
const ASKING: Duration = Duration::from_millis(200);
/// Patience with those who are to lead instead of this node.
const HANDING_OVER: Duration = Duration::from_millis(1500);
/// A leader that more than half have confirmed within this time leads.
pub(crate) const LED_MS: u64 = 1000;
/// How often the connection to the leader is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Stands for election whenever the leader has been silent for too long.
pub(crate) async fn watch(hub: Arc<Hub>) {
    let Some(voter) = &hub.voter else { return };
    let mut heard = voter.heard.subscribe();
    let mut since = std::time::Instant::now();
    let (mut silence, mut gone) = draw();
    loop {
        sleep_until(Instant::now() + LOOK).await;
        let news = *heard.borrow_and_update();
        if news > since {
            since = news;
            (silence, gone) = draw();
        }
        let (Some(raft), Some(metrics)) = (hub.raft(), hub.metrics()) else { continue };
        let votes = metrics.membership_config.membership().voter_ids().any(|id| id == metrics.id);
        let leads = metrics.state == ServerState::Leader;
        note_lead(voter, leads);
        if leads || !votes {
            since = std::time::Instant::now();
            continue;
        }
        let lost = hub
            .leader()
            .and_then(|seat| hub.link(seat))
            .is_some_and(|link| link.peer().borrow().is_none());
        if since.elapsed() < if lost { gone } else { silence } {
            continue;
        }
        if !is_wanted(&hub, voter).await {
            since = std::time::Instant::now();
            silence = random_between(AGAIN.0, AGAIN.1);
            gone = silence;
            continue;
        }
        tracing::debug!("stands for election");
        if raft.trigger().elect().await.is_err() {
            return;
        }
        since = std::time::Instant::now();
        silence = random_between(AGAIN.0, AGAIN.1);
        gone = silence;
    }
}

/// Has another node lead in the place of this one, which is about to end: its going costs the others
/// no more than an election, and they need not find out first. Nothing is proposed meanwhile. If
/// nobody takes over, this node goes on.
pub(crate) async fn step_aside(hub: &Hub) {
    let Some(raft) = hub.raft().filter(|_| hub.leads().is_some()) else { return };
    hub.aside.store(true, Ordering::Release);
    let done = timeout(HANDING_OVER, hand_over(hub, raft)).await;
    // Its vote has to reach the other before it goes, and then it hears from it.
    let mut metrics = raft.metrics();
    let led = metrics.wait_for(|now| now.current_leader.is_some());
    drop(timeout(AGAIN.0, led).await);
    tracing::debug!(in_time = done.is_ok(), "stepped aside");
    raft.runtime_config().heartbeat(true);
    hub.aside.store(false, Ordering::Release);
}

fn note_lead(voter: &Voter, leads: bool) {
    let mut since = locked(&voter.led_since);
    *since = leads.then(|| since.unwrap_or_else(std::time::Instant::now));
}

async fn hand_over(hub: &Hub, raft: &Raft) {
    // Of three nodes two are enough: the successor, and this one, which votes for another once it has
    // led for a while. In a larger cluster more have to vote, and they do not while they hear this one.
    let since = hub.voter.as_ref().and_then(|voter| *locked(&voter.led_since));
    let led = since.map_or(Duration::ZERO, |since| since.elapsed());
    let quiet = if hub.options.majority() > 2 { LEASE } else { LEASE.saturating_sub(led) };
    if !quiet.is_zero() {
        raft.runtime_config().heartbeat(false);
        sleep_until(Instant::now() + quiet + LOOK).await;
    }
    let mut metrics = raft.metrics();
    let mut asked = BTreeSet::new();
    loop {
        let next = {
            let now = metrics.borrow_and_update();
            if now.state != ServerState::Leader {
                return;
            }
            successors(hub, &now).find(|(seat, _)| !asked.contains(seat))
        };
        match next {
            // All have been asked, or are gone.
            None => return,
            // What is under way has to be there first.
            Some((_, false)) => drop(timeout(LOOK, metrics.changed()).await),
            Some((seat, true)) => {
                asked.insert(seat);
                let stands = client::ask(hub, seat, &PeerRequest::Stand, ASKING).await;
                if matches!(stands, Some(PeerResponse::MayLead(Some(_)))) {
                    let follows = metrics.wait_for(|now| now.state != ServerState::Leader);
                    drop(timeout(AGAIN.0, follows).await);
                }
            }
        }
    }
}

/// NodeDescription might lead next, and whether its log goes as far as the leader's; those that do come first.
fn successors(
    hub: &Hub,
    metrics: &RaftMetrics<u64, BasicNode>,
) -> impl Iterator<Item = (Seat, bool)> {
    let votes = |id: &u64| metrics.membership_config.membership().voter_ids().any(|one| one == *id);
    let known = metrics.replication.iter().flatten().filter(|(id, _)| **id != metrics.id);
    let mut found: Vec<(Seat, bool)> = known
        .filter(|(id, _)| votes(id))
        .map(|(id, at)| (seat_of(*id), at.map(|at| at.index) >= metrics.last_log_index))
        .filter(|(seat, _)| hub.link(*seat).is_some_and(|link| link.peer().borrow().is_some()))
        .collect();
    found.sort_by_key(|(_, level)| !level);
    found.into_iter()
}

/// Stands for election because the leader asks for it; tells whether it does.
pub(crate) async fn stand(hub: &Hub, asker: Seat) -> bool {
    let Some(raft) = hub.raft().filter(|_| hub.leader() == Some(asker)) else { return false };
    // One that was asked to stop leads well until its own jobs have ended.
    if hub.ending.load(Ordering::Acquire) {
        return false;
    }
    tracing::debug!(leader = asker.0, "stands for election, as the leader asks");
    raft.trigger().elect().await.is_ok()
}

/// Whether more than half would vote for this node. One that cannot win does not stand: it would only
/// raise the term, and so put an end to a leader that the others have.
async fn is_wanted(hub: &Arc<Hub>, voter: &Voter) -> bool {
    let Some(metrics) = hub.metrics() else { return false };
    let voters: BTreeSet<u64> = metrics.membership_config.membership().voter_ids().collect();
    let call = PeerRequest::MayLead(voter.log.last());
    let asked = hub.others().map(|(seat, _)| client::ask(hub, seat, &call, ASKING));
    let mut answers: FuturesUnordered<_> = asked.collect();
    let mut votes = 1;
    // Not all have to answer: the dead never do.
    while votes < hub.options.majority()
        && let Some(answer) = answers.next().await
    {
        // A disk that is new on its seat may be willing and have no vote yet.
        votes += usize::from(
            matches!(answer, Some(PeerResponse::MayLead(Some(disk))) if voters.contains(&disk)),
        );
    }
    votes >= hub.options.majority()
}

/// Whether this node would vote for one whose log ends at `last`: it hears of no leader, and its own
/// log goes no further.
pub(crate) fn would_vote(hub: &Hub, last: Option<LogId>) -> bool {
    let (Some(voter), Some(metrics)) = (&hub.voter, hub.metrics()) else { return false };
    let hears = match metrics.state {
        ServerState::Leader => metrics.millis_since_quorum_ack.is_some_and(|ms| ms < LED_MS),
        _ => voter.heard.borrow().elapsed() < LEASE,
    };
    !hears && last >= voter.log.last()
}

fn draw() -> (Duration, Duration) {
    (random_between(SILENCE.0, SILENCE.1), random_between(GONE.0, GONE.1))
}
