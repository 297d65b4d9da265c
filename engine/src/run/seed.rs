//! Seeding: every locator of the definitions becomes a job, once.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use spoonbill_defs::{Defs, LocatorGroup};
use spoonbill_plugins::follow::{Canonicalizer, ListedAddress};
use tokio::task::JoinSet;

use crate::error::RunError;
use crate::ledger::{Command, Epoch, NewJob, Reply, SessionId};
use crate::plan::address_lists::ListFiles;
use crate::plan::identity::{key, new_job, page_key};
use crate::plan::prepare::Plan;
use crate::store::Store;

/// Jobs in one command.
const CHUNK: usize = 500;

/// What seeding goes by.
pub(crate) struct Seeding {
    /// Groups whose pages go by their address alone.
    followed: BTreeSet<String>,
    canon: Canonicalizer,
    files: ListFiles,
}

impl Seeding {
    /// Seeding of these definitions.
    pub(crate) fn new(plan: &Plan, dir: &Path) -> Self {
        let published = &plan.published;
        let names = published.defs.locator_groups.iter().map(|group| &group.name.text);
        let followed =
            |name: &&String| plan.groups.get(name.as_str()).is_some_and(|group| group.is_followed);
        Self {
            followed: names.filter(followed).cloned().collect(),
            canon: plan.canon.clone(),
            files: ListFiles::new(&published.lists, dir, &plan.config),
        }
    }

    /// The job of a locator.
    fn job(&self, group: &str, ListedAddress { name, url }: &ListedAddress) -> NewJob {
        if self.followed.contains(group) {
            let key = page_key(group, &self.canon.address(url));
            return NewJob { key, ..new_job(key, name, group, url, 0) };
        }
        new_job(key(&[group, name, url]), name, group, url, 0)
    }
}

/// Seeds all groups side by side, but for the last command of each, which is returned: with all of them
/// the run is seeded, and not before.
pub(crate) async fn seed(
    store: &Arc<dyn Store>,
    session: SessionId,
    epoch: Epoch,
    defs: &Defs,
    seeding: Seeding,
) -> Result<Vec<Command>, RunError> {
    let mut latch = JoinSet::new();
    let seeding = Arc::new(seeding);
    for group in defs.locator_groups.clone() {
        let (store, seeding) = (Arc::clone(store), Arc::clone(&seeding));
        // Files are read on the way: off the async threads with it.
        latch.spawn_blocking(move || seed_group(&*store, session, epoch, &group, &seeding));
    }
    let mut last = Vec::new();
    while let Some(seeded) = latch.join_next().await {
        last.push(seeded.map_err(|error| RunError::Internal(format!("seeding ended: {error}")))??);
    }
    Ok(last)
}

fn seed_group(
    store: &dyn Store,
    session: SessionId,
    epoch: Epoch,
    group: &LocatorGroup,
    seeding: &Seeding,
) -> Result<Command, RunError> {
    let name = &group.name.text;
    let seed = |jobs, last| Command::Seed { session, epoch, group: name.clone(), jobs, last };
    let send = |jobs: Vec<NewJob>| match store.submit_blocking(seed(jobs, false))? {
        Reply::Ok => Ok(()),
        Reply::Stale => Err(RunError::Stale),
        other => Err(RunError::unexpected("seed", &other)),
    };
    let mut jobs = Vec::new();
    for locator in locators(group, seeding) {
        let locator = locator.map_err(|message| {
            RunError::Internal(format!("locators of group `{name}` cannot be read: {message}"))
        })?;
        jobs.push(seeding.job(name, &locator));
        if jobs.len() >= CHUNK {
            send(std::mem::take(&mut jobs))?;
        }
    }
    Ok(seed(jobs, true))
}

/// The locators of a group: those that are written down, then those of its sources.
fn locators<'g>(
    group: &'g LocatorGroup,
    seeding: &'g Seeding,
) -> impl Iterator<Item = Result<ListedAddress, String>> + 'g {
    let written = group.locators.iter().map(|locator| {
        Ok(ListedAddress { name: locator.name.text.clone(), url: locator.url.text.clone() })
    });
    let listed = group.sources.iter().flat_map(|source| {
        let (list, failure) = match seeding.files.locators(source) {
            Ok(list) => (Some(list), None),
            Err(message) => (None, Some(Err(message))),
        };
        list.into_iter().flatten().chain(failure)
    });
    written.chain(listed)
}
