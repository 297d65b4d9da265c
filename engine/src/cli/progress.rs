//! Progress of a run: one redrawn line on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::watch;

use super::{LogArgs, LogFormat};
use crate::error::counted;
use crate::ledger::Standing;
use crate::run::shutdown::Stop;

/// Interval between two redraws of a terminal.
const REDRAW: Duration = Duration::from_millis(200);

/// Shows the progress and the reaction to signals until it is dropped.
pub(super) async fn show(
    standing: watch::Receiver<Standing>,
    mut stop: watch::Receiver<Stop>,
    alone: bool,
    interval: Duration,
    logging: &LogArgs,
) {
    let terminal = std::io::stderr().is_terminal() && logging.log_format == LogFormat::Text;
    let bar = terminal.then(bar);
    let mut tick = tokio::time::interval(if bar.is_some() { REDRAW } else { interval });
    tick.tick().await;
    loop {
        let words = tokio::select! {
            _ = tick.tick() => words(*standing.borrow()),
            Ok(()) = stop.changed() => {
                let taken = alone.then(|| standing.borrow().taken);
                let words = stopping(*stop.borrow_and_update(), taken);
                match &bar {
                    Some(bar) => bar.println(words),
                    None => logging.say(&words),
                }
                continue;
            }
        };
        match &bar {
            Some(bar) => {
                bar.set_message(words);
                bar.tick();
            }
            None => logging.say(&format!("progress: {words}")),
        }
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
    ProgressBar::new_spinner()
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

fn words(standing: Standing) -> String {
    let Standing { pending, taken, done, failed, rows, .. } = standing;
    format!("{done} done, {failed} failed, {taken} in flight, {pending} pending, {rows} rows")
}

/// The message for a signal. `taken` is the number of jobs in flight; a node of a cluster does not know
/// which of them are its own.
fn stopping(stop: Stop, taken: Option<u64>) -> String {
    let jobs = match taken {
        Some(taken) => format!("{} in flight", counted(taken, "job")),
        None => "the jobs in flight on this node".to_owned(),
    };
    match stop {
        Stop::No | Stop::Drain(_) => {
            format!("stopping after {jobs}; a second signal stops at once")
        }
        Stop::Now(_) => format!("stopping at once; the next run repeats {jobs}"),
    }
}
