//! The model check: a breadth-first search through every order of events for two nodes and three jobs.
//! Nodes join, take, finish, return, leave and die; replies are lost, commands arrive twice or late, and
//! sessions expire. The ledger is the real one.
//!
//! The simulation samples long histories; this search covers all short ones. After every step all
//! invariants hold, a repeated command changes nothing, no job ends twice, a run that is over stays over,
//! and the end can be reached without another fault.
//!
//! One node may die, and one other fault may happen. `MODEL_FAULTS=2 cargo test -p spoonbill-engine --lib
//! ledger::tests::model -- --nocapture` searches further and prints the number of states.

mod canon;
mod steps;

use std::collections::HashMap;

use self::steps::{Action, State};

/// A planted mistake, to test that the search finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bug {
    None,
    /// A result with any token counts.
    NoTokenCheck,
    /// A resent Take is answered with more jobs.
    TakeAnew,
    /// A job whose worker died counts as ended.
    LostWithItsWorker,
    /// A node that has dropped its jobs still renews its session.
    RevivedSession,
    /// A job returned from a dead worker loses its last token.
    LastTokenForgotten,
}

/// A visited state, and the shortest path to it.
struct VisitedState {
    from: usize,
    by: Action,
    /// Whether the run is over.
    over: bool,
    /// Next states without another fault.
    onward: Vec<usize>,
}

/// The result of the search.
struct Search {
    met: Vec<VisitedState>,
    depth: usize,
    steps: usize,
}

/// A step out of a known state: the state after it, or what is wrong with it.
type Stepped = (usize, Action, bool, Result<(u128, State), String>);

/// Searches from the initial state. An error names the shortest path to the violation.
fn search(bug: Bug, crashes: u32, faults: u32) -> Result<Search, String> {
    let begin = State::begin(bug, crashes, faults);
    let mut known = HashMap::from([(begin.name(), 0)]);
    let first = VisitedState { from: 0, by: Action::Begin, over: false, onward: Vec::new() };
    let mut found = Search { met: vec![first], depth: 0, steps: 0 };
    let mut edge = vec![(0, begin)];
    while !edge.is_empty() {
        let mut next = Vec::new();
        for (from, by, good, stepped) in step_all(&edge, &known) {
            let (name, state) = stepped
                .map_err(|words| format!("{words}, after {:?} then {by:?}", found.path_to(from)))?;
            found.steps += 1;
            let place = *known.entry(name).or_insert(found.met.len());
            if place == found.met.len() {
                let over = state.is_over();
                found.met.push(VisitedState { from, by, over, onward: Vec::new() });
                next.push((place, state));
            }
            if good {
                found.met[from].onward.push(place);
            }
        }
        found.depth += usize::from(!next.is_empty());
        edge = next;
    }
    found.check_ends()?;
    Ok(found)
}

/// All steps out of the newest states, computed on all cores.
fn step_all(edge: &[(usize, State)], known: &HashMap<u128, usize>) -> Vec<Stepped> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = edge.len().div_ceil(cores);
    std::thread::scope(|scope| {
        let parts = edge.chunks(share).map(|part| scope.spawn(|| step_some(part, known)));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}

fn step_some(edge: &[(usize, State)], known: &HashMap<u128, usize>) -> Vec<Stepped> {
    let mut stepped = Vec::new();
    for (from, state) in edge {
        for action in state.actions() {
            let after = state.step(action).and_then(|after| {
                let name = after.name();
                if !known.contains_key(&name) {
                    after.check()?;
                }
                Ok((name, after))
            });
            stepped.push((*from, action, state.is_good(action), after));
        }
    }
    stepped
}

impl Search {
    fn path_to(&self, mut place: usize) -> Vec<Action> {
        let mut way = Vec::new();
        while place > 0 {
            way.push(self.met[place].by);
            place = self.met[place].from;
        }
        way.reverse();
        way
    }

    /// Checks that the end can be reached from every state without another fault.
    fn check_ends(&self) -> Result<(), String> {
        let mut before = vec![Vec::new(); self.met.len()];
        for (place, met) in self.met.iter().enumerate() {
            met.onward.iter().for_each(|next| before[*next].push(place));
        }
        let mut ends: Vec<bool> = self.met.iter().map(|met| met.over).collect();
        let mut edge: Vec<usize> = (0..ends.len()).filter(|place| ends[*place]).collect();
        while let Some(place) = edge.pop() {
            for place in &before[place] {
                if !std::mem::replace(&mut ends[*place], true) {
                    edge.push(*place);
                }
            }
        }
        match ends.iter().position(|ends| !ends) {
            Some(place) => Err(format!("there is no end after {:?}", self.path_to(place))),
            None => Ok(()),
        }
    }
}

#[test]
fn every_history_of_two_nodes_and_three_jobs_ends_well() {
    let faults = std::env::var("MODEL_FAULTS").ok().and_then(|text| text.parse().ok());
    let began = std::time::Instant::now();
    let found = search(Bug::None, 1, faults.unwrap_or(1)).unwrap_or_else(|words| panic!("{words}"));
    let over = found.met.iter().filter(|met| met.over).count();
    let (states, steps, depth) = (found.met.len(), found.steps, found.depth);
    println!("{states} states, {over} of them over, {steps} steps, depth {depth}");
    println!("in {:.1?}", began.elapsed());
    assert!(states > 30_000 && over > 3_000 && depth > 20, "the search covered too few states");
}

#[test]
fn the_search_finds_every_planted_bug() {
    for (bug, crashes, words) in [
        (Bug::NoTokenCheck, 0, "I4"),
        (Bug::TakeAnew, 0, "changed something the second time"),
        (Bug::LostWithItsWorker, 1, "a lane counts its queued jobs"),
        (Bug::RevivedSession, 0, "there is no end"),
        (Bug::LastTokenForgotten, 0, "no other node has the job"),
    ] {
        let found = search(bug, crashes, 1).err().unwrap_or_default();
        println!("{bug:?}: {found}");
        assert!(found.contains(words), "{bug:?}: {found}");
    }
}
