//! Reads the ledger of a node that is down. It accepts no commands and writes nothing.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crossbeam_channel::{Receiver, never};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use shaku::Component;
use tokio::sync::watch;

use crate::cluster::replica::apply;
use crate::cluster::replica::restore::Tables;
use crate::ledger::{Command, Reply, SessionId, Standing};
use crate::store::answer::answer;
use crate::store::lock::DirLock;
use crate::store::{Answer, Question, Store, StoreError};

/// The component that `ReadOnlyModule` binds to [`Store`].
#[derive(Component)]
#[shaku(interface = Store)]
pub(crate) struct ReadOnlyStore {
    pub(crate) resting: ReadOnlyReplica,
}

/// The ledger of a node that is down, and the lock that keeps the node from starting.
pub(crate) struct ReadOnlyReplica {
    ledger: Mutex<Tables>,
    standing: watch::Sender<Standing>,
    _lock: DirLock,
}

impl ReadOnlyReplica {
    /// Opens the data directory of a node with a vote.
    pub(crate) fn open(dir: &Path, seen_memory: u64) -> Result<Self, StoreError> {
        let lock = DirLock::take(dir)?;
        let ledger = apply::look(dir, seen_memory)?;
        let standing = watch::Sender::new(ledger.standing());
        Ok(Self { ledger: Mutex::new(ledger), standing, _lock: lock })
    }
}

fn refused<T: Send + 'static>() -> Result<T, StoreError> {
    Err(StoreError::Failed("the node is down and accepts no commands".to_owned()))
}

impl Store for ReadOnlyStore {
    fn submit(&self, _: Command) -> BoxFuture<'static, Result<Reply, StoreError>> {
        ready(refused()).boxed()
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Answer, StoreError>> {
        ready(self.ask_blocking(question)).boxed()
    }

    fn submit_blocking(&self, _: Command) -> Result<Reply, StoreError> {
        refused()
    }

    fn ask_blocking(&self, question: Question) -> Result<Answer, StoreError> {
        let mut ledger = self.resting.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(answer(&mut ledger, &question)?)
    }

    fn renew(&self, _: SessionId) -> BoxFuture<'static, Result<bool, StoreError>> {
        ready(refused()).boxed()
    }

    fn standing(&self) -> watch::Receiver<Standing> {
        self.resting.standing.subscribe()
    }

    fn output_bell(&self) -> Receiver<()> {
        never()
    }
}
