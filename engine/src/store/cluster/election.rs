//! When to stand for election. Raft's own timer is off: it draws its patience once for the life of a
//! process, so that two nodes can tie for ever. Here every wait is drawn anew, and a leader whose
//! connection is gone is given less of it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use openraft::ServerState;
use tokio::time::{Instant, sleep_until};

use super::courier;
use super::hub::{Hub, Voter, random_between};
use super::types::{Call, LogId, Response};

/// A node that has heard its leader within this time votes for nobody else.
pub(super) const LEASE: Duration = Duration::from_millis(500);
/// Patience with a silent leader: some heartbeats may be late on a busy machine.
const SILENCE: (Duration, Duration) = (Duration::from_millis(900), Duration::from_millis(1400));
/// Patience with a leader whose connection is gone.
const GONE: (Duration, Duration) = (Duration::from_millis(550), Duration::from_millis(850));
/// Patience between two candidacies.
const AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_millis(700));
/// Patience with the answers before an election.
const ASKING: Duration = Duration::from_millis(200);
/// A leader that more than half have confirmed within this time leads.
const LED_MS: u64 = 1000;
/// How often the connection to the leader is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Stands for election whenever the leader has been silent for too long.
pub(super) async fn watch(hub: Arc<Hub>) {
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
        if metrics.state == ServerState::Leader || !votes {
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

/// Whether more than half would vote for this node. One that cannot win does not stand: it would only
/// raise the term, and so put an end to a leader that the others have.
async fn is_wanted(hub: &Arc<Hub>, voter: &Voter) -> bool {
    let call = Call::MayLead(voter.log.last());
    let asked = hub.others().map(|(seat, _)| courier::ask(hub, seat, &call, ASKING));
    let mut answers: FuturesUnordered<_> = asked.collect();
    let mut votes = 1;
    // Not all have to answer: the dead never do.
    while votes < hub.options.majority()
        && let Some(answer) = answers.next().await
    {
        votes += usize::from(matches!(answer, Some(Response::MayLead(true))));
    }
    votes >= hub.options.majority()
}

/// Whether this node would vote for one whose log ends at `last`: it hears of no leader, and its own
/// log goes no further.
pub(super) fn would_vote(hub: &Hub, last: Option<LogId>) -> bool {
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
