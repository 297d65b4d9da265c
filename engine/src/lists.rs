//! Where further locators come from: ranges in addresses, and files of addresses.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;

use spoonbill_defs::{Defs, Problem, Sources, Text, UrlSource};
use spoonbill_plugins::follow::{Listed, UrlList, UrlPattern};

use crate::config::Config;

/// A list under way.
type List = UrlList<BufReader<Box<dyn Read + Send>>>;

/// Looks every source through before anything is seeded: gives the hashes of files, which are part
/// of a run, and everything that is wrong.
pub(crate) fn examine(
    defs: &Defs,
    config: &Config,
    sources: &Sources,
) -> (BTreeMap<String, [u8; 32]>, Vec<Problem>) {
    let (mut hashes, mut problems) = (BTreeMap::new(), Vec::new());
    let (mut total, max) = (0_u64, config.links.urls_max);
    for source in defs.locator_groups.iter().flat_map(|group| &group.sources) {
        let counted = match source {
            UrlSource::Pattern(text) => UrlPattern::parse(&text.text)
                .map(|pattern| pattern.count())
                .map_err(|message| Problem::error(sources, text.at, message)),
            UrlSource::File { file, column, name } => {
                look_through(file, column.as_ref(), name.as_ref(), config, max).map_or_else(
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
                    let words = format!("these are more than {max} addresses in all");
                    let help = "ask for fewer, or raise the setting `urls.max`".to_owned();
                    let problem = Problem::error(sources, at, words);
                    problems.push(Problem { help: Some(help), ..problem });
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    (hashes, problems)
}

/// Hash and length of a file of addresses, or what is wrong with which of its keys.
fn look_through<'t>(
    file: &'t Text,
    column: Option<&'t Text>,
    name: Option<&'t Text>,
    config: &Config,
    max: u64,
) -> Result<([u8; 32], u64), (&'t Text, String)> {
    let of_file = |message: String| (file, format!("file `{}`: {message}", file.text));
    let path = find(&file.text, config).map_err(|message| (file, message))?;
    let open = || File::open(&path).map_err(|error| of_file(error.to_string()));
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(open()?).map_err(|error| of_file(error.to_string()))?;
    let hash = *hasher.finalize().as_bytes();
    let titles = [column, name].map(|title| title.map(Text::as_str));
    // Each title by itself, so that the problem stands at the wrong one.
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
        return Err(of_file("it holds no address".to_owned()));
    }
    Ok((hash, count))
}

/// Where a file of addresses lies: as it is named, or below the resources.
fn find(name: &str, config: &Config) -> Result<PathBuf, String> {
    let inner = name.trim_start_matches('/');
    let resources = config.fetch.resources_dir.iter().map(|resources| resources.join(inner));
    let places: Vec<PathBuf> = std::iter::once(PathBuf::from(name)).chain(resources).collect();
    places.iter().find(|place| place.is_file()).cloned().ok_or_else(|| {
        let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        format!("there is no file `{name}`; looked for `{}`", places.join("`, `"))
    })
}

/// The locators of a source, one after the other.
pub(crate) fn locators(
    source: &UrlSource,
    config: &Config,
) -> Result<Box<dyn Iterator<Item = Result<Listed, String>> + Send>, String> {
    match source {
        UrlSource::Pattern(text) => {
            let pattern = UrlPattern::parse(&text.text)?;
            let urls = (0..pattern.count()).map(move |number| pattern.get(number));
            Ok(Box::new(urls.map(|url| Ok(Listed { name: url.clone(), url }))))
        }
        UrlSource::File { file, column, name } => {
            let fail = |error: String| format!("file `{}`: {error}", file.text);
            let opened = File::open(find(&file.text, config)?);
            let reader: Box<dyn Read + Send> =
                Box::new(opened.map_err(|error| fail(error.to_string()))?);
            let (column, name) = (column.as_ref(), name.as_ref());
            let list: List = UrlList::open(
                BufReader::new(reader),
                column.map(Text::as_str),
                name.map(Text::as_str),
            )
            .map_err(fail)?;
            Ok(Box::new(list))
        }
    }
}
