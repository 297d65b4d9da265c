//! Reads the section `steps` and adds the built-in chains.

use super::mapping::{KeyReader, check_name, mapping, sequence, wrapped};
use crate::findings::Findings;
use crate::shapes;
use crate::steps::{PluginDef, PluginValue, StepKind, step_classes, step_kind};
use crate::text::{Span, Text};
use crate::yaml::{ScalarType, YamlEntry, YamlKind, YamlNode, shorten};

/// Maximum number of steps of one chain. The built-in chains have at most five.
pub(super) const STEPS_MAX: usize = 200;

/// Largest total weight of all chains, and of all steps that are copied into tasks.
pub(super) const WEIGHT_MAX: usize = 1_000_000;

/// A chain as written, before its base is resolved.
#[derive(Debug)]
pub(super) struct ChainDraft {
    pub(super) name: Text,
    pub(super) body: ChainBody,
}

/// The steps of a chain as written.
#[derive(Debug)]
pub(super) enum ChainBody {
    /// All steps.
    Whole(Vec<StepDraft>),
    /// The name of a base chain, and the steps to replace or insert.
    Based(Text, Vec<StepDraft>),
    /// Unreadable, which is reported.
    Broken,
}

/// A step as written, before the chain is put in order.
#[derive(Debug, Clone)]
pub(super) struct StepDraft {
    pub(super) name: Text,
    /// `None` if the class is unknown, which is reported.
    pub(super) kind: Option<StepKind>,
    pub(super) previous: Text,
    pub(super) next: Text,
    pub(super) plugins: Vec<PluginDef>,
    /// Whether the chain itself contains the step. Otherwise it inherits the step from its base.
    pub(super) own: bool,
}

/// The cost of a copy of the step: one per entry, plus one per 64 bytes of text.
pub(super) fn weight(step: &StepDraft) -> usize {
    fn plugin_weight(plugin: &PluginDef) -> usize {
        let options = plugin.options.iter().map(|(key, value)| {
            1 + key.text.len() / 64
                + match value {
                    PluginValue::One(text) => 1 + text.text.len() / 64,
                    PluginValue::Many(texts) => {
                        texts.iter().map(|text| 1 + text.text.len() / 64).sum()
                    }
                }
        });
        1 + options.sum::<usize>() + plugin.plugins.iter().map(plugin_weight).sum::<usize>()
    }
    1 + step.plugins.iter().map(plugin_weight).sum::<usize>()
}

/// Reports a chain with too many steps.
pub(super) fn report_too_long(at: Span, findings: &mut Findings<'_>) {
    findings.error(
        at,
        format!("a chain has more than {STEPS_MAX} steps"),
        "split the work into several tasks",
    );
}

/// Reports chains that would need too much memory once they are copied into tasks.
pub(super) fn report_too_large(at: Span, findings: &mut Findings<'_>) {
    findings.error(
        at,
        "the chains of steps of all tasks together are too large",
        "use fewer tasks, or chains with fewer steps and plugins",
    );
}

/// Reads the chains of the files, and adds the built-in chains that they do not replace.
pub(super) fn read(entries: &[YamlEntry], findings: &mut Findings<'_>) -> Vec<ChainDraft> {
    let mut chains: Vec<_> = entries.iter().map(|entry| chain(entry, findings)).collect();
    for built_in in built_in() {
        match entries.iter().find(|entry| entry.key == built_in.name) {
            Some(entry) => findings.warn(
                entry.key.at,
                format!("`{}` replaces the built-in chain of the same name", built_in.name.text),
                "rename it unless you want to replace the built-in chain; Scoopi ignores the replacement",
            ),
            None => chains.push(built_in),
        }
    }
    chains
}

fn chain(entry: &YamlEntry, findings: &mut Findings<'_>) -> ChainDraft {
    check_name("a chain of steps", &entry.key, findings);
    ChainDraft { name: entry.key.clone(), body: body(entry, findings).unwrap_or(ChainBody::Broken) }
}

fn body(entry: &YamlEntry, findings: &mut Findings<'_>) -> Option<ChainBody> {
    let what = format!("the chain `{}`", shorten(&entry.key.text));
    let entries = mapping(&what, &entry.value, findings)?;
    let Some(first) = entries.first() else {
        findings.error(
            entry.key.at,
            format!("{what} has no steps"),
            "add steps, or the name of the chain it is based on",
        );
        return None;
    };
    if entries.iter().any(|entry| is_step(&entry.value)) {
        return Some(ChainBody::Whole(steps(&entry.value, findings)?));
    }
    for other in &entries[1..] {
        findings.warn(
            other.key.at,
            format!("{what} can have only one base, so `{}` is ignored", other.key.text),
            format!(
                "its base is `{}`; define another chain on `{}`",
                first.key.text, other.key.text
            ),
        );
    }
    let overlay = overlay_steps(first, findings)?;
    Some(ChainBody::Based(first.key.clone(), overlay))
}

/// Whether a node is a step and not a base chain. A step may lack its `class` by mistake, so any of
/// its keys decides.
fn is_step(node: &YamlNode) -> bool {
    ["class", "previous", "next"]
        .into_iter()
        .any(|key| matches!(node.get(key).map(|node| &node.kind), Some(YamlKind::Scalar(..))))
}

/// Reads the steps to replace or insert in a base chain.
pub(super) fn overlay_steps(
    base: &YamlEntry,
    findings: &mut Findings<'_>,
) -> Option<Vec<StepDraft>> {
    if matches!(base.value.kind, YamlKind::Scalar(_, ScalarType::Null)) {
        findings.error(
            base.key.at,
            format!("the chain `{}` is named without steps to change", base.key.text),
            "add the steps below it, or write `{ }` to use the chain unchanged",
        );
        return None;
    }
    steps(&base.value, findings)
}

/// Reads the steps of a chain, in the order of the file.
pub(super) fn steps(node: &YamlNode, findings: &mut Findings<'_>) -> Option<Vec<StepDraft>> {
    let entries = mapping("a chain of steps", node, findings)?;
    if entries.len() > STEPS_MAX {
        report_too_long(node.at, findings);
        return None;
    }
    Some(entries.iter().filter_map(|entry| step(entry, findings)).collect())
}

fn step(entry: &YamlEntry, findings: &mut Findings<'_>) -> Option<StepDraft> {
    check_name("a step", &entry.key, findings);
    if ["start", "end"].iter().any(|terminal| entry.key.text.eq_ignore_ascii_case(terminal)) {
        findings.error(
            entry.key.at,
            format!("a step cannot have the name `{}`", entry.key.text),
            "`start` and `end` are the two ends of a chain; rename the step",
        );
    }
    let fields = KeyReader::new(&shapes::STEP, entry.key.at, &entry.value, findings)?;
    let class = fields.required_filled_text("class", findings);
    let kind = class.and_then(|class| kind(&class, findings));
    Some(StepDraft {
        name: entry.key.clone(),
        kind,
        previous: fields.required_filled_text("previous", findings).unwrap_or_default(),
        next: fields.required_filled_text("next", findings).unwrap_or_default(),
        plugins: plugins(&fields, findings),
        own: true,
    })
}

fn kind(class: &Text, findings: &mut Findings<'_>) -> Option<StepKind> {
    let kind = step_kind(&class.text);
    if kind.is_none() {
        // For `PageLoader` or a wrong package, the last word identifies the class.
        let word = |name: &str| {
            let last = name.rsplit('.').next().unwrap_or_default();
            last.replace('_', "").to_lowercase()
        };
        let wanted = word(&class.text);
        let same_word = step_classes().find(|name| word(name) == wanted);
        let help = match same_word {
            Some(name) if wanted != "parser" && wanted != "queryanalyzer" => {
                format!("did you mean `{name}`?")
            }
            _ => findings.did_you_mean(
                &class.text,
                step_classes(),
                "the classes are `locator_seeder`, `page_loader`, `dom_loader`, `css_parser`, \
                 `xpath_parser`, `sitemap_parser`, `css_analyzer`, `xpath_analyzer`, `data_filter`, \
                 `data_converter`, `locator_creator`, `scripter` and `data_appender`",
            ),
        };
        findings.error(
            class.at,
            format!("there is no step class `{}`", shorten(&class.text)),
            help,
        );
    }
    kind
}

fn plugins(fields: &KeyReader<'_>, findings: &mut Findings<'_>) -> Vec<PluginDef> {
    let Some(node) = fields.get("plugins") else {
        return Vec::new();
    };
    let nodes = sequence("plugins", "plugin: { name: ..., class: ... }", node, findings)
        .unwrap_or_default();
    let plugins = nodes
        .iter()
        .filter_map(|node| plugin(wrapped("plugins", "plugin", node, findings)?, findings));
    plugins.collect()
}

fn plugin(node: &YamlNode, findings: &mut Findings<'_>) -> Option<PluginDef> {
    let fields = KeyReader::new(&shapes::PLUGIN, node.at, node, findings)?;
    let (name, class) = (
        fields.required_filled_text("name", findings),
        fields.required_filled_text("class", findings),
    );
    let own = ["name", "class", "plugins"];
    let options = fields
        .entries()
        .iter()
        .filter(|entry| !own.contains(&entry.key.text.as_str()))
        .filter_map(|entry| Some((entry.key.clone(), option(entry, findings)?)));
    let options = options.collect();
    let plugins = plugins(&fields, findings);
    Some(PluginDef { name: name?, class: class?, options, plugins })
}

/// Reads a property of a plugin. Any scalar is text; the plugin decides whether `1` is a number.
fn option(entry: &YamlEntry, findings: &mut Findings<'_>) -> Option<PluginValue> {
    let scalar = |node: &YamlNode| match &node.kind {
        YamlKind::Scalar(_, ScalarType::Null) => Some(Text { text: String::new(), at: node.at }),
        YamlKind::Scalar(text, _) => Some(Text { text: text.clone(), at: node.at }),
        YamlKind::Sequence(_) | YamlKind::Mapping(_) => None,
    };
    let value = match &entry.value.kind {
        YamlKind::Sequence(nodes) => {
            let texts: Option<Vec<_>> = nodes.iter().map(scalar).collect();
            texts.map(PluginValue::Many)
        }
        YamlKind::Scalar(..) | YamlKind::Mapping(_) => scalar(&entry.value).map(PluginValue::One),
    };
    if value.is_none() {
        findings.error(
            entry.key.at,
            format!("the plugin property `{}` must be a text or a list of texts", entry.key.text),
            "put it in quotes if it contains brackets or `: `",
        );
    }
    value
}

/// Chain for tasks with fields.
pub(super) const RECORD_CHAIN: &str = "recordDefault";

/// Chain for tasks that only follow links.
pub(super) const FOLLOW_CHAIN: &str = "followDefault";

/// Chain for tasks that read a sitemap.
pub(super) const SITEMAP_CHAIN: &str = "sitemapDefault";

/// The built-in chains.
fn built_in() -> [ChainDraft; 5] {
    let classic = [("delimiter", "|"), ("includeTags", "false")];
    let data = || file_appender("dataFile", "output/data.txt", &classic);
    let record_file = format!("output/{}.csv", super::output::DATA_DEF);
    let records = file_appender("records", &record_file, &[]);
    let chain = |name, parser, file| ChainDraft {
        name: Text::new(name),
        body: ChainBody::Whole(built_in_steps(parser, file)),
    };
    [
        chain("jsoupDefault", StepKind::CssParser, Some(data())),
        chain("htmlUnitDefault", StepKind::XpathParser, Some(data())),
        chain(RECORD_CHAIN, StepKind::CssParser, Some(records)),
        chain(FOLLOW_CHAIN, StepKind::CssParser, None),
        chain(SITEMAP_CHAIN, StepKind::SitemapParser, None),
    ]
}

/// A file appender with a CSV encoder.
fn file_appender(name: &str, file: &str, encoder: &[(&str, &str)]) -> PluginDef {
    let option = |key: &str, value: &str| (Text::new(key), PluginValue::One(Text::new(value)));
    let csv = PluginDef {
        name: Text::new("csv"),
        class: Text::new("csv"),
        options: encoder.iter().map(|(key, value)| option(key, value)).collect(),
        plugins: Vec::new(),
    };
    PluginDef {
        name: Text::new(name),
        class: Text::new("file"),
        options: vec![option("file", file)],
        plugins: vec![csv],
    }
}

/// Loads and parses a page; with a file, also filters and writes its rows.
fn built_in_steps(parser: StepKind, file: Option<PluginDef>) -> Vec<StepDraft> {
    let mut kinds = vec![
        ("seeder", StepKind::LocatorSeeder),
        ("loader", StepKind::PageLoader),
        ("parser", parser),
    ];
    if file.is_some() {
        kinds.extend([("filter", StepKind::DataFilter), ("appender", StepKind::DataAppender)]);
    }
    let mut steps: Vec<StepDraft> = Vec::new();
    for (name, kind) in kinds {
        let previous = steps.last().map_or_else(|| Text::new("start"), |step| step.name.clone());
        if let Some(last) = steps.last_mut() {
            last.next = Text::new(name);
        }
        let (name, next) = (Text::new(name), Text::new("end"));
        let plugins = Vec::new();
        steps.push(StepDraft { name, kind: Some(kind), previous, next, plugins, own: true });
    }
    if let Some(last) = steps.last_mut() {
        last.plugins.extend(file);
    }
    steps
}
