//! What happens to the nodes of a hammered run, drawn from a number.

use std::time::Duration;

use crate::kill::shop::Dice;

/// Whom a fault is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whom {
    /// Whoever leads at the time.
    Leader,
    /// One of those that are there; counted round.
    Any(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// SIGKILL, and the same command after a while.
    Kill(Whom, Duration),
    /// Two at once.
    Double(Duration),
    /// All that are there at once.
    All(Duration),
    /// SIGKILL, and its data directory is gone when it comes back.
    Empty(Whom, Duration),
    /// SIGSTOP, and SIGCONT after a while.
    Stop(Whom, Duration),
    /// SIGTERM, and the same command a while after it has left.
    Leave(Whom, Duration),
}

/// A fault, and how long after the one before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub after: Duration,
    pub fault: Fault,
}

fn ms(dice: &mut Dice, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + dice.below(to - from))
}

/// How long a killed node is away: back at once, soon, or after its session has expired.
fn away(dice: &mut Dice) -> Duration {
    match dice.below(6) {
        0 | 1 => ms(dice, 0, 30),
        2 | 3 => ms(dice, 100, 900),
        4 => ms(dice, 900, 2500),
        _ => ms(dice, 2500, 5500),
    }
}

/// How long a stopped node sleeps: a hiccup, or longer than its session lives.
fn asleep(dice: &mut Dice) -> Duration {
    match dice.below(3) {
        0 => ms(dice, 100, 800),
        1 => ms(dice, 800, 3000),
        _ => ms(dice, 3000, 8000),
    }
}

fn whom(dice: &mut Dice, votes: usize) -> Whom {
    if dice.below(2) == 0 { Whom::Leader } else { Whom::Any(dice.below(votes as u64) as usize) }
}

/// So many faults for a cluster of so many votes.
pub(super) fn draw(dice: &mut Dice, votes: usize, faults: usize) -> Vec<Planned> {
    let mut plan: Vec<Planned> = Vec::with_capacity(faults);
    let mut emptied = 0;
    while plan.len() < faults {
        let fault = match dice.below(20) {
            // Never the disks of a majority: nobody promises rows after that.
            0 | 1 if emptied < (votes - 1) / 2 => {
                emptied += 1;
                Fault::Empty(whom(dice, votes), away(dice))
            }
            2..=5 => Fault::Stop(whom(dice, votes), asleep(dice)),
            6 | 7 => Fault::Double(away(dice)),
            8 => Fault::All(away(dice)),
            9 => Fault::Leave(whom(dice, votes), away(dice)),
            10..=12 => Fault::Kill(Whom::Any(dice.below(votes as u64) as usize), away(dice)),
            _ => Fault::Kill(Whom::Leader, away(dice)),
        };
        // The first may come while they start, set up and seed.
        let after = match (plan.is_empty(), dice.below(3)) {
            (true, _) => ms(dice, 0, 2500),
            (_, 0) => ms(dice, 0, 120),
            _ => ms(dice, 150, 1600),
        };
        plan.push(Planned { after, fault });
    }
    plan
}
