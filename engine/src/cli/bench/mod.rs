//! `spoonbill bench`: measurements of this program.

mod frontier;

use clap::{Args, Subcommand};

use crate::cli::bench::frontier::{Figures, Frontier, frontier};
use crate::cli::{SettingArgs, print_err, print_out};
use crate::config::{Config, Durability};
use crate::error::RunError;
use crate::run::exit_code;
use crate::threads::ignore::ignore_leftover;

#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    /// Send synthetic addresses through the ledger: in, deduplicated, taken, finished
    Frontier(FrontierArgs),
}

#[derive(Debug, Args)]
pub(super) struct FrontierArgs {
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

pub(super) fn bench(command: &BenchCommand) -> u8 {
    let BenchCommand::Frontier(args) = command;
    match measure(args) {
        Ok(figures) => {
            let shown = if args.json { json(&figures) } else { text(&figures) };
            u8::from(print_out(&shown).is_err())
        }
        Err(code) => code,
    }
}

fn measure(args: &FrontierArgs) -> Result<Figures, u8> {
    let mut config = args.settings.resolve(None, None)?;
    let scratch = args.settings.data_dir.is_none();
    if scratch {
        // A separate folder below the data directory, which is removed at the end.
        let name = format!("bench-{}", std::process::id());
        config.store.data_dir = config.store.data_dir.join(name);
    }
    let dir = config.store.data_dir.clone();
    if dir.join("state.db").exists() {
        let words = "holds a run; name another directory for the benchmark";
        print_err(&format!("error: `{}` {words}\n", dir.display()));
        return Err(2);
    }
    let measured = perform(&config, Frontier { urls: args.urls, hosts: args.hosts });
    if scratch && config.store.durability == Durability::Strict {
        // The figures are valid even if the folder stays.
        ignore_leftover(std::fs::remove_dir_all(&dir));
    }
    measured.map_err(|error| {
        print_err(&format!("error: {error}\n"));
        exit_code::of_error(&error)
    })
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
