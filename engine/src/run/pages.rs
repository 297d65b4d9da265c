//! The task mediator: loads the page of a job, has the worker threads run its tasks, and returns the
//! outcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Zoned;
use spoonbill_plugins::dates::{DatePattern, live_until};
use spoonbill_plugins::loader::file::FileLoader;
use spoonbill_plugins::loader::http::{HttpLoader, LaneOutcome, RedirectChain};
use spoonbill_plugins::loader::{FetchedPage, LoadError, PageTarget, RetryAdvice};
use spoonbill_plugins::page::Page;
use tokio::time::Instant;
use url::Url;

use crate::failpoint;
use crate::ledger::{Grant, NewJob, Outcome, Tally};
use crate::pages::{Fingerprint, PageStore, StoredPage};
use crate::plan::identity::key;
use crate::plan::prepare::RunDate;
use crate::run::pace::Pace;
use crate::steps::{Delivery, PageWorker, Worker};
use crate::threads::pool::Pool;

/// The pauses between loads of one page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Pause before the first retry; it doubles with each further one.
    pub backoff: Duration,
    /// Longest pause.
    pub backoff_max: Duration,
}

/// Where pages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Supply {
    /// The network or a file, and the store while a saved page is still good.
    World,
    /// Only the store, whatever the age of a page. A file that is not stored is read.
    Stored,
}

/// The reason for a job without a page in a replay.
pub(crate) const NOT_STORED: &str = "page is not stored";

/// Works on jobs, one page each.
pub(crate) struct TaskMediator {
    /// Runs the tasks of a page.
    pub page_worker: Arc<PageWorker>,
    /// The worker threads.
    pub pool: Pool<Worker>,
    /// Loads over the network.
    pub http: HttpLoader,
    /// Loads files.
    pub files: Arc<FileLoader>,
    /// Where pages come from.
    pub supply: Supply,
    /// Saved pages, unless the settings switch them off.
    pub documents: Option<PageStore>,
    /// Whether files are saved too.
    pub keep_files: bool,
    /// The pauses between loads of one page.
    pub patience: Patience,
    /// The pause between two loads from one host.
    pub pace: Pace,
    /// The date of the run, and its form in saved pages.
    pub date: RunDate,
    pub date_text: String,
    /// The pattern of absolute dates in `live`.
    pub pattern: DatePattern,
}

/// The result of a job.
pub(crate) struct Worked {
    /// How it ended; `None` if it was not started, because the node stops.
    pub outcome: Option<Outcome>,
    /// When its host was asked; `None` if it was not.
    pub started: Option<Instant>,
}

/// Whether the host of a job may be asked, which can change while it waits, and when it was asked.
struct Asking<M> {
    may_ask: M,
    started: Option<Instant>,
}

/// A loaded page and where it came from.
struct Brought {
    page: Page,
    parsed: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Set when the page has to be saved before its job may end.
    save: Option<StoredPage>,
    tally: Tally,
    lives: bool,
}

/// Why there is no page.
enum Absent {
    /// A redirect leads to another host, which has its own turn.
    Moved(RedirectChain),
    /// It did not load. The tally has the statuses of the redirects before.
    Error(LoadError, Tally),
    /// The node stops, so nothing is started.
    Closed,
}

impl From<LoadError> for Absent {
    fn from(error: LoadError) -> Self {
        Self::Error(error, Tally::default())
    }
}

impl TaskMediator {
    /// Loads the page if its host may still be asked when its turn comes, then calls `begin` and runs the
    /// tasks. Errors are outcomes, too.
    pub(crate) async fn work<F>(
        &self,
        grant: Grant,
        may_ask: impl Fn() -> bool,
        begin: impl FnOnce() -> F,
    ) -> Worked
    where
        F: Future<Output = ()>,
    {
        let mut asking = Asking { may_ask, started: None };
        let outcome = self.outcome(grant, begin, &mut asking).await;
        Worked { outcome, started: asking.started }
    }

    async fn outcome<F>(
        &self,
        grant: Grant,
        begin: impl FnOnce() -> F,
        asking: &mut Asking<impl Fn() -> bool>,
    ) -> Option<Outcome>
    where
        F: Future<Output = ()>,
    {
        let attempt = grant.attempts;
        let url = grant.job.url.clone();
        let fingerprint = key(&[&grant.job.name, &grant.job.group, &grant.job.url]).0;
        failpoint::pass("page.load.before");
        let expected = self.documents.as_ref().map(PageStore::expect);
        let brought = match self.bring(&grant, fingerprint, asking).await {
            Ok(brought) => brought,
            Err(Absent::Moved(way)) => return Some(moved(way)),
            Err(Absent::Error(error, tally)) => {
                return Some(self.not_loaded(&error, tally, attempt, &grant));
            }
            Err(Absent::Closed) => return None,
        };
        let Brought { page, parsed, save, tally, lives } = brought;
        failpoint::pass("page.load.after");
        begin().await;
        // The page is saved while its tasks run. The job ends after both.
        let saving = match (&self.documents, save) {
            (Some(documents), Some(page)) => Some(documents.keep(fingerprint, page, expected)),
            _ => None,
        };
        let saved = async {
            match saving {
                Some(saving) => saving.await,
                None => Ok(()),
            }
        };
        let page_worker = Arc::clone(&self.page_worker);
        let delivery = Delivery { grant, page, parsed, keep_data: lives, tally: tally.clone() };
        let worked = self.pool.run(move |worker| {
            failpoint::read(&delivery.page.body);
            page_worker.work(worker, &delivery)
        });
        let (saved, worked) = tokio::join!(saved, worked);
        let made = match worked {
            Ok(made) => made,
            Err(error) => {
                return Some(Outcome::Failed { reason: error.to_string(), tally });
            }
        };
        let mut harvest = made.harvest;
        let rows: u64 = harvest.blocks.iter().map(|block| u64::from(block.rows)).sum();
        let links = harvest.children.len();
        tracing::debug!(%url, rows, links, failed = harvest.failures.len(), "page worked on");
        let kept = match (&self.documents, saved) {
            (Some(documents), Ok(())) if !made.parsed.is_empty() => {
                documents.keep_data(fingerprint, made.parsed).await
            }
            (_, saved) => saved,
        };
        if let Err(reason) = kept {
            *harvest.tally.notes.entry(reason).or_default() += 1;
        }
        Some(Outcome::Done(Box::new(harvest)))
    }

    async fn bring(
        &self,
        grant: &Grant,
        fingerprint: Fingerprint,
        asking: &mut Asking<impl Fn() -> bool>,
    ) -> Result<Brought, Absent> {
        let job = &grant.job;
        if self.supply == Supply::Stored {
            return self.recall(job, fingerprint).await;
        }
        let live =
            self.page_worker.plan.groups.get(&job.group).and_then(|group| group.live.as_deref());
        let lives = live.is_some_and(|live| self.outlives(&self.date.0, live));
        if let (Some(documents), Some(live)) = (&self.documents, live)
            && let Some((stored, parsed)) = documents.find(fingerprint).await
            && let Some(from) = RunDate::parse(&stored.from_date)
            && self.outlives(&from.0, live)
        {
            let tally = Tally { stored: 1, ..Tally::default() };
            let page = page(job, &stored.base, stored.body, stored.content_type, from.0);
            return Ok(Brought { page, parsed, save: None, tally, lives: true });
        }
        let target = PageTarget::of(&job.url)?;
        let web = matches!(target, PageTarget::Http(_));
        let (mut fetched, mut tally) = match target {
            PageTarget::Http(url) => self.fetch(&url, grant, asking).await?,
            PageTarget::Path(path) => (self.read(path).await?, Tally::default()),
        };
        (tally.fetched, tally.bytes) = (1, fetched.body.len() as u64);
        // Files are saved only if their definition says how long a copy is good.
        let keep = self.documents.is_some() && (web || lives || self.keep_files);
        let save = keep.then(|| self.to_store(job, web, &mut fetched));
        let base = if web { &fetched.final_url } else { &job.url };
        let page = page(job, base, fetched.body, fetched.content_type, self.date.0.clone());
        Ok(Brought { page, parsed: BTreeMap::new(), save, tally, lives })
    }

    /// The page as it was saved, without the data parsed from it. Nothing is fetched.
    async fn recall(&self, job: &NewJob, fingerprint: Fingerprint) -> Result<Brought, Absent> {
        let stored = match &self.documents {
            Some(documents) => documents.recall(fingerprint, &job.url).await,
            None => None,
        };
        let (page, tally) = if let Some(stored) = stored {
            let from = RunDate::parse(&stored.from_date).unwrap_or_else(|| self.date.clone());
            let tally = Tally { stored: 1, ..Tally::default() };
            (page(job, &stored.base, stored.body, stored.content_type, from.0), tally)
        } else if let PageTarget::Path(path) = PageTarget::of(&job.url)? {
            let fetched = self.read(path).await?;
            let tally = Tally { fetched: 1, bytes: fetched.body.len() as u64, ..Tally::default() };
            (page(job, &job.url, fetched.body, fetched.content_type, self.date.0.clone()), tally)
        } else {
            let tally = Tally { skipped: [(NOT_STORED.to_owned(), 1)].into(), ..Tally::default() };
            let message = format!("{NOT_STORED}: `{}`", job.url);
            return Err(Absent::Error(
                LoadError { message, retry: RetryAdvice::Never, status: None },
                tally,
            ));
        };
        Ok(Brought { page, parsed: BTreeMap::new(), save: None, tally, lives: false })
    }

    /// Loads from one host; a redirect to another host ends the load. The tally has the statuses.
    async fn fetch(
        &self,
        asked: &Url,
        grant: &Grant,
        asking: &mut Asking<impl Fn() -> bool>,
    ) -> Result<(FetchedPage, Tally), Absent> {
        let mut way = RedirectChain::to(asked);
        if let Some(at) = &grant.at
            && let PageTarget::Http(here) = PageTarget::of(at)?
        {
            (way.here, way.redirects) = (here, grant.redirects as usize);
        }
        let (lane, before) = (&grant.job.lane, way.redirects);
        let _place = self.pace.place(lane).await;
        let turn = self.pace.turn(lane).await.ok_or(Absent::Closed)?;
        if !(asking.may_ask)() {
            return Err(Absent::Closed);
        }
        asking.started = Some(turn.at);
        let loaded = self.http.load_in_lane(&mut way).await;
        let asked = way.redirects - before + usize::from(!matches!(loaded, Ok(LaneOutcome::Moved)));
        // The first request waits for its connection, which may take long on a busy machine.
        if asked > 1 || turn.is_first {
            asking.started = Some(self.pace.asked_late(lane));
        }
        match loaded {
            Ok(LaneOutcome::Page(fetched)) => {
                way.statuses.push(fetched.status);
                Ok((fetched, answers(&way)))
            }
            Ok(LaneOutcome::Moved) => Err(Absent::Moved(way)),
            Err(error) => {
                way.statuses.extend(error.status);
                Err(Absent::Error(error, answers(&way)))
            }
        }
    }

    /// Reads a file on a worker thread. There are few of them, so few files are open at the same time.
    async fn read(&self, path: String) -> Result<FetchedPage, LoadError> {
        let files = Arc::clone(&self.files);
        let read = self.pool.run(move |_| files.read(&path)).await;
        read.unwrap_or_else(|error| {
            Err(LoadError { message: error.to_string(), retry: RetryAdvice::Never, status: None })
        })
    }

    /// Whether a page of that date is still good in this run.
    fn outlives(&self, from: &Zoned, live: &str) -> bool {
        live_until(from, live, &self.pattern).until > self.date.0
    }

    fn to_store(&self, job: &NewJob, web: bool, fetched: &mut FetchedPage) -> StoredPage {
        StoredPage {
            url: job.url.clone(),
            base: if web { fetched.final_url.clone() } else { job.url.clone() },
            from_date: self.date_text.clone(),
            status: fetched.status,
            content_type: fetched.content_type.clone(),
            headers: std::mem::take(&mut fetched.headers),
            body: fetched.body.clone(),
        }
    }

    fn not_loaded(&self, error: &LoadError, tally: Tally, attempt: u32, grant: &Grant) -> Outcome {
        let reason = error.message.clone();
        tracing::debug!(url = %grant.job.url, attempt, error = %reason, "page not loaded");
        let pause = pause_ms(self.patience, attempt, grant.token.0 ^ grant.id.0.rotate_left(32));
        match error.retry {
            RetryAdvice::Never => Outcome::Failed { reason, tally },
            RetryAdvice::Soon => {
                Outcome::Retry { reason, pause_ms: pause, hold_lane_ms: None, tally }
            }
            RetryAdvice::HostAfter(hold) => {
                let hold = hold.as_millis() as u64;
                Outcome::Retry { reason, pause_ms: hold, hold_lane_ms: Some(hold), tally }
            }
        }
    }
}

fn page(
    job: &NewJob,
    base: &str,
    body: Bytes,
    content_type: Option<String>,
    from_date: Zoned,
) -> Page {
    Page {
        name: job.name.as_str().into(),
        group: job.group.as_str().into(),
        url: job.url.as_str().into(),
        base: base.into(),
        from_date,
        body,
        content_type,
    }
}

/// The outcome of a job that continues at another host.
fn moved(way: RedirectChain) -> Outcome {
    let (tally, redirects) = (answers(&way), way.redirects as u32);
    let (url, target) = (way.here.to_string(), PageTarget::Http(way.here));
    Outcome::Moved { url, lane: target.lane(), polite: true, redirects, tally }
}

/// The statuses of all answers on the way, counted.
fn answers(way: &RedirectChain) -> Tally {
    let mut tally = Tally::default();
    for status in &way.statuses {
        *tally.statuses.entry(*status).or_default() += 1;
    }
    tally
}

/// The pause before the next load. It doubles with each attempt. The numbers of the grant choose a value
/// between half of that and all of it, so that pages that failed together are not retried together.
fn pause_ms(patience: Patience, attempt: u32, salt: u64) -> u64 {
    let full = patience.backoff.as_millis() as u64;
    let full =
        full.saturating_mul(1 << attempt.min(20)).min(patience.backoff_max.as_millis() as u64);
    let mixed = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    full / 2 + (full / 2) * (mixed >> 48) / 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_stay_bounded_and_differ() {
        let patience =
            Patience { backoff: Duration::from_millis(500), backoff_max: Duration::from_mins(1) };
        let pauses: Vec<u64> = (0..12).map(|attempt| pause_ms(patience, attempt, 7)).collect();
        assert!(pauses[0] >= 250 && pauses[0] <= 500);
        assert!(pauses.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(pauses.iter().all(|pause| *pause <= 60_000));
        assert_ne!(pause_ms(patience, 3, 1), pause_ms(patience, 3, 2));
    }
}
