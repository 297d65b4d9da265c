//! The imports between the files of `engine/src`, read from paths that begin with `crate::` or `super::`.

use std::collections::{BTreeMap, BTreeSet};

use super::{is_test, shipped, sources};

/// Edges from each file or folder to those it imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The module of a file: `engine/src/run/mod.rs` is `run`, `engine/src/run/jobs.rs` is `run::jobs`.
fn module_of(file: &str) -> String {
    let path = file.trim_start_matches("engine/src/").trim_end_matches(".rs");
    path.trim_end_matches("/mod").replace('/', "::")
}

/// The paths of a `use` tree or an expression that begins at `text`, behind `prefix`.
fn paths(prefix: &str, text: &str, found: &mut Vec<String>) -> usize {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let name: String = text.chars().take_while(|letter| is_name(*letter)).collect();
    let rest = &text[name.len()..];
    if !name.is_empty() {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}::{name}") };
        if let Some(tail) = rest.strip_prefix("::") {
            return name.len() + 2 + paths(&path, tail, found);
        }
        found.push(path);
        return name.len();
    }
    found.push(prefix.to_owned());
    let Some(mut inner) = rest.strip_prefix('{') else { return 0 };
    let mut read = 1;
    loop {
        let skipped = inner.len() - inner.trim_start_matches([' ', '\n', ',']).len();
        inner = &inner[skipped..];
        read += skipped;
        if inner.is_empty() || inner.starts_with('}') {
            return read + 1;
        }
        // At least one letter, so that an alias or a star ends the loop.
        let length = paths(prefix, inner, found).max(1);
        inner = &inner[length..];
        read += length;
    }
}

/// All paths of a file, from the root of the crate.
fn imports(module: &str, text: &str) -> Vec<String> {
    let code: Vec<&str> =
        shipped(text).lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if !code[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_') {
            paths("", &code[at + "crate::".len()..], &mut found);
        }
    }
    for (at, _) in code.match_indices("super::") {
        if code[..at].ends_with("super::") {
            continue;
        }
        let (mut parent, mut rest) = (module, &code[at..]);
        while let Some(tail) = rest.strip_prefix("super::") {
            parent = parent.rsplit_once("::").map_or("", |(parent, _)| parent);
            rest = tail;
        }
        paths(parent, rest, &mut found);
    }
    found
}

/// The imports between the files of the engine, or between its folders. A file may use what its own
/// folder's `mod.rs` declares.
fn graph(of: impl Fn(&str) -> String) -> Graph {
    let files = sources("engine/src").into_iter().filter(|(name, _)| !is_test(name));
    let files: BTreeMap<String, String> =
        files.map(|(name, text)| (module_of(&name), text)).collect();
    let mut graph = Graph::new();
    for (module, text) in &files {
        for path in imports(module, text) {
            let mut target = path.as_str();
            while !target.is_empty() && !files.contains_key(target) {
                target = target.rsplit_once("::").map_or("", |(parent, _)| parent);
            }
            let (from, to) = (of(module), of(target));
            if !to.is_empty() && from != to && !module.starts_with(&format!("{target}::")) {
                graph.entry(from).or_default().insert(to);
            }
        }
    }
    graph
}

/// Everything that can be reached from `start`.
fn reached<'g>(graph: &'g Graph, start: &str) -> BTreeSet<&'g str> {
    let (mut found, mut next) = (BTreeSet::new(), vec![start]);
    while let Some(one) = next.pop() {
        for to in graph.get(one).into_iter().flatten() {
            if found.insert(to.as_str()) {
                next.push(to);
            }
        }
    }
    found
}

/// The members of all cycles.
fn cyclic(graph: &Graph) -> Vec<&str> {
    let names = graph.keys().map(String::as_str);
    names.filter(|name| reached(graph, name).contains(name)).collect()
}

#[test]
fn the_files_of_the_engine_import_each_other_in_one_direction() {
    let graph = graph(str::to_owned);
    let cyclic = cyclic(&graph);
    assert!(cyclic.is_empty(), "import cycles among these files: {cyclic:?}");
}

#[test]
fn the_folders_of_the_engine_import_each_other_in_one_direction() {
    let graph = graph(|module| module.split("::").next().unwrap_or_default().to_owned());
    let cyclic = cyclic(&graph);
    assert!(cyclic.is_empty(), "import cycles among these folders: {cyclic:?}");
    assert!(graph.contains_key("run") && graph["run"].contains("plan"), "{graph:?}");
}

#[test]
fn paths_are_read_from_nested_imports() {
    let text = "use crate::run::{self, jobs::{A, B as C}, pace::*};\nlet x = super::other::f();\n\
                // crate::comment::only\nuse super::super::up;";
    let mut found = imports("cli::bench::frontier", text);
    found.retain(|path| !path.is_empty());
    for path in [
        "run::self",
        "run::jobs::A",
        "run::jobs::B",
        "run::pace",
        "cli::bench::other::f",
        "cli::up",
    ] {
        assert!(found.iter().any(|one| one == path), "{path}: {found:?}");
    }
    assert!(!found.iter().any(|path| path.contains("comment")), "{found:?}");
}
