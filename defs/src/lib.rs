//! Reads scraping definitions from YAML and checks them.
//!
//! [`load`] reads every definition file of a directory. It returns one effective [`Defs`], or *all*
//! problems at once, each with its position. This crate uses no network and runs no job.

mod check;
mod compose;
mod data_defs;
mod findings;
mod follow;
mod locators;
mod problem;
mod records;
mod shapes;
mod steps;
mod tasks;
#[cfg(test)]
mod testing;
mod text;
mod yaml;

pub use compose::{DefsOptions, LoadedDefs, from_str, inspect, load};
pub use data_defs::{DataDef, FilterSubject, IndexRange, Item, ItemFilter, ItemQuery};
pub use follow::{Follow, FollowScope, UrlSource};
pub use locators::{Locator, LocatorGroup};
pub use problem::{Problem, Problems, Severity, SourceLocation, suggest};
pub use records::{Expect, Field, FieldType, PageColumn, Query, Record, Separators, TextKind};
pub use shapes::{reference, schema};
pub use steps::{PluginDef, PluginValue, Step, StepKind};
pub use tasks::{Task, TaskGroup};
pub use text::{Sources, Span, Text};

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The definitions of a run: merged, normalised, with every name resolved.
///
/// In a cluster, the elected node publishes the serialised form. It omits positions in the files, so
/// directories with the same meaning have the same bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Defs {
    /// Locator groups, in the order of the files.
    pub locator_groups: Vec<LocatorGroup>,
    /// Task groups. The pages of a locator group go to the task group of the same name.
    pub task_groups: Vec<TaskGroup>,
    /// Data definitions that tasks name.
    pub data_defs: Vec<DataDef>,
}

impl Defs {
    /// Finds a task group by name.
    pub fn task_group(&self, name: &str) -> Option<&TaskGroup> {
        self.task_groups.iter().find(|group| group.name.text == name)
    }

    /// The rank of each group that waits for other groups, by name. The rank is the number of
    /// distinct smaller values of `startSequence`.
    pub fn start_order(&self) -> BTreeMap<String, u32> {
        let tasks = self.task_groups.iter().map(|group| (&group.name.text, group.start_sequence));
        let pages = self.locator_groups.iter();
        let pages = pages.map(|group| (&group.name.text, group.start_sequence));
        let mut numbers: BTreeMap<&String, u32> = BTreeMap::new();
        for (name, number) in tasks.chain(pages) {
            let known = numbers.entry(name).or_default();
            *known = number.max(*known);
        }
        let distinct: BTreeSet<u32> = numbers.values().copied().collect();
        let places: BTreeMap<u32, u32> = distinct.into_iter().zip(0..).collect();
        let order = numbers.into_iter().map(|(name, number)| (name.clone(), places[&number]));
        order.filter(|(_, place)| *place > 0).collect()
    }

    /// Finds a data definition by name.
    pub fn data_def(&self, name: &str) -> Option<&DataDef> {
        self.data_defs.iter().find(|def| def.name.text == name)
    }
}
