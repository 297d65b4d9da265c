//! `spoonbill status`, `cancel`, `fence` and `admit`: requests of a person to a running node.

use clap::Args;

use super::{SettingArgs, print_err, print_out};
use crate::cluster::{ClusterStatus, NodeAddress, NodeState};
use crate::error::counted;
use crate::ledger::Seat;

/// The node that receives the request.
#[derive(Debug, Args)]
pub(super) struct ControlArgs {
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
pub(super) struct SeatArgs {
    /// The node's number
    node: u32,
    #[command(flatten)]
    control: ControlArgs,
}

impl ControlArgs {
    fn address(&self) -> Result<NodeAddress, u8> {
        let config = self.settings.resolve(None, None)?;
        let Some(address) = &self.addr else {
            return Ok(NodeAddress::Data(config.store.data_dir));
        };
        let secret = config.cluster.read_secret().map_err(|words| {
            print_err(&format!("error: {words}\n"));
            3
        })?;
        Ok(NodeAddress::Node { address: address.clone(), secret, name: config.cluster.name })
    }

    /// Sends the request and prints the answer. Returns the exit code.
    fn ask<T>(
        &self,
        ask: impl AsyncFnOnce(&NodeAddress) -> Result<T, String>,
        tell: impl FnOnce(T) -> u8,
    ) -> u8 {
        let address = match self.address() {
            Ok(address) => address,
            Err(code) => return code,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let answer = match runtime {
            Ok(runtime) => runtime.block_on(ask(&address)),
            Err(error) => Err(format!("no async runtime: {error}")),
        };
        match answer {
            Ok(answer) => tell(answer),
            Err(words) => {
                print_err(&format!("error: {words}\n"));
                1
            }
        }
    }
}

pub(super) fn status(args: &StatusArgs) -> u8 {
    args.control.ask(NodeAddress::status, |status| {
        if args.ready {
            return print_ready(&status);
        }
        let text = if args.json {
            serde_json::to_string(&status).map(|json| format!("{json}\n")).unwrap_or_default()
        } else {
            words(&status)
        };
        u8::from(print_out(&text).is_err())
    })
}

fn print_ready(status: &ClusterStatus) -> u8 {
    match status.unready() {
        None => u8::from(print_out("ready\n").is_err()),
        Some(why) => {
            print_err(&format!("not ready: {why}\n"));
            1
        }
    }
}

pub(super) fn cancel(args: &ControlArgs) -> u8 {
    args.ask(NodeAddress::cancel, |()| {
        print_err("the run is ending; the same command continues it\n");
        0
    })
}

pub(super) fn fence(args: &SeatArgs) -> u8 {
    args.control.ask(
        async |address: &NodeAddress| address.fence(Seat(args.node)).await,
        |()| {
            print_err(&format!("node {} is fenced until it is admitted\n", args.node));
            0
        },
    )
}

pub(super) fn admit(args: &SeatArgs) -> u8 {
    args.control.ask(
        async |address: &NodeAddress| address.admit(Seat(args.node)).await,
        |()| {
            print_err(&format!("node {} may join again\n", args.node));
            0
        },
    )
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
