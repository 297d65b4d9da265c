//! The nodes and sessions of the ledger, copied for tasks outside of the replica's thread.

use std::collections::BTreeMap;

use crate::cluster::replica::mark::ReplicaMark;
use crate::ledger::{Ledger, Seat, SeatRecord, Session, SessionId, Standing};
use crate::store::sqlite::SqliteTables;

/// The nodes and their sessions, as of the last applied entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roster {
    pub seats: BTreeMap<Seat, SeatRecord>,
    pub sessions: BTreeMap<SessionId, Session>,
    /// Jobs each session holds.
    pub held: BTreeMap<SessionId, u64>,
    pub standing: Standing,
    pub folder: Option<String>,
    /// Whether a node has written its files of a closed run and has not heard that it is closed.
    pub owed: bool,
    pub index: u64,
    /// The newest session, ended or not.
    pub last_session: SessionId,
}

impl Roster {
    pub(crate) fn of(ledger: &Ledger<SqliteTables>, mark: &ReplicaMark) -> Self {
        let core = ledger.core();
        Self {
            seats: core.seats.clone(),
            sessions: core.sessions.clone(),
            held: core.held(),
            standing: ledger.standing(),
            folder: core.run.as_ref().map(|run| run.plan.folder.clone()),
            owed: core.run.as_ref().is_some_and(|run| {
                run.closed && run.written.difference(&run.end_reported).next().is_some()
            }),
            index: mark.applied.map_or(0, |applied| applied.index),
            last_session: core.last_session(),
        }
    }
}
