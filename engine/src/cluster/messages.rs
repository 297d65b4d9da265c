//! The messages between nodes, and the entries of the log.

use bytes::Bytes;
use openraft::error::{InstallSnapshotError, RaftError};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, EntryPayload};
use serde::{Deserialize, Serialize};

use crate::ledger::{Reply, Seat, SessionId, Stamp, Standing};
use crate::store::{Answer, Question};

/// Version of the requests, the answers and the log entries.
pub(crate) const VERSION: u16 = 5;

openraft::declare_raft_types!(
    /// The types of the log.
    pub(crate) Types:
        D = EncodedBatch,
        R = Replies,
        NodeId = u64,
        Node = BasicNode,
        SnapshotData = tokio::fs::File,
);

pub(crate) type Raft = openraft::Raft<Types>;
pub(crate) type LogEntry = openraft::Entry<Types>;
pub(crate) type LogId = openraft::LogId<u64>;
pub(crate) type Membership = openraft::StoredMembership<u64, BasicNode>;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<u64, BasicNode>;
pub(crate) type StorageError = openraft::StorageError<u64>;

/// A [`Batch`] as bytes. The leader encodes it once, and each node decodes it when it applies it.
#[derive(PartialEq, Eq, Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EncodedBatch(pub Bytes);

/// The content of one entry of the log.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// When the leader received it.
    pub stamp: Stamp,
    /// The digest of the leader's ledger at an earlier entry. A node with another digest stops.
    pub check: Option<DigestCheck>,
    /// The commands, in this order.
    pub items: Vec<BatchItem>,
}

/// A digest of everything applied up to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DigestCheck {
    pub index: u64,
    pub digest: u64,
}

/// One item of a batch. Commands stay encoded until they are applied. A command that is too large for one
/// entry is sent in chunks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum BatchItem {
    /// An encoded command.
    Command(Bytes),
    /// A session asks for jobs. Not encoded, because the leader orders these requests.
    Take { session: SessionId, number: u64, limit: u32, ahead: u32 },
    /// A session has written all its files, or leaves. Not encoded, because the leader waits a moment to write
    /// several of these in one entry.
    SessionEnd { session: SessionId, leaves: bool },
    /// A chunk of a large command.
    Chunk { command: u64, number: u32, bytes: Bytes },
    /// All chunks of a large command were sent. `by` is the session that it acts for.
    AllChunks { command: u64, chunks: u32, by: Option<SessionId> },
}

impl BatchItem {
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Command(bytes) | Self::Chunk { bytes, .. } => bytes.len() + 16,
            Self::Take { .. } | Self::SessionEnd { .. } | Self::AllChunks { .. } => 32,
        }
    }
}

/// The replies to the items of an entry, in their order.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Replies(pub Vec<Reply>);

/// A request to a node.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum PeerRequest {
    /// To any node with a vote: describe yourself and your cluster.
    Describe,
    /// A message of raft, from one disk to another.
    Raft {
        from: u64,
        to: u64,
        message: RaftMessage,
    },
    /// To the leader: write these items.
    Submit(Vec<BatchItem>),
    /// To the leader: renew this session. Answered once the renewal is committed.
    Renew(SessionId),
    /// To any node with a vote: answer this once that entry is applied.
    Ask {
        question: Question,
        index: u64,
    },
    /// To any node with a vote: send the progress of the run when it differs from this, or after a timeout.
    Watch(Standing),
    /// To any node with a vote: would you vote for a node whose log ends with this entry?
    MayLead(Option<LogId>),
    /// From a leader that is about to end to a node whose log is complete: stand for election now.
    Stand,
    /// From an operator: the status of the node and its cluster.
    Status,
    Order(OperatorOrder),
}

impl PeerRequest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let bytes: usize = match self {
            Self::Submit(items) => items.iter().map(BatchItem::size).sum(),
            Self::Raft { message: RaftMessage::Append(append), .. } => {
                append.entries.iter().map(|entry| size_of_entry(&entry.payload)).sum()
            }
            _ => 0,
        };
        encode_with_room(self, bytes + 128)
    }
}

fn size_of_entry(payload: &EntryPayload<Types>) -> usize {
    match payload {
        EntryPayload::Normal(entry) => entry.0.len() + 32,
        EntryPayload::Blank | EntryPayload::Membership(_) => 32,
    }
}

/// A message of raft.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RaftMessage {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
    Install(InstallSnapshotRequest<Types>),
}

/// An order of an operator.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum OperatorOrder {
    Cancel,
    Fence(Seat),
    Admit(Seat),
}

/// The answer to a [`Call`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum PeerResponse {
    Description(NodeDescription),
    Append(Result<AppendEntriesResponse<u64>, RaftError<u64>>),
    Vote(Result<VoteResponse<u64>, RaftError<u64>>),
    Install(Result<InstallSnapshotResponse<u64>, RaftError<u64, InstallSnapshotError>>),
    Submitted {
        replies: Vec<Reply>,
        index: u64,
    },
    /// Whether the session still exists.
    Renewed(bool),
    Answer(Answer),
    Standing(Standing),
    Status(Box<crate::cluster::status::ClusterStatus>),
    /// The disk that would vote, or that stands for election; `None` if it refuses.
    MayLead(Option<u64>),
    /// The order was carried out, or the reason why it was not.
    Ordered(Result<(), String>),
    /// The node has another disk now.
    Gone,
    /// This node does not lead; the leader, if it is known.
    NotLeader(Option<u32>),
    /// Try again: the node is starting, ending or behind.
    Busy(String),
    /// The caller has no permission for this.
    Refused(String),
}

/// How a node describes itself before it has joined a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeDescription {
    /// Its disk is new and has never voted.
    pub fresh: bool,
    /// It is part of a cluster.
    pub established: bool,
    /// The raft number of its disk; 0 if it has none.
    pub raft_id: u64,
    /// The random number that its disk drew when it was new; 0 before.
    pub disk: u64,
    /// The new disks that created the cluster with this one, itself included.
    pub founders: Vec<(Seat, u64)>,
    /// The last entry that it has applied.
    pub agreed: u64,
}

/// The raft number of a node's disk. An emptied disk is another voter than before.
pub(crate) fn raft_id(seat: Seat, incarnation: u32) -> u64 {
    u64::from(incarnation) << 16 | u64::from(seat.0)
}

/// The node that a raft number belongs to.
pub(crate) fn seat_of(raft_id: u64) -> Seat {
    Seat((raft_id & 0xffff) as u32)
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    encode_with_room(value, 128)
}

/// Encodes with room for `bytes`: a buffer that grows is copied.
pub(crate) fn encode_with_room<T: Serialize>(value: &T, bytes: usize) -> Vec<u8> {
    // Plain data always encodes. If it did not, the empty bytes would not decode.
    postcard::to_extend(value, Vec::with_capacity(bytes)).unwrap_or_default()
}
