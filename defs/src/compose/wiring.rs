//! Puts the steps of a chain in order: follows `next` from the first step.

use std::collections::{HashMap, HashSet};

use super::chains::StepDraft;
use crate::findings::Findings;
use crate::steps::{Step, StepKind};
use crate::text::{Span, Text};

/// The steps of a chain by name.
type StepIndex<'c> = HashMap<&'c str, &'c StepDraft>;

/// Follows a chain from `start` to `end`. `None` if the chain is broken, which is reported.
pub(super) fn walk(
    chain: &[StepDraft],
    task: &Text,
    findings: &mut Findings<'_>,
) -> Option<Vec<Step>> {
    let index: StepIndex<'_> = chain.iter().map(|step| (step.name.as_str(), step)).collect();
    let previous_known = check_previous(chain, &index, task, findings);
    check_next(chain, &index, task, findings);
    check_circles(chain, task, findings);
    let mut current = first(chain, task, findings)?;
    let mut path: Vec<&StepDraft> = Vec::new();
    let mut reached = HashSet::new();
    loop {
        path.push(current);
        reached.insert(current.name.as_str());
        let next = match successor(current, &index) {
            Successor::End => break,
            Successor::Unknown => return None,
            Successor::Step(next) if reached.contains(next.name.as_str()) => return None,
            Successor::Step(next) => next,
        };
        if next.previous != current.name && previous_known {
            findings.warn(
                span_or_task(next.previous.at, task),
                format!(
                    "step `{}` names `{}` as its `previous`, but `{}` leads to it",
                    next.name.text, next.previous.text, current.name.text
                ),
                format!("write `previous: {}`", current.name.text),
            );
        }
        current = next;
    }
    warn_unreached(chain, &reached, findings);
    if !previous_known {
        return None;
    }
    let steps = path.into_iter().map(|step| {
        Some(Step { name: step.name.clone(), kind: step.kind?, plugins: step.plugins.clone() })
    });
    steps.collect()
}

/// The position of a text, or of the task if the text is built in.
fn span_or_task(at: Span, task: &Text) -> Span {
    if at.line == 0 { task.at } else { at }
}

/// Help for an unknown step name: a similar step of the chain, or one of its ends.
fn suggestion(wanted: &str, index: &StepIndex<'_>, end: &str, findings: &Findings<'_>) -> String {
    let mut names: Vec<_> = index.keys().copied().chain([end]).collect();
    names.sort_unstable();
    let place = if end == "start" { "first" } else { "last" };
    let otherwise = format!("name a step of the chain, or `{end}` for its {place} step");
    findings.did_you_mean(wanted, names, otherwise)
}

fn check_previous(
    chain: &[StepDraft],
    index: &StepIndex<'_>,
    task: &Text,
    findings: &mut Findings<'_>,
) -> bool {
    let mut known = true;
    for step in chain {
        let previous = &step.previous;
        if previous.text.is_empty() {
            known = false;
        } else if !previous.text.eq_ignore_ascii_case("start")
            && !index.contains_key(previous.as_str())
        {
            known = false;
            let help = suggestion(&previous.text, index, "start", findings);
            findings.error(
                span_or_task(previous.at, task),
                format!(
                    "step `{}` follows `{}`, but its chain has no such step",
                    step.name.text, previous.text
                ),
                help,
            );
        }
    }
    known
}

fn first<'c>(
    chain: &'c [StepDraft],
    task: &Text,
    findings: &mut Findings<'_>,
) -> Option<&'c StepDraft> {
    let mut firsts = chain.iter().filter(|step| step.previous.text.eq_ignore_ascii_case("start"));
    let Some(first) = firsts.next() else {
        // An unreadable `previous` may be the missing `start`.
        if chain.iter().all(|step| !step.previous.text.is_empty()) {
            let at = chain.first().map_or(task.at, |step| step.name.at);
            findings.error(
                span_or_task(at, task),
                "no step of the chain follows `start`",
                "add `previous: start` to its first step",
            );
        }
        return None;
    };
    if let Some(second) = firsts.next() {
        let at = if second.previous.at.line == 0 { first.previous.at } else { second.previous.at };
        findings.error(
            span_or_task(at, task),
            format!("`{}` and `{}` both follow `start`", first.name.text, second.name.text),
            "a chain has one first step; change `previous` of the second one",
        );
        return None;
    }
    Some(first)
}

/// The target of a step's `next`.
enum Successor<'c> {
    Step(&'c StepDraft),
    End,
    /// No known step, which is reported.
    Unknown,
}

fn successor<'c>(step: &StepDraft, index: &StepIndex<'c>) -> Successor<'c> {
    if step.next.text.eq_ignore_ascii_case("end") {
        return Successor::End;
    }
    // New locators become new jobs, so this job ends here.
    let creates = step.kind == Some(StepKind::LocatorCreator);
    match index.get(step.next.as_str()) {
        None => Successor::Unknown,
        Some(next) if creates && next.kind == Some(StepKind::LocatorSeeder) => Successor::End,
        Some(next) => Successor::Step(next),
    }
}

/// Reports every `next` that names no step of the chain.
fn check_next(
    chain: &[StepDraft],
    index: &StepIndex<'_>,
    task: &Text,
    findings: &mut Findings<'_>,
) {
    for step in chain {
        // A missing `next` is empty; it is reported where the step is read.
        if step.next.text.is_empty() || !matches!(successor(step, index), Successor::Unknown) {
            continue;
        }
        let help = suggestion(&step.next.text, index, "end", findings);
        findings.error(
            span_or_task(step.next.at, task),
            format!(
                "step `{}` leads to `{}`, but its chain has no such step",
                step.name.text, step.next.text
            ),
            help,
        );
    }
}

/// Reports every wrong `next` of steps that could not be inserted into their base chain.
pub(super) fn check_loose(base: &[StepDraft], steps: &[StepDraft], findings: &mut Findings<'_>) {
    let both = base.iter().chain(steps);
    let index: StepIndex<'_> = both.map(|step| (step.name.as_str(), step)).collect();
    check_next(steps, &index, &Text::default(), findings);
}

/// Reports every cycle of a chain, whether `start` leads to it or not. Problems of built-in steps
/// are reported at the position of `owner`.
pub(super) fn check_circles(chain: &[StepDraft], owner: &Text, findings: &mut Findings<'_>) {
    let index: StepIndex<'_> = chain.iter().map(|step| (step.name.as_str(), step)).collect();
    let (firsts, others): (Vec<_>, Vec<_>) =
        chain.iter().partition(|step| step.previous.text.eq_ignore_ascii_case("start"));
    let mut done: HashSet<&str> = HashSet::new();
    for begin in firsts.into_iter().chain(others) {
        let mut path: Vec<&str> = Vec::new();
        let mut on_path: HashSet<&str> = HashSet::new();
        let mut current = begin;
        while done.insert(current.name.as_str()) {
            path.push(current.name.as_str());
            on_path.insert(current.name.as_str());
            let Successor::Step(next) = successor(current, &index) else {
                break;
            };
            if on_path.contains(next.name.as_str()) {
                findings.error(
                    span_or_task(current.next.at, owner),
                    format!("the chain has a cycle: {} -> {}", path.join(" -> "), next.name.text),
                    "write `next: end` in its last step",
                );
            }
            current = next;
        }
    }
}

/// Warns of unreachable steps, except inherited ones: a task that only follows links omits the
/// appender on purpose.
fn warn_unreached(chain: &[StepDraft], reached: &HashSet<&str>, findings: &mut Findings<'_>) {
    for step in chain {
        if step.own && step.name.at.line > 0 && !reached.contains(step.name.as_str()) {
            findings.warn(
                step.name.at,
                format!("step `{}` never runs: no step leads to it", step.name.text),
                format!("write `next: {}` in the step before it", step.name.text),
            );
        }
    }
}
