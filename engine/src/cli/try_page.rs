//! `spoonbill try`: the rows that a run would take from one page, and where they come from.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value as Json, json};
use spoonbill_defs::Defs;
use spoonbill_plugins::data::{Data, Row};
use spoonbill_plugins::encoder::{Encoder as _, JsonLines, PageTags};
use spoonbill_plugins::page::Page;
use spoonbill_plugins::records::{CellExplanation, PageExplanation};

use super::load::load;
use super::{
    CommandFailure, CommandResult, LogArgs, RunCommand, SettingArgs, print_err, print_out,
};
use super::{secrets, table};
use crate::error::counted;
use crate::ledger::{Grant, JobId, Tally, Token};
use crate::plan::identity;
use crate::plan::load::Definitions;
use crate::steps::{Delivery, PageWorker, Preview, Worker};

#[derive(Debug, Args)]
pub(super) struct TryArgs {
    /// File or URL of the page
    source: String,
    /// Directory of definition files
    #[arg(long, value_name = "DEFS_DIR")]
    defs: PathBuf,
    /// Group whose tasks work on the page; needed if several could
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Explain for each field where its value came from, or why it has none
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    settings: SettingArgs,
    #[command(flatten)]
    logging: LogArgs,
}

impl RunCommand for TryArgs {
    fn run(&self) -> CommandResult {
        self.logging.start();
        let config = self.settings.resolve(Some(&self.defs))?;
        let plan = Definitions::load(&self.defs, &config)?.plan;
        secrets::keep(&plan.published.secrets);
        let group =
            group(self, &plan.published.defs).map_err(|error| CommandFailure::new(2, error))?;
        let fetched = load(&self.source, &config).map_err(|error| CommandFailure::new(4, error))?;
        let web = fetched.status > 0;
        let page = Page {
            name: self.source.as_str().into(),
            group: group.as_str().into(),
            url: self.source.as_str().into(),
            base: if web { fetched.final_url.as_str().into() } else { self.source.as_str().into() },
            from_date: plan.date.0.clone(),
            body: fetched.body,
            content_type: fetched.content_type,
        };
        let page_worker = PageWorker::of(plan);
        let root = identity::key(&[&group, &self.source]);
        let grant = Grant {
            id: JobId(1),
            token: Token(1),
            job: identity::new_job(root, &self.source, &group, &self.source, 0),
            tasks: Vec::new(),
            attempts: 0,
            at: None,
            redirects: 0,
            alone: false,
        };
        let delivery = Delivery {
            grant,
            page,
            parsed: BTreeMap::new(),
            keep_data: false,
            tally: Tally::default(),
        };
        let previews = page_worker.preview(&mut Worker::default(), &delivery, self.explain);
        show(&previews, self)
    }
}

/// The named group, or else the only one that fits the page.
fn group(args: &TryArgs, defs: &Defs) -> Result<String, String> {
    let names = || defs.task_groups.iter().map(|group| group.name.as_str());
    let listed = || names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = &args.group {
        if names().any(|name| name == wanted) {
            return Ok(wanted.clone());
        }
        let help = spoonbill_defs::suggest(wanted, names()).map_or_else(
            || format!("the groups are {}", listed()),
            |name| format!("did you mean `{name}`?"),
        );
        return Err(format!("there is no group `{wanted}`; {help}"));
    }
    let seeded = defs.locator_groups.iter().find(|group| {
        group.locators.iter().any(|locator| is_same(&locator.url.text, &args.source))
    });
    if let Some(group) = seeded {
        return Ok(group.name.text.clone());
    }
    let gives_rows = |name: &str| {
        let tasks = defs.task_group(name).map(|group| group.tasks.as_slice()).unwrap_or_default();
        tasks.iter().any(|task| {
            let def = defs.data_def(&task.data_def.text);
            def.is_some_and(|def| def.record.as_ref().is_none_or(|it| !it.fields.is_empty()))
        })
    };
    let candidates: Vec<&str> = names().filter(|name| gives_rows(name)).collect();
    match candidates.as_slice() {
        [only] => Ok((*only).to_owned()),
        _ => Err(format!("name the group of the page with `--group`: {}", listed())),
    }
}

/// Whether a locator is the tried page: the same address, or the same file by a longer path.
fn is_same(locator: &str, source: &str) -> bool {
    locator == source || !locator.contains("://") && std::path::Path::new(source).ends_with(locator)
}

fn show(previews: &[Preview], args: &TryArgs) -> CommandResult {
    let terminal = std::io::stdout().is_terminal();
    let mut out = String::new();
    let mut code = 0;
    for preview in previews {
        match &preview.data {
            Err(reason) => {
                print_err(&format!("error: task `{}`: {reason}\n", preview.task));
                code = 4;
            }
            Ok(data) => {
                let none = data.rows.is_empty() && !preview.types.is_empty();
                if previews.len() > 1 || terminal || none {
                    let rows = counted(data.rows.len() as u64, "row");
                    print_err(&format!("task `{}`: {rows}\n", preview.task));
                    for words in preview.story.iter().filter_map(no_block) {
                        print_err(&format!("{words}\n"));
                    }
                }
                out.push_str(&if terminal { as_table(data) } else { lines(data, preview) });
                if let (Some(story), true) = (&preview.story, terminal) {
                    out.push_str(&explanation_text(story));
                }
            }
        }
        for words in preview.remarks() {
            print_err(&format!("{words}\n"));
        }
    }
    print_out(&secrets::hide(&out))?;
    if code == 0 && args.explain && previews.iter().all(|preview| preview.story.is_none()) {
        print_err("note: only records (`fields`) can be explained\n");
    }
    Ok(code)
}

/// Name and value of every column of a row.
fn columns(row: &Row, named: bool) -> Vec<(&str, Option<&str>)> {
    let axes = row.axes.iter().map(|axis| (&*axis.item_name, axis.value.as_deref()));
    if named {
        return axes.collect();
    }
    let about = [("locator", Some(&*row.name)), ("group", Some(&*row.group))];
    about.into_iter().chain(axes).collect()
}

fn as_table(data: &Data) -> String {
    let Some(first) = data.rows.first() else {
        return String::new();
    };
    // Items may have different names in one column. The first row gives the header.
    let header = columns(first, data.named).into_iter().map(|(name, _)| name.to_owned());
    let rows = data.rows.iter().map(|row| {
        let cells = columns(row, data.named).into_iter();
        cells.map(|(_, value)| value.unwrap_or_default().to_owned()).collect()
    });
    table::table(&header.collect::<Vec<_>>(), &rows.collect::<Vec<_>>())
}

/// Rows as a run writes them to a file of JSON lines. With explanations, dropped rows are included.
fn lines(data: &Data, preview: &Preview) -> String {
    let mut encoder = JsonLines::default();
    encoder.set_types(&preview.types);
    let mut bytes = Vec::new();
    encoder.encode(data, PageTags { page: 1 }, &mut bytes);
    let rows = String::from_utf8_lossy(&bytes).into_owned();
    let Some(story) = &preview.story else {
        return rows;
    };
    let mut objects = rows.lines();
    let told = story.rows.iter().map(|row| {
        let dropped = row.dropped_for.and_then(|field| row.cells.get(field));
        let object = if dropped.is_some() { "null" } else { objects.next().unwrap_or("null") };
        let fields: Vec<Json> = row.cells.iter().map(cell_story).collect();
        let dropped = dropped.map(|cell| format!("`{}` is required", cell.field));
        // The row is inserted as encoded, so that numbers keep their digits.
        format!(
            "{{\"row\":{object},\"block\":{},\"dropped\":{},\"fields\":{}}}\n",
            json!(row.node),
            json!(dropped),
            json!(fields)
        )
    });
    told.collect()
}

fn cell_story(cell: &CellExplanation) -> Json {
    json!({
        "field": cell.field,
        "value": cell.value,
        "query": cell.query,
        "tried": cell.tried,
        "matches": cell.matches,
        "node": cell.node,
        "why": cell.why.as_ref().map(ToString::to_string),
    })
}

/// The message for a block that matches nothing.
fn no_block(story: &PageExplanation) -> Option<String> {
    let block = story.block.as_ref().filter(|_| story.rows.is_empty())?;
    Some(format!("block `{block}` matches nothing on this page"))
}

/// The explanation as text.
fn explanation_text(story: &PageExplanation) -> String {
    let mut lines = Vec::new();
    if let Some(block) = &story.block {
        lines.push(format!("\nblock `{block}`: {}", matches(story.rows.len())));
    }
    for (number, row) in (1..).zip(&story.rows) {
        let place = row.node.as_ref().map(|node| format!(" at {node}")).unwrap_or_default();
        let dropped = match row.dropped_for.and_then(|field| row.cells.get(field)) {
            Some(cell) => format!(", dropped: `{}` is required", cell.field),
            None => String::new(),
        };
        lines.push(format!("\nrow {number}{place}{dropped}"));
        for cell in &row.cells {
            let value = cell.value.as_deref().unwrap_or("(empty)");
            lines.push(format!("  {} = {value}", cell.field));
            let query =
                cell.query.as_ref().map(|query| format!("`{query}`, {}", matches(cell.matches)));
            let tried =
                (!cell.tried.is_empty()).then(|| format!("tried `{}`", cell.tried.join("`, `")));
            let node = cell.node.as_ref().map(|node| format!("at {node}"));
            let why = cell.why.as_ref().map(ToString::to_string);
            let default = cell.is_default.then(|| "the default is used".to_owned());
            let parts: Vec<String> =
                [query, tried, node, why, default].into_iter().flatten().collect();
            if !parts.is_empty() {
                lines.push(format!("      {}", parts.join("; ")));
            }
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

fn matches(count: usize) -> String {
    format!("{count} match{}", if count == 1 { "" } else { "es" })
}
