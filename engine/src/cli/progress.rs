//! Progress: a line redrawn on a terminal, plain lines otherwise.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::watch;

use crate::ledger::Standing;

/// How often a terminal is redrawn.
const REDRAW: Duration = Duration::from_millis(200);

/// Shows how far the run is until it is dropped.
pub(super) async fn show(mut standing: watch::Receiver<Standing>, interval: Duration) {
    let bar = std::io::stderr().is_terminal().then(bar);
    let mut tick = tokio::time::interval(if bar.is_some() { REDRAW } else { interval });
    tick.tick().await;
    loop {
        tick.tick().await;
        let words = words(*standing.borrow_and_update());
        match &bar {
            Some(bar) => {
                bar.set_message(words);
                bar.tick();
            }
            None => super::print_err(&format!("progress: {words}\n")),
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
