//! Turns the output of a process into text for a snapshot. Whatever differs from run to run is replaced.

use super::{ProcessOutput, Workdir};

impl ProcessOutput {
    /// Exit code, stdout and stderr in one text.
    pub fn shown(&self, work: &Workdir) -> String {
        let part = |name: &str, text: &str| {
            let text = filtered(text, work);
            if text.is_empty() { String::new() } else { format!("--- {name}\n{text}") }
        };
        format!(
            "exit {}\n{}{}",
            self.code,
            part("stdout", &self.stdout),
            part("stderr", &self.stderr)
        )
    }
}

/// Replaces paths, ports, times and memory sizes of this run with placeholders.
pub fn filtered(text: &str, work: &Workdir) -> String {
    let text = text.replace(work.root().to_str().unwrap(), "[dir]");
    let text = after(&text, "127.0.0.1:", "[port]", |letter| letter.is_ascii_digit());
    let time = |letter: char| letter != ',' && letter != '\n';
    let text = after(&text, "finished after ", "[time]", time);
    after(&text, "    memory  ", "[memory]", |letter| letter.is_ascii_digit())
}

/// Replaces the characters that follow a mark with a placeholder.
fn after(text: &str, mark: &str, word: &str, replaced: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(&replaced);
        let put = if rest.len() == part.len() { "" } else { word };
        made.extend([mark, put, rest]);
    }
    made
}
