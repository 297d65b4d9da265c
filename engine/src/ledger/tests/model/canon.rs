//! One name for all states that differ only in details without effect: the number of requests, the
//! absolute time, the numbers that were drawn.

use std::collections::{BTreeMap, BTreeSet};

use super::steps::{Node, State, TICK_MS};
use crate::ledger::{Command, Core, Job, JobId, Lane, Session, SessionId, Token};

/// Stands for every number that can never occur again.
const GONE: u64 = u64::MAX;

/// New numbers for old ones, in the same order.
struct Ranks(BTreeMap<u64, u64>);

impl Ranks {
    fn of(numbers: impl IntoIterator<Item = u64>) -> Self {
        let numbers: BTreeSet<u64> = numbers.into_iter().collect();
        Self(numbers.into_iter().zip(1..).collect())
    }

    fn put(&self, number: &mut u64) {
        *number = self.0.get(number).copied().unwrap_or(GONE);
    }
}

/// The canonical values for the numbers of a state.
struct Names {
    clock: u64,
    sessions: Ranks,
    nonces: Ranks,
    tokens: Ranks,
    grants: Ranks,
    /// Start times of queued jobs that may not start at once.
    ready: Ranks,
    lives: Ranks,
}

impl State {
    /// A hash of everything that can still have an effect.
    pub(super) fn name(&self) -> u128 {
        let names = Names::of(self);
        let mut nodes = self.nodes.clone();
        for node in &mut nodes {
            // A command arrives twice only if another fault may happen.
            node.last_sent = node.last_sent.take().filter(|_| self.faults > 0);
            names.rename_node(node);
        }
        let mut core = self.ledger.core().clone();
        names.rename_core(&mut core, &self.nodes);
        let mut lanes: Vec<(_, Lane)> =
            self.ledger.lanes().map(|(id, lane)| (id, lane.clone())).collect();
        for (_, lane) in &mut lanes {
            names.rename_lane(lane);
        }
        let tables = self.ledger.tables();
        let mut jobs = tables.jobs.clone();
        for (id, job) in &mut jobs {
            names.rename_job(job, core.taken.contains_key(id));
        }
        let queue: Vec<_> = tables.queue.iter().map(|(lane, _, id)| (*lane, *id)).collect();
        let output: BTreeSet<_> =
            tables.output.iter().map(|output| (output.key, output.block.ordinal)).collect();
        let seqs: Vec<u64> = tables.output.iter().map(|output| output.seq).collect();
        let failed: Vec<JobId> = tables.failed.keys().copied().collect();
        let large = (jobs, queue, &tables.seen, failed, output, seqs);
        let mut newest = self.newest.clone();
        for token in newest.values_mut() {
            names.token(token);
        }
        let all = (core, lanes, large, nodes, newest, self.crashes, self.faults);
        let hash = blake3::hash(&postcard::to_stdvec(&all).unwrap());
        u128::from_le_bytes(hash.as_bytes()[..16].try_into().unwrap())
    }

    /// The tokens with which a result would count.
    fn good_tokens(&self) -> impl Iterator<Item = Token> {
        let taken = self.ledger.core().taken.values().map(|taken| taken.token);
        taken.chain(self.ledger.tables().jobs.values().map(|job| job.last_token))
    }
}

impl Names {
    fn of(state: &State) -> Self {
        let (core, tables) = (state.ledger.core(), state.ledger.tables());
        let nonces = core.sessions.values().map(|session| session.nonce);
        let sent = state.nodes.iter().filter_map(|node| match node.last_sent {
            Some(Command::Join(arrival)) if state.faults > 0 => Some(arrival.nonce),
            _ => None,
        });
        let grants = core.taken.values().map(|taken| taken.grant);
        let grants = grants.chain(state.ledger.lanes().map(|(_, lane)| lane.last_grant));
        let waits = tables.jobs.iter().filter(|(id, _)| !core.taken.contains_key(id));
        let seats = core.seats.values();
        let lives = seats.flat_map(|seat| seat.former_lives.iter().copied().chain([seat.life]));
        Self {
            clock: core.clock,
            sessions: Ranks::of(core.sessions.keys().map(|session| session.0)),
            nonces: Ranks::of(nonces.chain(sent)),
            tokens: Ranks::of(state.good_tokens().map(|token| token.0).filter(|token| *token > 0)),
            grants: Ranks::of(grants),
            ready: Ranks::of(waits.map(|(_, job)| job.ready_at).filter(|at| *at > 0)),
            lives: Ranks::of(lives.chain(state.nodes.iter().filter_map(|node| node.life))),
        }
    }

    fn session(&self, session: &mut SessionId) {
        self.sessions.put(&mut session.0);
    }

    fn wait(&self, at: &mut u64) {
        *at = at.saturating_sub(self.clock);
    }

    fn token(&self, token: &mut Token) {
        if token.0 > 0 {
            self.tokens.put(&mut token.0);
        }
    }

    fn rename_core(&self, core: &mut Core, nodes: &[Node]) {
        let sessions = std::mem::take(&mut core.sessions);
        core.sessions = sessions
            .into_iter()
            .map(|(mut id, mut session)| {
                self.rename_session(id, &mut session, nodes);
                self.session(&mut id);
                (id, session)
            })
            .collect();
        for taken in core.taken.values_mut() {
            self.session(&mut taken.session);
            self.token(&mut taken.token);
            self.grants.put(&mut taken.grant);
            self.wait(&mut taken.start_before);
            // No job reaches its timeout in this model.
            taken.since = 0;
        }
        for seat in core.seats.values_mut() {
            self.lives.put(&mut seat.life);
            seat.former_lives.iter_mut().for_each(|life| self.lives.put(life));
        }
        // No node crosses again, and later numbers are larger.
        core.barricades.clear();
        (core.clock, core.stamp) = (0, crate::ledger::Stamp::default());
        (core.next_token, core.next_session, core.grants) = (0, 0, 0);
    }

    fn rename_session(&self, id: SessionId, session: &mut Session, nodes: &[Node]) {
        self.nonces.put(&mut session.nonce);
        self.wait(&mut session.deadline);
        // The age of a doubt has no effect beyond one tick.
        let since = |since: u64| self.clock.saturating_sub(since).min(TICK_MS);
        session.doubted = session.doubted.map(since);
        (session.joined, session.seen) = (0, 0);
        // The number of requests by which its node is ahead.
        let node = nodes.iter().find(|node| node.session == Some(id));
        session.last_take = node.map_or(0, |node| node.takes - session.last_take);
        if !node.is_some_and(|node| node.unheard) {
            // The node will not repeat that request.
            session.last_grants.clear();
        }
    }

    fn rename_lane(&self, lane: &mut Lane) {
        self.wait(&mut lane.next_at);
        self.wait(&mut lane.floor);
        self.wait(&mut lane.head_at);
        self.grants.put(&mut lane.last_grant);
    }

    fn rename_job(&self, job: &mut Job, taken: bool) {
        self.token(&mut job.last_token);
        // Its rank among the queued jobs, and its remaining wait.
        let mut wait = job.ready_at;
        self.wait(&mut wait);
        self.ready.put(&mut job.ready_at);
        job.ready_at = if taken || job.ready_at == GONE { 0 } else { job.ready_at << 32 | wait };
    }

    fn rename_node(&self, node: &mut Node) {
        node.life.iter_mut().for_each(|life| self.lives.put(life));
        node.session.iter_mut().for_each(|session| self.session(session));
        node.held.iter_mut().for_each(|held_job| self.token(&mut held_job.token));
        node.held.sort();
        node.takes = 0;
        match &mut node.last_sent {
            Some(Command::Join(arrival)) => {
                self.nonces.put(&mut arrival.nonce);
                self.lives.put(&mut arrival.life);
            }
            Some(Command::Finish { session, token, .. }) => {
                self.session(session);
                self.token(token);
                if token.0 == GONE {
                    node.last_sent = None;
                }
            }
            _ => {}
        }
    }
}
