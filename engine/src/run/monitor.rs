//! The monitor computes the node's phase after every change of the ledger's numbers, and publishes it.

use tokio::sync::watch;

use crate::ledger::{Phase, PhaseInput, Standing, flip};
use crate::run::shutdown::Stop;

/// The facts that the monitor watches, and the phase it keeps.
#[derive(Debug)]
pub(crate) struct Monitor {
    /// The ledger's numbers.
    pub standing: watch::Receiver<Standing>,
    /// Whether the node was asked to stop.
    pub stop: watch::Receiver<Stop>,
    /// Jobs in flight on this node.
    pub in_flight: watch::Receiver<usize>,
    /// The node's phase.
    pub phase: watch::Sender<Phase>,
}

impl Monitor {
    /// Watches until the node's work has ended.
    pub(crate) async fn watch(mut self) {
        let mut store_lost = false;
        loop {
            let standing = *self.standing.borrow_and_update();
            let asked = *self.stop.borrow_and_update() != Stop::No;
            let vitals = PhaseInput {
                over: standing.over,
                cancelled: store_lost || asked || standing.cancelled,
                in_flight: *self.in_flight.borrow_and_update(),
            };
            let now = *self.phase.borrow();
            let next = flip(now, vitals);
            if next != now {
                tracing::debug!(?next, "phase");
                self.phase.send_replace(next);
                continue;
            }
            if next == Phase::Terminated {
                return;
            }
            // A store that has ended ends the work as a cancel does.
            tokio::select! {
                changed = self.standing.changed(), if !store_lost => store_lost = changed.is_err(),
                changed = self.in_flight.changed() => if changed.is_err() { return },
                Ok(()) = self.stop.changed() => {}
            }
        }
    }
}
