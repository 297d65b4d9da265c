//! Describes how the pages of a group are parsed, for `check --explain`.

use std::collections::BTreeSet;

use crate::plan::prepare::{Dialect, Group, ReadyStep, ReadyTask};

/// A form in which a task searches a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// A tree by the rules of jsoup.
    Jsoup,
    /// A tree by the HTML standard.
    Standard,
    /// JSON, or the tree of the standard for other pages.
    Json,
    /// The addresses of a sitemap, without a tree.
    Sitemap,
}

impl Form {
    fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Css => Self::Jsoup,
            Dialect::Xpath => Self::Standard,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Jsoup => "a tree as jsoup reads it",
            Self::Standard => "a tree as the HTML standard says",
            Self::Json => "JSON without a tree, if it is JSON",
            Self::Sitemap => "the addresses of a sitemap, without a tree",
        }
    }
}

/// The forms that the tasks of a group need. Each is made once a page.
pub(crate) fn forms(group: &Group) -> Vec<&'static str> {
    let forms: BTreeSet<Form> = group.tasks.iter().flat_map(forms_of).collect();
    forms.into_iter().map(Form::words).collect()
}

fn forms_of(task: &ReadyTask) -> Vec<Form> {
    let mut forms = Vec::new();
    for step in &task.steps {
        match step {
            ReadyStep::Parse(dialect, _) | ReadyStep::Analyze(dialect) => {
                forms.push(Form::of(*dialect));
            }
            ReadyStep::Records(plan) if plan.needs_tree() => forms.push(Form::Standard),
            ReadyStep::Records(_) => forms.extend([Form::Standard, Form::Json]),
            ReadyStep::Sitemap => forms.push(Form::Sitemap),
            _ => {}
        }
    }
    if task.follow.reads_pages() {
        forms.push(Form::of(task.follow_by));
    }
    forms
}

/// Counts of the queries of a task.
pub(crate) fn looked_up(task: &ReadyTask) -> Vec<String> {
    let mut looked_up = Vec::new();
    for step in &task.steps {
        match step {
            ReadyStep::Parse(..) => looked_up.push(format!("data definition `{}`", task.data_def)),
            ReadyStep::Records(plan) => {
                let fields = plan.field_names().len() as u64;
                looked_up.push(crate::error::counted(fields, "field"));
            }
            ReadyStep::Sitemap => looked_up.push("its addresses".to_owned()),
            ReadyStep::Analyze(_) => looked_up.push("what is typed at a terminal".to_owned()),
            _ => {}
        }
    }
    if task.follow.reads_pages() {
        looked_up.push("links".to_owned());
    }
    looked_up
}
