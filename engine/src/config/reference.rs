//! The reference page of settings, written from the table.

use super::keys::{Key, Preset};
use super::table::TABLE;
use super::value::describe;

const OPENING: &str = "\
# Settings

<!-- Written from the table in `src/config/table.rs`: run the tests with BLESS=1, do not edit. -->

A setting is given, highest precedence first, by a flag of the command line, by `--set KEY=VALUE`,
by an environment variable, by the settings file, or by its default. `spoonbill config` prints every
setting with its value and where that came from.

- Names may carry the prefix `scoopi.` or `spoonbill.`; it is ignored.
- Variables begin with `SPOONBILL_`; a dot is written `__`: `SPOONBILL_LOADER__FETCH__DELAY=500ms`.
- The settings file is YAML with dotted names, nested mappings, or both: that of `--config`, else
  `spoonbill.yml` beside DEFS_DIR, in the directory it lies in. Inside DEFS_DIR the name means nothing
  special: such a file is read as definitions.
- A duration is `500ms`, `2s`, `1m30s`, `1h`, `7d`, or ISO 8601 such as `PT30S` and `P1W`; a number
  without a unit is taken only where the kind says what it counts.
- A size is `16MiB`, `1GB`, or a number of bytes. A boolean is true, false, yes, no, on or off.
- An empty value leaves a setting unset that has no default.
";

/// The reference page, as it stands in `CONFIG.md`.
pub fn reference() -> String {
    let mut page = OPENING.to_owned();
    let mut group = "";
    for key in TABLE {
        if key.group != group {
            group = key.group;
            page.push_str("\n## ");
            page.push_str(group);
            page.push_str(
                "\n\n| setting | kind | default | meaning |\n| --- | --- | --- | --- |\n",
            );
        }
        page.push_str(&row(key));
    }
    page
}

fn row(key: &Key) -> String {
    let preset = match key.preset {
        Preset::Unset => "none".to_owned(),
        Preset::Is(text) => format!("`{text}`"),
        Preset::Like(other, text) => format!("that of `{other}`, else `{text}`"),
    };
    let effect = if key.effective { "" } else { " Accepted for Scoopi's definitions, no effect." };
    let (name, kind, doc) = (key.name, describe(key.kind), key.doc);
    format!("| `{name}` | {kind} | {preset} | {doc}{effect} |\n")
}
