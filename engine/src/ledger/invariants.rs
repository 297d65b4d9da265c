//! The invariants that hold after every command. The unit tests, the simulation, the model check and
//! `spoonbill fsck` use this list.

use std::collections::{BTreeMap, BTreeSet};

use super::levels::place;
use super::tables::MemoryTables;
use super::{Barricade, Core, JobId, Ledger, Run};

/// Every invariant that does not hold, as text; empty if all hold.
pub fn violations(ledger: &Ledger<MemoryTables>) -> Vec<String> {
    let mut broken = Violations::default();
    let (core, tables) = (ledger.core(), ledger.tables());
    check_jobs(core, tables, &mut broken);
    check_sessions(core, &mut broken);
    check_lanes(ledger, &mut broken);
    if let Some(run) = &core.run {
        check_run(run, core, tables, &mut broken);
        check_levels(run, core, tables, &mut broken);
    }
    broken.0
}

#[derive(Default)]
struct Violations(Vec<String>);

impl Violations {
    fn require(&mut self, holds: bool, invariant: &str) {
        if !holds {
            self.0.push(invariant.to_owned());
        }
    }
}

fn check_jobs(core: &Core, tables: &MemoryTables, broken: &mut Violations) {
    let taken: BTreeSet<_> = core.taken.keys().copied().collect();
    let queued: BTreeSet<_> = tables.queue.iter().map(|(_, _, id)| *id).collect();
    broken.require(taken.is_disjoint(&queued), "a job is either queued or in flight");
    broken.require(queued.len() == tables.queue.len(), "a job is in one queue only");
    let jobs: BTreeSet<_> = tables.jobs.keys().copied().collect();
    broken.require(
        jobs == taken.union(&queued).copied().collect(),
        "a job that has not ended is queued or in flight",
    );
    broken.require(
        tables.failed.keys().all(|id| !jobs.contains(id)),
        "I1: a failed job is neither queued nor in flight",
    );
    let tokens: BTreeSet<_> = core.taken.values().map(|taken| taken.token).collect();
    broken.require(tokens.len() == core.taken.len(), "I4: no two grants share a token");
}

fn check_sessions(core: &Core, broken: &mut Violations) {
    broken.require(
        core.taken.values().all(|taken| core.sessions.contains_key(&taken.session)),
        "I5: only a living session holds jobs",
    );
    let holds = |session| core.taken.values().filter(|taken| taken.session == session).count();
    broken.require(
        core.taken.values().filter(|taken| taken.alone).all(|taken| holds(taken.session) == 1),
        "T7: a session with an isolated job holds no other job",
    );
    for gate in core.barricades.values() {
        let known = match gate {
            Barricade::Crossing { owner, .. } => core.sessions.contains_key(owner),
            Barricade::Crossed { by, .. } => {
                !by.is_empty() && by.iter().all(|session| core.sessions.contains_key(session))
            }
        };
        broken
            .require(known, "I9: only a living session crosses a barricade or may read its result");
    }
}

fn check_lanes(ledger: &Ledger<MemoryTables>, broken: &mut Violations) {
    let (core, tables) = (ledger.core(), ledger.tables());
    let lanes: BTreeSet<_> = ledger.lanes().map(|(id, _)| id).collect();
    broken.require(
        tables.queue.iter().all(|(lane, ..)| lanes.contains(lane))
            && core.taken.values().all(|taken| lanes.contains(&taken.lane)),
        "every lane in use exists",
    );
    for (id, lane) in ledger.lanes() {
        let held = core.taken.values().filter(|taken| taken.lane == id).count();
        let pending = tables.queue.iter().filter(|(own, ..)| *own == id).count();
        broken.require(lane.held as usize == held, "a lane counts its jobs in flight");
        broken.require(lane.pending as usize == pending, "a lane counts its queued jobs");
        let head = tables.queue.range((id, 0, JobId(0))..).next().filter(|(own, ..)| *own == id);
        broken.require(
            head.is_none_or(|(_, at, _)| *at == place(lane.head_level, lane.head_at)),
            "a lane knows when its first job is ready",
        );
    }
    broken.require(
        ledger.holders_are_consistent(),
        "I6: a polite lane with a delay has at most one holder",
    );
    broken
        .require(ledger.lanes_are_indexed(), "a lane that may be served is either due or waiting");
}

fn check_run(run: &Run, core: &Core, tables: &MemoryTables, broken: &mut Violations) {
    broken
        .require(run.pending as usize == tables.queue.len(), "I3: the run counts its queued jobs");
    broken
        .require(run.failed as usize == tables.failed.len(), "I3: the run counts its failed jobs");
    broken.require(
        run.pending + core.taken_count() + run.done + run.failed == run.known
            && run.known as usize == tables.seen.len(),
        "I3: pending + taken + done + failed = known",
    );
    let gapless = tables.output.iter().zip(1..).all(|(block, seq)| block.seq == seq);
    broken.require(
        gapless && run.output_seq as usize == tables.output.len(),
        "I7: the output has no gap",
    );
    let names: BTreeSet<_> =
        tables.output.iter().map(|output| (output.key, output.block.ordinal)).collect();
    broken.require(names.len() == tables.output.len(), "I1: a block is committed once");
    broken.require(
        run.positions.iter().all(|position| position.seq <= run.output_seq),
        "I13: no appender has written more than the output",
    );
}

fn check_levels(run: &Run, core: &Core, tables: &MemoryTables, broken: &mut Violations) {
    let places = |(_, at, id): &(_, u64, JobId)| {
        tables.jobs.get(id).is_some_and(|job| *at == core.place_of(job))
    };
    broken.require(
        tables.queue.iter().all(places),
        "a job is in the queue at the position of its level and time",
    );
    let mut open: BTreeMap<u32, u64> = BTreeMap::new();
    for job in tables.jobs.values().filter(|_| run.plan.has_levels()) {
        *open.entry(core.level_of(job)).or_default() += 1;
    }
    broken.require(run.open == open, "C2: the run counts the jobs of each level");
    if !run.plan.sequence.is_empty() {
        return; // A link may lead back to an earlier group while later jobs are in flight.
    }
    let least = open.keys().next();
    let mut taken = core.taken.keys().filter_map(|id| tables.jobs.get(id));
    broken.require(
        taken.all(|job| least.is_none_or(|least| core.level_of(job) == *least)),
        "C2: jobs in flight are of the smallest depth",
    );
}
