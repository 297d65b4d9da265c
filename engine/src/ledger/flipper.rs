//! The phases of a node's life and the one table that moves it through them.

/// Where a node stands in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Jobs are taken and worked on.
    Ready,
    /// Nothing is in hand here; more may still come.
    Done,
    /// No more jobs are taken; what is in hand ends.
    Shutdown,
    /// Nothing is in hand and nothing will be.
    Terminated,
}

/// What the monitor sees on one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PhaseInput {
    /// The ledger's one fact: everything seeded, nothing pending, nothing taken.
    pub over: bool,
    /// A signal or an unusable store asks to stop.
    pub cancelled: bool,
    /// Jobs in hand on this node.
    pub in_hand: usize,
}

/// The next phase. A phase never goes back but from `Done` to `Ready`.
pub fn flip(phase: Phase, input: PhaseInput) -> Phase {
    let stop = input.over || input.cancelled;
    match (phase, stop, input.in_hand) {
        (Phase::Terminated, _, _) | (Phase::Shutdown, _, 0) => Phase::Terminated,
        (Phase::Shutdown, _, _) | (_, true, _) => Phase::Shutdown,
        (Phase::Ready | Phase::Done, false, 0) => Phase::Done,
        (Phase::Ready | Phase::Done, false, _) => Phase::Ready,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(over: bool, cancelled: bool, in_hand: usize) -> PhaseInput {
        PhaseInput { over, cancelled, in_hand }
    }

    #[test]
    fn idle_flips_to_done_and_back_when_work_appears() {
        let done = flip(Phase::Ready, look(false, false, 0));
        assert_eq!(done, Phase::Done);
        assert_eq!(flip(done, look(false, false, 3)), Phase::Ready);
    }

    #[test]
    fn only_the_end_or_a_cancel_shuts_down() {
        assert_eq!(flip(Phase::Ready, look(false, false, 1)), Phase::Ready);
        assert_eq!(flip(Phase::Done, look(true, false, 0)), Phase::Shutdown);
        assert_eq!(flip(Phase::Ready, look(false, true, 2)), Phase::Shutdown);
    }

    #[test]
    fn shutdown_waits_for_what_is_in_hand_and_never_goes_back() {
        assert_eq!(flip(Phase::Shutdown, look(false, true, 2)), Phase::Shutdown);
        assert_eq!(flip(Phase::Shutdown, look(false, true, 0)), Phase::Terminated);
        assert_eq!(flip(Phase::Terminated, look(false, false, 1)), Phase::Terminated);
    }
}
