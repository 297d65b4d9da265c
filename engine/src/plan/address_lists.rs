//! Start pages beyond those written one by one: ranges in addresses, and files of addresses.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use spoonbill_defs::{Defs, Problem, Sources, Text, UrlSource};
use spoonbill_plugins::follow::{ListedAddress, UrlList, UrlPattern};

use crate::config::Config;
use crate::plan::files::candidates;

/// Checks every source before anything is seeded. Returns the hashes of the files, which are part of
/// the run's identity, and all problems.
pub(crate) fn examine(
    defs: &Defs,
    dir: &Path,
    config: &Config,
    sources: &Sources,
) -> (BTreeMap<String, [u8; 32]>, Vec<Problem>) {
    let (mut hashes, mut problems) = (BTreeMap::new(), Vec::new());
    let (mut total, max) = (0_u64, config.links.urls_max);
    let find = |name: &str| find(&candidates(name, dir, config), name);
    for source in defs.locator_groups.iter().flat_map(|group| &group.sources) {
        let counted = match source {
            UrlSource::Pattern(text) => UrlPattern::parse(&text.text)
                .map(|pattern| pattern.count())
                .map_err(|message| Problem::error(sources, text.at, message)),
            UrlSource::File { file, column, name } => {
                check_file(file, column.as_ref(), name.as_ref(), &find, max).map_or_else(
                    |(at, message)| Err(Problem::error(sources, at.at, message)),
                    |(hash, count)| {
                        hashes.insert(file.text.clone(), hash);
                        Ok(count)
                    },
                )
            }
        };
        let at = match source {
            UrlSource::Pattern(text) | UrlSource::File { file: text, .. } => text.at,
        };
        match counted {
            Ok(count) => {
                let within = total <= max;
                total = total.saturating_add(count);
                if within && total > max {
                    let words = format!("the definitions have more than {max} addresses");
                    let help = "name fewer, or raise the setting `urls.max`".to_owned();
                    let problem = Problem::error(sources, at, words);
                    problems.push(Problem { help: Some(help), ..problem });
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    (hashes, problems)
}

/// Hash and length of a file of addresses, or the key that is wrong and why.
fn check_file<'t>(
    file: &'t Text,
    column: Option<&'t Text>,
    name: Option<&'t Text>,
    find: &dyn Fn(&str) -> Result<PathBuf, String>,
    max: u64,
) -> Result<([u8; 32], u64), (&'t Text, String)> {
    let of_file = |message: String| (file, format!("file `{}`: {message}", file.text));
    let path = find(&file.text).map_err(|message| (file, message))?;
    let open = || File::open(&path).map_err(|error| of_file(error.to_string()));
    let hash = hash_of(&path).map_err(|error| of_file(error.to_string()))?;
    let titles = [column, name].map(|title| title.map(Text::as_str));
    // The column is tried first and alone, so that the problem points at the title that is wrong.
    if let Some(column) = column {
        UrlList::open(BufReader::new(open()?), titles[0], None)
            .map_err(|message| (column, format!("file `{}`: {message}", file.text)))?;
    }
    let list = UrlList::open(BufReader::new(open()?), titles[0], titles[1])
        .map_err(|message| (name.unwrap_or(file), format!("file `{}`: {message}", file.text)))?;
    let mut count = 0_u64;
    for listed in list {
        listed.map_err(of_file)?;
        count += 1;
        if count > max {
            break;
        }
    }
    if count == 0 {
        return Err(of_file("it has no addresses".to_owned()));
    }
    Ok((hash, count))
}

fn hash_of(path: &Path) -> std::io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(*hasher.finalize().as_bytes())
}

/// The first of the paths that is a file.
fn find(paths: &[PathBuf], name: &str) -> Result<PathBuf, String> {
    paths.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let mut looked: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        looked.dedup();
        format!("there is no file `{name}`; tried `{}`", looked.join("`, `"))
    })
}

/// A run's files of addresses on this machine.
#[derive(Debug)]
pub(crate) struct ListFiles {
    hashes: BTreeMap<String, [u8; 32]>,
    paths: BTreeMap<String, Vec<PathBuf>>,
}

/// A stream of addresses, read on demand.
pub(crate) type Locators = Box<dyn Iterator<Item = Result<ListedAddress, String>> + Send>;

impl ListFiles {
    /// Files that must have the hashes with which the run was opened.
    pub(crate) fn new(hashes: &BTreeMap<String, [u8; 32]>, dir: &Path, config: &Config) -> Self {
        let paths = hashes.keys().map(|name| (name.clone(), candidates(name, dir, config)));
        Self { hashes: hashes.clone(), paths: paths.collect() }
    }

    /// The locators of a source, in order.
    pub(crate) fn locators(&self, source: &UrlSource) -> Result<Locators, String> {
        match source {
            UrlSource::Pattern(text) => {
                let pattern = UrlPattern::parse(&text.text)?;
                let urls = (0..pattern.count()).map(move |number| pattern.get(number));
                Ok(Box::new(urls.map(|url| Ok(ListedAddress { name: url.clone(), url }))))
            }
            UrlSource::File { file, column, name } => {
                let fail = |error: String| format!("file `{}`: {error}", file.text);
                let list = UrlList::open(
                    self.open(&file.text).map_err(fail)?,
                    column.as_ref().map(Text::as_str),
                    name.as_ref().map(Text::as_str),
                );
                Ok(Box::new(list.map_err(fail)?))
            }
        }
    }

    fn open(&self, name: &str) -> Result<BufReader<File>, String> {
        let path = find(self.paths.get(name).map_or(&[], Vec::as_slice), name)?;
        let hash = hash_of(&path).map_err(|error| error.to_string())?;
        if self.hashes.get(name) != Some(&hash) {
            return Err(String::from("it has changed since the run was opened"));
        }
        File::open(&path).map(BufReader::new).map_err(|error| error.to_string())
    }
}
