//! `spoonbill init`: a starter project, or a definition proposed from samples.

mod project;
mod render;
mod starter;
mod verify;

use std::path::{Path, PathBuf};

use clap::Args;
use spoonbill_plugins::html::Document;
use spoonbill_plugins::loader::{FetchedPage, PageTarget, charset};
use spoonbill_plugins::propose::{
    MissingSample, ProposedColumn, ProposedDefinition, Sample, ValueType, propose,
};
use url::Url;

use crate::cli::init::project::{NewFile, WriteError};
use crate::cli::init::render::Origin;
use crate::cli::init::verify::Trial;
use crate::cli::{CommandFailure, CommandResult, RunCommand, SettingArgs, load, print_out};
use crate::error::counted;

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Directory to write to
    #[arg(default_value = "spoonbill-project")]
    dir: PathBuf,
    /// Propose a definition for this page, a URL or a saved file; no other page is loaded
    #[arg(long, value_name = "URL|FILE", requires = "samples")]
    url: Option<String>,
    /// Text seen on the page, or `column=text`; repeat it for each column
    #[arg(long = "sample", value_name = "TEXT", requires = "url", allow_hyphen_values = true)]
    samples: Vec<String>,
    #[command(flatten)]
    settings: SettingArgs,
}

impl RunCommand for InitArgs {
    fn run(&self) -> CommandResult {
        if self.dir.is_file() {
            let words = format!("`{}` is a file", self.dir.display());
            return Err(with_advice(&words, "name a directory: spoonbill init DIR"));
        }
        match &self.url {
            None => starter(&self.dir),
            Some(url) => propose_from(self, url),
        }
    }
}

fn with_advice(words: &str, advice: &str) -> CommandFailure {
    CommandFailure::new(2, format!("{words}\n  {advice}"))
}

fn starter(dir: &Path) -> CommandResult {
    let shown = typed(dir);
    project::write(dir, &starter::starter(&shown)).map_err(|error| not_written(&error))?;
    print_out(&format!(
        "wrote {shown}/loaves.yml and five pages it reads\n\n\
         what to type next:\n  spoonbill check {shown}\n  spoonbill run {shown}\n\n\
         the rows are then in output/latest/loaves.csv and output/latest/details.csv\n"
    ))
}

fn not_written(error: &WriteError) -> CommandFailure {
    match error {
        WriteError::Exists(_) => {
            with_advice(&error.to_string(), "name another directory: spoonbill init DIR")
        }
        WriteError::Io { .. } => CommandFailure::new(8, error),
    }
}

/// Loads the page, makes a proposal, tries it and writes it.
fn propose_from(args: &InitArgs, url: &str) -> CommandResult {
    if let Some(at) = args.samples.iter().position(|text| is_empty(text)) {
        return Err(CommandFailure::new(2, format!("sample {} is empty", at + 1)));
    }
    let config = args.settings.resolve(None)?;
    let group = group_name(url);
    let file = format!("{group}.yml");
    if args.dir.join(&file).exists() {
        return Err(not_written(&WriteError::Exists(vec![args.dir.join(&file)])));
    }
    let fetched = load::load(url, &config)
        .map_err(|message| CommandFailure::new(4, message + &with_scheme(url)))?;
    let html = charset::decode(&fetched.body, fetched.content_type.as_deref());
    let document = Document::parse(&html, config.parse.tree_limits())
        .map_err(|error| CommandFailure::new(4, error))?;
    let base = base(&document, &fetched);
    let samples: Vec<Sample> = args.samples.iter().map(|text| Sample::read(text)).collect();
    let proposal = propose(&document, &samples, base.as_ref())
        .map_err(|missing| CommandFailure::new(3, not_found(url, &missing)))?;
    let address = address(url);
    let origin = Origin { url: &address, group: &group };
    let trial = Trial { document: &document, base: &fetched.final_url };
    let (proposal, text) = tried(proposal, origin, trial).map_err(|error| {
        CommandFailure::new(1, format!("the proposal fails on its own page: {error}"))
    })?;
    project::write(&args.dir, &[NewFile::new(&file, text)]).map_err(|error| not_written(&error))?;
    print_out(&summary(&proposal, &args.dir, &file, &group))
}

/// Whether a sample is blank, or a name without a text.
fn is_empty(sample: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    };
    let rest = sample.split_once('=').filter(|(name, _)| is_name(name)).map(|(_, rest)| rest);
    rest.unwrap_or(sample).trim().is_empty()
}

/// The advice for an address without its scheme.
fn with_scheme(url: &str) -> String {
    let host = url.split('/').next().unwrap_or_default();
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = match host.split_once(':') {
        Some((name, port)) => !name.is_empty() && is_port(port),
        None => host.contains('.') && url.contains('/') && !host.starts_with('.'),
    };
    if is_host { format!("\n  for a page on the web, write http://{url}") } else { String::new() }
}

/// A path quoted for a shell.
fn typed(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = path.chars().all(|c| c.is_alphanumeric() || "/._-+:@%,".contains(c));
    if is_plain { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// A definition that gives the proposed rows. Types that would change a value are removed.
fn tried(
    mut proposal: ProposedDefinition,
    origin: Origin<'_>,
    trial: Trial<'_>,
) -> Result<(ProposedDefinition, String), String> {
    let text = render::definition(&proposal, origin);
    if verify::verify(&text, &proposal, trial).is_ok() {
        return Ok((proposal, text));
    }
    for column in proposal.columns.iter_mut().filter(|each| each.value_type != ValueType::Url) {
        column.value_type = ValueType::Text;
    }
    let text = render::definition(&proposal, origin);
    verify::verify(&text, &proposal, trial)?;
    Ok((proposal, text))
}

/// The base address for links of the page, if it is known.
fn base(document: &Document, fetched: &FetchedPage) -> Option<Url> {
    let page = Url::parse(&fetched.final_url).ok().filter(Url::has_host);
    let mut elements = document.all().filter(|node| document.is_element(*node));
    let told = elements
        .find(|node| document.name(*node).is_some_and(|name| &**name == "base"))
        .and_then(|node| document.attribute(node, "href"));
    match (told, page) {
        (Some(told), Some(page)) => page.join(told).ok(),
        (Some(told), None) => Url::parse(told).ok(),
        (None, page) => page,
    }
}

/// The page's name in the definition. A file has its full path, so that every directory works.
fn address(url: &str) -> String {
    match PageTarget::of(url) {
        Ok(PageTarget::Path(path)) => {
            std::path::absolute(&path).map_or(path, |path| path.display().to_string())
        }
        Ok(PageTarget::Http(_)) | Err(_) => url.to_owned(),
    }
}

/// A name for the group: that of the site or the file.
fn group_name(url: &str) -> String {
    let name = match PageTarget::of(url) {
        Ok(PageTarget::Http(url)) => {
            let host = url.host_str().unwrap_or_default().to_owned();
            let host = host.strip_prefix("www.").unwrap_or(&host);
            host.split('.').next().unwrap_or_default().to_owned()
        }
        Ok(PageTarget::Path(path)) => {
            Path::new(&path).file_stem().unwrap_or_default().to_string_lossy().into_owned()
        }
        Err(_) => String::new(),
    };
    let name: String =
        name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect::<String>();
    let name = name.trim_matches('_').to_lowercase();
    if name.starts_with(char::is_alphabetic) { name } else { "page".to_owned() }
}

/// The message for all samples that were not found.
fn not_found(url: &str, missing: &[MissingSample]) -> String {
    let messages = missing.iter().map(|each| {
        let nearest = each.nearest.as_ref().map_or_else(String::new, |nearest| {
            format!("  the closest text on the page: `{}`\n", shortened(nearest))
        });
        let text = shortened(&each.text);
        if each.is_there {
            return format!(
                "`{text}` is on {url}, but no selector was found that gives this sample and the \
                 other ones\n  take all samples from one item, or leave this one out\n"
            );
        }
        let is_named =
            each.text.split_once('=').is_some_and(|(name, _)| !name.contains(['/', '?']));
        let name = if is_named {
            "  a column's name before `=` begins with a letter and has letters, digits, `_`, `-`\n"
        } else {
            ""
        };
        format!("`{text}` is not on {url}\n{nearest}{name}")
    });
    format!(
        "{}  nothing was written; a page may look different without JavaScript: see its source",
        messages.collect::<Vec<_>>().join("error: ")
    )
}

fn summary(proposal: &ProposedDefinition, dir: &Path, file: &str, group: &str) -> String {
    let dir = typed(dir);
    let rows = counted(proposal.rows as u64, "row");
    let from = match (&proposal.block, &proposal.json_block) {
        (Some(block), _) => format!("block `{block}`"),
        (None, Some(block)) => format!("block `{}` of `{}`", block.path, block.selector),
        (None, None) => "the whole page".to_owned(),
    };
    let width = proposal.columns.iter().map(|column| column.name.chars().count()).max();
    let width = width.unwrap_or_default();
    let column = |column: &ProposedColumn| {
        let filled = format!("{} of {}", column.filled(), proposal.rows);
        format!("  {:width$}  {filled}: {}\n", column.name, first_values(column))
    };
    let columns: String = proposal.columns.iter().map(column).collect();
    let warnings = warnings(proposal);
    let links = if proposal.next_page.is_some() || proposal.details.is_some() {
        "the end of the file lists links to follow, as comments\n"
    } else {
        ""
    };
    format!(
        "wrote {dir}/{file}: {rows} on this page, {from}\n\n{columns}{warnings}\n\
         what to type next:\n  spoonbill check {dir}\n  spoonbill run {dir}\n\n\
         the rows are then in output/latest/{group}.csv\n{links}"
    )
}

/// Notes on columns that few rows have, and on elements that were left out.
fn warnings(proposal: &ProposedDefinition) -> String {
    let is_rare = |column: &&ProposedColumn| 3 * column.filled() < proposal.rows;
    let rare = proposal.columns.iter().filter(is_rare).map(|column| {
        format!(
            "note: {} is found in {} of {} rows: check it, or add a second sample, `{}=...`\n",
            column.name,
            column.filled(),
            proposal.rows,
            column.name
        )
    });
    let adverts = (proposal.adverts > 0).then(|| {
        let left = counted(proposal.adverts as u64, "element");
        format!("note: {left} marked as advertisement left out\n")
    });
    let told: String = rare.chain(adverts).collect();
    if told.is_empty() { told } else { format!("\n{told}") }
}

fn first_values(column: &ProposedColumn) -> String {
    let values: Vec<String> =
        column.values.iter().flatten().take(3).map(|v| shortened(v)).collect();
    let more = if column.filled() > 3 { ", ..." } else { "" };
    format!("{}{more}", values.join(", "))
}

fn shortened(text: &str) -> String {
    const LENGTH_MAX: usize = 40;
    if text.chars().count() <= LENGTH_MAX {
        return text.to_owned();
    }
    let start: String = text.chars().take(LENGTH_MAX - 3).collect();
    format!("{start}...")
}
