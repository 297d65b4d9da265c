//! Progress: a line redrawn on a terminal, plain lines otherwise.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::watch;

use super::{LogArgs, LogFormat};
use crate::error::counted;
use crate::ledger::Standing;
use crate::run::shutdown::Stop;

/// How often a terminal is redrawn.
const REDRAW: Duration = Duration::from_millis(200);

/// Shows how far the run is, and what a signal has started, until it is dropped.
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
    format!("{done} done, {failed} failed, {taken} in hand, {pending} waiting, {rows} rows")
}

/// So many jobs are in hand; what a node among others has of them, nobody has counted.
fn stopping(stop: Stop, taken: Option<u64>) -> String {
    let jobs = match taken {
        Some(taken) => format!("{} in hand", counted(taken, "job")),
        None => "what this node has in hand".to_owned(),
    };
    match stop {
        Stop::No | Stop::Drain(_) => {
            format!("stopping: {jobs} will be finished; a second signal stops at once")
        }
        Stop::Now(_) => format!("stopping at once: {jobs} will be done again"),
    }
}
