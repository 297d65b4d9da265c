//! What an operator can ask of a running node: at its address, with the cluster's secret, or, on the
//! same machine, at an address that lies with a secret of its own in the data directory.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::cluster::messages::{OperatorOrder, PeerRequest, PeerResponse, VERSION, encode};
use crate::cluster::status::{ClusterStatus, NodeState, NodeStatus, RunStatus};
use crate::ledger::{Seat, Standing};
use crate::wire::{
    CallError, Credentials, Hello, PeerRole, RequestHandler, WireClient, WireLimits, WireListener,
};

/// The file in a data directory that tells where its node listens, to its own user alone.
const FILE: &str = "control";
/// What nodes on one machine call each other.
const NAME: &[u8] = b"control";
/// Patience with an answer.
const PATIENCE: Duration = Duration::from_secs(12);

/// Where a running node is.
#[derive(Debug, Clone)]
pub(crate) enum NodeAddress {
    /// Its data directory, on this machine.
    Data(PathBuf),
    /// Its address in the cluster, with what the cluster's nodes prove to each other.
    Node { address: String, secret: Option<Vec<u8>>, name: String },
}

impl NodeAddress {
    fn link(&self) -> Option<WireClient> {
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
        let life = crate::cluster::node::random();
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
        let Some(link) = self.link() else { return Err(nobody) };
        match link.call(call.encode(), PATIENCE).await {
            Ok(bytes) => postcard::from_bytes(&bytes)
                .map_err(|_| "the node's answer cannot be read: is it of another version?".into()),
            // What is left of a process that was killed may be the address of another by now.
            Err(CallError::Unreachable { .. } | CallError::Refused { .. })
                if matches!(self, Self::Data(_)) =>
            {
                Err(nobody)
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// How the node and its cluster are.
    pub(crate) async fn status(&self) -> Result<ClusterStatus, String> {
        match self.call(&PeerRequest::Status).await? {
            PeerResponse::Status(status) => Ok(*status),
            PeerResponse::Busy(words) | PeerResponse::Refused(words) => Err(words),
            other => Err(format!("the node answered with {other:?}")),
        }
    }

    /// Ends the run.
    pub(crate) async fn cancel(&self) -> Result<(), String> {
        self.order(OperatorOrder::Cancel).await
    }

    /// Keeps a node out.
    pub(crate) async fn fence(&self, seat: Seat) -> Result<(), String> {
        self.order(OperatorOrder::Fence(seat)).await
    }

    /// Lets a node in again.
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

/// What a node answers operators on its machine with.
pub(crate) trait OperatorTarget: Send + Sync + 'static {
    /// How the node is.
    fn status(&self) -> BoxFuture<'static, ClusterStatus>;
    /// Ends the run.
    fn cancel(&self) -> BoxFuture<'static, Result<(), String>>;
}

/// A node that is alone.
pub(crate) struct SoloControl {
    /// Its few numbers.
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
                    "only a node's address in its cluster can do that".to_owned(),
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

/// Listens for operators on this machine until `stop` says so; where it cannot, nobody can ask.
pub(crate) async fn serve(dir: &Path, node: Arc<dyn OperatorTarget>, stop: watch::Receiver<bool>) {
    let path = dir.join(FILE);
    let (door, secret) = match open(&path).await {
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
    door.serve(credentials, Arc::new(hello), limits, Arc::new(OperatorHandler { node }), stop)
        .await;
    withdraw(dir);
}

/// Takes back where the node of a data directory listens: its process is about to end.
pub(crate) fn withdraw(dir: &Path) {
    drop(std::fs::remove_file(dir.join(FILE)));
}

/// A door on this machine, and a secret that only its own user can read.
async fn open(path: &Path) -> std::io::Result<(WireListener, String)> {
    let door = WireListener::bind("127.0.0.1:0").await?;
    let secret =
        format!("{:016x}{:016x}", crate::cluster::node::random(), crate::cluster::node::random());
    let text = format!("{}\n{secret}\n", door.local_addr()?);
    // A file that is left from before may be readable to others.
    drop(std::fs::remove_file(path));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok((door, secret))
}
