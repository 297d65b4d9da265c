//! Seeding: one node turns every locator of the definitions into a job.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use spoonbill_defs::LocatorGroup;
use spoonbill_plugins::follow::{Canonicalizer, ListedAddress};
use tokio::task::JoinSet;

use crate::error::RunError;
use crate::ledger::{Command, Epoch, NewJob, Reply, SessionId};
use crate::plan::address_lists::ListFiles;
use crate::plan::identity::{key, new_job, page_key};
use crate::plan::prepare::Plan;
use crate::run::barricade::Barricades;
use crate::run::current::current_run;
use crate::store::Store;

/// Jobs in one command.
const JOBS_PER_COMMAND: usize = 500;

/// Turns locators into jobs.
struct Seeder {
    /// Groups that links lead to. Their jobs have the address as their key, so that a start page that is
    /// also linked is one job.
    followed: BTreeSet<String>,
    canon: Canonicalizer,
    files: ListFiles,
}

impl Seeder {
    /// The seeder of these definitions; `dir` is where files lie that they name.
    fn new(plan: &Plan, dir: &Path) -> Self {
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

/// Has the run seeded, by this node or another.
pub(crate) async fn seed(
    store: &Arc<dyn Store>,
    plan: &Plan,
    dir: &Path,
    barricades: &mut Barricades<'_>,
) -> Result<(), RunError> {
    barricades
        .cross("seed", async |session, epoch| seed_groups(store, session, epoch, plan, dir).await)
        .await
}

/// Seeds all groups at the same time, except for the last command of each. Those are returned, to be
/// submitted in one batch: with them the run is seeded, and not before.
async fn seed_groups(
    store: &Arc<dyn Store>,
    session: SessionId,
    epoch: Epoch,
    plan: &Plan,
    dir: &Path,
) -> Result<Vec<Command>, RunError> {
    let run = current_run(store).await?;
    if run.seeded.len() == run.plan.groups.len() {
        return Ok(Vec::new());
    }
    let mut groups = JoinSet::new();
    let seeder = Arc::new(Seeder::new(plan, dir));
    for group in plan.published.defs.locator_groups.clone() {
        let (store, seeder) = (Arc::clone(store), Arc::clone(&seeder));
        // Lists of addresses are read from files, which blocks.
        groups.spawn_blocking(move || seed_group(&*store, session, epoch, &group, &seeder));
    }
    let mut last = Vec::new();
    while let Some(seeded) = groups.join_next().await {
        last.push(seeded.map_err(|error| RunError::Internal(format!("seeding ended: {error}")))??);
    }
    Ok(last)
}

fn seed_group(
    store: &dyn Store,
    session: SessionId,
    epoch: Epoch,
    group: &LocatorGroup,
    seeder: &Seeder,
) -> Result<Command, RunError> {
    let name = &group.name.text;
    let seed = |jobs, last| Command::Seed { session, epoch, group: name.clone(), jobs, last };
    let mut jobs = Vec::new();
    for locator in locators(group, seeder) {
        let locator = locator.map_err(|message| {
            RunError::Internal(format!("locators of group `{name}` cannot be read: {message}"))
        })?;
        jobs.push(seeder.job(name, &locator));
        if jobs.len() >= JOBS_PER_COMMAND {
            accepted(&store.submit_blocking(seed(std::mem::take(&mut jobs), false))?)?;
        }
    }
    Ok(seed(jobs, true))
}

/// Checks an answer. After `Stale` the node starts again with another session.
fn accepted(reply: &Reply) -> Result<(), RunError> {
    match reply {
        Reply::Ok => Ok(()),
        Reply::Stale => Err(RunError::Stale),
        other => Err(RunError::unexpected("seed", other)),
    }
}

/// The locators of a group: first those in the definitions, then those of its sources.
fn locators<'g>(
    group: &'g LocatorGroup,
    seeder: &'g Seeder,
) -> impl Iterator<Item = Result<ListedAddress, String>> + 'g {
    let written = group.locators.iter().map(|locator| {
        Ok(ListedAddress { name: locator.name.text.clone(), url: locator.url.text.clone() })
    });
    let listed = group.sources.iter().flat_map(|source| {
        let (list, failure) = match seeder.files.locators(source) {
            Ok(list) => (Some(list), None),
            Err(message) => (None, Some(Err(message))),
        };
        list.into_iter().flatten().chain(failure)
    });
    written.chain(listed)
}
