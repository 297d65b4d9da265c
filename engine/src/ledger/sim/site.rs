//! A site: linked pages, some of which fail for a while, for ever, in part, or kill their reader.

use std::collections::BTreeSet;

use super::dice::Dice;
use crate::ledger::{Block, Harvest, JobKey, NewJob, Outcome, Tally};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    Good,
    /// Fails so many times, then works.
    Flaky(u32),
    /// Asks so many times to be left alone, then works.
    Busy(u32),
    /// Never answers.
    Dead,
    /// Says that it does not exist.
    Gone,
    /// Its last task fails.
    Partial,
    /// Kills its worker.
    Deadly,
}

pub(super) struct Page {
    lane: u64,
    links: Vec<usize>,
    pub(super) nature: Nature,
    tasks: u32,
}

pub(super) struct Site {
    pub(super) pages: Vec<Page>,
    pub(super) roots: Vec<usize>,
    tries: Vec<u32>,
    /// Everything works from now on.
    pub(super) mended: bool,
}

/// What must come out: blocks by page and ordinal, and the pages that fail.
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
        Self { tries: vec![0; pages.len()], pages, roots, mended: false }
    }

    pub(super) fn job(&self, page: usize) -> NewJob {
        let mut key = [0; 16];
        key[0] = page as u8;
        let lane = self.pages[page].lane;
        NewJob {
            key: JobKey(key),
            root: JobKey(key),
            lane: lane.to_string(),
            polite: lane > 0,
            name: page.to_string(),
            group: String::new(),
            url: String::new(),
            depth: 0,
        }
    }

    /// What a worker brings home, or nothing if it dies of it.
    pub(super) fn visit(&mut self, page: usize, tasks: &[String]) -> Option<Outcome> {
        self.tries[page] += 1;
        let tries = self.tries[page];
        let again = |hold: Option<u64>| {
            let reason = String::from("later");
            Outcome::Retry { reason, pause_ms: 30, hold_lane_ms: hold, tally: Tally::default() }
        };
        let nature = if self.mended { Nature::Good } else { self.pages[page].nature };
        match nature {
            Nature::Deadly => None,
            Nature::Dead => Some(again(None)),
            Nature::Gone => {
                Some(Outcome::Failed { reason: String::from("404"), tally: Tally::default() })
            }
            Nature::Flaky(times) if tries <= times => Some(again(None)),
            Nature::Busy(times) if tries <= times => Some(again(Some(60))),
            _ => Some(Outcome::Done(Box::new(self.harvest(page, tasks, nature)))),
        }
    }

    fn harvest(&self, page: usize, tasks: &[String], nature: Nature) -> Harvest {
        let all = self.pages[page].tasks;
        let mut harvest = Harvest::default();
        for ordinal in 0..all {
            if !tasks.is_empty() && !tasks.contains(&ordinal.to_string()) {
                continue;
            }
            if nature == Nature::Partial && ordinal + 1 == all {
                harvest.failures.push((ordinal.to_string(), String::from("no such block")));
                continue;
            }
            let bytes = format!("{page}.{ordinal}\n").into_bytes();
            let data_def = String::new();
            harvest.blocks.push(Block { appender: 0, data_def, ordinal, rows: 1, bytes });
        }
        harvest.children = self.pages[page].links.iter().map(|link| self.job(*link)).collect();
        harvest
    }

    pub(super) fn is_deadly(&self, page: usize) -> bool {
        !self.mended && self.pages[page].nature == Nature::Deadly
    }

    /// What the pages as they are now must lead to, when `scapegoats` were never worked on.
    pub(super) fn expected(&self, scapegoats: &BTreeSet<usize>) -> Expected {
        let mut expected = Expected::default();
        let mut open = self.roots.clone();
        while let Some(page) = open.pop() {
            if !expected.known.insert(page) {
                continue;
            }
            let Page { links, nature, tasks, .. } = &self.pages[page];
            let nature = match nature {
                _ if scapegoats.contains(&page) => Nature::Deadly,
                _ if self.mended => Nature::Good,
                own => *own,
            };
            if nature != Nature::Good && !matches!(nature, Nature::Flaky(_) | Nature::Busy(_)) {
                expected.failed.insert(page);
            }
            if matches!(nature, Nature::Dead | Nature::Gone | Nature::Deadly) {
                continue;
            }
            let good = if nature == Nature::Partial { tasks - 1 } else { *tasks };
            expected.blocks.extend((0..good).map(|ordinal| (page, ordinal)));
            open.extend(links);
        }
        expected
    }
}

fn nature(dice: &mut Dice, troubled: bool) -> Nature {
    let kind = if troubled { dice.below(20) } else { 99 };
    match kind {
        0..=2 => Nature::Flaky(dice.between(1, 2) as u32),
        3 => Nature::Busy(dice.between(1, 2) as u32),
        4 => Nature::Dead,
        5 => Nature::Gone,
        6 => Nature::Partial,
        7 => Nature::Deadly,
        _ => Nature::Good,
    }
}
