//! Helpers for the tests of this crate: they print problems as lines of text.

use crate::problem::{Problem, Severity};
use crate::{DefsOptions, from_str};

/// Valid sections, added where a test omits them.
const SECTIONS: [(&str, &str); 3] = [
    ("locatorGroups:", "locatorGroups: { g: { locators: [ { name: n, url: u } ] } }\n"),
    ("taskGroups:", "taskGroups: { g: { t: { dataDef: d } } }\n"),
    (
        "dataDefs:",
        "dataDefs: { d: { query: { block: b }, items: [ item: { name: i, value: v } ] } }\n",
    ),
];

/// The text without its first line break, with the missing sections appended.
pub(crate) fn whole(yaml: &str) -> String {
    let mut text = unindented(yaml).to_owned();
    for (key, section) in SECTIONS {
        if !text.lines().any(|line| line.starts_with(key)) {
            text.push_str(section);
        }
    }
    text
}

fn unindented(yaml: &str) -> &str {
    yaml.strip_prefix('\n').unwrap_or(yaml)
}

/// One line per problem: `line:column message [help]`.
pub(crate) fn rendered(problems: &[Problem]) -> String {
    let lines = problems.iter().map(|problem| {
        let place = match &problem.place {
            Some(place) => format!("{}:{}", place.line, place.column),
            None => "-".to_owned(),
        };
        let severity = match problem.severity {
            Severity::Warning => "warning: ",
            Severity::Error => "",
        };
        let help = match &problem.help {
            Some(help) => format!(" [{help}]"),
            None => String::new(),
        };
        format!("{place} {severity}{}{help}\n", problem.message)
    });
    lines.collect()
}

/// The problems of a text, without added sections.
pub(crate) fn problems_of(text: &str) -> String {
    match from_str("a.yml", text, &DefsOptions::default()) {
        Ok(loaded) => rendered(&loaded.warnings),
        Err(problems) => rendered(&problems.0),
    }
}

/// Compares the problems of a text with the missing sections added.
#[track_caller]
pub(crate) fn check(yaml: &str, expected: &str) {
    assert_eq!(problems_of(&whole(yaml)), unindented(expected));
}

/// Compares the problems of a text, without added sections.
#[track_caller]
pub(crate) fn check_raw(yaml: &str, expected: &str) {
    assert_eq!(problems_of(unindented(yaml)), unindented(expected));
}
