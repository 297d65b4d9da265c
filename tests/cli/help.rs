//! The text of `--help`.

use crate::harness::Workdir;

/// The options below each heading.
fn headings(help: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in help.lines() {
        if let Some(heading) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            found.push((heading, Vec::new()));
        }
        let option = line.split_whitespace().find(|word| word.starts_with("--"));
        if let (Some(option), Some((_, options))) = (option, found.last_mut())
            && line.trim_start().starts_with('-')
        {
            options.push(option.trim_end_matches('.'));
        }
    }
    found
}

#[test]
fn only_options_of_the_cluster_stand_below_its_heading() {
    let work = Workdir::new();
    let cluster = ["--cluster", "--node-id", "--listen", "--peers", "--quorum", "--role"];
    for command in ["run", "retry", "replay"] {
        let help = work.spoonbill(&[command, "--help"]).stdout;
        let headings = headings(&help);
        let below = |name: &str| {
            let found = headings.iter().find(|(heading, _)| *heading == name);
            found.map(|(_, options)| options.clone()).unwrap_or_default()
        };
        let expected: &[&str] = if command == "replay" { &[] } else { &cluster };
        assert_eq!(below("Cluster"), expected, "{command}");
        for option in ["--output", "--report", "--set", "--data-dir", "--verbose", "--quiet"] {
            assert!(below("Options").contains(&option), "{command} {option}: {help}");
        }
    }
    assert!(work.spoonbill(&["run", "--help"]).stdout.contains("--complete"));
}

#[test]
fn fresh_and_complete_exclude_each_other() {
    let ending = Workdir::new().spoonbill(&["run", "defs", "--fresh", "--complete"]);
    assert_eq!(ending.code, 2, "{ending:?}");
}
