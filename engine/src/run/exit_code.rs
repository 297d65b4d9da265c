//! The exit code of a command: the only place that chooses it. `docs/exit-codes.md` has the table for
//! users.

use crate::error::{RunError, Signal};
use crate::run::report::{FinishReason, Report};
use crate::store::StoreError;

/// The facts besides its report that decide the exit code of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Circumstances {
    /// The signal that stopped this process, if one did.
    pub signal: Option<Signal>,
    /// Whether an operator has cancelled the run on all nodes.
    pub is_cancelled: bool,
    /// Whether the report file that was asked for could not be written.
    pub is_report_lost: bool,
}

/// The exit code of a run that has a report.
pub(crate) fn of_run(report: &Report, circumstances: Circumstances) -> u8 {
    let Circumstances { signal, is_cancelled, is_report_lost } = circumstances;
    let has_lost_output = report.outputs.iter().any(|output| output.error.is_some());
    match (report.finish_reason, signal) {
        _ if is_report_lost => 8,
        (FinishReason::Cancelled, Some(signal)) => of_signal(signal),
        // The same as Ctrl-C, but on all nodes.
        (FinishReason::Cancelled, None) if is_cancelled => of_signal(Signal::Interrupt),
        _ if has_lost_output => 8,
        (FinishReason::Halted, _) => 4,
        // A run that ends without a reason is not a success.
        (FinishReason::Cancelled | FinishReason::Failed, _) => 1,
        (FinishReason::Finished, _) if !report.unmet.is_empty() => 5,
        (FinishReason::Finished, _) if report.jobs.failed > 0 => 4,
        (FinishReason::Finished, _) => 0,
    }
}

/// The exit code of a run that has no report, or of another command.
pub(crate) fn of_error(error: &RunError) -> u8 {
    match error {
        RunError::Problems(_)
        | RunError::Broken(_)
        | RunError::Elsewhere(_)
        | RunError::OtherRun(_)
        | RunError::NotEnded => 3,
        RunError::Store(StoreError::Unfit(_)) => 2,
        RunError::Store(StoreError::NoQuorum(_)) => 75,
        RunError::Store(
            StoreError::InUse(_)
            | StoreError::Newer { .. }
            | StoreError::Older { .. }
            | StoreError::Excluded(_),
        ) => 10,
        RunError::Store(StoreError::Full(_)) => 9,
        RunError::Store(StoreError::Ended(code)) => *code,
        RunError::NothingToRetry | RunError::NothingToComplete => 0,
        RunError::Stopped(signal) | RunError::NoReport(signal) => of_signal(*signal),
        RunError::NothingToReplay
        | RunError::Stale
        | RunError::Store(_)
        | RunError::Internal(_) => 1,
    }
}

/// The exit code of a process that a signal has stopped: 128 and the number of the signal.
pub(crate) fn of_signal(signal: Signal) -> u8 {
    match signal {
        Signal::Interrupt => 130,
        Signal::Terminate => 143,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::expectations::Unmet;
    use crate::run::report::OutputFile;

    fn report(finish_reason: FinishReason) -> Report {
        Report { finish_reason, ..Report::default() }
    }

    fn with_lost_output(report: Report) -> Report {
        let error = Some("disk full".to_owned());
        Report { outputs: vec![OutputFile { path: "data.csv".to_owned(), error }], ..report }
    }

    fn with_unmet(mut report: Report) -> Report {
        report.unmet = vec![Unmet {
            data_def: "price".to_owned(),
            field: None,
            query: None,
            words: "no rows".to_owned(),
        }];
        report
    }

    fn with_failed_job(mut report: Report) -> Report {
        report.jobs.failed = 1;
        report
    }

    #[test]
    fn the_exit_code_of_a_run_follows_the_table() {
        use FinishReason::{Cancelled, Failed, Finished, Halted};
        let nothing = Circumstances::default();
        let signal = |signal| Circumstances { signal: Some(signal), ..nothing };
        let cancelled = Circumstances { is_cancelled: true, ..nothing };
        let lost = Circumstances { is_report_lost: true, ..nothing };
        for (report, circumstances, code) in [
            (report(Finished), nothing, 0),
            (report(Finished), signal(Signal::Interrupt), 0),
            (with_failed_job(report(Finished)), nothing, 4),
            (with_unmet(with_failed_job(report(Finished))), nothing, 5),
            (with_lost_output(with_unmet(report(Finished))), nothing, 8),
            (report(Finished), lost, 8),
            (report(Halted), nothing, 4),
            (with_lost_output(report(Halted)), nothing, 8),
            (report(Cancelled), signal(Signal::Interrupt), 130),
            (report(Cancelled), signal(Signal::Terminate), 143),
            (with_lost_output(report(Cancelled)), signal(Signal::Terminate), 143),
            (report(Cancelled), cancelled, 130),
            (report(Cancelled), nothing, 1),
            (with_lost_output(report(Cancelled)), nothing, 8),
            (report(Failed), nothing, 1),
        ] {
            let is = of_run(&report, circumstances);
            assert_eq!(is, code, "{:?}, {circumstances:?}", report.finish_reason);
        }
    }

    #[test]
    fn the_exit_code_of_an_error_follows_the_table() {
        let words = || "why".to_owned();
        for (error, code) in [
            (RunError::OtherRun(words()), 3),
            (RunError::NotEnded, 3),
            (StoreError::Unfit(words()).into(), 2),
            (StoreError::NoQuorum(words()).into(), 75),
            (StoreError::InUse(words()).into(), 10),
            (StoreError::Excluded(words()).into(), 10),
            (StoreError::Full(words()).into(), 9),
            (StoreError::Ended(4).into(), 4),
            (StoreError::Damaged(words()).into(), 1),
            (RunError::NothingToRetry, 0),
            (RunError::NothingToComplete, 0),
            (RunError::Stopped(Signal::Terminate), 143),
            (RunError::Internal(words()), 1),
        ] {
            assert_eq!(of_error(&error), code, "{error}");
        }
    }
}
