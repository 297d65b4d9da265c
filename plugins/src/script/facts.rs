//! Facts about the run and the page that scripts may read.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Zoned;

use crate::page::Page;

/// Writes a date-time by the setting `dateTimePattern`.
pub type DateText = Arc<dyn Fn(&Zoned) -> String + Send + Sync>;

/// Finds a setting by its key.
pub type ConfigLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Facts about the run, which scripts read through the object `configs`.
#[derive(Clone)]
pub struct RunFacts {
    /// Date-time of the run, to the second.
    pub run_date_time: Zoned,
    /// Finds a setting; keys come without the prefix `scoopi.`.
    pub config: ConfigLookup,
    /// Whether this node is one of a cluster.
    pub is_cluster: bool,
    /// Stage of the run, such as `prod`.
    pub stage: String,
    /// The `User-Agent` that the loader sends.
    pub user_agent: String,
    /// Timeout of the loader for one page.
    pub timeout: Duration,
    /// Writes a date-time as text.
    pub date_text: DateText,
}

/// Facts about a page, which item scripts read through the object `document`.
#[derive(Clone)]
pub struct ScriptFacts {
    /// Name of the locator.
    pub name: Arc<str>,
    /// Group of the locator.
    pub group: Arc<str>,
    /// Requested address.
    pub url: Arc<str>,
    /// Date-time of the run that fetched the page.
    pub from_date: Zoned,
    /// Id of the locator, as text.
    pub locator_id: Arc<str>,
    /// The page. It is copied into the engine only if a script reads it.
    pub body: Bytes,
    /// Facts about the run.
    pub run: Arc<RunFacts>,
}

impl ScriptFacts {
    /// The facts about a loaded page.
    pub fn of_page(page: &Page, locator_id: impl Into<Arc<str>>, run: &Arc<RunFacts>) -> Self {
        Self {
            name: Arc::clone(&page.name),
            group: Arc::clone(&page.group),
            url: Arc::clone(&page.url),
            from_date: page.from_date.clone(),
            locator_id: locator_id.into(),
            body: page.body.clone(),
            run: Arc::clone(run),
        }
    }
}
