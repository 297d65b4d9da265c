//! The command line: what was typed becomes settings and one call. Only this folder prints.

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
mod secrets;
mod table;
mod try_page;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tracing_subscriber::EnvFilter;

use crate::config::{Config, Inputs};
use crate::run::exit_code;
use crate::run::report::Report;
use crate::threads::ignore::ignore_closed;
use problems::Shown;

/// A definition-driven web-scraping engine: YAML in, rows out, nothing lost.
#[derive(Debug, Parser)]
#[command(name = "spoonbill", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the definitions of a directory until all work is done
    Run(RunArgs),
    /// Retry the failed jobs of the last run, and no others
    Retry(RetryArgs),
    /// Compute all rows again from stored pages, without network, and report what has changed
    Replay(ReplayArgs),
    /// Check definitions and settings offline; print every problem at once
    Check {
        /// Directory of definition files
        defs_dir: PathBuf,
        /// Tell how the pages of each group are read, too
        #[arg(long)]
        explain: bool,
        #[command(flatten)]
        settings: SettingArgs,
        #[command(flatten)]
        logging: LogArgs,
    },
    /// Try one query on a file or URL; print one JSON string per match
    Query(query::QueryArgs),
    /// Write a project to start from, or a definition proposed from samples of a page
    Init(init::InitArgs),
    /// Load one page and print the rows a run would give
    Try(try_page::TryArgs),
    /// Print the JSON Schema of the definitions, for editors
    Schema,
    /// List failed jobs with their reasons, as JSON lines
    Failed {
        #[command(flatten)]
        settings: SettingArgs,
    },
    /// Verify the data directory: exit 0, or 1 with what is wrong on stdout
    Fsck {
        #[command(flatten)]
        settings: SettingArgs,
    },
    /// Show a running node and its cluster
    Status(control::StatusArgs),
    /// End a running run everywhere, cleanly; it can be continued
    Cancel(control::ControlArgs),
    /// Keep a node of the cluster out, until it is admitted again
    Fence(control::SeatArgs),
    /// Let a fenced node in again
    Admit(control::SeatArgs),
    /// Measure this program on this machine
    Bench {
        #[command(subcommand)]
        what: bench::BenchCommand,
    },
    /// Print every setting, its value and where it came from
    Config {
        #[command(flatten)]
        settings: SettingArgs,
        /// Look for `spoonbill.yml` beside this directory
        #[arg(long, value_name = "DIR")]
        defs_dir: Option<PathBuf>,
    },
}

/// Options of `run`. The cluster's come last in each command, because clap puts all options that follow a
/// heading below it.
#[derive(Debug, Args)]
struct RunArgs {
    /// Discard the unfinished run in the data directory and start a new one
    #[arg(long)]
    fresh: bool,
    /// Complete the last run on every node that needs it, and start no other run; with `--cluster`, give
    /// it on all nodes
    #[arg(long, conflicts_with = "fresh")]
    complete: bool,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Options of `retry`.
#[derive(Debug, Args)]
struct RetryArgs {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Options of `replay`, which runs on one node.
#[derive(Debug, Args)]
struct ReplayArgs {
    #[command(flatten)]
    job: JobArgs,
}

/// Options of all three.
#[derive(Debug, Args)]
struct JobArgs {
    /// Directory of definition files
    defs_dir: PathBuf,
    /// Base directory of file appenders [default: output]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write the end-of-run report to this file as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingArgs,
    #[command(flatten)]
    logging: LogArgs,
}

/// How a node takes part in a cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
struct ClusterArgs {
    /// Share the run with other nodes
    #[arg(long)]
    cluster: bool,
    /// This node's number among the peers, from 1; `auto` takes it from the machine's name
    #[arg(long, value_name = "N")]
    node_id: Option<String>,
    /// NodeAddress and port to listen on [default: this node's own among the peers]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// All nodes with a vote, the same on every node
    #[arg(long, value_name = "1=HOST:PORT,2=...")]
    peers: Option<String>,
    /// Nodes with a vote that must be there before the run starts [default: more than half]
    #[arg(long, value_name = "N")]
    quorum: Option<usize>,
    /// `voter` keeps the ledger and votes, `worker` only works [default: voter]
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
}

impl ClusterArgs {
    /// The same as settings.
    fn flags(&self) -> Vec<(String, String)> {
        let quorum = self.quorum.map(|quorum| quorum.to_string());
        let flags = [
            ("cluster.enable", self.cluster.then(|| "true".to_owned())),
            ("cluster.node.id", self.node_id.clone()),
            ("cluster.listen", self.listen.clone()),
            ("cluster.peers", self.peers.clone()),
            ("cluster.quorum.size", quorum),
            ("cluster.role", self.role.clone()),
        ];
        let given = flags.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        given.collect()
    }
}

/// Where settings come from.
#[derive(Debug, Args)]
struct SettingArgs {
    /// One setting; may be repeated, and outranks environment and file
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Settings file [default: spoonbill.yml beside the definitions, if there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Durable state: job ledger, stored pages, parsed data [default: data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// How much is said, and how.
#[derive(Debug, Args)]
struct LogArgs {
    /// Form of log lines
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Say more; twice for everything
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

/// Runs the command line and gives the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout with 0, mistakes to stderr with 2.
            ignore_closed(error.print());
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let code = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Retry(args) => run::retry(&args),
        Command::Replay(args) => run::replay(&args),
        Command::Check { defs_dir, explain, settings, logging } => {
            check::check(&defs_dir, explain, &settings, &logging)
        }
        Command::Query(args) => query::query(&args),
        Command::Init(args) => init::init(&args),
        Command::Try(args) => try_page::try_page(&args),
        Command::Schema => u8::from(print_out(&spoonbill_defs::schema()).is_err()),
        Command::Failed { settings } => failed::failed(&settings),
        Command::Fsck { settings } => fsck::fsck(&settings),
        Command::Status(args) => control::status(&args),
        Command::Cancel(args) => control::cancel(&args),
        Command::Fence(args) => control::fence(&args),
        Command::Admit(args) => control::admit(&args),
        Command::Bench { what } => bench::bench(&what),
        Command::Config { settings, defs_dir } => config::config(&settings, defs_dir.as_ref()),
    };
    ExitCode::from(code)
}

impl SettingArgs {
    /// Resolves the settings, or prints what is wrong with them and gives the exit code.
    fn resolve(&self, defs_dir: Option<&PathBuf>, output: Option<&PathBuf>) -> Result<Config, u8> {
        self.resolve_with(Vec::new(), defs_dir, output)
    }

    /// The same with flags of a command.
    fn resolve_with(
        &self,
        mut flags: Vec<(String, String)>,
        defs_dir: Option<&PathBuf>,
        output: Option<&PathBuf>,
    ) -> Result<Config, u8> {
        if self.sets.iter().any(|set| set.trim_start().starts_with("cluster.secret=")) {
            // Every user of the machine can read what stands on a command line.
            print_err(
                "error: a secret does not belong on the command line: put it into a file and name \
                 it with `--set cluster.secretFile=FILE`\n",
            );
            return Err(3);
        }
        let mut flag = |key: &str, value: Option<&PathBuf>| {
            flags.extend(value.map(|value| (key.to_owned(), value.display().to_string())));
        };
        flag("data.dir", self.data_dir.as_ref());
        flag("output.dir", output);
        let inputs = Inputs {
            flags,
            sets: self.sets.clone(),
            config_file: self.config.clone(),
            defs_dir: defs_dir.cloned(),
            ..Inputs::default()
        };
        match Config::resolve(&inputs.with_process_env()) {
            Ok((config, warnings)) => {
                problems::print(&warnings, Shown::Problems);
                Ok(config)
            }
            Err(problems) => {
                problems::print(&problems.0, Shown::ProblemsAndCount);
                Err(3)
            }
        }
    }
}

impl LogArgs {
    /// Says a sentence on stderr, in the form of the log.
    fn say(&self, words: &str) {
        match self.log_format {
            LogFormat::Text => print_err(&format!("{words}\n")),
            LogFormat::Json => print_err(&format!("{}\n", serde_json::json!({ "message": words }))),
        }
    }

    /// Prints the report on stderr, in the form of the log.
    fn print_report(&self, report: &Report) {
        match self.log_format {
            LogFormat::Text => print_err(&report.text()),
            LogFormat::Json => {
                print_err(&format!("{}\n", serde_json::json!({ "report": report })));
            }
        }
    }

    /// Sends log lines to stderr from here on.
    fn start(&self) {
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

/// Says so, with the exit code, if a data directory holds no run for such a purpose.
fn expect_run(dir: &Path, purpose: &str) -> Result<(), u8> {
    match crate::store::is_there(dir) {
        Ok(true) => Ok(()),
        Ok(false) => {
            print_err(&format!("error: `{}` holds no run{purpose}\n", dir.display()));
            Err(1)
        }
        Err(error) => {
            print_err(&format!("error: {error}\n"));
            Err(exit_code::of_error(&error.into()))
        }
    }
}

/// Writes data to stdout. A closed pipe is no error.
fn print_out(text: &str) -> std::io::Result<()> {
    use std::io::Write;
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes to stderr, and drops it if that fails.
fn print_err(text: &str) {
    use std::io::Write;
    ignore_closed(std::io::stderr().lock().write_all(secrets::hide(text).as_bytes()));
}
