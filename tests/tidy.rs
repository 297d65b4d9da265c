//! Rules that no lint checks: which part may use which, the length of files, and banned calls and words.

mod imports;

use std::fs;
use std::path::{Path, PathBuf};

/// Lines a source file may have.
const LINES_MAX: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All Rust files below a folder, as (path from the root, text).
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

/// The part of a file that is shipped: everything before its test module.
fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

fn is_test(name: &str) -> bool {
    name.contains("/tests")
        || name.contains("/sim")
        || name.contains("/suite")
        || name.contains("/test.rs")
        || name.contains("testing.rs")
}

fn all() -> Vec<(String, String)> {
    ["defs/src", "plugins/src", "engine/src"].into_iter().flat_map(sources).collect()
}

/// Fails with every shipped line that holds one of `words`, outside the files `but`.
fn nowhere(files: &[(String, String)], words: &[&str], but: &[&str], why: &str) {
    let mut broken = Vec::new();
    for (name, text) in files.iter().filter(|(name, _)| !is_test(name)) {
        if but.iter().any(|allowed| name.starts_with(allowed)) {
            continue;
        }
        for (number, line) in shipped(text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if words.iter().any(|word| code.contains(word)) {
                broken.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(broken.is_empty(), "{why}:\n{}", broken.join("\n"));
}

#[test]
fn the_ledger_knows_no_clock_no_dice_and_no_world() {
    let ledger = sources("engine/src/ledger");
    let banned = [
        "use crate::",
        "std::time",
        "std::fs",
        "std::io",
        "std::thread",
        "std::net",
        "HashMap",
        "HashSet",
        "tokio",
        "rusqlite",
        "jiff",
        "async ",
    ];
    nowhere(&ledger, &banned, &[], "the ledger is pure and ordered");
}

#[test]
fn steps_and_plugins_never_see_the_store() {
    let mut files = sources("engine/src/steps");
    files.extend(sources("plugins/src"));
    nowhere(
        &files,
        &["crate::store", "Command::", "JobMediator"],
        &[],
        "steps return, they do not call",
    );
}

#[test]
fn the_bootstrap_alone_names_a_store() {
    let engine = sources("engine/src");
    let but = ["engine/src/bootstrap.rs", "engine/src/store/", "engine/src/cluster/"];
    nowhere(&engine, &["SoloStore", "SoloHandle"], &but, "only the bootstrap picks a store");
}

#[test]
fn the_command_line_alone_prints_and_settings_are_read_once() {
    let files = all();
    let but = ["engine/src/cli/", "engine/src/steps/analyze.rs"];
    nowhere(&files, &["stdout()", "stderr()"], &but, "only the command line prints");
    // The zone is the machine's, as every program takes it.
    let but = [
        "engine/src/config/",
        "engine/src/cli/problems.rs",
        "engine/src/failpoint.rs",
        "plugins/src/dates/system.rs",
    ];
    nowhere(&files, &["env::var"], &but, "only the settings read the environment");
}

#[test]
fn pauses_and_ignored_results_have_a_name() {
    let banned = ["thread::sleep", "time::sleep(", "unbounded", "FIXME", "todo!", "unimplemented!"];
    nowhere(&all(), &banned, &["engine/src/threads/pause.rs"], "wait for a fact, and bound queues");
    let but = ["engine/src/threads/"];
    let banned = ["sleep_until(Instant::now() +", "sleep_until(tokio::time::Instant::now() +"];
    nowhere(&all(), &banned, &but, "use `pause(duration)`");
    let banned = [".send(", "std::fs::", "fs::remove", "timeout("];
    let ignored = |line: &str| {
        let call = line.find("drop(").map(|at| &line[at..]);
        call.is_some_and(|call| banned.iter().any(|word| call.contains(word)))
    };
    let files = all();
    let files = files
        .iter()
        .filter(|(name, _)| !is_test(name) && !but.iter().any(|allowed| name.starts_with(allowed)));
    for (name, text) in files {
        let line = shipped(text).lines().find(|line| ignored(line));
        assert!(
            line.is_none(),
            "{name}: use `ignore_closed`, `ignore_leftover` or `wait_at_most`: {line:?}"
        );
    }
}

#[test]
fn the_root_of_the_engine_and_its_story_stay_short() {
    let named = ["main.rs", "lib.rs", "bootstrap.rs", "error.rs", "failpoint.rs"];
    let root_files = sources("engine/src").into_iter().filter_map(|(name, _)| {
        let file = name.strip_prefix("engine/src/")?.to_owned();
        (!file.contains('/')).then_some(file)
    });
    for file in root_files {
        assert!(named.contains(&file.as_str()), "engine/src/{file} belongs into a folder");
    }
    let story = fs::read_to_string(root().join("engine/src/run/mod.rs")).unwrap();
    let lines = story.lines().count();
    assert!(lines <= 200, "run/mod.rs has {lines} lines: the story of a run fits on one screen");
}

/// Phrases that make a reader stop, in comments and messages.
const UNCLEAR: [&str; 9] = [
    "in vain",
    "in company",
    "in one stroke",
    "in one breath",
    "same breath",
    "makes do",
    "so to say",
    "none the less",
    "longer ago",
];

#[test]
fn comments_and_messages_use_plain_words() {
    let mut files = all();
    files.extend(sources("tests"));
    let but = ["engine/src/cluster/"];
    let mut found = Vec::new();
    for (name, text) in &files {
        if name.starts_with("tests/tidy") || but.iter().any(|allowed| name.starts_with(allowed)) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            if UNCLEAR.iter().any(|phrase| line.contains(phrase)) {
                found.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "say it in plain words:\n{}", found.join("\n"));
}

#[test]
fn no_file_outgrows_a_reader() {
    let mut files = all();
    files.extend(sources("tests"));
    let long: Vec<String> = files
        .iter()
        .filter(|(_, text)| text.lines().count() > LINES_MAX)
        .map(|(name, text)| format!("{name}: {} lines", text.lines().count()))
        .collect();
    assert!(long.is_empty(), "files past {LINES_MAX} lines:\n{}", long.join("\n"));
}
