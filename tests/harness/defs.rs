//! Builds definitions with one group.

#![allow(dead_code)]

/// The group `g` with these locators (name, URL), one task `t` and its dataDef `d`.
pub fn job(locators: &[(&str, &str)], data_def: &str) -> String {
    job_with(locators, "", data_def)
}

/// Like [`job`], with more keys for the task (`steps: ...`).
pub fn job_with(locators: &[(&str, &str)], task: &str, data_def: &str) -> String {
    let locators: String = locators
        .iter()
        .map(|(name, url)| format!("      - {{ name: {name}, url: \"{url}\" }}\n"))
        .collect();
    let (task, data_def) = (indent(task, 6), indent(data_def, 4));
    format!(
        "locatorGroups:\n  g:\n    locators:\n{locators}\
         taskGroups:\n  g:\n    t:\n      dataDef: d\n{task}\
         dataDefs:\n  d:\n{data_def}"
    )
}

/// Replaces the common margin of all lines with `by` spaces. Blank lines are dropped.
pub fn indent(text: &str, by: usize) -> String {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let margin = lines().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    lines().map(|line| format!("{}{}\n", " ".repeat(by), &line[margin..])).collect()
}

/// A dataDef with one row: the text of the first heading.
pub const TITLE: &str = r#"
query: { block: body, selector: h1 }
items: [ item: { name: title, value: title } ]
"#;

/// A page that [`TITLE`] reads.
pub fn titled(title: &str) -> String {
    format!("<html><body><h1>{title}</h1></body></html>")
}
