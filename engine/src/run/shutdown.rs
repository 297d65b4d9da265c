//! Signals to one token that everybody watches; the first asks to drain, the second to stop now.
//! Before there is anything to drain, the first one ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::watch;

use crate::error::Signal;

/// How urgently the run is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Stop {
    /// Not at all.
    #[default]
    No,
    /// Take no new jobs, finish what is in hand.
    Drain(Signal),
    /// Drop what is in hand; it stays in the ledger.
    Now(Signal),
}

impl Stop {
    /// The signal that asked, if one did.
    pub(crate) fn signal(self) -> Option<Signal> {
        match self {
            Self::No => None,
            Self::Drain(signal) | Self::Now(signal) => Some(signal),
        }
    }
}

/// The process's signals are heard.
#[derive(Debug)]
pub(crate) struct Ears {
    token: watch::Sender<Stop>,
    begun: Arc<AtomicBool>,
}

impl Ears {
    /// Hears signals from here on.
    pub(crate) fn open() -> std::io::Result<Self> {
        let ears = Self { token: watch::Sender::new(Stop::No), begun: Arc::default() };
        let (tell, begun) = (ears.token.clone(), Arc::clone(&ears.begun));
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
        Ok(ears)
    }

    /// From here on there is something to be ended in order: the token, fed by the signals. Whoever
    /// else may stop the run has the sender.
    pub(crate) fn begin(self) -> watch::Sender<Stop> {
        self.begun.store(true, Ordering::Release);
        self.token
    }
}

#[expect(clippy::exit, reason = "definitions are being read: nothing has begun, nothing is held")]
fn end(signal: Signal) -> ! {
    std::process::exit(signal.exit_code().into())
}

/// Asks to stop, or, asked before, to stop now.
pub(crate) fn ask(token: &watch::Sender<Stop>, signal: Signal) {
    token.send_modify(|stop| {
        *stop = match *stop {
            Stop::No => Stop::Drain(signal),
            Stop::Drain(_) | Stop::Now(_) => Stop::Now(signal),
        };
    });
}
