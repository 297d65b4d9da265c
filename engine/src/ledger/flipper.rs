//! The phases of a node during a run, and the table of their transitions.

/// The phase of a node in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The node takes jobs and works on them.
    Ready,
    /// The node has no job in flight, but may get more.
    Done,
    /// The node takes no more jobs and finishes those in flight.
    Shutdown,
    /// The node has no job in flight and takes no more.
    Terminated,
}

/// The facts that decide the next phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PhaseInput {
    /// Every group is seeded, and no job is queued or in flight in the whole run.
    pub over: bool,
    /// A signal or a failed store asks the node to stop.
    pub cancelled: bool,
    /// Jobs in flight on this node.
    pub in_flight: usize,
}

/// The next phase. The only way back is from `Done` to `Ready`.
pub fn flip(phase: Phase, input: PhaseInput) -> Phase {
    let stop = input.over || input.cancelled;
    match (phase, stop, input.in_flight) {
        (Phase::Terminated, _, _) | (Phase::Shutdown, _, 0) => Phase::Terminated,
        (Phase::Shutdown, _, _) | (_, true, _) => Phase::Shutdown,
        (Phase::Ready | Phase::Done, false, 0) => Phase::Done,
        (Phase::Ready | Phase::Done, false, _) => Phase::Ready,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(over: bool, cancelled: bool, in_flight: usize) -> PhaseInput {
        PhaseInput { over, cancelled, in_flight }
    }

    #[test]
    fn idle_flips_to_done_and_back_when_work_appears() {
        let done = flip(Phase::Ready, look(false, false, 0));
        assert_eq!(done, Phase::Done);
        assert_eq!(flip(done, look(false, false, 3)), Phase::Ready);
    }

    #[test]
    fn only_the_end_of_the_work_or_a_cancel_shuts_down() {
        assert_eq!(flip(Phase::Ready, look(false, false, 1)), Phase::Ready);
        assert_eq!(flip(Phase::Done, look(true, false, 0)), Phase::Shutdown);
        assert_eq!(flip(Phase::Ready, look(false, true, 2)), Phase::Shutdown);
    }

    #[test]
    fn shutdown_waits_for_jobs_in_flight_and_never_returns_to_ready() {
        assert_eq!(flip(Phase::Shutdown, look(false, true, 2)), Phase::Shutdown);
        assert_eq!(flip(Phase::Shutdown, look(false, true, 0)), Phase::Terminated);
        assert_eq!(flip(Phase::Terminated, look(false, false, 1)), Phase::Terminated);
    }
}
