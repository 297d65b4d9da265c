//! An ending as text for a snapshot: what changes from run to run is replaced.

use super::{Ending, Workdir};

impl Ending {
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

/// Text without the paths, ports, times and memory of this run.
pub fn filtered(text: &str, work: &Workdir) -> String {
    let text = text.replace(work.root().to_str().unwrap(), "[dir]");
    let text = after(&text, "127.0.0.1:", "[port]", |letter| letter.is_ascii_digit());
    let time = |letter: char| letter != ',' && letter != '\n';
    let text = after(&text, "finished after ", "[time]", time);
    after(&text, "    memory  ", "[memory]", |letter| letter.is_ascii_digit())
}

/// Puts a word in the place of the letters that follow a mark.
fn after(text: &str, mark: &str, word: &str, goes: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(&goes);
        let put = if rest.len() == part.len() { "" } else { word };
        made.extend([mark, put, rest]);
    }
    made
}
