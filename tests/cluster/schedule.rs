//! Random faults for the runs of `hammer.rs`, drawn from a seed.

use std::time::Duration;

use crate::kill::shop::SeededRandom;

/// The node that a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultTarget {
    /// The node that leads at that time.
    Leader,
    /// One of the nodes that run, by index modulo their number.
    Any(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeFault {
    /// SIGKILL, and a restart after this time.
    Kill(FaultTarget, Duration),
    /// SIGKILL for two nodes at once.
    Double(Duration),
    /// SIGKILL for all running nodes at once.
    All(Duration),
    /// SIGKILL, and a restart with an empty data directory.
    Empty(FaultTarget, Duration),
    /// SIGSTOP, and SIGCONT after this time.
    Stop(FaultTarget, Duration),
    /// SIGTERM, and a restart this long after the process has ended.
    Leave(FaultTarget, Duration),
}

/// A fault, and its delay after the previous one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub after: Duration,
    pub fault: NodeFault,
}

fn ms(dice: &mut SeededRandom, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + dice.below(to - from))
}

/// How long a killed node stays down. Some times are longer than a session lives.
fn away(dice: &mut SeededRandom) -> Duration {
    match dice.below(6) {
        0 | 1 => ms(dice, 0, 30),
        2 | 3 => ms(dice, 100, 900),
        4 => ms(dice, 900, 2500),
        _ => ms(dice, 2500, 5500),
    }
}

/// How long a stopped node sleeps. Some times are longer than a session lives.
fn asleep(dice: &mut SeededRandom) -> Duration {
    match dice.below(3) {
        0 => ms(dice, 100, 800),
        1 => ms(dice, 800, 3000),
        _ => ms(dice, 3000, 8000),
    }
}

fn target(dice: &mut SeededRandom, votes: usize) -> FaultTarget {
    if dice.below(2) == 0 {
        FaultTarget::Leader
    } else {
        FaultTarget::Any(dice.below(votes as u64) as usize)
    }
}

/// Draws `faults` faults for a cluster with `votes` voters.
pub(super) fn draw(dice: &mut SeededRandom, votes: usize, faults: usize) -> Vec<Planned> {
    let mut plan: Vec<Planned> = Vec::with_capacity(faults);
    let mut emptied = 0;
    while plan.len() < faults {
        let fault = match dice.below(20) {
            // Never the disks of a majority, because then rows may be lost.
            0 | 1 if emptied < (votes - 1) / 2 => {
                emptied += 1;
                NodeFault::Empty(target(dice, votes), away(dice))
            }
            2..=5 => NodeFault::Stop(target(dice, votes), asleep(dice)),
            6 | 7 => NodeFault::Double(away(dice)),
            8 => NodeFault::All(away(dice)),
            9 => NodeFault::Leave(target(dice, votes), away(dice)),
            10..=12 => {
                NodeFault::Kill(FaultTarget::Any(dice.below(votes as u64) as usize), away(dice))
            }
            _ => NodeFault::Kill(FaultTarget::Leader, away(dice)),
        };
        // The first fault may come during start, setup and seeding.
        let after = match (plan.is_empty(), dice.below(3)) {
            (true, _) => ms(dice, 0, 2500),
            (_, 0) => ms(dice, 0, 120),
            _ => ms(dice, 150, 1600),
        };
        plan.push(Planned { after, fault });
    }
    plan
}
