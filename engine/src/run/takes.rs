//! When a node asks the ledger for jobs, and when it reports jobs that have ended.
//!
//! [`Takes`] decides, and does nothing else: it gets events and the current time, and [`Takes::decide`]
//! returns what to do now and when to ask it again. `jobs.rs` performs the decision.
//!
//! Every request costs an agreement of the nodes (in one process: a commit), so requests are saved where
//! nobody has to wait for them:
//!
//! - Only one take is in flight. The ledger answers takes in their order and drops one that was overtaken.
//! - Ended jobs are reported in batches of [`REPORT_BATCH_DELAY`]. A job that led to new jobs, or failed,
//!   is reported at once, because nodes may wait for what follows from it.
//! - A report takes jobs along if any are pending: that costs no further agreement.
//! - A take that granted nothing is repeated after a growing pause.
//! - Jobs that another node has found are left to that node for [`FINDER_HEAD_START`]. It is about to
//!   take them itself, and moving them to this node costs one agreement more.

use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::Standing;

/// Longest wait for a job whose time has not come. Ledger time moves with commands, and by one second
/// per command at most, so a node has to send a command now and then.
const DUE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long an ended job waits for others to be reported in the same batch.
const REPORT_BATCH_DELAY: Duration = Duration::from_millis(20);

/// Only jobs that begin within this time are granted ahead of their turn. Otherwise the jobs of a slow
/// host would wait here while another node is idle.
const AHEAD_HORIZON: Duration = Duration::from_millis(150);

/// How long new jobs are left to the node that found them.
const FINDER_HEAD_START: Duration = Duration::from_millis(15);

/// Pause after the first take that granted nothing. It doubles up to [`EMPTY_TAKE_DOUBLINGS`] times.
const EMPTY_TAKE_PAUSE: Duration = Duration::from_millis(4);
const EMPTY_TAKE_DOUBLINGS: u32 = 4;

/// The limits of one node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakeLimits {
    /// Jobs in flight.
    pub jobs: usize,
    /// Committed bytes that are not written yet. Above it the node takes no jobs.
    pub lag_bytes: u64,
    /// Jobs of one host that are granted ahead of their turn. Zero where takes and reports are cheap:
    /// then nothing is batched.
    pub ahead: usize,
    /// Jobs of one host that are worked on at the same time.
    pub at_once: usize,
}

/// An event on this node or in the ledger.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// The ledger has published its numbers.
    Standing(Standing),
    /// The answer to a take: the number of jobs, and when a job that waits for its time is due.
    Granted { jobs: usize, due_in: Option<Duration> },
    /// A job has ended and is to be reported.
    Ended {
        /// Whether it led to other jobs, failed, or is to be tried again.
        has_effects: bool,
        /// Time from the request for its page to its end, if a page was requested.
        took: Option<Duration>,
    },
    /// A job has ended and needs no report.
    Dropped,
    /// The node has a new session and no jobs.
    NewSession,
}

/// The action to take now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TakeDecision {
    /// Ask for jobs.
    pub take: Option<Take>,
    /// Report all jobs that have ended. A take goes in the same batch, behind the reports.
    pub report: bool,
    /// When to decide again, if no event comes before.
    pub wake_at: Option<Instant>,
}

/// A request for jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Take {
    /// The highest number of jobs to grant.
    pub limit: usize,
    /// Jobs of one host to grant ahead of their turn.
    pub ahead: usize,
}

/// The state behind the decisions.
#[derive(Debug)]
pub(crate) struct Takes {
    limits: TakeLimits,
    standing: Standing,
    /// Whether a take is in flight.
    is_asking: bool,
    /// Jobs in flight now, and right after the last answer.
    working: usize,
    working_after_take: usize,
    /// Ended jobs that are not reported, and when the first of them has waited long enough.
    unreported: usize,
    report_by: Option<Instant>,
    /// Whether one of them has effects on other jobs.
    has_effects: bool,
    /// Whether effects were reported since the last take, so that there may be jobs to take.
    has_found: bool,
    /// Whether a job has ended here since the last take.
    has_room: bool,
    /// Since when the ledger may have jobs for this node that the last answer could not include.
    news_since: Option<Instant>,
    /// When a job that waits for its time is due.
    due: Option<Instant>,
    /// Consecutive takes that granted nothing, and the earliest time for the next take.
    consecutive_empty: u32,
    not_before: Option<Instant>,
    /// Average time from the request for a page to the end of its job.
    page_time: Option<Duration>,
}

impl Takes {
    /// The state of a node without jobs.
    pub(crate) fn new(limits: TakeLimits) -> Self {
        Self {
            limits,
            standing: Standing::default(),
            is_asking: false,
            working: 0,
            working_after_take: 0,
            unreported: 0,
            report_by: None,
            has_effects: false,
            has_found: false,
            has_room: true,
            news_since: None,
            due: None,
            consecutive_empty: 0,
            not_before: None,
            page_time: None,
        }
    }

    /// Whether a take is in flight.
    pub(crate) fn is_asking(&self) -> bool {
        self.is_asking
    }

    /// Notes an event.
    pub(crate) fn on(&mut self, event: Event, now: Instant) {
        match event {
            Event::Standing(standing) => self.compare(standing, now),
            Event::Granted { jobs, due_in } => {
                self.working += jobs;
                self.answered(jobs, now);
                self.due = due_in.map(|due_in| now + due_in.min(DUE_POLL_INTERVAL));
            }
            Event::Ended { has_effects, took } => {
                self.ended();
                self.unreported += 1;
                self.has_effects |= has_effects;
                self.report_by.get_or_insert(now + REPORT_BATCH_DELAY);
                if let Some(took) = took {
                    self.page_time =
                        Some(self.page_time.map_or(took, |known| (known * 3 + took) / 4));
                }
            }
            Event::Dropped => self.ended(),
            Event::NewSession => {
                self.working = 0;
                self.reported();
                self.answered(1, now);
                self.has_room = true;
            }
        }
    }

    /// Decides about this moment. The caller performs all of the decision: afterwards the take counts as in flight and the
    /// ended jobs as reported.
    pub(crate) fn decide(&mut self, now: Instant) -> TakeDecision {
        let pending = self.standing.pending > 0;
        let is_batching = self.limits.ahead > 0;
        let free = self.limits.jobs.max(1).saturating_sub(self.working);
        let may_take =
            free > 0 && self.standing.lag_bytes <= self.limits.lag_bytes && !self.is_asking;

        let is_due = self.due.is_some_and(|due| due <= now);
        let news_at = self.news_at();
        let has_news = self.has_room || news_at.is_some_and(|at| at <= now);
        let wants = is_due || self.has_found || has_news && self.needs_jobs();
        let asks = may_take && (self.has_effects || pending && wants);

        // While a take is in flight nothing can be taken, so a report can wait for the answer.
        let can_wait = self.is_asking || !self.has_effects && self.working > 0;
        let is_late = self.report_by.is_some_and(|by| by <= now);
        let report = self.unreported > 0 && (asks || !is_batching || !can_wait || is_late);

        let not_before = self.not_before.filter(|at| *at > now && is_batching);
        let pause = not_before.filter(|_| asks && !report && !is_due);
        let asks = asks && pause.is_none() || report && may_take && pending;

        self.has_found |= self.has_effects;
        let take = asks.then(|| self.take(free));
        if report || asks {
            self.reported();
        }
        let waits_for_jobs = may_take && !asks && pending;
        let due = self.due.filter(|_| waits_for_jobs);
        let news_at = news_at.filter(|at| waits_for_jobs && *at > now);
        let wake_at = [due, pause, news_at, self.report_by].into_iter().flatten().min();
        TakeDecision { take, report, wake_at }
    }

    fn take(&mut self, limit: usize) -> Take {
        self.is_asking = true;
        (self.has_room, self.has_found) = (false, false);
        (self.news_since, self.due) = (None, None);
        Take { limit, ahead: self.ahead() }
    }

    fn answered(&mut self, jobs: usize, now: Instant) {
        (self.is_asking, self.working_after_take) = (false, self.working);
        self.consecutive_empty = if jobs == 0 { self.consecutive_empty + 1 } else { 0 };
        let doublings = self.consecutive_empty.saturating_sub(1).min(EMPTY_TAKE_DOUBLINGS);
        let pause = EMPTY_TAKE_PAUSE * (1 << doublings);
        self.not_before = (self.consecutive_empty > 0).then_some(now + pause);
    }

    fn ended(&mut self) {
        self.working = self.working.saturating_sub(1);
        self.has_room = true;
    }

    fn reported(&mut self) {
        (self.unreported, self.report_by, self.has_effects) = (0, None, false);
    }

    /// Notes whether there may be jobs that the last answer could not include. Jobs that were only
    /// granted to a node are no news.
    fn compare(&mut self, now: Standing, time: Instant) {
        let before = std::mem::replace(&mut self.standing, now);
        if now.pending > before.pending
            || now.taken < before.taken
            || now.done + now.failed != before.done + before.failed
        {
            self.news_since.get_or_insert(time);
        }
        if now.pending == 0 {
            // The node that found them has taken them.
            self.news_since = None;
        }
    }

    /// When this node may take jobs that it has not found itself.
    fn news_at(&self) -> Option<Instant> {
        let others_work = self.limits.ahead > 0 && self.standing.taken > 0;
        self.news_since.map(|since| if others_work { since + FINDER_HEAD_START } else { since })
    }

    /// Whether few jobs are in flight, or many have ended since the last answer.
    fn needs_jobs(&self) -> bool {
        let (ahead, at_once) = (self.ahead(), self.limits.at_once);
        ahead == 0
            || self.working < at_once + ahead / 2
            || self.working + ahead / 2 <= self.working_after_take
    }

    /// How many jobs to hold in advance: as many as begin within [`AHEAD_HORIZON`]. It is 0 until the
    /// first page has shown how long a page takes.
    fn ahead(&self) -> usize {
        let TakeLimits { ahead, at_once, .. } = self.limits;
        let begun = |page: Duration| {
            AHEAD_HORIZON.as_millis() as usize * at_once / page.as_millis().max(1) as usize
        };
        self.page_time.map_or(0, begun).min(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: TakeLimits = TakeLimits { jobs: 8, lag_bytes: 100, ahead: 0, at_once: 2 };
    const AMONG_OTHERS: TakeLimits = TakeLimits { ahead: 4, ..ALONE };
    const MS: Duration = Duration::from_millis(1);

    fn pending(pending: u64) -> Event {
        Event::Standing(Standing { pending, ..Standing::default() })
    }

    fn pending_and_taken(pending: u64, taken: u64) -> Event {
        Event::Standing(Standing { pending, taken, ..Standing::default() })
    }

    fn granted(jobs: usize) -> Event {
        Event::Granted { jobs, due_in: None }
    }

    fn quiet_end() -> Event {
        Event::Ended { has_effects: false, took: Some(40 * MS) }
    }

    const END_WITH_LINKS: Event = Event::Ended { has_effects: true, took: Some(Duration::ZERO) };

    /// A step of a case at a time: an event, or a decision that is performed.
    #[derive(Clone, Copy)]
    enum Step {
        On(u64, Event),
        Decide(u64),
    }
    use Step::{Decide, On};

    /// The last decision of a case: the limit of its take, whether it reports, and when it wakes, in
    /// milliseconds.
    type Expected = (Option<usize>, bool, Option<u64>);
    type Case<'a> = (&'a str, TakeLimits, &'a [Step], u64, Expected);

    const NOTHING: Expected = (None, false, None);

    fn check(cases: &[Case<'_>]) {
        for (name, limits, steps, at, expected) in cases {
            let start = Instant::now();
            let time = |ms: u64| start + Duration::from_millis(ms);
            let mut takes = Takes::new(*limits);
            for step in *steps {
                match step {
                    On(ms, event) => takes.on(*event, time(*ms)),
                    Decide(ms) => {
                        takes.decide(time(*ms));
                    }
                }
            }
            let TakeDecision { take, report, wake_at } = takes.decide(time(*at));
            let wake_at = wake_at.map(|at| (at - start).as_millis() as u64);
            assert_eq!((take.map(|take| take.limit), report, wake_at), *expected, "{name}");
        }
    }

    #[test]
    fn jobs_are_taken_if_there_are_some_and_the_node_has_room() {
        let lagging = Standing { pending: 3, lag_bytes: 101, ..Standing::default() };
        let full = [On(0, pending(30)), Decide(0), On(1, granted(8))];
        let one_free = [&full[..], &[On(5, quiet_end())]].concat();
        let lost = [&full[..], &[On(9, Event::NewSession)]].concat();
        check(&[
            ("nothing is pending", ALONE, &[], 0, NOTHING),
            ("jobs are pending", ALONE, &[On(0, pending(3))], 0, (Some(8), false, None)),
            ("a take is in flight", ALONE, &[On(0, pending(3)), Decide(0)], 1, NOTHING),
            ("all places are in use", ALONE, &full, 1, NOTHING),
            ("output lags behind", ALONE, &[On(0, Event::Standing(lagging))], 0, NOTHING),
            (
                "a place is free, and its end is reported",
                ALONE,
                &one_free,
                5,
                (Some(1), true, None),
            ),
            ("a new session has no jobs", ALONE, &lost, 9, (Some(8), false, None)),
        ]);
    }

    #[test]
    fn ends_are_reported_in_batches_unless_a_job_depends_on_them() {
        let full = [On(0, pending(9)), Decide(0), On(1, granted(8))];
        let one_ended = [&full[..], &[On(5, quiet_end()), Decide(5)]].concat();
        let found = [On(0, pending(1)), Decide(0), On(1, granted(2)), On(5, END_WITH_LINKS)];
        let asking = [&found[..], &[Decide(5), On(6, END_WITH_LINKS)]].concat();
        let last = [On(0, pending(0)), On(1, granted(1)), On(5, quiet_end())];
        check(&[
            ("an end waits for its batch", AMONG_OTHERS, &one_ended, 6, (None, false, Some(25))),
            (
                "the batch is due, and takes jobs",
                AMONG_OTHERS,
                &one_ended,
                25,
                (Some(1), true, None),
            ),
            ("an end with links is reported", AMONG_OTHERS, &found, 5, (Some(7), true, None)),
            (
                "but not while a take is in flight",
                AMONG_OTHERS,
                &asking,
                6,
                (None, false, Some(26)),
            ),
            ("no job is left to wait for", AMONG_OTHERS, &last, 5, (None, true, None)),
        ]);
    }

    #[test]
    fn a_take_that_may_grant_nothing_waits() {
        let unsuccessful = [On(0, pending(3)), Decide(0), On(1, granted(0)), On(2, pending(4))];
        let again =
            [&unsuccessful[..], &[Decide(5), On(6, granted(0)), On(7, pending(5))]].concat();
        let found_elsewhere = [
            On(0, pending(1)),
            Decide(0),
            On(1, granted(1)),
            On(10, pending_and_taken(1, 2)),
            On(20, pending_and_taken(5, 2)),
        ];
        let due = |ms| Event::Granted { jobs: 0, due_in: Some(Duration::from_millis(ms)) };
        let soon = [On(0, pending(1)), Decide(0), On(1, due(300))];
        let late = [On(0, pending(1)), Decide(0), On(1, due(9000))];
        check(&[
            (
                "the last take granted nothing",
                AMONG_OTHERS,
                &unsuccessful,
                2,
                (None, false, Some(5)),
            ),
            ("the second time the pause doubles", AMONG_OTHERS, &again, 7, (None, false, Some(14))),
            (
                "another node has found jobs",
                AMONG_OTHERS,
                &found_elsewhere,
                20,
                (None, false, Some(35)),
            ),
            ("and has left them", AMONG_OTHERS, &found_elsewhere, 35, (Some(7), false, None)),
            ("a job is due later", ALONE, &soon, 2, (None, false, Some(301))),
            ("a job is due", ALONE, &soon, 301, (Some(8), false, None)),
            ("ledger time needs commands", ALONE, &late, 2, (None, false, Some(501))),
        ]);
    }

    #[test]
    fn jobs_are_taken_ahead_only_as_far_as_they_begin_soon() {
        for (page, ahead) in [(1, 4), (75, 4), (100, 3), (300, 1), (301, 0), (10_000, 0)] {
            let (mut takes, now) = (Takes::new(AMONG_OTHERS), Instant::now());
            assert_eq!(takes.ahead(), 0, "nothing is known of pages yet");
            takes.on(Event::Ended { has_effects: false, took: Some(page * MS) }, now);
            assert_eq!(takes.ahead(), ahead, "{page} ms a page");
        }
    }
}
