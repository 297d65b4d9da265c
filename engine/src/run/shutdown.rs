//! Signals: the first asks the node to drain, the second to stop at once. Before the run has begun, the
//! first one ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::watch;

use crate::error::Signal;
use crate::run::exit_code;

/// How a node was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Stop {
    /// Not at all.
    #[default]
    No,
    /// Take no new jobs, and finish those in flight.
    Drain(Signal),
    /// Drop the jobs in flight. They stay in the ledger.
    Now(Signal),
}

impl Stop {
    /// The signal, if there was one.
    pub(crate) fn signal(self) -> Option<Signal> {
        match self {
            Self::No => None,
            Self::Drain(signal) | Self::Now(signal) => Some(signal),
        }
    }
}

/// Listens for SIGINT and SIGTERM.
#[derive(Debug)]
pub(crate) struct SignalListener {
    token: watch::Sender<Stop>,
    begun: Arc<AtomicBool>,
}

impl SignalListener {
    /// Listens from now on.
    pub(crate) fn open() -> std::io::Result<Self> {
        let listener = Self { token: watch::Sender::new(Stop::No), begun: Arc::default() };
        let (tell, begun) = (listener.token.clone(), Arc::clone(&listener.begun));
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for number in signals.forever() {
                let signal = if number == SIGINT { Signal::Interrupt } else { Signal::Terminate };
                if !begun.load(Ordering::Acquire) {
                    end(signal);
                }
                ask(&tell, signal);
            }
        })?;
        Ok(listener)
    }

    /// The run begins: from now on signals do not end the process but change the token. An operator's
    /// `cancel` changes it through the same sender.
    pub(crate) fn begin(self) -> watch::Sender<Stop> {
        self.begun.store(true, Ordering::Release);
        self.token
    }
}

#[expect(clippy::exit, reason = "only definitions were read, so nothing has to be closed")]
fn end(signal: Signal) -> ! {
    std::process::exit(exit_code::of_signal(signal).into())
}

/// Asks to drain, or to stop at once if it is the second time.
pub(crate) fn ask(token: &watch::Sender<Stop>, signal: Signal) {
    token.send_modify(|stop| {
        *stop = match *stop {
            Stop::No => Stop::Drain(signal),
            Stop::Drain(_) | Stop::Now(_) => Stop::Now(signal),
        };
    });
}
