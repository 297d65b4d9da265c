//! Writes the reference page of settings from the table.

use super::keys::{Key, Preset};
use super::table::table;
use super::value::describe;

const OPENING: &str = "\
# Settings

<!-- Generated from `engine/src/config/table.rs` by `just bless`. Do not edit. -->

This page lists every setting. `spoonbill config` prints the value of each one and its source.

A setting has five possible sources. The first one that has a value wins:

1. a flag of the command line, such as `--output`
2. `--set KEY=VALUE`
3. an environment variable: `SPOONBILL_LOADER__FETCH__DELAY=500ms` sets `loader.fetch.delay`
4. the settings file: `--config FILE`, or else `spoonbill.yml` beside the definitions' folder
5. the default

The settings file is YAML with dotted names, nested mappings, or both. A `spoonbill.yml` inside the
definitions' folder is read as definitions.

How values are written:

- A duration is `500ms`, `2s`, `1m30s`, `1h`, `7d`, or ISO 8601 such as `PT30S` and `P1W`. It needs a
  unit, unless the kind below names one.
- A size is `16MiB`, `1GB`, or a number of bytes.
- A boolean is true, false, yes, no, on or off.
- An empty value unsets a setting that has no default.
- Names may carry the prefix `scoopi.` or `spoonbill.`, which is ignored.
";

const APPENDIX: &str = "
## Appendix: settings without effect

Definitions and settings files written for Scoopi may set these names. They are accepted and checked,
and change nothing.

| setting | kind | meaning in Scoopi |
| --- | --- | --- |
";

/// The text of `docs/settings.md`.
pub fn reference() -> String {
    let mut page = OPENING.to_owned();
    let mut group = "";
    for key in table().filter(Key::is_effective) {
        if key.group != group {
            group = key.group;
            page.push_str("\n## ");
            page.push_str(group);
            page.push_str(
                "\n\n| setting | kind | default | meaning |\n| --- | --- | --- | --- |\n",
            );
        }
        page.push_str(&effective_row(&key));
    }
    page.push_str(APPENDIX);
    page.extend(table().filter(|key| !key.is_effective()).map(|key| appendix_row(&key)));
    page
}

fn effective_row(key: &Key) -> String {
    let default = match key.preset {
        Preset::Unset => "none".to_owned(),
        Preset::Is(text) => format!("`{text}`"),
        Preset::Like(other, text) => format!("that of `{other}`, else `{text}`"),
    };
    let (name, kind, doc) = (key.name, describe(key.kind), key.doc);
    format!("| `{name}` | {kind} | {default} | {doc} |\n")
}

fn appendix_row(key: &Key) -> String {
    format!("| `{}` | {} | {} |\n", key.name, describe(key.kind), key.doc)
}
