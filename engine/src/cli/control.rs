//! `spoonbill status`, `cancel`, `fence` and `admit`: requests of a person to a running node.

use clap::Args;

use super::{CommandFailure, CommandResult, RunCommand, SettingArgs, print_err, print_out};
use crate::cluster::{ClusterStatus, NodeAddress, NodeState};
use crate::error::counted;
use crate::ledger::Seat;

/// The node that receives the request.
#[derive(Debug, Args)]
struct ControlArgs {
    /// Address of any node of a cluster [default: the node in the data directory]
    #[arg(long, value_name = "HOST:PORT")]
    addr: Option<String>,
    #[command(flatten)]
    settings: SettingArgs,
}

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Only report whether the node has joined and keeps up: exit 0, or 1 with the reason
    #[arg(long, conflicts_with = "json")]
    ready: bool,
}

#[derive(Debug, Args)]
pub(super) struct CancelArgs {
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, Args)]
pub(super) struct FenceArgs {
    /// The node's number
    node: u32,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, Args)]
pub(super) struct AdmitArgs {
    /// The node's number
    node: u32,
    #[command(flatten)]
    control: ControlArgs,
}

impl ControlArgs {
    fn address(&self) -> Result<NodeAddress, CommandFailure> {
        let config = self.settings.resolve(None)?;
        let Some(address) = &self.addr else {
            return Ok(NodeAddress::Data(config.store.data_dir));
        };
        let secret = config.cluster.read_secret().map_err(|error| CommandFailure::new(3, error))?;
        Ok(NodeAddress::Node { address: address.clone(), secret, name: config.cluster.name })
    }

    /// Sends a request to the node and waits for the answer.
    fn ask<T>(
        &self,
        ask: impl AsyncFnOnce(&NodeAddress) -> Result<T, String>,
    ) -> Result<T, CommandFailure> {
        let address = self.address()?;
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("no async runtime: {error}"))
            .and_then(|runtime| runtime.block_on(ask(&address)))
            .map_err(|error| CommandFailure::new(1, error))
    }
}

impl RunCommand for StatusArgs {
    fn run(&self) -> CommandResult {
        let status = self.control.ask(NodeAddress::status)?;
        match (self.ready, status.unready()) {
            (true, Some(reason)) => {
                print_err(&format!("not ready: {reason}\n"));
                Ok(1)
            }
            (true, None) => print_out("ready\n"),
            (false, _) if self.json => print_out(&format!("{}\n", serde_json::json!(status))),
            (false, _) => print_out(&words(&status)),
        }
    }
}

impl RunCommand for CancelArgs {
    fn run(&self) -> CommandResult {
        self.control.ask(NodeAddress::cancel)?;
        print_err("the run is ending; the same command continues it\n");
        Ok(0)
    }
}

impl RunCommand for FenceArgs {
    fn run(&self) -> CommandResult {
        let node = self.node;
        self.control.ask(async |address: &NodeAddress| address.fence(Seat(node)).await)?;
        print_err(&format!("node {node} is fenced until it is admitted\n"));
        Ok(0)
    }
}

impl RunCommand for AdmitArgs {
    fn run(&self) -> CommandResult {
        let node = self.node;
        self.control.ask(async |address: &NodeAddress| address.admit(Seat(node)).await)?;
        print_err(&format!("node {node} may join again\n"));
        Ok(0)
    }
}

fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

fn words(status: &ClusterStatus) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, words: String| lines.push(format!("{name:>10}  {words}\n"));
    match &status.run {
        Some(run) => {
            line("run", run.state.clone());
            line(
                "jobs",
                format!(
                    "{} done, {} failed, {} in flight, {} pending",
                    run.done, run.failed, run.taken, run.pending
                ),
            );
            line("rows", run.rows.to_string());
        }
        None => line("run", "none yet".to_owned()),
    }
    if status.mode == "cluster" {
        let heard = match status.heard_ms {
            None => "no contact with a leader".to_owned(),
            Some(ms) if status.leader == Some(status.node) => {
                format!("a majority confirmed it {} ago", seconds(ms))
            }
            Some(ms) => format!("last contact with the leader {} ago", seconds(ms)),
        };
        line("as of", format!("change {} on node {}; {heard}", status.index, status.node));
    }
    for node in status.nodes.iter().filter(|_| status.mode == "cluster") {
        let state = match node.state {
            NodeState::Checking => "checking",
            NodeState::Running => "running",
            NodeState::Silent => "silent",
            NodeState::Fenced => "fenced",
        };
        let mut words = vec![format!("{}: {state}", node.id), node.role.clone()];
        words.extend(node.leader.then(|| "leads".to_owned()));
        words.extend(node.address.as_ref().map(|address| format!("at {address}")));
        words.push(format!("{} in flight", counted(node.jobs, "job")));
        let lag = node.lag.filter(|lag| *lag > 0);
        words.extend(lag.map(|lag| format!("{} behind", counted(lag, "change"))));
        line("node", words.join(", "));
    }
    lines.concat()
}
