//! The key `taskGroups`: the tasks for the pages of a group.

use serde::{Deserialize, Serialize};

use crate::follow::Follow;
use crate::steps::Step;
use crate::text::Text;

/// The tasks that run on every page of the locator group with the same name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskGroup {
    /// Name of the group.
    pub name: Text,
    /// How long a stored page stays usable, as written (`P1W`, `PT6H`, a date). `None` means zero.
    pub live: Option<Text>,
    /// As in the locator group. A group that is reached only by links has no locator group.
    pub start_sequence: u32,
    /// Tasks in document order. The loader of the first one loads the page for all.
    pub tasks: Vec<Task>,
}

/// One data definition applied to a page through a chain of steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Name of the task.
    pub name: Text,
    /// Name of the data definition.
    pub data_def: Text,
    /// Links to follow. The rules of the data definition come first.
    pub follow: Vec<Follow>,
    /// The effective chain, from the first step to the last one, in the order of `next`.
    pub steps: Vec<Step>,
    /// Whether parsed data is kept for later runs (`persist.data`).
    pub persist_data: bool,
}
