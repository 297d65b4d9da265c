//! A node, and connections that ask for more than their role permits.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::cluster::messages::{OperatorOrder, VERSION, encode};
use crate::cluster::{ClusterHandle, ClusterOptions, ClusterThread};
use crate::config::Placement;
use crate::ledger::{JobId, Outcome, Reply, Tally, Token};
use crate::wire::{Credentials, WireClient, WireLimits};

const PATIENCE: Duration = Duration::from_mins(2);

/// A cluster of one node.
struct TestNode {
    _dir: tempfile::TempDir,
    address: String,
    handle: ClusterHandle,
    thread: ClusterThread,
    runtime: tokio::runtime::Runtime,
}

impl TestNode {
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap().to_string();
        drop(port);
        let (handle, thread) = ClusterHandle::open(ClusterOptions {
            dir: dir.path().to_owned(),
            seat: Seat(1),
            votes: true,
            listen: address.clone(),
            peers: [(Seat(1), address.clone())].into(),
            name: "rights".to_owned(),
            secret: None,
            quorum_timeout: Duration::from_secs(30),
            loss_exit: Duration::from_mins(1),
            end_wait: Duration::from_secs(1),
            snapshot_bytes: 64 << 20,
            seen_memory: 1 << 20,
            placement: Placement::Any,
            beat: Duration::from_hours(1),
        })
        .unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        Self { _dir: dir, address, handle, thread, runtime }
    }

    /// A connection that introduces itself with this role, node and life.
    fn link(&self, role: PeerRole, seat: u32, life: u64) -> WireClient {
        let hello = move || Hello {
            version: VERSION,
            role,
            seat,
            raft_id: 0,
            cluster_id: None,
            life,
            peers: String::new(),
        };
        let credentials = Arc::new(Credentials::new(None, b"rights"));
        WireClient::new(self.address.clone(), credentials, Arc::new(hello), WireLimits::default())
    }

    fn ask(&self, link: &WireClient, call: &PeerRequest) -> PeerResponse {
        let answer = self.runtime.block_on(link.call(call.encode(), PATIENCE)).unwrap();
        postcard::from_bytes(&answer).unwrap()
    }

    /// The reply to a command, or the reason for the refusal.
    fn submit(&self, link: &WireClient, command: &Command) -> Result<Reply, String> {
        let item = BatchItem::Command(encode(command).into());
        self.submit_items(link, vec![item]).map(|mut replies| replies.remove(0))
    }

    fn submit_items(&self, link: &WireClient, items: Vec<BatchItem>) -> Result<Vec<Reply>, String> {
        let call = PeerRequest::Submit(items);
        for _ in 0..2000 {
            match self.ask(link, &call) {
                PeerResponse::Submitted { replies, .. } => return Ok(replies),
                PeerResponse::Refused(words) => return Err(words),
                // The node does not lead yet.
                PeerResponse::NotLeader(_) | PeerResponse::Busy(_) => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                other => panic!("{other:?}"),
            }
        }
        panic!("nobody leads");
    }

    fn close(self) {
        drop(self.handle);
        self.thread.close();
    }
}

fn arrival(seat: u32, life: u64) -> JoinRequest {
    JoinRequest { nonce: life, life, seat: Seat(seat), votes: false, alone: false }
}

fn joined(reply: Result<Reply, String>) -> SessionId {
    match reply {
        Ok(Reply::Joined(session)) => session,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_operator_may_only_ask_for_the_status_and_give_orders() {
    let node = TestNode::open();
    let operator = node.link(PeerRole::Operator, 0, 7);
    let worker = node.link(PeerRole::Worker, 70, 70);
    let session = joined(node.submit(&worker, &Command::Join(arrival(70, 70))));
    assert!(matches!(node.ask(&operator, &PeerRequest::Status), PeerResponse::Status(_)));
    assert!(matches!(
        node.ask(&operator, &PeerRequest::Order(OperatorOrder::Cancel)),
        PeerResponse::Ordered(_)
    ));
    for command in [
        Command::Leave { session },
        Command::Join(arrival(1, 8)),
        Command::Fence { seat: Seat(70) },
    ] {
        let refused = node.submit(&operator, &command);
        assert!(refused.is_err_and(|words| words.contains("operator")), "{command:?}");
    }
    for call in [PeerRequest::Describe, PeerRequest::Renew(session), PeerRequest::MayLead(None)] {
        assert!(matches!(node.ask(&operator, &call), PeerResponse::Refused(_)), "{call:?}");
    }
    let refused = node.ask(&worker, &PeerRequest::Order(OperatorOrder::Fence(Seat(1))));
    assert!(matches!(refused, PeerResponse::Refused(words) if words.contains("only an operator")));
    node.close();
}

#[test]
fn a_worker_may_act_only_for_its_own_session() {
    let node = TestNode::open();
    let (one, two) = (node.link(PeerRole::Worker, 70, 70), node.link(PeerRole::Worker, 80, 80));
    let own = joined(node.submit(&one, &Command::Join(arrival(70, 70))));
    let other = joined(node.submit(&two, &Command::Join(arrival(80, 80))));
    // As another node, as another process, or with a vote.
    let voting = JoinRequest { votes: true, ..arrival(70, 70) };
    let alone = JoinRequest { alone: true, ..arrival(70, 70) };
    for arrival in [arrival(1, 70), arrival(70, 71), voting, alone] {
        let refused = node.submit(&one, &Command::Join(arrival));
        assert!(refused.is_err_and(|words| words.contains("as itself")), "{arrival:?}");
    }
    for command in [
        Command::Mint { seat: Seat(1), nonce: 1 },
        Command::Fence { seat: Seat(80) },
        Command::Cancel,
        Command::Beat { renewals: vec![] },
        Command::Doubt { session: other },
        Command::Close { session: own },
    ] {
        let refused = node.submit(&one, &command);
        assert!(refused.is_err_and(|words| words.contains("has no vote")), "{command:?}");
    }
    let outcome = Outcome::Failed { reason: String::new(), tally: Tally::default() };
    for command in [
        Command::Leave { session: other },
        Command::Claim { session: other, name: "setup".to_owned() },
        Command::Return { session: other, jobs: vec![] },
        Command::Finish {
            session: other,
            job: JobId(1),
            token: Token(1),
            since_start_ms: None,
            outcome,
        },
    ] {
        let refused = node.submit(&one, &command);
        assert!(
            refused.is_err_and(|words| words.contains("does not belong to node 70")),
            "{command:?}"
        );
    }
    assert!(matches!(node.ask(&one, &PeerRequest::Renew(other)), PeerResponse::Refused(_)));
    // One refused item refuses all items of the request.
    let items = vec![
        BatchItem::Command(encode(&Command::Leave { session: own }).into()),
        BatchItem::Take { session: other, number: 1, limit: 1, ahead: 0 },
    ];
    assert!(node.submit_items(&one, items).is_err());
    // The same in chunks.
    let hidden = encode(&Command::Leave { session: other }).into();
    let chunked = |by| {
        let bytes = bytes::Bytes::clone(&hidden);
        vec![
            BatchItem::Chunk { command: 5, number: 0, bytes },
            BatchItem::AllChunks { command: 5, chunks: 1, by },
        ]
    };
    assert!(node.submit_items(&one, chunked(None)).is_err());
    assert!(node.submit_items(&one, chunked(Some(other))).is_err());
    let replies = node.submit_items(&one, chunked(Some(own))).unwrap();
    assert_eq!(replies[1], Reply::Stale);
    // Both sessions still exist. A worker waits at a barricade, and may end its own session.
    assert_eq!(node.handle.standing.borrow().workers, 2);
    let claim = Command::Claim { session: own, name: "setup".to_owned() };
    assert_eq!(node.submit(&one, &claim), Ok(Reply::Wait));
    assert_eq!(node.submit(&one, &Command::Leave { session: own }), Ok(Reply::Ok));
    // It may still report a finished job afterwards.
    assert_eq!(node.submit(&one, &Command::Leave { session: own }), Ok(Reply::Stale));
    node.close();
}
