//! `spoonbill run` and `spoonbill retry`: from what was typed to an exit code.

use std::path::Path;

use super::problems::{self, Shown};
use super::{RunArgs, print_err, progress, secrets};
use crate::bootstrap::Node;
use crate::compose::{Composed, compose};
use crate::error::RunError;
use crate::ledger::OpenMode;
use crate::report::{FinishReason, Report, counted};
use crate::shutdown::{self, Stop};

/// Which jobs are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All of the definitions'.
    All,
    /// Those that failed last time.
    Failed,
}

pub(super) fn run(args: &RunArgs, which: Which) -> u8 {
    args.logging.start();
    let config = match args.settings.resolve(Some(&args.defs_dir), args.output.as_ref()) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let composed = match compose(&args.defs_dir, &config) {
        Ok(composed) => composed,
        Err(found) => {
            problems::print(&found.0, Shown::ProblemsAndCount);
            return 3;
        }
    };
    secrets::keep(&composed.published.secrets);
    if !args.logging.quiet {
        problems::print(&composed.warnings, Shown::Problems);
    }
    if let Some(path) = &args.report
        && let Err(error) = std::fs::File::options().create(true).append(true).open(path)
    {
        print_err(&format!("error: report `{}` cannot be written: {error}\n", path.display()));
        return 2;
    }
    if which == Which::Failed && !config.store.data_dir.join("state.db").exists() {
        let dir = config.store.data_dir.display();
        print_err(&format!("error: `{dir}` holds no run whose failed jobs could be tried again\n"));
        return 1;
    }
    let mode = match (which, args.fresh) {
        (Which::Failed, _) => OpenMode::Retry,
        (Which::All, true) => OpenMode::Fresh,
        (Which::All, false) => OpenMode::Continue,
    };
    match perform(args, &composed, mode) {
        Ok((report, stop)) => conclude(args, which, &report, stop),
        Err(RunError::Problems(found)) => {
            problems::print(&found.0, Shown::ProblemsAndCount);
            3
        }
        Err(error) if error.exit_code() == 0 => {
            if !args.logging.quiet {
                print_err(&format!("{error}\n"));
            }
            0
        }
        Err(error) => {
            print_err(&format!("error: {error}\n"));
            error.exit_code()
        }
    }
}

fn perform(
    args: &RunArgs,
    composed: &Composed,
    mode: OpenMode,
) -> Result<(Report, Stop), RunError> {
    let internal =
        |what: &str, error: std::io::Error| RunError::Internal(format!("{what}: {error}"));
    let stop = shutdown::on_signals().map_err(|error| internal("no signal handler", error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(1, usize::from).min(4))
        .enable_all()
        .build()
        .map_err(|error| internal("no async runtime", error))?;
    let (node, start) = (Node::solo(&composed.config)?, jiff::Timestamp::now());
    let standing = node.store.standing();
    let result = runtime.block_on(async {
        let running = crate::run::run(&node, composed, mode, stop.clone());
        if args.logging.quiet {
            return running.await;
        }
        let interval = composed.config.run.progress_interval;
        tokio::select! {
            report = running => report,
            () = progress::show(node.store.standing(), stop.clone(), interval, &args.logging) => {
                Err(RunError::Internal("progress ended".to_owned()))
            }
        }
    });
    node.close();
    let asked = *stop.borrow();
    runtime.shutdown_background();
    if let (Err(error), Some(path)) = (&result, &args.report) {
        let report = Report::failed(start, *standing.borrow(), error.to_string());
        report_to(path, &report);
    }
    result.map(|report| (report, asked))
}

/// Prints and writes the report; its exit code.
fn conclude(args: &RunArgs, which: Which, report: &Report, stop: Stop) -> u8 {
    match (which, args.logging.quiet) {
        (_, true) => complain_of_failures(args, report),
        (Which::Failed, false) => args.logging.say("tried the failed jobs of the last run again"),
        (Which::All, false) if report.continued => {
            args.logging.say("continued the unfinished run of this data directory");
        }
        (Which::All, false) => {}
    }
    if !args.logging.quiet {
        args.logging.tell(report);
    }
    if let Some(path) = &args.report
        && !report_to(path, report)
    {
        return 8;
    }
    match (report.finish_reason, stop) {
        (FinishReason::Cancelled, Stop::Drain(signal) | Stop::Now(signal)) => signal.exit_code(),
        // Nobody asked for it: something is wrong with us.
        (FinishReason::Cancelled, Stop::No) if report.exit_code() == 0 => 1,
        _ => report.exit_code(),
    }
}

/// What even a quiet run has to say.
fn complain_of_failures(args: &RunArgs, report: &Report) {
    if report.jobs.failed > 0 {
        let failed = counted(report.jobs.failed, "job");
        args.logging.say(&format!("error: {failed} failed; `spoonbill failed` tells why"));
    }
    for unmet in &report.unmet {
        args.logging.say(&format!("error: expectation not met: {}", unmet.text()));
    }
    for error in report.outputs.iter().filter_map(|output| output.error.as_ref()) {
        args.logging.say(&format!("error: {error}; its rows are kept, run again"));
    }
}

/// Writes the report as JSON; says so if it cannot.
fn report_to(path: &Path, report: &Report) -> bool {
    let text = serde_json::to_string_pretty(report).map_err(std::io::Error::other);
    let written = text.and_then(|text| std::fs::write(path, format!("{}\n", secrets::hide(&text))));
    if let Err(error) = &written {
        print_err(&format!("error: report `{}` could not be written: {error}\n", path.display()));
    }
    written.is_ok()
}
