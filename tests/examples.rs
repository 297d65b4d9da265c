//! Checks and runs every example with the real binary and compares its rows with `expected.csv`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The working directory: examples name their pages relative to it.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
fn every_example_gives_the_rows_it_promises() {
    let examples = examples().unwrap();
    assert!(!examples.is_empty(), "no folder of examples/ has an expected.csv");
    let mut wrong = Vec::new();
    for example in &examples {
        if let Some(words) = trouble_with(example).unwrap() {
            wrong.push(format!("examples/{example}: {words}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The folders of examples that have an `expected.csv`.
fn examples() -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(Path::new(ROOT).join("examples"))? {
        let entry = entry?;
        if entry.path().join("expected.csv").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The problem of an example, or `None` if it gives the expected rows.
fn trouble_with(example: &str) -> io::Result<Option<String>> {
    let defs = format!("examples/{example}");
    let check = spoonbill(&["check", &defs])?;
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    if !check.status.success() || said.contains("warning") {
        return Ok(Some(format!("`check` ended with {}\n{said}", check.status)));
    }

    let dir = tempfile::tempdir()?;
    let (output, data) = (dir.path().join("output"), dir.path().join("data"));
    let (output_text, data_text) = (output.display().to_string(), data.display().to_string());
    let run = spoonbill(&["run", &defs, "--output", &output_text, "--data-dir", &data_text])?;
    if !run.status.success() {
        let said = String::from_utf8_lossy(&run.stderr);
        return Ok(Some(format!("`run` ended with {}\n{said}", run.status)));
    }

    let expected = fs::read_to_string(Path::new(ROOT).join(&defs).join("expected.csv"))?;
    let mut found = String::new();
    for file in files_below(&output.join("latest"))? {
        found.push_str(&fs::read_to_string(file)?);
    }
    Ok(difference(&sorted(&expected), &sorted(&found)))
}

fn spoonbill(arguments: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_spoonbill")).args(arguments).current_dir(ROOT).output()
}

/// All files below a folder, since an example may write several.
fn files_below(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// The lines of a text, sorted, because the order of rows is not guaranteed.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// The lines that only one of two sorted texts has: `-` is missing, `+` is unexpected.
fn difference(expected: &[&str], found: &[&str]) -> Option<String> {
    let (mut expected, mut found) = (expected.iter().peekable(), found.iter().peekable());
    let mut lines = Vec::new();
    loop {
        match (expected.peek(), found.peek()) {
            (Some(wanted), Some(got)) if wanted == got => {
                expected.next();
                found.next();
            }
            (Some(wanted), got) if got.is_none_or(|got| **wanted < **got) => {
                lines.push(format!("- {wanted}"));
                expected.next();
            }
            (_, Some(got)) => {
                lines.push(format!("+ {got}"));
                found.next();
            }
            _ => break,
        }
    }
    if lines.is_empty() { None } else { Some(format!("rows differ\n{}", lines.join("\n"))) }
}
