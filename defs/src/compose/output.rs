//! Names the output files of a task: after its data definition, or by `output`.

use crate::findings::Findings;
use crate::steps::{PluginDef, PluginValue, Step, StepKind};
use crate::tasks::Task;
use crate::text::Text;

/// Placeholder for the name of the data definition in the file name of an appender.
pub(super) const DATA_DEF: &str = "%{dataDef}";

/// Replaces the placeholder in file names, or installs the appender that `output` requests.
pub(super) fn name_files(task: &mut Task, output: Option<Text>, findings: &mut Findings<'_>) {
    let def = task.data_def.text.replace(['/', '\\'], "-");
    let broken = task.steps.is_empty();
    let mut appenders: Vec<&mut Step> =
        task.steps.iter_mut().filter(|step| step.kind == StepKind::DataAppender).collect();
    let Some(output) = output else {
        for plugin in appenders.iter_mut().flat_map(|step| &mut step.plugins) {
            for (key, value) in &mut plugin.options {
                if let (true, PluginValue::One(text)) = (key.text == "file", value) {
                    text.text = text.text.replace(DATA_DEF, &def);
                }
            }
        }
        return;
    };
    let Some(encoder) = encoder(&output, findings) else { return };
    if output.text.split(['/', '\\']).any(|part| part == "..") {
        findings.error(
            output.at,
            "`output` must not contain `..`",
            "name a file below the output directory, or a full path",
        );
    }
    let file = (Text::new("file"), PluginValue::One(output.clone()));
    let plugin = PluginDef {
        name: Text { text: "output".to_owned(), at: output.at },
        class: Text::new("file"),
        options: vec![file],
        plugins: vec![encoder],
    };
    match appenders.as_mut_slice() {
        [] if broken => {}
        [] => findings.error(
            output.at,
            format!("`output` has no effect: task `{}` writes no rows", task.name.text),
            "add `fields`, or a `data_appender` step to its `steps`",
        ),
        [first, ..] => first.plugins = vec![plugin],
    }
}

/// The encoder for the ending of a file name.
fn encoder(output: &Text, findings: &mut Findings<'_>) -> Option<PluginDef> {
    let ending = output.text.rsplit_once('.').map_or("", |(_, ending)| ending);
    let (class, delimiter) = match ending {
        "csv" => ("csv", Some(",")),
        "tsv" => ("csv", Some("\t")),
        "jsonl" => ("jsonl", None),
        _ => {
            let help = findings.did_you_mean(
                ending,
                ["csv", "tsv", "jsonl"],
                "end the name with `.csv`, `.tsv` or `.jsonl`; for any other name add an \
                 appender in `steps`",
            );
            findings.error(
                output.at,
                format!("`{}` does not end with a known format", output.text),
                help,
            );
            return None;
        }
    };
    let option = |value| (Text::new("delimiter"), PluginValue::One(Text::new(value)));
    Some(PluginDef {
        name: Text::new(class),
        class: Text::new(class),
        options: delimiter.map(option).into_iter().collect(),
        plugins: Vec::new(),
    })
}
