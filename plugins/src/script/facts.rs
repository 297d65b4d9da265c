//! What the engine tells scripts about the run and the page.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Zoned;

use crate::page::Page;

/// Writes a date-time by the setting `dateTimePattern`.
pub type DateText = Arc<dyn Fn(&Zoned) -> String + Send + Sync>;

/// Finds a setting by its key.
pub type ConfigLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What stays the same for a whole run: the object `configs` of scripts.
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
    /// `User-Agent` the loader sends.
    pub user_agent: String,
    /// How long the loader waits for a page.
    pub timeout: Duration,
    /// How a date-time turns to text.
    pub date_text: DateText,
}

/// What item scripts may ask about their page: the object `document`.
#[derive(Clone)]
pub struct ScriptFacts {
    /// Name of the locator.
    pub name: Arc<str>,
    /// Group of the locator.
    pub group: Arc<str>,
    /// Address as asked for.
    pub url: Arc<str>,
    /// Date-time of the run that fetched the page.
    pub from_date: Zoned,
    /// Id of the locator, as text.
    pub locator_id: Arc<str>,
    /// The page itself; copied into the engine only when a script asks for it.
    pub body: Bytes,
    /// What holds for every page of the run.
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
