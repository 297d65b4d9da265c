//! Encrypted requests and answers between processes. This folder does not know what they mean.
//!
//! One TCP connection serves all requests of a client to a server. It goes through these steps:
//!
//! | step | client sends | server sends |
//! | --- | --- | --- |
//! | handshake (`handshake`) | name, version, Noise message | name, version, status, Noise message |
//! | hello | name of the cluster, [`Hello`] | the same, or `Refused` with the reason |
//! | requests (`frame`) | `Request` with a number | `Answer` with that number, in any order |
//! | silence | `Ping` | `Pong` |
//!
//! A process without the cluster's secret can neither read, change nor replay anything. It costs a server
//! a few kilobytes, for a few seconds.

mod client;
mod client_task;
mod connection;
mod frame;
mod handshake;
mod handshakes;
mod listener;
mod primitives;
mod stream;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use client::WireClient;
pub(crate) use connection::RequestHandler;
pub(crate) use handshake::Credentials;
#[cfg(test)]
use handshakes::RefusedConnections;
pub(crate) use listener::WireListener;

/// The role of a process in the cluster.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerRole {
    /// Keeps the ledger and votes.
    Voter,
    /// Works on jobs, but has no copy of the ledger and no vote.
    Worker,
    /// A command such as `spoonbill status`.
    Operator,
}

/// How a process introduces itself: the first frame in each direction.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Version of the requests and answers.
    pub version: u16,
    pub role: PeerRole,
    /// Number of the node.
    pub seat: u32,
    pub raft_id: u64,
    /// `None` until the node has joined a cluster.
    pub cluster_id: Option<u128>,
    /// Random number of this process.
    pub life: u64,
    /// Its list of the nodes with a vote; empty for an operator.
    pub peers: String,
}

/// Called for each connection, because a node learns some fields after its start.
pub(crate) type HelloSource = Arc<dyn Fn() -> Hello + Send + Sync>;

/// Limits of connections.
#[derive(Debug, Clone)]
pub(crate) struct WireLimits {
    /// Bytes of one request or answer.
    pub frame_max: usize,
    /// Longest time from connecting to the hello of the peer.
    pub handshake_timeout: Duration,
    /// Bytes read from a peer before its hello.
    pub handshake_bytes_max: usize,
    /// Silence after which a connection is closed. Pings are sent after a third of it.
    pub idle_timeout: Duration,
    /// Connections of peers that have said hello. A quarter as many handshakes may be in progress.
    pub connections_max: usize,
    /// Requests of one connection that are handled at once. Further ones wait in the socket.
    pub in_flight_max: usize,
}

impl Default for WireLimits {
    fn default() -> Self {
        Self {
            frame_max: (64 << 20) + (64 << 10),
            handshake_timeout: Duration::from_secs(5),
            handshake_bytes_max: 4 << 10,
            idle_timeout: Duration::from_secs(30),
            connections_max: 512,
            in_flight_max: 256,
        }
    }
}

impl WireLimits {
    /// How often a connection checks its timeouts.
    fn tick(&self) -> Duration {
        (self.idle_timeout / 8).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }

    /// Silence after which a client sends a ping.
    fn ping_after(&self) -> Duration {
        self.idle_timeout / 3
    }

    /// How long the answer to a ping may take after a call has timed out.
    fn doubt_max(&self) -> Duration {
        (self.idle_timeout / 10).max(self.tick() * 3)
    }

    /// Handshakes in progress.
    fn handshakes_max(&self) -> usize {
        (self.connections_max / 4).max(4)
    }
}

/// Why a call has no answer. Each variant says whether the server may have acted on the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// Nothing was sent.
    #[error("`{address}` cannot be reached: {reason}")]
    Unreachable { address: String, reason: String },
    /// Nothing was sent. A retry will fail, too, until the configuration has changed.
    #[error("`{address}` refuses this node: {reason}")]
    Refused { address: String, reason: String },
    /// The request was sent; the server may have acted on it.
    #[error("the connection to `{address}` broke: {reason}")]
    Broken { address: String, reason: String },
    /// The request was sent; the server may have acted on it.
    #[error("`{address}` did not answer within {after:?}")]
    TimedOut { address: String, after: Duration },
    /// The server has not acted on it.
    #[error("a request of {size} bytes is larger than the {max} that are allowed")]
    RequestTooLarge { size: u64, max: u64 },
    /// The server has acted on it.
    #[error("an answer of {size} bytes is larger than the {max} that are allowed")]
    AnswerTooLarge { size: u64, max: u64 },
}

impl CallError {
    /// Whether the server has certainly not acted on the request.
    #[cfg(test)]
    pub(crate) fn nothing_done(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Refused { .. } | Self::RequestTooLarge { .. } => true,
            Self::Broken { .. } | Self::TimedOut { .. } | Self::AnswerTooLarge { .. } => false,
        }
    }
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum WireError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the peer does not speak this protocol")]
    Foreign,
    #[error("the node speaks version {theirs} of the protocol between nodes, this one {ours}")]
    Version { theirs: u8, ours: u8 },
    #[error("the two nodes do not have the same secret")]
    Secret,
    #[error("the node belongs to another cluster: its `cluster.name` differs")]
    Cluster,
    /// The reason that the server gave.
    #[error("{0}")]
    Refused(String),
    /// The reason that this server gave.
    #[error("refused: {0}")]
    RefusedPeer(String),
    #[error("the data was damaged or forged")]
    Damaged,
    #[error("{0}")]
    Frame(#[from] frame::FrameError),
    #[error("the peer sent too many bytes before its hello")]
    TooManyBytes,
    #[error("the handshake took too long")]
    HandshakeTimeout,
    #[error("too many handshakes were in progress")]
    TooManyHandshakes,
    #[error("silent for {0:?}")]
    Silent(Duration),
    #[error("the peer reads nothing")]
    NotReading,
}

impl fmt::Debug for WireClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.address())
    }
}
