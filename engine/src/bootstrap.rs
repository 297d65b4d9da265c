//! Wiring: binds the interfaces of the engine to their components, for one machine or for many.
//! The only file that names a concrete store. A `ClusterModule` will bind the same interfaces.

use std::sync::Arc;

use shaku::{Component, HasComponent, Interface, module};

use crate::config::{Config, Durability};
use crate::store::{
    OpenOptions, SoloHandle, SoloStore, SoloStoreParameters, SoloThread, Store, StoreError,
};

/// Where the engine asks for the time of day; the ledger never does.
pub(crate) trait Clock: Interface {
    /// Now.
    fn now(&self) -> jiff::Timestamp;
}

/// The machine's clock.
#[derive(Debug, Component)]
#[shaku(interface = Clock)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}

module! {
    pub SoloModule {
        components = [SoloStore, SystemClock],
        providers = []
    }
}

/// A wired node: what the run needs, whichever module it came from.
pub(crate) struct Node {
    /// Where the ledger is kept.
    pub store: Arc<dyn Store>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Whether no other process can be part of the run.
    pub alone: bool,
    thread: SoloThread,
}

impl Node {
    /// Opens the data directory and wires a solo node.
    pub(crate) fn solo(config: &Config) -> Result<Self, StoreError> {
        let options = OpenOptions {
            dir: config.store.data_dir.clone(),
            in_memory: config.store.durability == Durability::None,
            commit_interval: config.store.commit_interval,
            commit_max: config.store.commit_max,
            queue_max: config.job.take_limit.max(64) * 4,
            seen_memory: config.store.seen_memory,
        };
        let (handle, thread) = SoloHandle::open(&options)?;
        let module = SoloModule::builder()
            .with_component_parameters::<SoloStore>(SoloStoreParameters { handle })
            .build();
        let (store, clock): (Arc<dyn Store>, Arc<dyn Clock>) = (module.resolve(), module.resolve());
        Ok(Self { store, clock, alone: true, thread })
    }

    /// Has the process end, with this exit code, in the moment its run is closed.
    pub(crate) fn end_process_with(&self, code: u8) {
        self.thread.end_process_with(code);
    }

    /// Ends the store after everything is durable.
    pub(crate) fn close(self) {
        let Self { store, thread, .. } = self;
        drop(store);
        thread.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solo_module_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().display().to_string();
        let config = Config::from_map(&[("data.dir".to_owned(), data)].into()).unwrap();
        let node = Node::solo(&config).unwrap();
        let second = Node::solo(&config);
        assert!(matches!(second, Err(StoreError::InUse(_))));
        node.close();
        Node::solo(&config).unwrap().close();
    }
}
