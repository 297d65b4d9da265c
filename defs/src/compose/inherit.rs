//! Resolves chains that are based on other chains: steps replace steps of the base or are inserted.

use std::collections::{HashMap, HashSet};

use super::chains::{self, ChainBody, ChainDraft, StepDraft};
use super::wiring;
use crate::findings::Findings;
use crate::text::Text;

/// All chains, with their base chains resolved.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// The steps by chain name; `None` for a broken chain, which is reported.
    expanded: HashMap<String, Option<Vec<StepDraft>>>,
}

impl Chains {
    /// The steps of a chain. An unknown name is reported.
    pub(super) fn find(&self, name: &Text, findings: &mut Findings<'_>) -> Option<&[StepDraft]> {
        let found = self.expanded.get(&name.text);
        if found.is_none() {
            self.report_unknown(name, findings);
        }
        found.and_then(Option::as_deref)
    }

    fn report_unknown(&self, name: &Text, findings: &mut Findings<'_>) {
        if findings.incomplete {
            return;
        }
        let help = if name.at.line == 0 {
            "the setting `defs.defaultSteps` names this chain for tasks without `steps`".to_owned()
        } else {
            let otherwise = "define it below the top-level `steps:`, or use `jsoupDefault` or `htmlUnitDefault`";
            similar_chain(name, self.expanded.keys(), otherwise, findings)
        };
        findings.error(name.at, format!("there is no chain of steps `{}`", name.text), help);
    }
}

/// Help for an unknown chain. The first of several equally similar names wins, so they are sorted.
fn similar_chain<'c>(
    name: &Text,
    known: impl Iterator<Item = &'c String>,
    otherwise: &str,
    findings: &Findings<'_>,
) -> String {
    let mut known: Vec<&str> = known.map(String::as_str).collect();
    known.sort_unstable();
    findings.did_you_mean(&name.text, known, otherwise)
}

/// Resolves the bases of all chains, without recursion: a sequence of bases can be long.
pub(super) fn expand(drafts: Vec<ChainDraft>, findings: &mut Findings<'_>) -> Chains {
    let mut chains = Chains::default();
    let mut based = BasedChains::new();
    let mut order = Vec::new();
    let names: Vec<Text> = drafts.iter().map(|draft| draft.name.clone()).collect();
    for draft in drafts {
        match draft.body {
            ChainBody::Whole(steps) => {
                chains.expanded.insert(draft.name.text, Some(steps));
            }
            ChainBody::Broken => {
                chains.expanded.insert(draft.name.text, None);
            }
            ChainBody::Based(base, overlay) => {
                order.push(draft.name.text.clone());
                based.insert(draft.name.text, (base, overlay));
            }
        }
    }
    let mut total = 0;
    for name in &order {
        let row = row_of_bases(name, &mut chains, &based, findings);
        for (name, base, steps) in row.into_iter().rev() {
            let below = chains.expanded.get(&base.text).and_then(Option::as_ref);
            let steps = below.and_then(|below| overlay(below, steps, findings));
            total += steps.iter().flatten().map(chains::weight).sum::<usize>();
            if total > chains::WEIGHT_MAX {
                chains::report_too_large(base.at, findings);
                findings.incomplete = true;
                return chains;
            }
            chains.expanded.insert(name.to_owned(), steps);
        }
    }
    // Unused chains are checked for cycles as well.
    for name in &names {
        if let Some(Some(steps)) = chains.expanded.get(&name.text) {
            wiring::check_circles(steps, name, findings);
        }
    }
    chains
}

/// Chains by name, each with its base and the steps to replace or insert.
type BasedChains = HashMap<String, (Text, Vec<StepDraft>)>;

/// The chains from this one down to the first base that is already resolved.
fn row_of_bases<'b>(
    name: &'b str,
    chains: &mut Chains,
    based: &'b BasedChains,
    findings: &mut Findings<'_>,
) -> Vec<(&'b str, &'b Text, &'b [StepDraft])> {
    let mut row: Vec<(&str, &Text, &[StepDraft])> = Vec::new();
    let mut seen = HashSet::new();
    let mut current = name;
    while !chains.expanded.contains_key(current) {
        let Some((base, steps)) = based.get(current) else {
            if let Some((_, base, _)) = row.last()
                && !findings.incomplete
            {
                let known = chains.expanded.keys().chain(based.keys());
                let otherwise = "if it is a step, add `class`; if it is a chain, define it below \
                                 the top-level `steps:`";
                let help = similar_chain(base, known, otherwise, findings);
                findings.error(base.at, format!("there is no base chain `{}`", base.text), help);
            }
            break;
        };
        if !seen.insert(current) {
            if let Some((_, base, _)) = row.last() {
                findings.error(
                    base.at,
                    format!("the chain `{current}` is based on itself"),
                    "base it on a chain that has all its steps, such as `jsoupDefault`",
                );
            }
            chains.expanded.insert(current.to_owned(), None);
            break;
        }
        row.push((current, base, steps));
        current = &base.text;
    }
    row
}

/// Applies steps to a base: a step with a known name replaces, any other is inserted.
pub(super) fn overlay(
    base: &[StepDraft],
    steps: &[StepDraft],
    findings: &mut Findings<'_>,
) -> Option<Vec<StepDraft>> {
    let mut chain = base.to_vec();
    for step in &mut chain {
        step.own = false;
    }
    let mut whole = true;
    for step in steps {
        match chain.iter_mut().find(|known| known.name == step.name) {
            Some(known) => *known = step.clone(),
            None => whole &= insert(&mut chain, step, findings),
        }
    }
    if chain.len() > chains::STEPS_MAX {
        let at = steps.first().map(|step| step.name.at).unwrap_or_default();
        chains::report_too_long(at, findings);
        return None;
    }
    if !whole {
        wiring::check_loose(base, steps, findings);
        return None;
    }
    Some(chain)
}

fn insert(chain: &mut Vec<StepDraft>, step: &StepDraft, findings: &mut Findings<'_>) -> bool {
    let known = chain.iter_mut().find(|known| known.name == step.previous);
    match known {
        Some(previous) => previous.next = step.name.clone(),
        // A missing `previous` is reported where the step is read.
        None if step.previous.text.is_empty() => return false,
        None => {
            let names = chain.iter().map(|step| step.name.text.as_str());
            let help = findings.did_you_mean(
                &step.previous.text,
                names,
                "`previous` must name a step of the base chain",
            );
            findings.error(
                step.previous.at,
                format!(
                    "step `{}` cannot follow `{}`: its chain has no such step",
                    step.name.text, step.previous.text
                ),
                help,
            );
            return false;
        }
    }
    if let Some(next) = chain.iter_mut().find(|known| known.name == step.next)
        && !next.previous.text.eq_ignore_ascii_case("start")
    {
        next.previous = step.name.clone();
    }
    chain.push(step.clone());
    true
}
