//! Rows to locators: the value of the first axis is an address, its item says for which group.

use spoonbill_plugins::data::Data;
use spoonbill_plugins::loader::Target;

use super::{TaskYield, Workshop};
use crate::ledger::{Grant, Harvest};
use crate::prepare::LinkRules;
use crate::seed::new_job;

/// Longest address that is followed.
const URL_BYTES: usize = 8 * 1024;

/// An address found on a page, and the group that will work on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// Task group.
    pub group: String,
    /// Address.
    pub url: String,
}

/// Makes a link of every row that has one; every row that has none is counted with its reason.
pub(super) fn collect(data: &Data, rules: &LinkRules, made: &mut TaskYield) {
    for row in &data.rows {
        let mut skip = |reason: &str| *made.skipped.entry(reason.to_owned()).or_default() += 1;
        let Some(axis) = row.axes.first() else {
            continue;
        };
        let Some((group, stops)) = rules.get(&*axis.item_name) else {
            skip("rows of an item without linkGroup");
            continue;
        };
        // No address is the natural end of paging.
        let Some(url) = axis.value.as_deref().filter(|url| !url.trim().is_empty()) else {
            skip("rows without a link");
            continue;
        };
        if stops.iter().any(|stop| stop == url) {
            skip("links stopped by linkBreakOn");
            continue;
        }
        made.links.push(Link { group: group.clone(), url: url.to_owned() });
    }
}

fn is_local(url: &str) -> bool {
    matches!(Target::of(url), Ok(Target::Path(_)))
}

impl Workshop {
    /// Turns links into jobs, within the bounds on depth and number.
    pub(super) fn follow(&self, harvest: &mut Harvest, grant: &Grant, links: Vec<Link>) {
        let parent = &grant.job;
        for link in links {
            let reason = if parent.polite && is_local(&link.url) {
                // What a web page says must not make us read the disk.
                Some("links of web pages that name a file (missing prefix?)")
            } else if link.url.len() > URL_BYTES {
                Some("links longer than 8 KiB")
            } else if parent.depth >= self.links.depth_max {
                Some("links beyond links.depth.max")
            } else if harvest.children.len() >= self.links.page_max {
                Some("links beyond links.page.max")
            } else {
                None
            };
            if let Some(reason) = reason {
                *harvest.tally.skipped.entry(reason.to_owned()).or_default() += 1;
                continue;
            }
            let depth = parent.depth + 1;
            harvest.children.push(new_job(
                parent.root,
                &parent.name,
                &link.group,
                &link.url,
                depth,
            ));
        }
    }
}
