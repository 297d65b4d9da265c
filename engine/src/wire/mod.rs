//! How nodes talk: numbered requests and answers over one encrypted connection for each pair.
//! A stranger without the cluster's secret can neither read, change nor replay anything, and costs
//! a node a few kilobytes and seconds at most. What the requests mean is not known here.

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
pub(crate) use handshake::Credentials;
#[cfg(test)]
use handshakes::RefusedConnections;
pub(crate) use listener::{RequestHandler, WireListener};

/// What a process is to the cluster.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerRole {
    /// Keeps the ledger and votes.
    Voter,
    /// Works, but keeps nothing.
    Worker,
    /// A person's command, such as `spoonbill status`.
    Operator,
}

/// Who is at an end of a connection; the first thing each end says, inside the encrypted channel.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Version of what is said in requests and answers.
    pub version: u16,
    pub role: PeerRole,
    /// Place in the list of peers.
    pub seat: u32,
    pub raft_id: u64,
    /// Not known before a node has joined.
    pub cluster_id: Option<u128>,
    /// Drawn anew at every start of a process.
    pub life: u64,
    /// The nodes with a vote, as it was told of them; an operator need not know them.
    pub peers: String,
}

/// Asked for each connection, since a node learns its ids after its start.
pub(crate) type HelloSource = Arc<dyn Fn() -> Hello + Send + Sync>;

/// Bounds of connections.
#[derive(Debug, Clone)]
pub(crate) struct WireLimits {
    /// Bytes of one request or answer.
    pub frame_max: usize,
    /// From connecting to the hello of the other end.
    pub handshake_timeout: Duration,
    /// Bytes read from a peer that has not proven itself.
    pub handshake_bytes_max: usize,
    /// Silence after which a connection is given up; pings go out well before.
    pub idle_timeout: Duration,
    /// Connections of proven peers; a quarter as many may be on their way to prove themselves.
    pub connections_max: usize,
    /// Requests of one connection in the works; no further ones are read until some are answered.
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
    /// How often a connection looks at its clock.
    fn tick(&self) -> Duration {
        (self.idle_timeout / 8).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }

    /// Silence after which a connection asks for a sign of life.
    fn ping_after(&self) -> Duration {
        self.idle_timeout / 3
    }

    /// How long a sign of life may take after a call without an answer.
    fn doubt_max(&self) -> Duration {
        (self.idle_timeout / 10).max(self.tick() * 3)
    }

    /// Peers that may be on their way to prove themselves.
    fn strangers_max(&self) -> usize {
        (self.connections_max / 4).max(4)
    }
}

/// Why a call has no answer. Each kind says whether the other end may have acted on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// Nothing was sent.
    #[error("`{address}` cannot be reached: {reason}")]
    Unreachable { address: String, reason: String },
    /// Nothing was sent; asking again will not help before a person has acted.
    #[error("`{address}` refuses this node: {reason}")]
    Refused { address: String, reason: String },
    /// Sent, outcome unknown.
    #[error("the connection to `{address}` broke: {reason}")]
    Broken { address: String, reason: String },
    /// Sent, outcome unknown.
    #[error("`{address}` did not answer within {after:?}")]
    TimedOut { address: String, after: Duration },
    /// The other end has not acted on it.
    #[error("a request of {size} bytes is larger than the {max} that are allowed")]
    RequestTooLarge { size: u64, max: u64 },
    /// The other end has acted on it.
    #[error("an answer of {size} bytes is larger than the {max} that are allowed")]
    AnswerTooLarge { size: u64, max: u64 },
}

impl CallError {
    /// Whether the other end has surely not acted on the request.
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
    #[error("the other end does not speak this protocol")]
    Foreign,
    #[error(
        "the node there speaks version {theirs} of the protocol between nodes, this one {ours}"
    )]
    Version { theirs: u8, ours: u8 },
    #[error("the two nodes do not have the same secret")]
    Secret,
    #[error("the node there belongs to another cluster: its `cluster.name` differs")]
    Cluster,
    /// Words of the other end.
    #[error("{0}")]
    Refused(String),
    /// Our own words to the other end, which may not come in.
    #[error("turned away: {0}")]
    TurnedAway(String),
    #[error("what came was damaged or forged")]
    Damaged,
    #[error("{0}")]
    Frame(#[from] frame::FrameError),
    #[error("more bytes than allowed before the peer had proven itself")]
    Wordy,
    #[error("no proof in time")]
    Late,
    #[error("made room for others before it had proven itself")]
    Crowded,
    #[error("no sign of life for {0:?}")]
    Silent(Duration),
    #[error("the other end reads nothing")]
    Choked,
}

impl fmt::Debug for WireClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.address())
    }
}
