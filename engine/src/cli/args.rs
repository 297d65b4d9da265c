//! Options that several commands share.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use super::problems::{self, ProblemsShown};
use super::{CommandFailure, print_err, secrets};
use crate::config::{Config, Inputs};
use crate::run::report::Report;
use crate::threads::ignore::ignore_closed;

/// The sources of settings.
#[derive(Debug, Args)]
pub(super) struct SettingArgs {
    /// One setting; repeatable, and stronger than environment and file
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) sets: Vec<String>,
    /// Settings file [default: spoonbill.yml beside the definitions, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Durable state: job ledger, stored pages, parsed data [default: data]
    #[arg(long, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
}

/// The amount and form of log lines.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// Form of log lines
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(super) log_format: LogFormat,
    /// Log more; twice for everything
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
    /// Log errors only
    #[arg(short, long)]
    pub(super) quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    Text,
    Json,
}

impl SettingArgs {
    /// Resolves the settings and prints their warnings.
    pub(super) fn resolve(&self, defs_dir: Option<&Path>) -> Result<Config, CommandFailure> {
        self.resolve_with(Vec::new(), defs_dir, None)
    }

    /// [`Self::resolve`] with the flags of a command.
    pub(super) fn resolve_with(
        &self,
        mut flags: Vec<(String, String)>,
        defs_dir: Option<&Path>,
        output: Option<&Path>,
    ) -> Result<Config, CommandFailure> {
        if self.sets.iter().any(|set| set.trim_start().starts_with("cluster.secret=")) {
            // Every user of the machine can read a command line.
            let words = "a secret does not belong on the command line: put it into a file and name it \
                         with `--set cluster.secretFile=FILE`";
            return Err(CommandFailure::new(3, words));
        }
        let mut flag = |key: &str, value: Option<&Path>| {
            flags.extend(value.map(|value| (key.to_owned(), value.display().to_string())));
        };
        flag("data.dir", self.data_dir.as_deref());
        flag("output.dir", output);
        let inputs = Inputs {
            flags,
            sets: self.sets.clone(),
            config_file: self.config.clone(),
            defs_dir: defs_dir.map(Path::to_path_buf),
            ..Inputs::default()
        };
        let (config, warnings) = Config::resolve(&inputs.with_process_env())?;
        problems::print(&warnings, ProblemsShown::Only);
        Ok(config)
    }
}

impl LogArgs {
    /// Prints a sentence on stderr, in the form of the log.
    pub(super) fn say(&self, words: &str) {
        match self.log_format {
            LogFormat::Text => print_err(&format!("{words}\n")),
            LogFormat::Json => print_err(&format!("{}\n", serde_json::json!({ "message": words }))),
        }
    }

    /// Prints the report on stderr, in the form of the log.
    pub(super) fn print_report(&self, report: &Report) {
        match self.log_format {
            LogFormat::Text => print_err(&report.text()),
            LogFormat::Json => {
                print_err(&format!("{}\n", serde_json::json!({ "report": report })));
            }
        }
    }

    /// Starts the log on stderr.
    pub(super) fn start(&self) {
        let level = match (self.quiet, self.verbose) {
            (true, _) => "error,openraft=off",
            (false, 0) => "warn,openraft=off",
            (false, 1) => "spoonbill_engine=debug,warn,openraft=off",
            (false, 2) => "trace,openraft=off",
            (false, _) => "trace",
        };
        let builder = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(level))
            .with_writer(secrets::HiddenStderr::default)
            // A closed stderr must not fail the work that logs.
            .log_internal_errors(false)
            .with_ansi(problems::colour());
        let started = match self.log_format {
            LogFormat::Text => builder.with_target(false).try_init(),
            LogFormat::Json => builder.json().try_init(),
        };
        // A second start in one process keeps the first log.
        ignore_closed(started);
    }
}
