//! JSON lines: one object for each row.

use spoonbill_defs::PluginDef;

use super::{Encoder, PageTags};
use crate::data::{Axis, CellType, Data, Row};
use crate::options::{OptionProblem, Options};

/// Its alias.
pub(super) const CLASSES: [&str; 1] = ["jsonl"];

/// Encodes each row as an object, with the columns in their order. An absent value is null.
///
/// If the types of the columns are set, numbers and booleans of a record are written as such. Every other
/// value is text. Rows of the classic form have `locator`, `group`, and their items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonLines {
    types: Vec<CellType>,
}

impl JsonLines {
    /// Names of its properties.
    pub const OPTIONS: &'static [&'static str] = &[];

    /// The encoder of a plugin definition, or all problems with its properties.
    pub fn from_def(def: &PluginDef) -> Result<Self, Vec<OptionProblem>> {
        let options = Options::new(def, Self::OPTIONS);
        if options.problems.is_empty() { Ok(Self::default()) } else { Err(options.problems) }
    }

    fn write_row(&self, row: &Row, named: bool, out: &mut Vec<u8>) {
        out.push(b'{');
        if !named {
            write_pair("locator", Some(&row.name), CellType::Text, out);
            out.push(b',');
            write_pair("group", Some(&row.group), CellType::Text, out);
        }
        for (place, Axis { item_name, value, .. }) in row.axes.iter().enumerate() {
            if place > 0 || !named {
                out.push(b',');
            }
            let kind = self.types.get(place).copied().filter(|_| named);
            write_pair(item_name, value.as_deref(), kind.unwrap_or(CellType::Text), out);
        }
        out.extend_from_slice(b"}\n");
    }
}

impl Encoder for JsonLines {
    fn prints_tags(&self) -> bool {
        false
    }

    fn header(&self, _columns: &[&str]) -> Vec<u8> {
        Vec::new()
    }

    fn set_types(&mut self, types: &[CellType]) {
        self.types = types.to_vec();
    }

    fn encode(&self, data: &Data, _page: PageTags, out: &mut Vec<u8>) -> usize {
        data.rows.iter().for_each(|row| self.write_row(row, data.named, out));
        data.rows.len()
    }
}

fn write_pair(name: &str, value: Option<&str>, kind: CellType, out: &mut Vec<u8>) {
    write_text(name, out);
    out.push(b':');
    match value {
        None => out.extend_from_slice(b"null"),
        Some(value) if is_bare(value, kind) => out.extend_from_slice(value.as_bytes()),
        Some(value) => write_text(value, out),
    }
}

/// Whether a value can be written without quotes. A default value may be any text.
fn is_bare(value: &str, kind: CellType) -> bool {
    match kind {
        CellType::Text => false,
        CellType::Boolean => matches!(value, "true" | "false"),
        CellType::Number => {
            let digits = value.strip_prefix('-').unwrap_or(value);
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
            let is_number =
                |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number(whole) && is_number(fraction) && (whole == "0" || !whole.starts_with('0'))
        }
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(br#"\""#),
            b'\\' => out.extend_from_slice(br"\\"),
            b'\n' => out.extend_from_slice(br"\n"),
            b'\r' => out.extend_from_slice(br"\r"),
            b'\t' => out.extend_from_slice(br"\t"),
            0..=0x1f | 0x7f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            other => out.push(other),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use spoonbill_defs::{PluginValue, Text};

    use super::*;
    use crate::data::AxisKind;

    fn data(named: bool, values: &[(&str, Option<&str>)]) -> Data {
        let axis = |(name, value): &(&str, Option<&str>)| Axis {
            kind: if named { AxisKind::Field } else { AxisKind::Dim },
            item_name: (*name).into(),
            value: value.map(str::to_owned),
            match_text: None,
            index: None,
            order: None,
        };
        let axes = values.iter().map(axis).collect();
        let row = Row { name: "acme".into(), group: "quote".into(), axes };
        Data { rows: vec![row], named, ..Data::default() }
    }

    fn lines(encoder: &JsonLines, data: &Data) -> String {
        let mut out = Vec::new();
        assert_eq!(encoder.encode(data, PageTags { page: 1 }, &mut out), 1);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn types_decide_what_is_quoted() {
        let values = [
            ("n", Some("-12.50")),
            ("n/a", Some("n/a")),
            ("zeros", Some("007")),
            ("b", Some("true")),
            ("t", Some("12")),
            ("none", None),
        ];
        let mut encoder = JsonLines::default();
        let text = r#"{"n":"-12.50","n/a":"n/a","zeros":"007","b":"true","t":"12","none":null}"#;
        assert_eq!(lines(&encoder, &data(true, &values)), format!("{text}\n"));
        let (number, boolean) = (CellType::Number, CellType::Boolean);
        encoder.set_types(&[number, number, number, boolean, CellType::Text, number]);
        let text = r#"{"n":-12.50,"n/a":"n/a","zeros":"007","b":true,"t":"12","none":null}"#;
        assert_eq!(lines(&encoder, &data(true, &values)), format!("{text}\n"));
        assert!(encoder.header(&["n"]).is_empty());
    }

    #[test]
    fn classic_rows_have_locator_and_group() {
        let values = [("item", Some("a\"\\\n\t\u{1}é")), ("fact", None)];
        assert_eq!(
            lines(&JsonLines::default(), &data(false, &values)),
            "{\"locator\":\"acme\",\"group\":\"quote\",\
             \"item\":\"a\\\"\\\\\\n\\t\\u0001é\",\"fact\":null}\n"
        );
    }

    #[test]
    fn it_is_found_by_its_class_and_has_no_properties() {
        let plugin = |class: &str, key: &str| PluginDef {
            name: Text::new("encoder"),
            class: Text::new(class),
            options: vec![(Text::new(key), PluginValue::One(Text::new("x")))],
            plugins: Vec::new(),
        };
        let problems = super::super::from_def(&plugin("jsonl", "header")).unwrap_err();
        assert_eq!(problems[0].message, "plugin `encoder` has no property `header`");
        let problems = super::super::from_def(&plugin("jsonll", "a")).unwrap_err();
        assert_eq!(problems[0].help.as_deref(), Some("did you mean `jsonl`?"));
    }
}
