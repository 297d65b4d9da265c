//! What must hold after every command: one predicate each, used by tests, simulation and fsck.

use std::collections::BTreeSet;

use super::tables::MemoryTables;
use super::{Barricade, JobId, Ledger};

/// Every invariant of the ledger that does not hold, in words; empty when all is well.
pub fn violations(ledger: &Ledger<MemoryTables>) -> Vec<String> {
    let mut broken = Vec::new();
    let mut check = |holds: bool, words: &str| {
        if !holds {
            broken.push(words.to_owned());
        }
    };
    check_jobs(ledger, &mut check);
    check_lanes(ledger, &mut check);
    check_run(ledger, &mut check);
    broken
}

fn check_jobs(ledger: &Ledger<MemoryTables>, check: &mut impl FnMut(bool, &str)) {
    let core = ledger.core();
    let tables = ledger.tables();
    let taken: BTreeSet<_> = core.taken.keys().copied().collect();
    let queued: BTreeSet<_> = tables.queue.iter().map(|(_, _, id)| *id).collect();
    check(taken.is_disjoint(&queued), "a job is queued or taken, not both");
    check(queued.len() == tables.queue.len(), "a job stands in one queue only");
    let jobs: BTreeSet<_> = tables.jobs.keys().copied().collect();
    check(
        jobs == taken.union(&queued).copied().collect(),
        "a job that has not ended is queued or taken",
    );
    check(
        tables.failed.keys().all(|id| !jobs.contains(id)),
        "I1: a failed job is not queued or taken",
    );
    check(
        core.taken.values().all(|taken| core.sessions.contains_key(&taken.session)),
        "I5: only a living session holds jobs",
    );
    let tokens: BTreeSet<_> = core.taken.values().map(|taken| taken.token).collect();
    check(tokens.len() == core.taken.len(), "I4: no two grants share a token");
    let lanes: BTreeSet<_> = ledger.lanes().map(|(id, _)| id).collect();
    check(
        tables.queue.iter().all(|(lane, ..)| lanes.contains(lane))
            && core.taken.values().all(|taken| lanes.contains(&taken.lane)),
        "every lane in use is there",
    );
    for gate in core.barricades.values() {
        if let Barricade::Crossing { owner, .. } = gate {
            check(core.sessions.contains_key(owner), "I9: only a living session is crossing");
        }
    }
}

fn check_lanes(ledger: &Ledger<MemoryTables>, check: &mut impl FnMut(bool, &str)) {
    let core = ledger.core();
    let tables = ledger.tables();
    for (id, lane) in ledger.lanes() {
        let held = core.taken.values().filter(|taken| taken.lane == id).count();
        let pending = tables.queue.iter().filter(|(own, ..)| *own == id).count();
        check(lane.held as usize == held, "a lane counts the jobs it holds");
        check(lane.pending as usize == pending, "a lane counts the jobs that wait");
        let head = tables.queue.range((id, 0, JobId(0))..).next().filter(|(own, ..)| *own == id);
        check(
            head.is_none_or(|(_, ready_at, _)| *ready_at == lane.head_at),
            "a lane knows when its first job is ready",
        );
    }
    check(ledger.lanes_in_order(), "a lane that may be served is due or waiting, once");
    let alone = core.taken.values().filter(|taken| taken.alone);
    check(
        alone.clone().all(|one| {
            core.taken.values().filter(|taken| taken.session == one.session).count() == 1
        }),
        "T7: who works on an isolated job works on nothing else",
    );
}

fn check_run(ledger: &Ledger<MemoryTables>, check: &mut impl FnMut(bool, &str)) {
    let core = ledger.core();
    let tables = ledger.tables();
    if let Some(run) = &core.run {
        let ended = run.done + run.failed;
        check(run.pending as usize == tables.queue.len(), "I3: the run counts what is pending");
        check(run.failed as usize == tables.failed.len(), "I3: the run counts what failed");
        check(
            run.pending + core.taken.len() as u64 + ended == run.known
                && run.known as usize == tables.seen.len(),
            "I3: pending + taken + done + failed = known",
        );
        let gapless = tables.output.iter().zip(1..).all(|(block, seq)| block.seq == seq);
        check(
            gapless && run.output_seq as usize == tables.output.len(),
            "I7: the output has no gap",
        );
        let names: BTreeSet<_> =
            tables.output.iter().map(|output| (output.key, output.block.ordinal)).collect();
        check(names.len() == tables.output.len(), "I1: a block is committed once");
        check(
            run.positions.iter().all(|position| position.seq <= run.output_seq),
            "I13: no appender is ahead of the output",
        );
    }
}
