//! From a page to links: rules select them in the tree, a sitemap lists them.

use spoonbill_plugins::follow::{LinkContext, PageAddress, PageLinks, Sitemap};

use super::links::{Link, Via};
use super::parse::Trees;
use super::{Delivery, PageWorker, TaskYield};
use crate::ledger::Quota;
use crate::plan::prepare::ReadyTask;

/// The rule number of sitemaps that a sitemap index adds. Rules of definitions have small numbers.
const SITEMAPS: u32 = u32::MAX;

impl PageWorker {
    /// Links that the rules of a task find, and the reasons of those that are not followed.
    pub(super) fn followed(
        &self,
        task: &ReadyTask,
        delivery: &Delivery,
        trees: &mut Trees,
    ) -> Result<TaskYield, String> {
        let mut made = TaskYield::default();
        if task.follow.reads_pages() {
            let document = self.true_tree(delivery, task.follow_by, trees)?;
            let found = task.follow.collect(document, &self.context(delivery)?)?;
            made.add(found, false);
        }
        Ok(made)
    }

    /// Pages and sitemaps that a sitemap lists. All are start pages: depth and scope count from them.
    pub(super) fn sitemap(
        &self,
        task: &ReadyTask,
        delivery: &Delivery,
        made: &mut TaskYield,
    ) -> Result<(), String> {
        let page = &delivery.page;
        let limits = self.plan.sitemap;
        let sitemap = Sitemap::read(&page.body, page.content_type.as_deref(), limits)?;
        let context = self.context(delivery)?;
        let mut found = PageLinks::default();
        task.follow.take(sitemap.pages.iter().map(String::as_str), &context, &mut found);
        for url in &sitemap.sitemaps {
            match context.page.join(url) {
                Ok(address) => {
                    let url = match &address {
                        PageAddress::Web(url) => context.canon.url(url),
                        PageAddress::File(path) => path.clone(),
                    };
                    let quota =
                        Quota { rule: SITEMAPS, max: self.plan.config.links.sitemap_files_max };
                    let via = Via { quota: Some(quota), start: true };
                    made.links.push(Link { group: page.group.to_string(), url, via: Some(via) });
                }
                Err(reason) => found.skip(reason),
            }
        }
        if sitemap.beyond > 0 {
            let beyond = "addresses of a sitemap beyond sitemap.urls.max";
            *made.skipped.entry(beyond.to_owned()).or_default() += sitemap.beyond;
        }
        made.add(found, true);
        Ok(())
    }

    fn context<'a>(&'a self, delivery: &'a Delivery) -> Result<LinkContext<'a>, String> {
        let (job, page) = (&delivery.grant.job, &delivery.page);
        let read = |address: &str| {
            PageAddress::of(address)
                .ok_or_else(|| format!("`{address}` is not the address of a page"))
        };
        let home = delivery.home();
        Ok(LinkContext {
            group: &job.group,
            asked: &job.url,
            page: read(&page.base)?,
            home: read(home)?,
            start: read(job.origin.as_deref().unwrap_or(home))?,
            depth: job.depth,
            canon: &self.plan.canon,
            keeps_refused: tracing::enabled!(tracing::Level::TRACE),
        })
    }
}

impl Delivery {
    /// The address that decides the scope of links. A start page counts with the address it redirects
    /// to; a followed page counts with its own, so that a redirect opens no other host.
    pub(super) fn home(&self) -> &str {
        if self.grant.job.depth == 0 { &self.page.base } else { &self.grant.job.url }
    }
}

impl TaskYield {
    fn add(&mut self, found: PageLinks, start: bool) {
        for link in found.links {
            let quota = link.max_pages.map(|max| Quota { rule: link.rule, max });
            let via = Some(Via { quota, start });
            self.links.push(Link { group: link.group, url: link.url, via });
        }
        for (link, reason) in found.refused {
            tracing::trace!(%link, reason, "link not followed");
        }
        for (reason, count) in found.skipped {
            *self.skipped.entry(reason).or_default() += count;
        }
    }
}
