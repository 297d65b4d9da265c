//! From rows to locators: the value of the first axis is an address, and its item names the group.

use spoonbill_plugins::data::Data;
use spoonbill_plugins::loader::PageTarget;

use super::{Delivery, PageWorker, TaskYield};
use crate::ledger::{Harvest, NewJob, Quota};
use crate::plan::identity::{followed_job, new_job};
use crate::plan::prepare::LinkRules;

/// Longest address that is followed.
const URL_BYTES: usize = 8 * 1024;

/// An address found on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The group that works on the page.
    pub group: String,
    /// Address.
    pub url: String,
    /// How a rule or a sitemap found it; `None` for a link in a row.
    pub via: Option<Via>,
}

/// How a followed link was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Via {
    /// The limit of its rule on pages.
    pub quota: Option<Quota>,
    /// Whether it leads to a start page, as links of a sitemap do.
    pub start: bool,
}

/// Makes a link of each row that has an address, and counts the rows without one by reason.
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
        // A missing address is how paging ends.
        let Some(url) = axis.value.as_deref().filter(|url| !url.trim().is_empty()) else {
            skip("rows without a link");
            continue;
        };
        if stops.iter().any(|stop| stop == url) {
            skip("links stopped by linkBreakOn");
            continue;
        }
        made.links.push(Link { group: group.clone(), url: url.to_owned(), via: None });
    }
}

fn is_local(url: &str) -> bool {
    !PageTarget::is_web(url) && matches!(PageTarget::of(url), Ok(PageTarget::Path(_)))
}

impl PageWorker {
    /// Turns links into jobs, within the bounds on depth and number.
    pub(super) fn follow(&self, harvest: &mut Harvest, delivery: &Delivery, links: Vec<Link>) {
        let parent = &delivery.grant.job;
        for link in links {
            let start = link.via.is_some_and(|via| via.start);
            let reason = if parent.polite && is_local(&link.url) {
                // A web page must not make this machine read its files.
                Some("links from web pages to files (missing prefix?)")
            } else if link.url.len() > URL_BYTES {
                Some("links longer than 8 KiB")
            } else if parent.depth >= self.plan.config.links.depth_max && !start {
                Some("links beyond links.depth.max")
            } else if harvest.children.len() >= self.plan.config.links.page_max && !start {
                Some("links beyond links.page.max")
            } else {
                None
            };
            if let Some(reason) = reason {
                *harvest.tally.skipped.entry(reason.to_owned()).or_default() += 1;
                continue;
            }
            harvest.children.push(self.child(delivery, link));
        }
    }

    /// The job of a link. Several pages may link to one page, so its job has a locator name and a start
    /// page only if its group uses them.
    fn child(&self, delivery: &Delivery, link: Link) -> NewJob {
        let parent = &delivery.grant.job;
        let Link { group, url, via } = link;
        let depth = parent.depth + 1;
        let Some(Via { quota, start }) = via else {
            return new_job(parent.root, &parent.name, &group, &url, depth);
        };
        let target = self.plan.groups.get(&group);
        let name = match target.is_some_and(|target| target.inherits_name) {
            true if start => url.as_str(),
            true => parent.name.as_str(),
            false => "",
        };
        if start {
            return followed_job(name, &group, &url, parent.depth, None, quota);
        }
        let origin = || parent.origin.clone().unwrap_or_else(|| delivery.home().to_owned());
        let origin = target.is_some_and(|target| target.needs_origin).then(origin);
        followed_job(name, &group, &url, depth, origin, quota)
    }
}
