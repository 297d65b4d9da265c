//! The key `taskGroups`: what to do with the pages of a group.

use serde::{Deserialize, Serialize};

use crate::follow::Follow;
use crate::steps::Step;
use crate::text::Text;

/// The tasks that run on every page of the locator group with the same name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskGroup {
    /// Name of the group.
    pub name: Text,
    /// How long a stored page stays usable, as written (`P1W`, `PT6H`, a date); absent means zero.
    pub live: Option<Text>,
    /// As in the locator group: a group that only links lead to has none.
    pub start_sequence: u32,
    /// Tasks in document order; the first one's loader loads the page for all of them.
    pub tasks: Vec<Task>,
}

/// One data definition applied to a page through a chain of steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Name of the task.
    pub name: Text,
    /// Name of the data definition.
    pub data_def: Text,
    /// Links of the page to follow, those of the data definition first.
    pub follow: Vec<Follow>,
    /// The effective chain, from the step after `start` to the last one, in the order of `next`.
    pub steps: Vec<Step>,
    /// Whether parsed data is kept for reuse (`persist.data`).
    pub persist_data: bool,
}
