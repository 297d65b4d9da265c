//! The nodes with a vote: all of them have the same list, else two could count two majorities.

use std::collections::BTreeMap;

use crate::ledger::Seat;
use crate::wire::{Hello, PeerRole};

/// Addresses of the seats with a vote.
pub(crate) type Peers = BTreeMap<Seat, String>;

/// The list as nodes tell each other.
pub(crate) fn written(peers: &Peers) -> String {
    let peers = peers.iter().map(|(seat, address)| format!("{}={address}", seat.0));
    peers.collect::<Vec<_>>().join(",")
}

fn read(text: &str) -> Peers {
    let parts = text.split(',').filter_map(|part| part.split_once('='));
    let parts = parts.filter_map(|(seat, at)| Some((Seat(seat.parse().ok()?), at.to_owned())));
    parts.collect()
}

/// Whether a seat is on a node's list.
pub(crate) fn knows(hello: &Hello, seat: Seat) -> bool {
    read(&hello.peers).contains_key(&seat)
}

/// In what the list of a node differs from this one's, in words. A node without a vote may know fewer
/// of them, and call them by other names: it counts no votes.
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
    Err(format!("its list of peers differs from the cluster\'s: {}", differences.join("; ")))
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

    fn told(role: PeerRole, peers: &str) -> String {
        let own = read("1=a:1,2=b:1,3=c:1");
        let peers = peers.to_owned();
        let hello =
            Hello { version: 0, role, seat: 1, raft_id: 0, cluster_id: None, life: 0, peers };
        compare(&hello, &own).err().unwrap_or_default()
    }

    #[test]
    fn voters_have_one_list_and_workers_know_some_of_it() {
        let same = "1=a:1,2=b:1,3=c:1";
        assert_eq!(written(&read(same)), same);
        assert_eq!(told(PeerRole::Voter, same), "");
        assert_eq!(
            told(PeerRole::Voter, "1=a:1,2=d:1"),
            "its list of peers differs from the cluster\'s: it has `2=d:1`, the cluster `2=b:1`; \
             it has no node 3, the cluster `3=c:1`"
        );
        assert!(told(PeerRole::Voter, "1=a:1,2=b:1,3=c:1,4=d:1").contains("it has `4=d:1`"));
        assert_eq!(told(PeerRole::Worker, "2=by-another-name:1"), "");
        assert!(told(PeerRole::Worker, "1=a:1,4=d:1").contains("the cluster has no node 4"));
        assert_eq!(told(PeerRole::Operator, ""), "");
    }
}
