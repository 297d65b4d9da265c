//! `spoonbill bench`: measurements of this program.

mod frontier;

use clap::{Args, Subcommand};

use crate::cli::bench::frontier::{Figures, Frontier, frontier};
use crate::cli::{CommandFailure, CommandResult, RunCommand, SettingArgs, print_out};
use crate::config::{Config, Durability};
use crate::error::RunError;
use crate::threads::ignore::ignore_leftover;

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    #[command(subcommand)]
    what: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Send synthetic addresses through the ledger: in, deduplicated, taken, finished
    Frontier(FrontierArgs),
}

#[derive(Debug, Args)]
struct FrontierArgs {
    /// Different addresses
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    urls: u64,
    /// Hosts that have the addresses
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..))]
    hosts: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingArgs,
}

impl RunCommand for BenchArgs {
    fn run(&self) -> CommandResult {
        let BenchCommand::Frontier(args) = &self.what;
        let figures = measure(args)?;
        print_out(&if args.json { json(&figures) } else { text(&figures) })
    }
}

fn measure(args: &FrontierArgs) -> Result<Figures, CommandFailure> {
    let mut config = args.settings.resolve(None)?;
    let is_scratch = args.settings.data_dir.is_none();
    if is_scratch {
        // A separate folder below the data directory, which is removed at the end.
        let name = format!("bench-{}", std::process::id());
        config.store.data_dir = config.store.data_dir.join(name);
    }
    let dir = config.store.data_dir.clone();
    if dir.join("state.db").exists() {
        let words = "holds a run; name another directory for the benchmark";
        return Err(CommandFailure::new(2, format!("`{}` {words}", dir.display())));
    }
    let measured = perform(&config, Frontier { urls: args.urls, hosts: args.hosts });
    if is_scratch && config.store.durability == Durability::Strict {
        // The figures are valid even if the folder stays.
        ignore_leftover(std::fs::remove_dir_all(&dir));
    }
    Ok(measured?)
}

fn perform(config: &Config, plan: Frontier) -> Result<Figures, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| RunError::Internal(format!("no async runtime: {error}")))?;
    runtime.block_on(frontier(config, plan))
}

fn json(figures: &Figures) -> String {
    format!("{}\n", serde_json::json!(figures))
}

fn text(figures: &Figures) -> String {
    let known = figures.offered - figures.urls;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let restart = figures.restart.map(|restart| {
        format!(
            "data directory  {:.0} MB\n\
             restart         {:.2} s to the first job, with {} waiting\n",
            megabytes(restart.data_bytes),
            restart.seconds,
            restart.pending,
        )
    });
    format!(
        "addresses       {} in, taken and finished; {known} more were known\n\
         time            {:.1} s, {:.0} addresses a second\n\
         processor       {:.2} microseconds an address\n\
         memory          {:.0} MB at most\n\
         {}",
        figures.urls,
        figures.seconds,
        figures.urls_per_second,
        figures.cpu_micros_per_url,
        megabytes(figures.memory_peak_bytes),
        restart.unwrap_or_default(),
    )
}
