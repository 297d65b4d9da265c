//! The command line. Each command is one file and one row of the table below. Only this folder prints.

mod args;
mod bench;
mod check;
mod config;
mod control;
mod failed;
mod fsck;
mod init;
mod load;
mod problems;
mod progress;
mod query;
mod run;
mod schema;
mod secrets;
mod table;
mod try_page;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use spoonbill_defs::Problems;

use crate::error::RunError;
use crate::run::exit_code;
use crate::threads::ignore::ignore_closed;
use args::{LogArgs, LogFormat, SettingArgs};
use problems::ProblemsShown;

/// A definition-driven web-scraping engine: YAML in, rows out, nothing lost.
#[derive(Debug, Parser)]
#[command(name = "spoonbill", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Makes the subcommands from the table below. Each type of arguments runs its command.
macro_rules! commands {
    ($($(#[$about:meta])* $name:ident($args:ty),)*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($(#[$about])* $name($args),)*
        }

        impl Command {
            fn run(&self) -> CommandResult {
                match self {
                    $(Self::$name(args) => args.run(),)*
                }
            }
        }
    };
}

commands! {
    /// Run the definitions of a directory until all work is done
    Run(run::RunArgs),
    /// Retry the failed jobs of the last run, and no others
    Retry(run::RetryArgs),
    /// Compute all rows again from stored pages, without network, and report what has changed
    Replay(run::ReplayArgs),
    /// Check definitions and settings offline; print every problem at once
    Check(check::CheckArgs),
    /// Try one query on a file or URL; print one JSON string per match
    Query(query::QueryArgs),
    /// Write a starter project, or a definition proposed from samples of a page
    Init(init::InitArgs),
    /// Load one page and print the rows a run would give
    Try(try_page::TryArgs),
    /// Print the JSON Schema of the definitions, for editors
    Schema(schema::SchemaArgs),
    /// List failed jobs with their reasons, as JSON lines
    Failed(failed::FailedArgs),
    /// Verify the data directory: exit 0, or 1 with the faults on stdout
    Fsck(fsck::FsckArgs),
    /// Show a running node and its cluster
    Status(control::StatusArgs),
    /// End a running run everywhere, cleanly; it can be continued
    Cancel(control::CancelArgs),
    /// Keep a node out of the cluster until it is admitted again
    Fence(control::FenceArgs),
    /// Let a fenced node join again
    Admit(control::AdmitArgs),
    /// Measure this program on this machine
    Bench(bench::BenchArgs),
    /// Print every setting, its value and its source
    Config(config::ConfigArgs),
}

/// A command with its arguments.
trait RunCommand {
    /// Performs the command.
    fn run(&self) -> CommandResult;
}

/// The exit code of a command, or a failure for `main` to print.
type CommandResult = Result<u8, CommandFailure>;

/// Why a command failed.
enum CommandFailure {
    /// Problems of definitions or settings. The exit code is 3.
    Problems(Problems),
    /// A message and the exit code.
    Message(u8, String),
}

impl CommandFailure {
    fn new(code: u8, message: impl Display) -> Self {
        Self::Message(code, message.to_string())
    }

    /// Prints the failure and returns its exit code.
    fn print(self) -> u8 {
        match self {
            Self::Problems(found) => {
                problems::print(&found.0, ProblemsShown::WithCount);
                3
            }
            Self::Message(code, message) => {
                print_err(&format!("error: {message}\n"));
                code
            }
        }
    }
}

impl From<Problems> for CommandFailure {
    fn from(problems: Problems) -> Self {
        Self::Problems(problems)
    }
}

impl<E: Into<RunError>> From<E> for CommandFailure {
    fn from(error: E) -> Self {
        let error = error.into();
        Self::new(exit_code::of_error(&error), error)
    }
}

/// Runs the command line and returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout with 0, mistakes to stderr with 2.
            ignore_closed(error.print());
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    ExitCode::from(cli.command.run().unwrap_or_else(CommandFailure::print))
}

/// Fails if a data directory holds no run for the purpose of a command.
fn expect_run(dir: &Path, purpose: &str) -> Result<(), CommandFailure> {
    if crate::store::is_there(dir)? {
        return Ok(());
    }
    Err(CommandFailure::new(1, format!("`{}` holds no run{purpose}", dir.display())))
}

/// Writes data to stdout. A closed pipe is no error.
fn print_out(text: &str) -> CommandResult {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CommandFailure::new(1, format!("standard output cannot be written: {error}")))
        }
        _ => Ok(0),
    }
}

/// Writes to stderr. A failure has no other place to be reported, so it is dropped.
fn print_err(text: &str) {
    ignore_closed(std::io::stderr().lock().write_all(secrets::hide(text).as_bytes()));
}
