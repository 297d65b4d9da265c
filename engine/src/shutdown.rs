//! Signals to one token that everybody watches; the first asks to drain, the second to stop now.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::watch;

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

/// Which signal asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// `kill`, or Kubernetes.
    Terminate,
}

impl Signal {
    /// The exit code of a run that it ended.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// The token, fed by the process's signals; whoever else may stop the run has the sender.
pub(crate) fn on_signals() -> std::io::Result<watch::Sender<Stop>> {
    let token = watch::Sender::new(Stop::No);
    let tell = token.clone();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for number in signals.forever() {
            ask(&tell, if number == SIGINT { Signal::Interrupt } else { Signal::Terminate });
        }
    })?;
    Ok(token)
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
