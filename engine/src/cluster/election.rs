//! Elections: the known leader, and when a node stands for election.
//!
//! Raft's own election timer is off. It draws its timeout once per process, so two nodes could tie
//! again and again. Here every wait has a new random length:
//!
//! | what a follower sees | it stands for election after |
//! | --- | --- |
//! | the leader is silent, but connected | `SILENT_LEADER_TIMEOUT` |
//! | the connection to the leader is gone | `LOST_LEADER_TIMEOUT` |
//! | its last candidacy did not succeed | `NEXT_CANDIDACY_TIMEOUT` |
//! | the leader asks it to take over | no time |
//!
//! Before it stands, it asks its peers whether they would vote for it. A node that cannot win only
//! raises the term, which would end a leader that its peers still have.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use openraft::{BasicNode, RaftMetrics, ServerState};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::cluster::messages::{LogId, PeerRequest, PeerResponse, Raft, seat_of};
use crate::cluster::peers::PeerClients;
use crate::cluster::raft_log::RaftLog;
use crate::cluster::{locked, random_between};
use crate::ledger::Seat;
use crate::threads::pause::{pause, wait_at_most};

/// A node that has heard its leader within this time votes for no other node.
pub(crate) const LEASE: Duration = Duration::from_millis(500);
/// Some heartbeats, which come every 150 ms, may be late on a busy machine.
const SILENT_LEADER_TIMEOUT: (Duration, Duration) =
    (Duration::from_millis(900), Duration::from_millis(1400));
/// Longer than [`LEASE`], so that voters are free again.
const LOST_LEADER_TIMEOUT: (Duration, Duration) =
    (Duration::from_millis(550), Duration::from_millis(850));
const NEXT_CANDIDACY_TIMEOUT: (Duration, Duration) =
    (Duration::from_millis(250), Duration::from_millis(700));
/// How long a peer may take to say whether it would vote.
const VOTE_QUERY_TIMEOUT: Duration = Duration::from_millis(200);
/// How long a leader that ends tries to hand over.
const HAND_OVER_TIMEOUT: Duration = Duration::from_millis(1500);
/// How long a leader that hands over waits for the vote of the next one.
const VOTE_TIMEOUT: Duration = Duration::from_millis(250);
/// A leader that a majority has confirmed within this time, in milliseconds, still leads.
pub(crate) const CONFIRMED_MAX_MS: u64 = 1000;
/// Within this time of the last contact a node says that its cluster has a leader.
const RECENT_CONTACT: Duration = Duration::from_secs(5);
/// How often a node checks its leader.
const LEADER_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The leader that this node knows, and its own part in the leadership.
pub(crate) struct Leadership {
    /// Set when raft has started; never on a node without a vote.
    raft: OnceLock<Raft>,
    /// When the leader was last heard, or a vote given. Timeouts count from there.
    heard: watch::Sender<Instant>,
    /// When a leader last sent something to this node.
    leader_sent: Mutex<Option<Instant>>,
    /// Since when this node leads.
    led_since: Mutex<Option<Instant>>,
    /// The leader that another node has named, or that has answered.
    hint: Mutex<Option<Seat>>,
    /// This node leads and hands over: it proposes nothing in the meantime.
    is_handing_over: AtomicBool,
    /// The process was asked to stop.
    is_stopping: AtomicBool,
    /// The node has left the ledger and ends once no other node needs it.
    is_ending: AtomicBool,
}

type Metrics = RaftMetrics<u64, BasicNode>;

impl Leadership {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            raft: OnceLock::new(),
            heard: watch::Sender::new(Instant::now()),
            leader_sent: Mutex::default(),
            led_since: Mutex::default(),
            hint: Mutex::default(),
            is_handing_over: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
        })
    }

    /// Raft has started.
    pub(crate) fn set_raft(&self, raft: Raft) {
        drop(self.raft.set(raft));
        self.note_contact();
    }

    pub(crate) fn raft(&self) -> Option<&Raft> {
        self.raft.get()
    }

    pub(crate) fn metrics(&self) -> Option<Metrics> {
        self.raft().map(|raft| raft.metrics().borrow().clone())
    }

    /// The term that this node leads, unless it is about to hand over.
    pub(crate) fn leads(&self) -> Option<u64> {
        if self.is_handing_over.load(Ordering::Acquire) {
            return None;
        }
        let metrics = self.raft()?.metrics();
        let metrics = metrics.borrow();
        (metrics.state == ServerState::Leader).then_some(metrics.current_term)
    }

    /// The leader that this node knows.
    pub(crate) fn leader(&self) -> Option<Seat> {
        let known = self.raft().and_then(|raft| raft.metrics().borrow().current_leader);
        known.map(seat_of).or(*locked(&self.hint))
    }

    pub(crate) fn set_hint(&self, leader: Option<Seat>) {
        *locked(&self.hint) = leader;
    }

    /// Whether the leader was heard in the last seconds, or this node leads and was confirmed.
    pub(crate) fn is_led(&self) -> bool {
        let Some(metrics) = self.metrics() else { return false };
        let limit = RECENT_CONTACT.as_millis() as u64;
        let is_confirmed = metrics.millis_since_quorum_ack.is_some_and(|ms| ms < limit);
        let leads = metrics.state == ServerState::Leader;
        is_confirmed || !leads && self.heard.borrow().elapsed() < RECENT_CONTACT
    }

    /// A leader has sent something.
    pub(crate) fn note_leader(&self) {
        *locked(&self.leader_sent) = Some(Instant::now());
        self.note_contact();
    }

    /// This node gave its vote, or may begin to count.
    pub(crate) fn note_contact(&self) {
        self.heard.send_replace(Instant::now());
    }

    /// When a leader last sent something to this node.
    pub(crate) fn leader_sent(&self) -> Option<Instant> {
        *locked(&self.leader_sent)
    }

    pub(crate) fn set_stopping(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// From now on this node takes the lead no more.
    pub(crate) fn set_ending(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    fn note_lead(&self, leads: bool) {
        let mut since = locked(&self.led_since);
        *since = leads.then(|| since.unwrap_or_else(Instant::now));
    }

    fn led_for(&self) -> Duration {
        locked(&self.led_since).map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// How long a follower waits for its leader.
#[derive(Debug, Clone, Copy)]
struct ElectionTimeouts {
    silent: Duration,
    lost: Duration,
}

impl ElectionTimeouts {
    fn draw() -> Self {
        Self {
            silent: random_between(SILENT_LEADER_TIMEOUT),
            lost: random_between(LOST_LEADER_TIMEOUT),
        }
    }

    /// After a candidacy it does not matter how the leader was lost.
    fn draw_next() -> Self {
        let next = random_between(NEXT_CANDIDACY_TIMEOUT);
        Self { silent: next, lost: next }
    }

    fn has_passed(self, waited: Duration, is_leader_connected: bool) -> bool {
        waited >= if is_leader_connected { self.silent } else { self.lost }
    }
}

/// Stands for election whenever the leader has been silent for too long. Ends with raft.
pub(crate) async fn watch(
    leadership: Arc<Leadership>,
    peers: Arc<PeerClients>,
    log: RaftLog,
    majority: usize,
) {
    let mut heard = leadership.heard.subscribe();
    let mut since = Instant::now();
    let mut timeouts = ElectionTimeouts::draw();
    loop {
        pause(LEADER_POLL_INTERVAL).await;
        let last_contact = *heard.borrow_and_update();
        if last_contact > since {
            since = last_contact;
            timeouts = ElectionTimeouts::draw();
        }
        let (Some(raft), Some(metrics)) = (leadership.raft(), leadership.metrics()) else {
            continue;
        };
        let has_vote = voters(&metrics).contains(&metrics.id);
        let leads = metrics.state == ServerState::Leader;
        leadership.note_lead(leads);
        if leads || !has_vote {
            since = Instant::now();
            continue;
        }
        // Without a known leader nobody can be disconnected from it.
        let leader = leadership.leader().filter(|seat| peers.client(*seat).is_some());
        let is_connected = leader.is_none_or(|seat| peers.is_connected(seat));
        if !timeouts.has_passed(since.elapsed(), is_connected) {
            continue;
        }
        if can_win(&peers, &log, &metrics, majority).await {
            tracing::debug!("stands for election");
            if raft.trigger().elect().await.is_err() {
                return;
            }
        }
        since = Instant::now();
        timeouts = ElectionTimeouts::draw_next();
    }
}

fn voters(metrics: &Metrics) -> BTreeSet<u64> {
    metrics.membership_config.membership().voter_ids().collect()
}

/// Asks all peers whether a majority would vote for this node.
async fn can_win(peers: &PeerClients, log: &RaftLog, metrics: &Metrics, majority: usize) -> bool {
    let voters = voters(metrics);
    let request = PeerRequest::MayLead(log.last());
    let asked = peers.others().map(|(seat, _)| peers.ask(seat, &request, VOTE_QUERY_TIMEOUT));
    let mut answers: FuturesUnordered<_> = asked.collect();
    let mut votes = 1;
    // A majority is enough: dead nodes never answer.
    while votes < majority
        && let Some(answer) = answers.next().await
    {
        // The new disk of a node may be willing before it has a vote.
        votes += usize::from(
            matches!(answer, Some(PeerResponse::MayLead(Some(disk))) if voters.contains(&disk)),
        );
    }
    votes >= majority
}

/// The facts that decide whether a node votes for a candidate.
#[derive(Debug, Clone, Copy)]
struct VoteFacts {
    leads: bool,
    /// Milliseconds since a majority confirmed this node as leader.
    confirmed_ms: Option<u64>,
    /// Time since this node has heard its leader or has voted.
    silence: Duration,
    own_last: Option<LogId>,
    candidate_last: Option<LogId>,
}

impl VoteFacts {
    /// A node votes if it hears no leader and its own log is not newer.
    fn would_vote(self) -> bool {
        let has_leader = if self.leads {
            self.confirmed_ms.is_some_and(|ms| ms < CONFIRMED_MAX_MS)
        } else {
            self.silence < LEASE
        };
        !has_leader && self.candidate_last >= self.own_last
    }
}

/// Whether this node would vote for a candidate whose log ends with `last`.
pub(crate) fn would_vote(leadership: &Leadership, log: &RaftLog, last: Option<LogId>) -> bool {
    let Some(metrics) = leadership.metrics() else { return false };
    let facts = VoteFacts {
        leads: metrics.state == ServerState::Leader,
        confirmed_ms: metrics.millis_since_quorum_ack,
        silence: leadership.heard.borrow().elapsed(),
        own_last: log.last(),
        candidate_last: last,
    };
    facts.would_vote()
}

/// Stands for election because the leader asks for it; `false` if this node refuses. A node that was
/// asked to stop leads well until its own jobs have ended.
pub(crate) async fn stand(leadership: &Leadership, asker: Seat) -> bool {
    let is_ending = leadership.is_ending.load(Ordering::Acquire);
    let is_leader = leadership.leader() == Some(asker);
    let Some(raft) = leadership.raft().filter(|_| is_leader && !is_ending) else { return false };
    tracing::debug!(leader = asker.0, "stands for election, as the leader asks");
    raft.trigger().elect().await.is_ok()
}

/// Has another node lead, because this one is about to end. The others lose no more time than an
/// election takes. Nothing is proposed in the meantime. If no node takes over, this one keeps the lead.
pub(crate) async fn step_aside(leadership: &Leadership, peers: &PeerClients) {
    let Some(raft) = leadership.raft().filter(|_| leadership.leads().is_some()) else { return };
    leadership.is_handing_over.store(true, Ordering::Release);
    let done = timeout(HAND_OVER_TIMEOUT, hand_over(leadership, peers, raft)).await;
    // The next leader needs this node's vote, and then sends a heartbeat.
    let mut metrics = raft.metrics();
    wait_at_most(VOTE_TIMEOUT, metrics.wait_for(|now| now.current_leader.is_some())).await;
    tracing::debug!(in_time = done.is_ok(), "stepped aside");
    raft.runtime_config().heartbeat(true);
    leadership.is_handing_over.store(false, Ordering::Release);
}

async fn hand_over(leadership: &Leadership, peers: &PeerClients, raft: &Raft) {
    let silence = silence_before_hand_over(peers.peers.len(), leadership.led_for());
    if !silence.is_zero() {
        raft.runtime_config().heartbeat(false);
        pause(silence + LEADER_POLL_INTERVAL).await;
    }
    let mut metrics = raft.metrics();
    let mut asked = BTreeSet::new();
    loop {
        let next = {
            let now = metrics.borrow_and_update();
            if now.state != ServerState::Leader {
                return;
            }
            let mut candidates = successors(&now);
            candidates.retain(|(seat, _)| peers.is_connected(*seat) && !asked.contains(seat));
            candidates.first().copied()
        };
        match next {
            // All were asked or are disconnected.
            None => return,
            // No log is complete yet: the entries in flight have to arrive first.
            Some((_, false)) => wait_at_most(LEADER_POLL_INTERVAL, metrics.changed()).await,
            Some((seat, true)) => {
                asked.insert(seat);
                let answer = peers.ask(seat, &PeerRequest::Stand, VOTE_QUERY_TIMEOUT).await;
                if matches!(answer, Some(PeerResponse::MayLead(Some(_)))) {
                    let follows = metrics.wait_for(|now| now.state != ServerState::Leader);
                    wait_at_most(VOTE_TIMEOUT, follows).await;
                }
            }
        }
    }
}

/// How long a leader has to be silent before its followers may vote for a successor. Of three nodes the
/// next leader and this one are enough, and this one votes once it has led for [`LEASE`]. In a larger
/// cluster a third node has to vote, which it does not do while it hears this one.
fn silence_before_hand_over(nodes: usize, led_for: Duration) -> Duration {
    if nodes > 3 { LEASE } else { LEASE.saturating_sub(led_for) }
}

/// The other voters, and whether their logs are complete; those with a complete log come first.
fn successors(metrics: &Metrics) -> Vec<(Seat, bool)> {
    let voters = voters(metrics);
    let known = metrics.replication.iter().flatten();
    let others = known.filter(|(id, _)| **id != metrics.id && voters.contains(id));
    let complete = |last: Option<u64>| last >= metrics.last_log_index;
    let mut found: Vec<(Seat, bool)> =
        others.map(|(id, at)| (seat_of(*id), complete(at.map(|at| at.index)))).collect();
    found.sort_by_key(|(_, is_complete)| !is_complete);
    found
}

#[cfg(test)]
mod tests {
    use openraft::CommittedLeaderId;

    use super::*;

    fn log_id(term: u64, index: u64) -> LogId {
        LogId::new(CommittedLeaderId::new(term, 1), index)
    }

    #[test]
    fn a_follower_waits_longer_for_a_leader_that_is_connected() {
        let ms = Duration::from_millis;
        let timeouts = ElectionTimeouts { silent: ms(1000), lost: ms(600) };
        for (waited, is_connected, stands) in
            [(599, false, false), (600, false, true), (600, true, false), (1000, true, true)]
        {
            let has_passed = timeouts.has_passed(ms(waited), is_connected);
            assert_eq!(has_passed, stands, "{waited} ms, connected: {is_connected}");
        }
        for _ in 0..1000 {
            let drawn = ElectionTimeouts::draw();
            assert!(drawn.lost > LEASE && drawn.silent > drawn.lost, "{drawn:?}");
        }
    }

    #[test]
    fn a_node_votes_only_without_a_leader_and_for_a_log_as_new_as_its_own() {
        let silent = VoteFacts {
            leads: false,
            confirmed_ms: None,
            silence: LEASE,
            own_last: Some(log_id(2, 7)),
            candidate_last: Some(log_id(2, 7)),
        };
        let heard = Duration::from_millis(499);
        for (name, facts, votes) in [
            ("it hears no leader", silent, true),
            ("it heard its leader", VoteFacts { silence: heard, ..silent }, false),
            (
                "the candidate's log is shorter",
                VoteFacts { candidate_last: Some(log_id(2, 6)), ..silent },
                false,
            ),
            (
                "the candidate's log is longer",
                VoteFacts { candidate_last: Some(log_id(2, 8)), ..silent },
                true,
            ),
            (
                "the candidate's term is newer",
                VoteFacts { candidate_last: Some(log_id(3, 1)), ..silent },
                true,
            ),
            ("the candidate's log is empty", VoteFacts { candidate_last: None, ..silent }, false),
            (
                "it leads and was confirmed",
                VoteFacts { leads: true, confirmed_ms: Some(999), ..silent },
                false,
            ),
            (
                "it leads, but only in its own view",
                VoteFacts { leads: true, confirmed_ms: Some(1000), silence: heard, ..silent },
                true,
            ),
        ] {
            assert_eq!(facts.would_vote(), votes, "{name}");
        }
    }

    #[test]
    fn a_leader_is_silent_until_enough_others_may_vote() {
        let ms = Duration::from_millis;
        for (nodes, led_for, silence) in [(3, 0, 500), (3, 200, 300), (3, 900, 0), (5, 900, 500)] {
            assert_eq!(silence_before_hand_over(nodes, ms(led_for)), ms(silence), "{nodes} nodes");
        }
    }
}
