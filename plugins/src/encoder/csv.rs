//! Delimited text: locator, group, item, dims and fact, or the named columns of a record.

use ::csv::{QuoteStyle, Terminator, WriterBuilder};
use spoonbill_defs::{PluginDef, Text};

use super::{Encoder, PageTags};
use crate::data::{Data, Row};
use crate::options::{OptionProblem, Options};

/// Class string and alias.
pub(super) const CLASSES: [&str; 2] = ["org.codetab.scoopi.plugin.encoder.CsvEncoder", "csv"];

/// Encodes rows as delimited text.
///
/// A value is quoted only if it contains the delimiter, a quote or a line end. An absent value is
/// the word `null` in rows of the classic form, and empty in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csv {
    /// Usually one byte; longer delimiters take a slower path.
    delimiter: String,
    include_tags: bool,
    header: bool,
}

impl Default for Csv {
    fn default() -> Self {
        Self { delimiter: ",".to_owned(), include_tags: false, header: true }
    }
}

impl Csv {
    /// Names of its properties.
    pub const OPTIONS: &'static [&'static str] = &["delimiter", "includeTags", "header"];

    /// The encoder of a plugin definition, or all problems with its properties.
    pub fn from_def(def: &PluginDef) -> Result<Self, Vec<OptionProblem>> {
        let mut options = Options::new(def, Self::OPTIONS);
        let mut csv = Self::default();
        if let Some(text) = options.optional("delimiter") {
            match delimiter(text) {
                Ok(delimiter) => csv.delimiter = delimiter,
                Err(message) => options.problem(text, message),
            }
        }
        for (key, switch) in [("includeTags", &mut csv.include_tags), ("header", &mut csv.header)] {
            let Some(text) = options.optional(key) else { continue };
            match text.text.trim().to_ascii_lowercase().as_str() {
                "true" => *switch = true,
                "false" => *switch = false,
                _ => {
                    let message = format!("`{key}` is true or false, not `{}`", text.text);
                    options.problem(text, message);
                }
            }
        }
        if options.problems.is_empty() { Ok(csv) } else { Err(options.problems) }
    }
}

fn delimiter(text: &Text) -> Result<String, String> {
    match text.text.as_str() {
        r"\t" => Ok("\t".to_owned()),
        "" => Err("the delimiter is empty".to_owned()),
        words if words.contains(['"', '\n', '\r']) => {
            Err("the delimiter must not contain a quote or a line end".to_owned())
        }
        words => Ok(words.to_owned()),
    }
}

impl Encoder for Csv {
    fn prints_tags(&self) -> bool {
        self.include_tags
    }

    fn header(&self, columns: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        if self.header && !columns.is_empty() {
            self.write_line(columns.iter().copied(), &mut out);
        }
        out
    }

    fn encode(&self, data: &Data, page: PageTags, out: &mut Vec<u8>) -> usize {
        if data.named {
            data.rows.iter().for_each(|row| self.write_line(cells(row), out));
            return data.rows.len();
        }
        let page = page.page.to_string();
        let tags = [page.as_str(), "1", "1"];
        let tags = if self.include_tags { &tags[..] } else { &[] };
        let [delimiter] = self.delimiter.as_bytes() else {
            data.rows.iter().for_each(|row| self.write_line(columns(row, tags), out));
            return data.rows.len();
        };
        let mut writer = WriterBuilder::new()
            .delimiter(*delimiter)
            .quote_style(QuoteStyle::Necessary)
            .terminator(Terminator::Any(b'\n'))
            .flexible(true)
            .has_headers(false)
            .from_writer(out);
        // Memory takes every byte and lengths may differ, so each write succeeds.
        let written = |row: &&Row| writer.write_record(columns(row, tags)).is_ok();
        data.rows.iter().filter(written).count()
    }
}

impl Csv {
    /// The same by hand, for records and for delimiters longer than the library's one byte.
    fn write_line<'r>(&self, columns: impl Iterator<Item = &'r str>, out: &mut Vec<u8>) {
        let start = out.len();
        for (place, column) in columns.enumerate() {
            if place > 0 {
                out.extend_from_slice(self.delimiter.as_bytes());
            }
            if column.contains(['"', '\n', '\r']) || column.contains(&self.delimiter) {
                out.extend_from_slice(format!("\"{}\"", column.replace('"', "\"\"")).as_bytes());
            } else {
                out.extend_from_slice(column.as_bytes());
            }
        }
        if out.len() == start {
            // Programs that read CSV skip empty lines.
            out.extend_from_slice(b"\"\"");
        }
        out.push(b'\n');
    }
}

/// The cells of a record. An absent value is empty.
fn cells(row: &Row) -> impl Iterator<Item = &str> {
    row.axes.iter().map(|axis| axis.value.as_deref().unwrap_or_default())
}

fn columns<'r>(row: &'r Row, tags: &'r [&'r str]) -> impl Iterator<Item = &'r str> {
    let axes = row.axes.iter().map(|axis| axis.value.as_deref());
    [&*row.name, &*row.group]
        .into_iter()
        .chain(tags.iter().copied())
        .chain(axes.map(|value| value.unwrap_or("null")))
}

#[cfg(test)]
mod tests {
    use spoonbill_defs::PluginValue;

    use super::*;
    use crate::data::{Axis, AxisKind};

    fn plugin(options: &[(&str, &str)]) -> PluginDef {
        let one =
            |(key, value): &(&str, &str)| (Text::new(*key), PluginValue::One(Text::new(*value)));
        PluginDef {
            name: Text::new("encoder"),
            class: Text::new("csv"),
            options: options.iter().map(one).collect(),
            plugins: Vec::new(),
        }
    }

    fn data(values: &[Option<&str>]) -> Data {
        let axis = |value: Option<&str>| Axis {
            kind: AxisKind::Dim,
            item_name: "any".into(),
            value: value.map(str::to_owned),
            match_text: None,
            index: None,
            order: None,
        };
        let row = Row {
            name: "acme".into(),
            group: "quote".into(),
            axes: values.iter().copied().map(axis).collect(),
        };
        Data { rows: vec![row], ..Data::default() }
    }

    #[track_caller]
    fn check(options: &[(&str, &str)], values: &[Option<&str>], expect: &str) {
        let mut out = b"before\n".to_vec();
        let csv = Csv::from_def(&plugin(options)).unwrap();
        let rows = csv.encode(&data(values), PageTags { page: 3 }, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("before\n{expect}"));
        assert_eq!(rows, 1);
    }

    #[test]
    fn the_default_delimiter_is_a_comma() {
        check(&[], &[Some("Price"), Some("2016"), Some("1")], "acme,quote,Price,2016,1\n");
    }

    #[test]
    fn a_delimiter_is_any_byte() {
        let values = [Some("a b"), Some("1,5")];
        check(&[("delimiter", "|")], &values, "acme|quote|a b|1,5\n");
        check(&[("delimiter", "\t")], &values, "acme\tquote\ta b\t1,5\n");
        check(&[("delimiter", r"\t")], &values, "acme\tquote\ta b\t1,5\n");
    }

    #[test]
    fn a_delimiter_may_be_longer_than_a_byte() {
        let values = [Some("a|b"), Some("c||d"), Some("6\" pipe"), None];
        let line = "acme||quote||a|b||\"c||d\"||\"6\"\" pipe\"||null\n";
        check(&[("delimiter", "||")], &values, line);
        check(&[("delimiter", "\u{20ac}")], &[Some("a")], "acme\u{20ac}quote\u{20ac}a\n");
    }

    #[test]
    fn only_values_that_would_break_a_line_are_quoted() {
        let values =
            [Some("1,5"), Some("6\" pipe"), Some("two\nlines"), Some(" padded "), Some("")];
        let line = "acme,quote,\"1,5\",\"6\"\" pipe\",\"two\nlines\", padded ,\n";
        check(&[], &values, line);
    }

    #[test]
    fn an_absent_value_is_the_word_null() {
        check(&[], &[Some("a"), None, Some("-")], "acme,quote,a,null,-\n");
    }

    #[test]
    fn tags_follow_the_group() {
        let line = "acme|quote|3|1|1|a|b\n";
        check(&[("includeTags", "true"), ("delimiter", "|")], &[Some("a"), Some("b")], line);
        check(&[("includeTags", "false")], &[Some("a")], "acme,quote,a\n");
    }

    #[test]
    fn a_record_is_written_below_a_header() {
        let check = |options: &[(&str, &str)], values: &[Option<&str>], expect: &str| {
            let csv = Csv::from_def(&plugin(options)).unwrap();
            let mut out = csv.header(&["a", "b,c"]);
            let data = Data { named: true, ..data(values) };
            assert_eq!(csv.encode(&data, PageTags { page: 1 }, &mut out), 1);
            assert_eq!(String::from_utf8(out).unwrap(), expect);
        };
        check(&[], &[Some("1,5"), None], "a,\"b,c\"\n\"1,5\",\n");
        check(&[("header", "false")], &[None, Some("x")], ",x\n");
        check(&[("delimiter", r"\t")], &[Some("a b"), Some("c")], "a\tb,c\na b\tc\n");
        check(&[("header", "false")], &[None], "\"\"\n");
        check(&[("includeTags", "true")], &[Some("x"), None], "a,\"b,c\"\nx,\n");
        assert!(Csv::default().header(&[]).is_empty());
        let bad = Csv::from_def(&plugin(&[("header", "maybe")])).unwrap_err();
        assert_eq!(bad[0].message, "`header` is true or false, not `maybe`");
    }

    #[test]
    fn no_rows_give_no_bytes() {
        let mut out = Vec::new();
        let rows = Csv::default().encode(&Data::default(), PageTags { page: 1 }, &mut out);
        assert_eq!((rows, out.len()), (0, 0));
    }

    #[test]
    fn every_wrong_property_is_reported() {
        let bad = plugin(&[("delimeter", "|"), ("delimiter", ""), ("includeTags", "maybe")]);
        let problems = Csv::from_def(&bad).unwrap_err();
        let messages: Vec<_> = problems.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "plugin `encoder` has no property `delimeter`",
                "the delimiter is empty",
                "`includeTags` is true or false, not `maybe`",
            ]
        );
        assert_eq!(problems[0].help.as_deref(), Some("did you mean `delimiter`?"));
        assert!(Csv::from_def(&plugin(&[("delimiter", "\"")])).is_err());
        assert!(Csv::from_def(&plugin(&[("delimiter", "")])).is_err());
    }
}
