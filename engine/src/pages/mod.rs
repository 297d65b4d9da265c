//! Saved pages and the data parsed from them.
//!
//! A run saves the pages it fetches, so that a later run need not fetch them again while they are
//! live, and so that `replay` can compute rows from them. One thread writes them in batches; a page
//! is saved before its job is reported as finished. `pages.db` has a row for each page, and the
//! bodies are in packs beside it. A batch writes its bodies first and commits their rows then, so
//! after a SIGKILL each row has its body. Only pages of the last batch are lost.
//!
//! If any of it is damaged or missing, pages are fetched again. No row of the output depends on it.

mod frames;
mod health;
mod packs;
mod records;
mod thread;

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

pub(crate) use health::{check_usable, examine};

use crate::store::StoreError;
pub(crate) use crate::store::mark::PAGES_FILE;
use crate::threads::ignore::ignore_closed;
use crate::threads::queue::{SendAnnouncement, Sender, queue};

/// Identifies a page: the hash of locator name, group and URL.
pub(crate) type Fingerprint = [u8; 16];

/// A page as it was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredPage {
    /// Address of the request.
    pub url: String,
    /// Address after redirects.
    pub base: String,
    /// Date-time of the run that fetched it, as text with its zone.
    pub from_date: String,
    /// HTTP status; 200 for files.
    pub status: u16,
    /// `Content-Type` as sent.
    pub content_type: Option<String>,
    /// Headers as sent, one on each line.
    pub headers: String,
    /// The body, without content encoding.
    pub body: Bytes,
}

/// A page, and the data parsed from it by key.
pub(crate) type FoundPage = Option<(StoredPage, BTreeMap<Vec<u8>, Vec<u8>>)>;

/// A request to the thread, with the sender for its answer.
enum PageRequest {
    Find(Fingerprint, oneshot::Sender<FoundPage>),
    Recall(Fingerprint, String, oneshot::Sender<Option<StoredPage>>),
    Keep(Fingerprint, Box<StoredPage>, oneshot::Sender<Result<(), String>>),
    KeepData(Fingerprint, Vec<(Vec<u8>, Vec<u8>)>, oneshot::Sender<Result<(), String>>),
}

/// A handle on the saved pages. Their thread ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub(crate) struct PageStore {
    requests: Sender<PageRequest>,
}

/// A page that may soon be saved; see [`PageStore::expect`].
pub(crate) struct ExpectedPage {
    _announcement: SendAnnouncement<PageRequest>,
}

/// Most requests that wait in the queue.
const QUEUE: usize = 256;

impl PageStore {
    /// The saved pages in a data directory, or in memory without one. Above `bytes_max` the oldest
    /// are removed. The thread opens or creates the files at the first request, because many runs
    /// make none.
    pub(crate) fn open(dir: Option<&Path>, bytes_max: u64) -> Result<Self, StoreError> {
        let file = dir.map(|dir| dir.join(PAGES_FILE));
        let (requests, inbox) = queue(QUEUE);
        let runtime = Handle::try_current().ok();
        std::thread::Builder::new()
            .name("pages".to_owned())
            .spawn(move || thread::run(file.as_deref(), bytes_max, &inbox, runtime))
            .map_err(|error| StoreError::Failed(format!("no thread for saved pages: {error}")))?;
        Ok(Self { requests })
    }

    /// Looks a page up. A damaged page counts as not saved.
    pub(crate) async fn find(&self, fingerprint: Fingerprint) -> FoundPage {
        let (answer, found) = oneshot::channel();
        self.send(PageRequest::Find(fingerprint, answer));
        found.await.unwrap_or_default()
    }

    /// Looks a page up for a replay. If it is not saved under its fingerprint, the newest page from
    /// the same address counts, because a definition may have been renamed.
    pub(crate) async fn recall(&self, fingerprint: Fingerprint, url: &str) -> Option<StoredPage> {
        let (answer, found) = oneshot::channel();
        self.send(PageRequest::Recall(fingerprint, url.to_owned(), answer));
        found.await.unwrap_or_default()
    }

    /// Announces a page that may soon be saved. A batch waits for announced pages, so that they
    /// share a commit.
    pub(crate) fn expect(&self) -> ExpectedPage {
        ExpectedPage { _announcement: self.requests.announce() }
    }

    /// Saves a page. It replaces an older one with its parsed data.
    pub(crate) fn keep(
        &self,
        fingerprint: Fingerprint,
        page: StoredPage,
        expected: Option<ExpectedPage>,
    ) -> impl Future<Output = Result<(), String>> + use<> {
        let (answer, kept) = oneshot::channel();
        self.send(PageRequest::Keep(fingerprint, Box::new(page), answer));
        drop(expected);
        async { kept.await.unwrap_or_else(|_| Err("saved pages are closed".to_owned())) }
    }

    /// Saves data parsed from a page.
    pub(crate) async fn keep_data(
        &self,
        fingerprint: Fingerprint,
        data: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<(), String> {
        let (answer, kept) = oneshot::channel();
        self.send(PageRequest::KeepData(fingerprint, data, answer));
        kept.await.unwrap_or_else(|_| Err("saved pages are closed".to_owned()))
    }

    fn send(&self, request: PageRequest) {
        // If the thread has ended, the request is dropped, and its caller sees the answer closed.
        ignore_closed(self.requests.send(request));
    }
}

#[cfg(test)]
mod tests;
