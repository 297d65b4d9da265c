//! The settings of a cluster, checked together.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use super::choices::ClusterRole;
use super::table::ClusterConfig;
use crate::ledger::Seat;

/// The least number of bytes of a secret.
const SECRET_MIN: usize = 32;
/// The most nodes with a vote. More of them commit more slowly and are no safer.
const VOTERS_MAX: usize = 9;

/// How this node takes part in its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seating {
    /// The number of the node.
    pub seat: u32,
    /// The address it listens on; empty for a worker.
    pub listen: String,
    /// The nodes with a vote: numbers and addresses.
    pub peers: BTreeMap<u32, String>,
    /// The shared secret by which nodes recognise each other.
    pub secret: Option<Vec<u8>>,
    /// Nodes with a vote that must be connected before a run starts.
    pub quorum: usize,
    /// Whether other machines can reach the nodes although there is no secret.
    pub exposed: bool,
}

impl ClusterConfig {
    /// Whether this node has a vote.
    pub fn votes(&self) -> bool {
        self.role == ClusterRole::Voter
    }

    /// Derives how this node takes part, or says why the settings contradict each other.
    pub fn seating(&self) -> Result<Seating, String> {
        let peers = self.peers.as_deref().ok_or(
            "a cluster needs all its nodes with a vote: \
             `--peers 1=host-a:7400,2=host-b:7400,3=host-c:7400`",
        )?;
        let peers = read_peers(peers)?;
        if peers.len() == 2 && self.votes() {
            return Err("two nodes with a vote are less safe than one: the loss of either stops \
                        both; name three, or run on one machine without `--cluster`"
                .to_owned());
        }
        let seat = self.seat(&peers)?;
        let listen = match (&self.listen, peers.get(&seat)) {
            (Some(listen), _) => listen.clone(),
            (None, Some(own)) => own.clone(),
            // Nodes connect to voters only, so a worker needs no address.
            (None, None) => String::new(),
        };
        let secret = self.read_secret()?;
        let open = peers.values().chain([&listen]).find(|address| !is_loopback(address));
        if let (Some(address), None, false) = (open, &secret, self.insecure) {
            return Err(format!(
                "`{address}` can be reached from other machines, so the nodes need a secret: put at \
                 least {SECRET_MIN} random bytes into a file and name it with \
                 `--set cluster.secretFile=FILE` on every node (or accept strangers with \
                 `--set cluster.insecure=true`)"
            ));
        }
        let quorum = self.quorum_size.unwrap_or(peers.len() / 2 + 1);
        if quorum > peers.len() {
            return Err(format!(
                "`--quorum {quorum}` is more than the {} nodes with a vote",
                peers.len()
            ));
        }
        let exposed = open.is_some() && secret.is_none();
        Ok(Seating { seat, listen, peers, secret, quorum, exposed })
    }

    fn seat(&self, peers: &BTreeMap<u32, String>) -> Result<u32, String> {
        let known = || peers.keys().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let seat = match self.node_id.as_deref() {
            Some("auto") => number_of_host()?,
            Some(text) => {
                text.parse().ok().filter(|number| (1..60_000).contains(number)).ok_or_else(
                    || format!("`--node-id {text}` is no number from 1 to 59999, nor `auto`"),
                )?
            }
            None if !self.votes() => drawn(),
            None => {
                return Err(format!(
                    "a node with a vote needs its number: `--node-id` ({})",
                    known()
                ));
            }
        };
        match (self.votes(), peers.contains_key(&seat)) {
            (true, false) => Err(format!("node {seat} is not among the peers ({})", known())),
            (false, true) => Err(format!(
                "node {seat} has a vote among the peers; a worker needs another number, or none"
            )),
            _ => Ok(seat),
        }
    }

    /// The secret from its file or its setting.
    pub fn read_secret(&self) -> Result<Option<Vec<u8>>, String> {
        let secret = match (&self.secret_file, &self.secret) {
            (Some(path), _) => {
                let bytes = std::fs::read(path)
                    .map_err(|error| format!("`{}` cannot be read: {error}", path.display()))?;
                bytes.trim_ascii_end().to_vec()
            }
            (None, Some(text)) => text.as_bytes().to_vec(),
            (None, None) => return Ok(None),
        };
        if secret.len() < SECRET_MIN {
            return Err(format!(
                "the secret of the cluster has {} bytes, it needs at least {SECRET_MIN}",
                secret.len()
            ));
        }
        Ok(Some(secret))
    }
}

fn read_peers(text: &str) -> Result<BTreeMap<u32, String>, String> {
    let mut peers = BTreeMap::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let odd = || format!("`{part}` in the list of peers is not like `1=host:7400`");
        let (number, address) = part.split_once('=').ok_or_else(odd)?;
        let number: u32 = number.trim().parse().map_err(|_| odd())?;
        let (host, port) = address.rsplit_once(':').ok_or_else(odd)?;
        let odd_port = port.parse::<u16>().is_err();
        if host.is_empty() || odd_port || !(1..60_000).contains(&number) {
            return Err(odd());
        }
        if peers.insert(number, address.trim().to_owned()).is_some() {
            return Err(format!("node {number} is twice in the list of peers"));
        }
    }
    match peers.len() {
        0 => Err("the list of peers is empty".to_owned()),
        1..=VOTERS_MAX => Ok(peers),
        many => Err(format!(
            "{many} nodes with a vote are too many; let {VOTERS_MAX} at most vote and the others \
             work with `--role worker`"
        )),
    }
}

fn is_loopback(address: &str) -> bool {
    if address.is_empty() {
        return true;
    }
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A random number for a worker, different for each process and above all voters' numbers. In a
/// container every process may have the same id, so the id alone would not do.
fn drawn() -> u32 {
    let dice = RandomState::new().hash_one(std::process::id());
    Seat::DRAWN_FROM + (dice % u64::from(u32::MAX - Seat::DRAWN_FROM)) as u32
}

/// The number at the end of the host name plus one: `spoonbill-0` is node 1.
fn number_of_host() -> Result<u32, String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    let number = name.rsplit_once('-').and_then(|(_, number)| number.parse::<u32>().ok());
    number.map(|number| number + 1).ok_or_else(|| {
        format!("`--node-id auto` needs a machine's name that ends in a number, not `{name}`")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn config(pairs: &[(&str, &str)]) -> ClusterConfig {
        let map = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        super::super::Config::from_map(&map.collect()).unwrap().cluster
    }

    const THREE: &str = "1=127.0.0.1:7401,2=127.0.0.1:7402,3=127.0.0.1:7403";

    #[test]
    fn a_node_finds_its_place() {
        let seating =
            config(&[("cluster.peers", THREE), ("cluster.node.id", "2")]).seating().unwrap();
        assert_eq!((seating.seat, seating.quorum), (2, 2));
        assert_eq!(seating.listen, "127.0.0.1:7402");
        let worker = config(&[("cluster.peers", THREE), ("cluster.role", "worker")]);
        assert!(worker.seating().unwrap().seat >= Seat::DRAWN_FROM);
        let some = "1=127.0.0.1:7401,3=127.0.0.1:7403";
        let worker = config(&[("cluster.peers", some), ("cluster.role", "worker")]);
        assert_eq!(worker.seating().unwrap().peers.len(), 2, "a worker need not know all");
    }

    #[test]
    fn each_life_of_a_worker_has_a_number_of_its_own() {
        let worker = config(&[("cluster.peers", THREE), ("cluster.role", "worker")]);
        let numbers = (0..1000).map(|_| worker.seating().unwrap().seat);
        assert!(numbers.collect::<BTreeSet<_>>().len() >= 999);
    }

    #[test]
    fn what_cannot_be_is_told_in_words() {
        let cases: [(&[(&str, &str)], &str); 8] = [
            (&[("cluster.node.id", "1")], "needs all its nodes"),
            (&[("cluster.peers", THREE)], "needs its number"),
            (&[("cluster.peers", THREE), ("cluster.node.id", "4")], "not among the peers"),
            (&[("cluster.peers", "1=a:1,2=b:2"), ("cluster.node.id", "1")], "less safe"),
            (&[("cluster.peers", "1=a"), ("cluster.node.id", "1")], "not like"),
            (&[("cluster.peers", "1=a:1,2=b:1,3=c:1"), ("cluster.node.id", "1")], "need a secret"),
            (
                &[("cluster.peers", THREE), ("cluster.node.id", "1"), ("cluster.quorum.size", "4")],
                "more than the 3",
            ),
            (
                &[("cluster.peers", THREE), ("cluster.node.id", "1"), ("cluster.secret", "short")],
                "at least 32",
            ),
        ];
        for (pairs, words) in cases {
            let error = config(pairs).seating().unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn only_this_machine_needs_no_secret() {
        for (address, loopback) in [
            ("127.0.0.1:1", true),
            ("127.8.9.1:1", true),
            ("localhost:1", true),
            ("[::1]:1", true),
            ("0.0.0.0:1", false),
            ("10.0.0.1:1", false),
            ("node-1.local:1", false),
        ] {
            assert_eq!(is_loopback(address), loopback, "{address}");
        }
    }
}
