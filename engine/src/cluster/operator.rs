//! The requests of operators to a running node. There are two ways to reach it:
//!
//! - at its address in the cluster, with the secret of the cluster;
//! - on the same machine, at the address in the file `control` of its data directory. The file also holds
//!   another secret and can be read only by the user of the process.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::cluster::client::ClusterClient;
use crate::cluster::messages::{OperatorOrder, PeerRequest, PeerResponse, VERSION, encode};
use crate::cluster::random;
use crate::cluster::status::reader::StatusReader;
use crate::cluster::status::{ClusterStatus, NodeState, NodeStatus, RunStatus};
use crate::ledger::{Command, Reply, Seat, Standing};
use crate::threads::ignore::ignore_leftover;
use crate::wire::{
    CallError, Credentials, Hello, PeerRole, RequestHandler, WireClient, WireLimits, WireListener,
};

/// The file in the data directory that holds the address and the secret.
const FILE: &str = "control";
/// The name that stands for `cluster.name` on these connections.
const NAME: &[u8] = b"control";
/// How long a node may take to answer. Longer than [`ORDER_TIMEOUT`].
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);
/// How long the cluster may take to agree on an order.
const ORDER_TIMEOUT: Duration = Duration::from_secs(10);

/// How to reach a running node.
#[derive(Debug, Clone)]
pub(crate) enum NodeAddress {
    /// By its data directory on this machine.
    Data(PathBuf),
    /// By its address in the cluster.
    Node { address: String, secret: Option<Vec<u8>>, name: String },
}

impl NodeAddress {
    fn client(&self) -> Option<WireClient> {
        let (address, credentials) = match self {
            Self::Data(dir) => {
                let text = std::fs::read_to_string(dir.join(FILE)).ok()?;
                let (address, secret) = text.split_once('\n')?;
                (address.to_owned(), Credentials::new(Some(secret.trim().as_bytes()), NAME))
            }
            Self::Node { address, secret, name } => {
                (address.clone(), Credentials::new(secret.as_deref(), name.as_bytes()))
            }
        };
        let life = random();
        let hello = move || Hello {
            version: VERSION,
            role: PeerRole::Operator,
            seat: 0,
            raft_id: 0,
            cluster_id: None,
            life,
            peers: String::new(),
        };
        Some(WireClient::new(
            address,
            Arc::new(credentials),
            Arc::new(hello),
            WireLimits::default(),
        ))
    }

    async fn call(&self, call: &PeerRequest) -> Result<PeerResponse, String> {
        let nobody = match self {
            Self::Data(dir) => format!("no node is running in `{}`", dir.display()),
            Self::Node { address, .. } => format!("no node answers at `{address}`"),
        };
        let Some(client) = self.client() else { return Err(nobody) };
        match client.call(call.encode(), ANSWER_TIMEOUT).await {
            Ok(bytes) => postcard::from_bytes(&bytes).map_err(|_| {
                "the answer of the node cannot be read; it may be another version".into()
            }),
            // A killed process leaves its file behind, and another process may use the address now.
            Err(CallError::Unreachable { .. } | CallError::Refused { .. })
                if matches!(self, Self::Data(_)) =>
            {
                Err(nobody)
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The status of the node and its cluster.
    pub(crate) async fn status(&self) -> Result<ClusterStatus, String> {
        match self.call(&PeerRequest::Status).await? {
            PeerResponse::Status(status) => Ok(*status),
            PeerResponse::Busy(words) | PeerResponse::Refused(words) => Err(words),
            other => Err(format!("the node answered with {other:?}")),
        }
    }

    /// Cancels the run on all nodes.
    pub(crate) async fn cancel(&self) -> Result<(), String> {
        self.order(OperatorOrder::Cancel).await
    }

    /// Ends the sessions of a node and keeps it from joining.
    pub(crate) async fn fence(&self, seat: Seat) -> Result<(), String> {
        self.order(OperatorOrder::Fence(seat)).await
    }

    /// Lets a fenced node join again.
    pub(crate) async fn admit(&self, seat: Seat) -> Result<(), String> {
        self.order(OperatorOrder::Admit(seat)).await
    }

    async fn order(&self, order: OperatorOrder) -> Result<(), String> {
        match self.call(&PeerRequest::Order(order)).await? {
            PeerResponse::Ordered(result) => result,
            PeerResponse::Busy(words) | PeerResponse::Refused(words) => Err(words),
            other => Err(format!("the node answered with {other:?}")),
        }
    }
}

/// The operations that a node offers to operators on its machine.
pub(crate) trait OperatorTarget: Send + Sync + 'static {
    /// The status of the node.
    fn status(&self) -> BoxFuture<'static, ClusterStatus>;
    /// Cancels the run.
    fn cancel(&self) -> BoxFuture<'static, Result<(), String>>;
}

/// A node that runs alone.
pub(crate) struct SoloControl {
    /// The progress of its run.
    pub standing: watch::Receiver<Standing>,
    /// Asks it to stop, as Ctrl-C does.
    pub stop: Box<dyn Fn() + Send + Sync>,
}

impl OperatorTarget for SoloControl {
    fn status(&self) -> BoxFuture<'static, ClusterStatus> {
        let standing = *self.standing.borrow();
        let node = NodeStatus {
            id: 1,
            address: None,
            role: "voter".to_owned(),
            state: NodeState::Running,
            leader: true,
            jobs: standing.taken,
            lag: Some(0),
        };
        let status = ClusterStatus {
            node: 1,
            mode: "solo".to_owned(),
            cluster: None,
            leader: Some(1),
            term: 0,
            index: 0,
            heard_ms: None,
            stopping: false,
            nodes: vec![node],
            run: RunStatus::of(standing, Some(String::new())),
        };
        futures_util::future::ready(status).boxed()
    }

    fn cancel(&self) -> BoxFuture<'static, Result<(), String>> {
        (self.stop)();
        futures_util::future::ready(Ok(())).boxed()
    }
}

/// A node of a cluster.
pub(crate) struct ClusterControl {
    pub status: Arc<StatusReader>,
    pub client: ClusterClient,
}

impl OperatorTarget for ClusterControl {
    fn status(&self) -> BoxFuture<'static, ClusterStatus> {
        let status = Arc::clone(&self.status);
        async move { status.read().await }.boxed()
    }

    fn cancel(&self) -> BoxFuture<'static, Result<(), String>> {
        let client = self.client.clone();
        async move { carry_out(&client, OperatorOrder::Cancel).await }.boxed()
    }
}

/// Has the cluster agree on an order; the error says why it did not.
pub(crate) async fn carry_out(client: &ClusterClient, order: OperatorOrder) -> Result<(), String> {
    let command = match order {
        OperatorOrder::Cancel => Command::Cancel,
        OperatorOrder::Fence(seat) => Command::Fence { seat },
        OperatorOrder::Admit(seat) => Command::Admit { seat },
    };
    match tokio::time::timeout(ORDER_TIMEOUT, client.submit_command(&command)).await {
        Ok(Ok(Reply::Ok)) => Ok(()),
        Ok(Ok(_)) => Err(match order {
            OperatorOrder::Cancel => "there is no run to cancel".to_owned(),
            OperatorOrder::Fence(seat) | OperatorOrder::Admit(seat) => {
                format!("there is no node {}", seat.0)
            }
        }),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("too few nodes are connected to agree on it".to_owned()),
    }
}

struct OperatorHandler {
    node: Arc<dyn OperatorTarget>,
}

impl RequestHandler for OperatorHandler {
    fn call(&self, _from: &Hello, request: Vec<u8>) -> BoxFuture<'static, Vec<u8>> {
        let node = Arc::clone(&self.node);
        async move {
            let response = match postcard::from_bytes::<PeerRequest>(&request) {
                Ok(PeerRequest::Status) => PeerResponse::Status(Box::new(node.status().await)),
                Ok(PeerRequest::Order(OperatorOrder::Cancel)) => {
                    PeerResponse::Ordered(node.cancel().await)
                }
                _ => PeerResponse::Busy(
                    "this needs the address of a node in the cluster (`--node HOST:PORT`)"
                        .to_owned(),
                ),
            };
            encode(&response)
        }
        .boxed()
    }

    fn admit(&self, _hello: &Hello) -> Result<(), String> {
        Ok(())
    }

    fn gone(&self, _hello: &Hello) {}
}

/// Listens for operators on this machine until `stop`. If it cannot, the node runs without.
pub(crate) async fn serve(dir: &Path, node: Arc<dyn OperatorTarget>, stop: watch::Receiver<bool>) {
    let path = dir.join(FILE);
    let (listener, secret) = match listen(&path).await {
        Ok(opened) => opened,
        Err(error) => {
            tracing::debug!(%error, path = %path.display(), "`status` will not find this node");
            return;
        }
    };
    let hello = || Hello {
        version: VERSION,
        role: PeerRole::Voter,
        seat: 0,
        raft_id: 0,
        cluster_id: None,
        life: 0,
        peers: String::new(),
    };
    let credentials = Arc::new(Credentials::new(Some(secret.as_bytes()), NAME));
    let limits = WireLimits { connections_max: 16, ..WireLimits::default() };
    listener
        .serve(credentials, Arc::new(hello), limits, Arc::new(OperatorHandler { node }), stop)
        .await;
    withdraw(dir);
}

/// Removes the file with the address, because the process is about to end.
pub(crate) fn withdraw(dir: &Path) {
    ignore_leftover(std::fs::remove_file(dir.join(FILE)));
}

/// Listens on this machine, and writes the file with the address and a new secret.
async fn listen(path: &Path) -> std::io::Result<(WireListener, String)> {
    let listener = WireListener::bind("127.0.0.1:0").await?;
    let secret = format!("{:016x}{:016x}", random(), random());
    let text = format!("{}\n{secret}\n", listener.local_addr()?);
    // A file that was left behind may be readable by other users.
    ignore_leftover(std::fs::remove_file(path));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok((listener, secret))
}
