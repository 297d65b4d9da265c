//! Problems on stderr: place, source line, caret, advice.

use std::io::IsTerminal;

use spoonbill_defs::{Problem, Severity};

/// Whether the number of problems follows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProblemsShown {
    /// Only the problems.
    Only,
    /// The problems and their number.
    WithCount,
}

/// Whether stderr shows colour.
pub(super) fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
}

/// Prints problems to stderr.
pub(super) fn print(problems: &[Problem], shown: ProblemsShown) {
    let mut text: String = problems.iter().map(|problem| render(problem, colour())).collect();
    if shown == ProblemsShown::WithCount {
        let count = |severity| problems.iter().filter(|found| found.severity == severity).count();
        let words = [(count(Severity::Error), "error"), (count(Severity::Warning), "warning")];
        let words: Vec<String> = words
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}{}", if *count == 1 { "" } else { "s" }))
            .collect();
        if !words.is_empty() {
            text.push_str(&words.join(", "));
            text.push('\n');
        }
    }
    super::print_err(&text);
}

/// One problem as text.
pub(super) fn render(problem: &Problem, colour: bool) -> String {
    let (word, paint) = match problem.severity {
        Severity::Error => ("error", "\x1b[1;31m"),
        Severity::Warning => ("warning", "\x1b[1;33m"),
    };
    let (paint, plain) = if colour { (paint, "\x1b[0m") } else { ("", "") };
    let mut lines = vec![format!("{paint}{word}{plain}: {}", problem.message)];
    if let Some(place) = &problem.place {
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        let file = place.file.display();
        lines.push(format!("{margin}--> {file}:{}:{}", place.line, place.column));
        let (source, column) = window(&place.source, place.column as usize);
        lines.push(format!("{margin} |"));
        lines.push(format!("{number} | {source}"));
        // Tabs stay tabs, so that the caret is below its column.
        let before = source.chars().take(column.saturating_sub(1));
        let pad: String = before.map(|letter| if letter == '\t' { '\t' } else { ' ' }).collect();
        let room = source.chars().count().saturating_sub(column - 1).max(1);
        let carets = "^".repeat((place.width as usize).min(room).min(100));
        let help = problem.help.as_deref().unwrap_or_default();
        let caret_line = format!("{margin} | {pad}{paint}{carets}{plain} {help}");
        lines.push(caret_line.trim_end().to_owned());
    } else if let Some(help) = &problem.help {
        lines.push(format!("  {help}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The part of a long line around a column, and the column within it.
fn window(line: &str, column: usize) -> (String, usize) {
    const WIDTH: usize = 160;
    let from = if column > WIDTH { column - WIDTH / 2 } else { 0 };
    let part: String = line.chars().skip(from).take(WIDTH + 40).collect();
    if from == 0 { (part, column.max(1)) } else { (format!("...{part}"), column - from + 3) }
}
