//! How a node's disk gets its number: the one it has, the seat's own in a cluster that is being founded,
//! or one that the others agree on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cluster::messages::{NodeDescription, PeerRequest, PeerResponse, raft_id};
use crate::cluster::node::{DISK, FOUNDERS, Hub, IDENTITY, Identity, MINTING, locked, random};
use crate::cluster::{ClusterOptions, client, submit_once};
use crate::ledger::{Command, Reply, Seat};
use crate::store::StoreError;

/// A cluster is founded by a majority, but the others are given this long to come, where there is time.
const FOUNDING_GRACE: Duration = Duration::from_secs(3);
/// Patience with one question to a peer.
const PATIENCE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(50);

/// How long those who found a cluster wait for the others.
pub(crate) fn founding_grace(options: &ClusterOptions) -> Duration {
    FOUNDING_GRACE.min(options.quorum_timeout / 4)
}

/// Gives this node's disk its number: the one it has, the seat's own in a new cluster, or another
/// one in a cluster that has known this seat with another disk.
pub(crate) async fn take_seat(hub: &Arc<Hub>) -> Result<(), StoreError> {
    let Some(voter) = &hub.voter else { return Ok(()) };
    let seat = hub.options.seat;
    let known = *locked(&hub.identity);
    match known {
        Some(known) if known.seat == seat => return Ok(()),
        Some(known) => {
            return Err(StoreError::Excluded(format!(
                "`{}` belongs to node {}, not to node {}",
                hub.options.dir.display(),
                known.seat.0,
                seat.0
            )));
        }
        None => {}
    }
    let known = voter.log.local::<u64>(DISK);
    let disk = known.unwrap_or_else(|| random().max(1));
    if known.is_none() {
        voter.log.keep(DISK, &disk).await?;
    }
    let began = Instant::now();
    let incarnation = loop {
        let found = look_round(hub).await;
        if found.values().any(|who| who.established) {
            // Founded a moment ago, and this disk was counted: it is what the others take it for.
            let counted = found.values().any(|who| who.founders.contains(&(seat, disk)));
            if counted && voter.log.local::<bool>(MINTING).is_none() {
                break 0;
            }
            voter.log.keep(MINTING, &true).await?;
            break mint(hub, began).await?;
        }
        let fresh = 1 + found.values().filter(|who| who.fresh).count();
        let all_here = fresh == hub.peers().len();
        if all_here
            || fresh >= hub.options.majority() && began.elapsed() >= founding_grace(&hub.options)
        {
            let others = found.iter().filter(|(_, who)| who.fresh);
            let others = others.map(|(seat, who)| (*seat, who.disk));
            let founders: Vec<(Seat, u64)> = others.chain([(seat, disk)]).collect();
            voter.log.keep(FOUNDERS, &founders).await?;
            break 0;
        }
        if began.elapsed() >= hub.options.quorum_timeout {
            return Err(not_formed(hub, &found));
        }
        tokio::time::sleep_until(tokio::time::Instant::now() + LOOK).await;
    };
    settle(hub, incarnation).await
}

/// Has the others agree on a number for a disk that is damaged: they are there, then, and enough of
/// them, and the node can be rebuilt. None if no cluster answers, or too little of one.
pub(crate) async fn mint_for_damaged(options: &ClusterOptions) -> Result<Option<u32>, StoreError> {
    let scout = Hub::new(options.clone(), None);
    let began = Instant::now();
    while !look_round(&scout).await.values().any(|who| who.established) {
        if began.elapsed() >= FOUNDING_GRACE {
            return Ok(None);
        }
        tokio::time::sleep_until(tokio::time::Instant::now() + LOOK).await;
    }
    match mint(&scout, began).await {
        Err(error @ StoreError::Excluded(_)) => Err(error),
        minted => Ok(minted.ok()),
    }
}

/// What takes the place of a damaged disk is another one.
pub(crate) async fn settle_anew(hub: &Hub, incarnation: u32) -> Result<(), StoreError> {
    if let Some(voter) = &hub.voter {
        voter.log.keep(DISK, &random().max(1)).await?;
    }
    settle(hub, incarnation).await
}

/// This node's disk goes by a number from now on.
async fn settle(hub: &Hub, incarnation: u32) -> Result<(), StoreError> {
    let (seat, Some(voter)) = (hub.options.seat, &hub.voter) else { return Ok(()) };
    let identity = Identity { seat, raft_id: raft_id(seat, incarnation) };
    voter.log.keep(IDENTITY, &identity).await?;
    *locked(&hub.identity) = Some(identity);
    Ok(())
}

/// Has the others agree on a number that no disk of this seat has had. As long as another process lives
/// on the seat there is none: it asks again until it is too late.
async fn mint(hub: &Arc<Hub>, began: Instant) -> Result<u32, StoreError> {
    let mint = Command::Mint { seat: hub.options.seat, nonce: random() };
    let mut in_use = false;
    loop {
        let left = hub.options.quorum_timeout.saturating_sub(began.elapsed());
        match tokio::time::timeout(left, submit_once(hub, &mint)).await {
            Ok(Ok(Reply::Minted(incarnation))) => return Ok(incarnation),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(_)) => in_use = true,
            Err(_) if in_use => return Err(seat_in_use(hub)),
            Err(_) => return Err(not_formed(hub, &look_round(hub).await)),
        }
        let pause = hub.options.beat.min(left);
        tokio::time::sleep_until(tokio::time::Instant::now() + pause).await;
    }
}

fn seat_in_use(hub: &Hub) -> StoreError {
    let (seat, patience) = (hub.options.seat.0, hub.options.quorum_timeout.as_secs());
    StoreError::Excluded(format!(
        "node {seat} is in use by a living process, which has another data directory than `{}`, and \
         has given signs of life for {patience} s: stop that one first, or start this one as another \
         node (`--node-id`)",
        hub.options.dir.display()
    ))
}

pub(crate) async fn look_round(hub: &Arc<Hub>) -> BTreeMap<Seat, NodeDescription> {
    let asked = hub.others().map(|(seat, _)| async move {
        let answer = client::ask(hub, seat, &PeerRequest::Describe, PATIENCE).await;
        match answer {
            Some(PeerResponse::Description(who)) => Some((seat, who)),
            _ => None,
        }
    });
    futures_util::future::join_all(asked).await.into_iter().flatten().collect()
}

/// Words for a cluster that does not come together.
fn not_formed(hub: &Hub, found: &BTreeMap<Seat, NodeDescription>) -> StoreError {
    let seats = hub.peers().keys().copied();
    let silent = seats.filter(|seat| *seat != hub.options.seat && !found.contains_key(seat));
    StoreError::NoQuorum(format!(
        "the cluster was not formed within {} s: {}",
        hub.options.quorum_timeout.as_secs(),
        absent(hub, silent)
    ))
}

/// Names nodes that do not answer, and those that refuse to.
pub(crate) fn absent(hub: &Hub, silent: impl Iterator<Item = Seat>) -> String {
    let address = |seat: Seat| hub.peers().get(&seat).cloned().unwrap_or_default();
    let (mut named, mut refused) = (Vec::new(), Vec::new());
    for seat in silent {
        match hub.refusal(seat) {
            Some(error) => refused.push(format!("node {} at {error}", seat.0)),
            None => named.push(format!("node {} at {}", seat.0, address(seat))),
        }
    }
    let silent = (!named.is_empty()).then(|| format!("no answer from {}", named.join(", ")));
    let words: Vec<String> = silent.into_iter().chain(refused).collect();
    if words.is_empty() {
        return "all nodes answer, but they do not agree".to_owned();
    }
    words.join("; ")
}
