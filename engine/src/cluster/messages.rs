//! What nodes say to each other and what stands in the log.

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

/// Version of requests, answers and log entries.
pub(crate) const VERSION: u16 = 5;

openraft::declare_raft_types!(
    /// The types of our log.
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

/// A [`Batch`] as bytes: encoded once by the leader, decoded once by each node that applies it.
#[derive(PartialEq, Eq, Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EncodedBatch(pub Bytes);

/// What one entry of the log holds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// When the leader took it on.
    pub stamp: Stamp,
    /// What the leader's state was at an earlier entry: whoever had another one there is wrong.
    pub check: Option<DigestCheck>,
    /// What is to be done.
    pub items: Vec<BatchItem>,
}

/// A sum over everything applied up to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DigestCheck {
    pub index: u64,
    pub digest: u64,
}

/// One thing to be done. Commands are bytes until they are applied; those that are too large for an
/// entry travel in parts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum BatchItem {
    /// An encoded command.
    Command(Bytes),
    /// A session asks for jobs: not encoded, since the leader decides who comes first.
    Take { session: SessionId, number: u64, limit: u32, ahead: u32 },
    /// A session has written everything, or leaves: not encoded, since others are about to say the
    /// same, and the leader lets them go together.
    SessionEnd { session: SessionId, leaves: bool },
    /// A part of a large one.
    Chunk { parcel: u64, number: u32, bytes: Bytes },
    /// All parts of a large one have been sent; it acts for that session, if for any.
    AllChunks { parcel: u64, parts: u32, by: Option<SessionId> },
}

impl BatchItem {
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Command(bytes) | Self::Chunk { bytes, .. } => bytes.len() + 16,
            Self::Take { .. } | Self::SessionEnd { .. } | Self::AllChunks { .. } => 32,
        }
    }
}

/// The answers to the items of an entry, in their order.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Replies(pub Vec<Reply>);

/// A request to a node.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum PeerRequest {
    /// NodeDescription are you, and does your cluster exist?
    Describe,
    /// From one disk's raft to another's.
    Raft {
        from: u64,
        to: u64,
        message: RaftMessage,
    },
    /// To the leader: do these.
    Submit(Vec<BatchItem>),
    /// To the leader: this session lives. Answered once that is agreed on.
    Renew(SessionId),
    /// To any node with a vote: read this, once that entry has been applied.
    Ask {
        question: Question,
        index: u64,
    },
    /// To any node with a vote: the few numbers, once they differ from these or some time has passed.
    Watch(Standing),
    /// To any node with a vote: would you vote for a node whose log ends there?
    MayLead(Option<LogId>),
    /// From the leader to a node whose log goes as far: stand for election now, for I am about to go.
    Stand,
    /// From an operator.
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

/// What an operator may ask for.
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
    /// Whether the session still lives.
    Renewed(bool),
    Answer(Answer),
    Standing(Standing),
    Status(Box<crate::cluster::status::ClusterStatus>),
    /// The disk that would, or does; none if it would not.
    MayLead(Option<u64>),
    /// The order is carried out; or it makes no sense, in words.
    Ordered(Result<(), String>),
    /// The disk that is meant is not here any more.
    Gone,
    /// Ask that seat instead, if one is known.
    NotLeader(Option<u32>),
    /// Not now: the node is starting, stopping or overloaded.
    Busy(String),
    /// Never: whoever asks may not ask for this.
    Refused(String),
}

/// What a node knows of itself before it has joined anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeDescription {
    /// Its disk is new: it has never voted.
    pub fresh: bool,
    /// It takes part in a cluster that exists.
    pub established: bool,
    /// The raft number of its disk, if it has one.
    pub raft_id: u64,
    /// What this disk alone has drawn when it was new.
    pub disk: u64,
    /// The new disks that this one founded the cluster with, itself included.
    pub founders: Vec<(Seat, u64)>,
    /// The last entry of the log that it knows to be agreed on.
    pub agreed: u64,
}

/// The raft number of a seat's disk. A disk that was emptied is another voter than before.
pub(crate) fn raft_id(seat: Seat, incarnation: u32) -> u64 {
    u64::from(incarnation) << 16 | u64::from(seat.0)
}

/// The seat that a raft number belongs to.
pub(crate) fn seat_of(raft_id: u64) -> Seat {
    Seat((raft_id & 0xffff) as u32)
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    encode_with_room(value, 128)
}

/// The same where the size is known about: a text that grows while it is written is copied each time.
pub(crate) fn encode_with_room<T: Serialize>(value: &T, bytes: usize) -> Vec<u8> {
    // Plain data: encoding cannot fail but by a mistake of ours, and an empty text decodes to nothing.
    postcard::to_extend(value, Vec::with_capacity(bytes)).unwrap_or_default()
}
