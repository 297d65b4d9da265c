//! Raft's messages over the links between nodes.

use std::sync::Arc;
use std::time::Duration;

use openraft::error::{
    InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable,
};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{AnyError, BasicNode};

use super::hub::Hub;
use super::types::{Call, Message, Response, Types, encode, seat_of};
use super::wire::{Link, LinkError};

/// Pause before a node that cannot be reached is tried again.
const UNREACHABLE_PAUSE: Duration = Duration::from_millis(200);

/// Makes the ways to other nodes.
pub(super) struct Network {
    pub hub: Arc<Hub>,
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Way;

    async fn new_client(&mut self, target: u64, _node: &BasicNode) -> Way {
        let own = self.hub.hello().raft_id;
        Way { link: self.hub.link(seat_of(target)), own, target }
    }
}

/// The way to one node.
pub(super) struct Way {
    link: Option<Link>,
    own: u64,
    target: u64,
}

type Failure<E> = RPCError<u64, BasicNode, RaftError<u64, E>>;

impl Way {
    async fn call<E: std::error::Error>(
        &self,
        message: Message,
        option: &RPCOption,
    ) -> Result<Response, Failure<E>> {
        let away = |words: String| {
            let error = AnyError::error(words);
            RPCError::Unreachable(Unreachable::new(&error))
        };
        let Some(link) = &self.link else {
            return Err(away(format!("node {} is not among the peers", self.target)));
        };
        let call = Call::Raft { from: self.own, to: self.target, message };
        match link.call(encode(&call), option.hard_ttl()).await {
            Ok(bytes) => match postcard::from_bytes(&bytes) {
                Ok(Response::Gone) => {
                    Err(away(format!("node {} is not there any more", self.target)))
                }
                Ok(response) => Ok(response),
                Err(error) => Err(RPCError::Network(NetworkError::new(&AnyError::error(error)))),
            },
            Err(error @ (LinkError::Unreachable { .. } | LinkError::Refused { .. })) => {
                Err(away(error.to_string()))
            }
            Err(error) => Err(RPCError::Network(NetworkError::new(&AnyError::error(error)))),
        }
    }

    #[expect(clippy::result_large_err, reason = "the size of the errors is raft's")]
    fn unwrap<T, E: std::error::Error>(
        &self,
        answer: Option<Result<T, RaftError<u64, E>>>,
    ) -> Result<T, Failure<E>> {
        match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(RPCError::RemoteError(RemoteError::new(self.target, error))),
            None => Err(RPCError::Network(NetworkError::new(&AnyError::error(
                "the other node is not ready",
            )))),
        }
    }
}

impl RaftNetwork<Types> for Way {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, RPCError<u64, BasicNode, RaftError<u64>>> {
        let answer = self.call(Message::Append(rpc), &option).await?;
        let answer = if let Response::Append(answer) = answer { Some(answer) } else { None };
        self.unwrap(answer)
    }

    async fn install_snapshot(
        &mut self,
        rpc: InstallSnapshotRequest<Types>,
        option: RPCOption,
    ) -> Result<
        InstallSnapshotResponse<u64>,
        RPCError<u64, BasicNode, RaftError<u64, InstallSnapshotError>>,
    > {
        let answer = self.call(Message::Install(rpc), &option).await?;
        let answer = if let Response::Install(answer) = answer { Some(answer) } else { None };
        self.unwrap(answer)
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<u64>,
        option: RPCOption,
    ) -> Result<VoteResponse<u64>, RPCError<u64, BasicNode, RaftError<u64>>> {
        let answer = self.call(Message::Vote(rpc), &option).await?;
        let answer = if let Response::Vote(answer) = answer { Some(answer) } else { None };
        self.unwrap(answer)
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(UNREACHABLE_PAUSE))
    }
}
