//! The nodes with a vote: their addresses, and one connection to each peer.
//!
//! All nodes have the same list, or two of them could count two different majorities. Each hello
//! carries the list, and a node refuses a peer whose list differs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::cluster::messages::{PeerRequest, PeerResponse};
use crate::cluster::{ClusterOptions, locked};
use crate::ledger::Seat;
use crate::wire::{CallError, Hello, HelloSource, PeerRole, WireClient, WireLimits};

/// Addresses of the nodes with a vote.
pub(crate) type Peers = BTreeMap<Seat, String>;

/// The connections to the peers of this node.
pub(crate) struct PeerClients {
    pub peers: Peers,
    clients: BTreeMap<Seat, WireClient>,
    /// Nodes that refuse this one, and why.
    refusals: Mutex<BTreeMap<Seat, CallError>>,
}

impl PeerClients {
    /// Connects nothing yet; `hello` introduces this node on each new connection.
    pub(crate) fn new(options: &ClusterOptions, hello: &HelloSource) -> Arc<Self> {
        let credentials = Arc::new(options.credentials());
        let others = options.peers.iter();
        let others = others.filter(|(seat, _)| !options.votes || **seat != options.seat);
        let clients = others.map(|(seat, address)| {
            let (credentials, hello) = (Arc::clone(&credentials), Arc::clone(hello));
            (*seat, WireClient::new(address.clone(), credentials, hello, WireLimits::default()))
        });
        let (peers, clients) = (options.peers.clone(), clients.collect());
        Arc::new(Self { peers, clients, refusals: Mutex::default() })
    }

    /// The connection to a node; `None` for this node and for workers.
    pub(crate) fn client(&self, seat: Seat) -> Option<&WireClient> {
        self.clients.get(&seat)
    }

    /// The other nodes with a vote.
    pub(crate) fn others(&self) -> impl Iterator<Item = (Seat, &WireClient)> {
        self.clients.iter().map(|(seat, client)| (*seat, client))
    }

    pub(crate) fn is_connected(&self, seat: Seat) -> bool {
        self.client(seat).is_some_and(|client| client.peer().borrow().is_some())
    }

    /// The other nodes that this one has no connection to.
    pub(crate) fn disconnected(&self) -> impl Iterator<Item = Seat> {
        self.others().map(|(seat, _)| seat).filter(|seat| !self.is_connected(*seat))
    }

    /// Sends one request; `None` if it was not answered in time.
    pub(crate) async fn ask(
        &self,
        seat: Seat,
        request: &PeerRequest,
        timeout: Duration,
    ) -> Option<PeerResponse> {
        match self.client(seat)?.call(request.encode(), timeout).await {
            Ok(bytes) => {
                locked(&self.refusals).remove(&seat);
                postcard::from_bytes(&bytes).ok()
            }
            Err(error) => {
                self.note_refusal(seat, &error);
                tracing::debug!(seat = seat.0, %error, "no answer");
                None
            }
        }
    }

    /// Warns once about a node that refuses this one. Other errors say nothing about a refusal.
    fn note_refusal(&self, seat: Seat, error: &CallError) {
        if matches!(error, CallError::Refused { .. }) {
            let before = locked(&self.refusals).insert(seat, error.clone());
            if before.as_ref() != Some(error) {
                tracing::warn!("node {} at {error}", seat.0);
            }
        }
    }

    /// Whether a node refuses to talk to this one.
    pub(crate) fn refuses(&self, seat: Seat) -> bool {
        locked(&self.refusals).contains_key(&seat)
    }

    /// Names nodes that do not answer, and those that refuse to.
    pub(crate) fn describe_absent(&self, silent: impl Iterator<Item = Seat>) -> String {
        let refusals = locked(&self.refusals);
        let (mut named, mut refused) = (Vec::new(), Vec::new());
        for seat in silent {
            match (refusals.get(&seat), self.peers.get(&seat)) {
                (Some(error), _) => refused.push(format!("node {} at {error}", seat.0)),
                (None, Some(address)) => named.push(format!("node {} at {address}", seat.0)),
                (None, None) => named.push(format!("node {}", seat.0)),
            }
        }
        let silent = (!named.is_empty()).then(|| format!("no answer from {}", named.join(", ")));
        let words: Vec<String> = silent.into_iter().chain(refused).collect();
        if words.is_empty() {
            return "all nodes answer, but they do not agree".to_owned();
        }
        words.join("; ")
    }
}

/// The list as it is sent in a hello.
pub(crate) fn written(peers: &Peers) -> String {
    let peers = peers.iter().map(|(seat, address)| format!("{}={address}", seat.0));
    peers.collect::<Vec<_>>().join(",")
}

fn read(text: &str) -> Peers {
    let parts = text.split(',').filter_map(|part| part.split_once('='));
    let parts = parts.filter_map(|(seat, at)| Some((Seat(seat.parse().ok()?), at.to_owned())));
    parts.collect()
}

/// Whether a node is on the list of another one.
pub(crate) fn knows(hello: &Hello, seat: Seat) -> bool {
    read(&hello.peers).contains_key(&seat)
}

/// How the list of another node differs from this one's. A worker counts no votes, so it may know fewer
/// nodes, and know them by other addresses.
pub(crate) fn compare(hello: &Hello, own: &Peers) -> Result<(), String> {
    let theirs = read(&hello.peers);
    let differences: Vec<String> = match hello.role {
        PeerRole::Operator => Vec::new(),
        PeerRole::Worker => {
            let strange = theirs.iter().filter(|(seat, _)| !own.contains_key(seat));
            strange.map(|(seat, address)| beyond(*seat, address)).collect()
        }
        PeerRole::Voter => {
            let all: BTreeMap<_, _> = own.iter().chain(&theirs).collect();
            all.keys().filter_map(|seat| differ(**seat, &theirs, own)).collect()
        }
    };
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!("its list of peers differs from the cluster's: {}", differences.join("; ")))
}

fn beyond(seat: Seat, address: &str) -> String {
    format!("it has `{}={address}`, the cluster has no node {}", seat.0, seat.0)
}

fn differ(seat: Seat, theirs: &Peers, own: &Peers) -> Option<String> {
    match (theirs.get(&seat), own.get(&seat)) {
        (Some(one), Some(other)) if one != other => {
            Some(format!("it has `{}={one}`, the cluster `{}={other}`", seat.0, seat.0))
        }
        (Some(address), None) => Some(beyond(seat, address)),
        (None, Some(address)) => {
            Some(format!("it has no node {}, the cluster `{}={address}`", seat.0, seat.0))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(role: PeerRole, peers: &str) -> String {
        let own = read("1=a:1,2=b:1,3=c:1");
        let peers = peers.to_owned();
        let hello =
            Hello { version: 0, role, seat: 1, raft_id: 0, cluster_id: None, life: 0, peers };
        compare(&hello, &own).err().unwrap_or_default()
    }

    #[test]
    fn voters_need_the_same_list_and_workers_a_part_of_it() {
        let same = "1=a:1,2=b:1,3=c:1";
        assert_eq!(written(&read(same)), same);
        assert_eq!(difference(PeerRole::Voter, same), "");
        assert_eq!(
            difference(PeerRole::Voter, "1=a:1,2=d:1"),
            "its list of peers differs from the cluster's: it has `2=d:1`, the cluster `2=b:1`; \
             it has no node 3, the cluster `3=c:1`"
        );
        assert!(difference(PeerRole::Voter, "1=a:1,2=b:1,3=c:1,4=d:1").contains("it has `4=d:1`"));
        assert_eq!(difference(PeerRole::Worker, "2=by-another-name:1"), "");
        assert!(difference(PeerRole::Worker, "1=a:1,4=d:1").contains("the cluster has no node 4"));
        assert_eq!(difference(PeerRole::Operator, ""), "");
    }
}
