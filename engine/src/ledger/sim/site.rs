//! A simulated site: linked pages, some of which fail temporarily, permanently or in part, or kill their
//! worker.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::dice::Dice;
use crate::ledger::{Block, Harvest, JobKey, NewJob, Outcome, Quota, Tally};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageBehavior {
    Good,
    /// Fails this many times, then works.
    Flaky(u32),
    /// Asks this many times for a pause of its host, then works.
    Busy(u32),
    /// Never answers.
    Dead,
    /// Does not exist.
    Gone,
    /// Its last task fails.
    Partial,
    /// Kills its worker.
    Deadly,
}

pub(super) struct Page {
    lane: u64,
    links: Vec<usize>,
    pub(super) nature: PageBehavior,
    tasks: u32,
}

pub(super) struct Site {
    pub(super) pages: Vec<Page>,
    pub(super) roots: Vec<usize>,
    tries: Vec<u32>,
    /// Whether all pages work from now on.
    pub(super) mended: bool,
    /// Largest depth; the run then has levels.
    pub(super) depth_max: Option<u32>,
    /// Most pages that links may add.
    pub(super) quota: Option<u64>,
    /// Whether odd pages wait for even ones.
    in_order: bool,
}

/// The expected result: blocks by page and ordinal, failed pages and known pages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) blocks: BTreeSet<(usize, u32)>,
    pub(super) failed: BTreeSet<usize>,
    pub(super) known: BTreeSet<usize>,
}

impl Site {
    pub(super) fn new(dice: &mut Dice) -> Self {
        let count = dice.between(4, 18) as usize;
        let lanes = dice.between(1, 4);
        let troubled = dice.chance(700);
        let pages = (0..count).map(|_| Page {
            lane: dice.below(lanes),
            links: (0..dice.below(4)).map(|_| dice.below(count as u64) as usize).collect(),
            nature: nature(dice, troubled),
            tasks: dice.between(1, 3) as u32,
        });
        let pages: Vec<_> = pages.collect();
        let roots = (0..dice.between(1, 4) as usize).collect();
        let depth_max = dice.chance(250).then(|| dice.between(1, 4) as u32);
        let quota = dice.chance(200).then(|| dice.below(8));
        let in_order = depth_max.is_none() && dice.chance(250);
        let tries = vec![0; pages.len()];
        Self { tries, pages, roots, mended: false, depth_max, quota, in_order }
    }

    /// The order of groups: odd pages are of one, even pages of another.
    pub(super) fn sequence(&self) -> BTreeMap<String, u32> {
        self.in_order.then(|| (String::from("1"), 1)).into_iter().collect()
    }

    pub(super) fn job(&self, page: usize, depth: u32) -> NewJob {
        let mut key = [0; 16];
        key[0] = page as u8;
        let lane = self.pages[page].lane;
        NewJob {
            key: JobKey(key),
            root: JobKey(key),
            lane: lane.to_string(),
            polite: lane > 0,
            name: page.to_string(),
            group: (page % 2).to_string(),
            url: String::new(),
            depth,
            origin: None,
            quota: self.quota.filter(|_| depth > 0).map(|max| Quota { rule: 7, max }),
        }
    }

    /// The outcome of a page; `None` if it kills its worker.
    pub(super) fn visit(&mut self, page: usize, tasks: &[String], depth: u32) -> Option<Outcome> {
        self.tries[page] += 1;
        let tries = self.tries[page];
        let again = |hold: Option<u64>| {
            let reason = String::from("later");
            Outcome::Retry { reason, pause_ms: 30, hold_lane_ms: hold, tally: Tally::default() }
        };
        let nature = if self.mended { PageBehavior::Good } else { self.pages[page].nature };
        match nature {
            PageBehavior::Deadly => None,
            PageBehavior::Dead => Some(again(None)),
            PageBehavior::Gone => {
                Some(Outcome::Failed { reason: String::from("404"), tally: Tally::default() })
            }
            PageBehavior::Flaky(times) if tries <= times => Some(again(None)),
            PageBehavior::Busy(times) if tries <= times => Some(again(Some(60))),
            _ => Some(Outcome::Done(Box::new(self.harvest(page, tasks, nature, depth)))),
        }
    }

    fn harvest(&self, page: usize, tasks: &[String], nature: PageBehavior, depth: u32) -> Harvest {
        let all = self.pages[page].tasks;
        let mut harvest = Harvest::default();
        for ordinal in 0..all {
            if !tasks.is_empty() && !tasks.contains(&ordinal.to_string()) {
                continue;
            }
            if nature == PageBehavior::Partial && ordinal + 1 == all {
                harvest.failures.push((ordinal.to_string(), String::from("no such block")));
                continue;
            }
            let bytes = format!("{page}.{ordinal}\n").into_bytes();
            let data_def = String::new();
            harvest.blocks.push(Block { appender: 0, data_def, ordinal, rows: 1, bytes });
        }
        if self.depth_max.is_none_or(|max| depth < max) {
            let links = self.pages[page].links.iter();
            harvest.children = links.map(|link| self.job(*link, depth + 1)).collect();
        }
        harvest
    }

    pub(super) fn is_deadly(&self, page: usize) -> bool {
        !self.mended && self.pages[page].nature == PageBehavior::Deadly
    }

    /// The expected result of the pages as they are now. Jobs of `scapegoats` failed because workers
    /// died for other reasons. Where a quota applies, `found` lists the pages that came first.
    pub(super) fn expected(
        &self,
        scapegoats: &BTreeSet<usize>,
        found: &BTreeSet<usize>,
    ) -> Expected {
        let mut expected = Expected::default();
        let mut open: VecDeque<_> = self.roots.iter().map(|root| (*root, 0)).collect();
        let added = found.iter().filter(|page| !self.roots.contains(page)).count() as u64;
        let cuts = self.quota.is_some_and(|quota| added == quota);
        while let Some((page, depth)) = open.pop_front() {
            if cuts && !found.contains(&page) || !expected.known.insert(page) {
                continue;
            }
            let Page { links, nature, tasks, .. } = &self.pages[page];
            let nature = match nature {
                _ if scapegoats.contains(&page) => PageBehavior::Deadly,
                _ if self.mended => PageBehavior::Good,
                own => *own,
            };
            if nature != PageBehavior::Good
                && !matches!(nature, PageBehavior::Flaky(_) | PageBehavior::Busy(_))
            {
                expected.failed.insert(page);
            }
            if matches!(nature, PageBehavior::Dead | PageBehavior::Gone | PageBehavior::Deadly) {
                continue;
            }
            let good = if nature == PageBehavior::Partial { tasks - 1 } else { *tasks };
            expected.blocks.extend((0..good).map(|ordinal| (page, ordinal)));
            if self.depth_max.is_none_or(|max| depth < max) {
                open.extend(links.iter().map(|link| (*link, depth + 1)));
            }
        }
        expected
    }
}

fn nature(dice: &mut Dice, troubled: bool) -> PageBehavior {
    let kind = if troubled { dice.below(20) } else { 99 };
    match kind {
        0..=2 => PageBehavior::Flaky(dice.between(1, 2) as u32),
        3 => PageBehavior::Busy(dice.between(1, 2) as u32),
        4 => PageBehavior::Dead,
        5 => PageBehavior::Gone,
        6 => PageBehavior::Partial,
        7 => PageBehavior::Deadly,
        _ => PageBehavior::Good,
    }
}
