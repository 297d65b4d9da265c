//! Collects the values of all sources in one list, lowest precedence first.
//!
//! Only this file reads the environment of the process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use spoonbill_defs::{Problem, Sources, Span};

use super::keys::Key;
use super::lookup;
use super::{Source, file};

const VARIABLE_PREFIX: &str = "SPOONBILL_";
const FILE_NAME: &str = "spoonbill.yml";

/// The sources of settings, as the command line names them.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Flags of the command line, as settings (key, value).
    pub flags: Vec<(String, String)>,
    /// The `--set` options, each `KEY=VALUE`; a later one wins.
    pub sets: Vec<String>,
    /// Environment variables. Only those with the prefix `SPOONBILL_` count.
    pub env: Vec<(OsString, OsString)>,
    /// The file of `--config`, which must exist.
    pub config_file: Option<PathBuf>,
    /// The directory of the definitions. Without `config_file`, a `spoonbill.yml` beside it is read.
    pub defs_dir: Option<PathBuf>,
}

/// The value of an environment variable that definitions name.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Inputs {
    /// The same inputs with the environment of this process.
    #[must_use]
    pub fn with_process_env(mut self) -> Self {
        self.env = std::env::vars_os().collect();
        self
    }

    /// The settings file, if there is one.
    pub fn settings_file(&self) -> Option<PathBuf> {
        if self.config_file.is_some() {
            return self.config_file.clone();
        }
        let file = parent(self.defs_dir.as_deref()?)?.join(FILE_NAME);
        file.is_file().then_some(file)
    }
}

/// The parent of a directory, which may be written as `.` or `..`.
fn parent(dir: &Path) -> Option<PathBuf> {
    match dir.file_name() {
        Some(_) => dir.parent().map(Path::to_path_buf),
        None => dir.canonicalize().ok()?.parent().map(Path::to_path_buf),
    }
}

/// One unchecked value of a known setting.
#[derive(Debug, Clone)]
pub(super) struct Assignment {
    pub(super) key: Key,
    /// The full name, without prefix.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) source: Source,
    /// The place in the settings file.
    pub(super) at: Span,
}

/// The values of all sources, lowest precedence first, and the problems found.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) assignments: Vec<Assignment>,
    pub(super) problems: Vec<Problem>,
    pub(super) sources: Sources,
}

impl Gathered {
    pub(super) fn from_inputs(inputs: &Inputs) -> Self {
        let mut gathered = Self::default();
        if let Some(dir) = &inputs.defs_dir {
            // The lowest precedence: pages and scripts lie in the folder of the definitions.
            gathered.add("resources.dir", &dir.display().to_string(), Source::Default);
        }
        if let Some(path) = inputs.settings_file() {
            gathered.add_file(&path);
        }
        gathered.add_env(&inputs.env);
        for set in &inputs.sets {
            match set.split_once('=') {
                Some((name, text)) => gathered.add(name.trim(), text, Source::Set),
                None => gathered.complain(
                    format!("`--set {set}` gives no value"),
                    Some("write `--set KEY=VALUE`, such as `--set loader.fetch.delay=2s`".into()),
                ),
            }
        }
        for (name, text) in &inputs.flags {
            gathered.add(name, text, Source::Flag);
        }
        gathered
    }

    /// Adds a value by name, from a source without places.
    pub(super) fn add(&mut self, name: &str, text: &str, source: Source) {
        let bare = lookup::without_prefix(name);
        match lookup::find(bare) {
            Some(key) => self.assignments.push(Assignment {
                key,
                name: bare.to_owned(),
                text: text.to_owned(),
                source,
                at: Span::default(),
            }),
            None => {
                self.complain(format!("{source}: unknown setting `{name}`"), Some(advice(bare)));
            }
        }
    }

    fn add_env(&mut self, env: &[(OsString, OsString)]) {
        let mut variables: Vec<(&str, &OsString)> = env
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?, value)))
            .filter(|(name, _)| name.starts_with(VARIABLE_PREFIX))
            .collect();
        // Sorted, because two spellings may name one setting and the system gives no order.
        variables.sort_unstable();
        for (variable, value) in variables {
            let word = &variable[VARIABLE_PREFIX.len()..];
            match (lookup::find_variable(word), value.to_str()) {
                (Some(name), Some(text)) => {
                    self.add(&name, text, Source::Env(variable.to_owned()));
                }
                (Some(_), None) => {
                    self.complain(format!("environment variable `{variable}` is not UTF-8"), None);
                }
                (None, _) => self.judge_variable(variable, word),
            }
        }
    }

    /// An unknown name with `__` is an error, because only settings have one. Other unknown names may
    /// belong to a script around the program: they give a warning if they resemble a setting.
    fn judge_variable(&mut self, variable: &str, word: &str) {
        let nearest = lookup::nearest(&word.replace("__", "."));
        let meant = nearest
            .map(|name| format!("did you mean `{VARIABLE_PREFIX}{}`?", lookup::variable(name)));
        let message = format!("environment variable `{variable}` names no setting");
        if word.contains("__") {
            self.complain(message, meant);
        } else if let Some(help) = meant {
            let warning = Problem::warning(&self.sources, Span::default(), message);
            self.problems.push(warning.with_help(help));
        }
    }

    fn add_file(&mut self, path: &Path) {
        let (leaves, problems) = file::read(path, &mut self.sources);
        self.problems.extend(problems);
        let mut first_lines: BTreeMap<String, u32> = BTreeMap::new();
        for leaf in leaves {
            let name = lookup::without_prefix(&leaf.name).to_owned();
            let Some(key) = lookup::find(&name) else {
                // A heading whose settings are all commented out is allowed.
                if leaf.text.is_some() || !lookup::is_group(&name) {
                    let message = format!("unknown setting `{}`", leaf.name);
                    self.complain_of(&leaf, message, advice(&name));
                }
                continue;
            };
            let line = leaf.name_at.line;
            if let Some(first) = first_lines.insert(name.clone(), line) {
                let help = format!("line {first} has it too");
                self.complain_of(&leaf, format!("setting `{name}` is given twice"), help);
            }
            let Some(text) = leaf.text else {
                let help = "write '' for an empty text, or leave the line out".to_owned();
                self.complain_of(&leaf, format!("setting `{name}` has no value"), help);
                continue;
            };
            self.assignments.push(Assignment {
                key,
                name,
                text,
                source: Source::File(path.to_path_buf(), line),
                at: leaf.text_at,
            });
        }
    }

    fn complain_of(&mut self, leaf: &file::Leaf, message: String, help: String) {
        let mut problem = Problem::error(&self.sources, leaf.name_at, message).with_help(help);
        hide_secret(&mut problem, &leaf.name, leaf.text_at);
        self.problems.push(problem);
    }

    fn complain(&mut self, message: String, help: Option<String>) {
        let mut problem = Problem::error(&self.sources, Span::default(), message);
        problem.help = help;
        self.problems.push(problem);
    }
}

/// Hides the secret, and the rest of its line, in a problem's source line.
pub(super) fn hide_secret(problem: &mut Problem, name: &str, text_at: Span) {
    let place = problem.place.as_mut().filter(|_| lookup::is_secret(name));
    if let Some(place) = place.filter(|place| place.line == text_at.line) {
        let before = text_at.column.saturating_sub(1) as usize;
        let head: String = place.source.chars().take(before).collect();
        place.source = format!("{head}***");
    }
}

fn advice(name: &str) -> String {
    lookup::nearest(name).map_or_else(
        || "`spoonbill config` lists every setting".to_owned(),
        |known| format!("did you mean `{known}`?"),
    )
}
