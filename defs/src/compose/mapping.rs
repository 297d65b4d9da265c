//! Reads mappings: reports unknown keys, missing keys and values of the wrong type.

use crate::findings::Findings;
use crate::problem::suggest;
use crate::shapes::MappingShape;
use crate::text::{Span, Text};
use crate::yaml::{ScalarType, YamlEntry, YamlKind, YamlNode, shorten};

/// Keys of an older dialect that no longer exist, each with advice.
const OLD_KEYS: &[(&str, &str)] = &[
    ("axis", "`axis` is no longer a key: list the axes as `item` entries below `items` and `dims`"),
    (
        "members",
        "`members` is no longer a key: list them as `item` entries below `items` or `dims`",
    ),
    ("member", "`member` is no longer a key: list it as an `item` entry below `items` or `dims`"),
    ("col", "`col` is no longer a key: make it an `item` entry of `dims`"),
    ("row", "`row` is no longer a key: make it an `item` entry of `items`"),
    ("tags", "`tags` is no longer a key: remove it"),
];

/// Keys of an older dialect and their present names.
const RENAMED_KEYS: &[(&str, &str)] =
    &[("region", "block"), ("field", "selector"), ("prefixes", "prefix")];

/// Key names from other tools: the name, the key to use, and advice.
const OTHER_WORDS: &[(&str, &str, &str)] = &[
    ("attr", "selector", "write the attribute after the selector: `selector: .p @href`"),
    ("attribute", "selector", "write the attribute after the selector: `selector: .p @href`"),
    ("css", "selector", "write `selector: ...`, with an attribute as `selector: .p @href`"),
    ("query", "selector", "write `selector: ...`, `xpath: ...` or `json: ...`"),
    (
        "format",
        "in",
        "write `in: dd.MM.yyyy` for how the date is read, `out: ...` for how it is written",
    ),
    ("pattern", "regex", "write `regex: ...`"),
    ("join", "all", "write `all: \", \"`"),
    ("separator", "all", "write `all: \", \"`"),
    ("paginate", "follow", "write `follow: ...` with the selector of the links"),
    ("pagination", "follow", "write `follow: ...` with the selector of the links"),
    ("next", "follow", "write `follow: ...` with the selector of the links"),
    ("links", "follow", "write `follow: ...` with the selector of the links"),
    ("items", "fields", "write `fields:` and below it the columns: `title: h1`"),
    ("start_urls", "urls", "write `urls: ...`"),
    ("rows", "minRows", "write `minRows: ...` or `maxRows: ...`"),
    ("loc", "url", "write `url: ...`"),
];

/// Reads the keys of one mapping.
#[derive(Debug, Clone)]
pub(super) struct KeyReader<'n> {
    /// Name of the mapping with its article, for messages: `an item`.
    what: &'static str,
    /// Position at which a missing key is reported.
    at: Span,
    entries: &'n [YamlEntry],
    /// Keys that are present under a wrong name, so that they are not also reported as missing.
    misspelt: Vec<&'static str>,
    /// Whether an unknown key is present.
    unknown: bool,
}

impl<'n> KeyReader<'n> {
    /// Reports every unknown key. `None` (and an error) if the node is not a mapping.
    pub(super) fn new(
        shape: &'static MappingShape,
        at: Span,
        node: &'n YamlNode,
        findings: &mut Findings<'_>,
    ) -> Option<Self> {
        let what = shape.what;
        let entries = mapping(what, node, findings)?;
        let (mut misspelt, mut unknown) = (Vec::new(), false);
        let keys: Vec<&'static str> = shape.names().collect();
        for entry in entries {
            if shape.other_keys.is_none() && !keys.contains(&entry.key.text.as_str()) {
                misspelt.extend(unknown_key(what, &entry.key, &keys, findings));
                unknown = true;
            }
        }
        Some(Self { what, at, entries, misspelt, unknown })
    }

    /// The entries, in the order of the file.
    pub(super) fn entries(&self) -> &'n [YamlEntry] {
        self.entries
    }

    /// The value of a key, if present.
    pub(super) fn get(&self, key: &str) -> Option<&'n YamlNode> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The entry of a key, if present.
    pub(super) fn entry(&self, key: &str) -> Option<&'n YamlEntry> {
        self.entries.iter().find(|entry| entry.key.text == key)
    }

    /// The entries of those of these keys that are present.
    pub(super) fn entries_of(&self, keys: &[&str]) -> impl Iterator<Item = &'n YamlEntry> {
        self.entries.iter().filter(move |entry| keys.contains(&entry.key.text.as_str()))
    }

    /// The values of a key that accepts one value or a list, with their position.
    pub(super) fn one_or_many(&self, key: &str) -> Option<(Span, &'n [YamlNode])> {
        let node = self.get(key)?;
        match &node.kind {
            YamlKind::Sequence(nodes) => Some((node.at, nodes)),
            YamlKind::Scalar(..) | YamlKind::Mapping(_) => {
                Some((node.at, std::slice::from_ref(node)))
            }
        }
    }

    /// The value of a required key.
    pub(super) fn required(&self, key: &str, findings: &mut Findings<'_>) -> Option<&'n YamlNode> {
        let found = self.get(key);
        if found.is_none() && !self.misspelt.contains(&key) {
            findings.error(
                self.at,
                format!("{} needs the key `{key}`", self.what),
                format!("add `{key}: ...`"),
            );
        }
        found
    }

    /// The text of a key, if present.
    pub(super) fn text(&self, key: &str, findings: &mut Findings<'_>) -> Option<Text> {
        text(key, self.get(key)?, findings)
    }

    /// The text of a key, if present; an empty text is an error.
    pub(super) fn filled_text(&self, key: &str, findings: &mut Findings<'_>) -> Option<Text> {
        self.get(key)?;
        self.required_filled_text(key, findings)
    }

    /// A text, number or boolean as text, if the key is present.
    pub(super) fn scalar(&self, key: &str, findings: &mut Findings<'_>) -> Option<Text> {
        let node = self.get(key)?;
        match &node.kind {
            YamlKind::Scalar(words, ScalarType::Number | ScalarType::Boolean(_)) => {
                Some(Text { text: words.clone(), at: node.at })
            }
            _ => text(key, node, findings),
        }
    }

    /// A text or a list of texts, if the key is present.
    pub(super) fn text_or_list(&self, key: &str, findings: &mut Findings<'_>) -> Option<Vec<Text>> {
        let node = self.get(key)?;
        if let YamlKind::Sequence(nodes) = &node.kind {
            if nodes.is_empty() {
                let help = "write at least one entry, or remove the key";
                findings.error(node.at, format!("`{key}` is empty"), help);
            }
            return self.texts(key, findings);
        }
        Some(Vec::from_iter(text(key, node, findings)))
    }

    /// Name of the mapping with its article.
    pub(super) fn what(&self) -> &'static str {
        self.what
    }

    /// Position for problems of the whole mapping.
    pub(super) fn at(&self) -> Span {
        self.at
    }

    /// Whether one of these keys is present under a wrong name.
    pub(super) fn misspells(&self, keys: &[&str]) -> bool {
        self.misspelt.iter().any(|key| keys.contains(key))
    }

    /// Whether any key is present under a wrong name.
    pub(super) fn has_misspelt_keys(&self) -> bool {
        !self.misspelt.is_empty()
    }

    /// Whether any unknown key is present, similar to a known one or not.
    pub(super) fn has_unknown_keys(&self) -> bool {
        self.unknown
    }

    /// The text of a required key; it may be empty.
    pub(super) fn required_text(&self, key: &str, findings: &mut Findings<'_>) -> Option<Text> {
        text(key, self.required(key, findings)?, findings)
    }

    /// The text of a required key; an empty text is an error.
    pub(super) fn required_filled_text(
        &self,
        key: &str,
        findings: &mut Findings<'_>,
    ) -> Option<Text> {
        let name = self.required_text(key, findings)?;
        if name.text.trim().is_empty() {
            findings.error(
                name.at,
                format!("the `{key}` of {} is empty", self.what),
                format!("write a text between the quotes of `{key}`"),
            );
            return None;
        }
        Some(name)
    }

    /// A whole number from 0, if the key is present.
    pub(super) fn index(&self, key: &str, findings: &mut Findings<'_>) -> Option<u32> {
        let node = self.get(key)?;
        let (help, number) = match &node.kind {
            YamlKind::Scalar(text, ScalarType::Number) => (
                format!("write a whole number from 0 to {}, such as `{key}: 2`", i32::MAX),
                text.parse::<u32>().ok().filter(|number| i32::try_from(*number).is_ok()),
            ),
            YamlKind::Scalar(text, ScalarType::Filled) if text.trim().parse::<u32>().is_ok() => {
                (String::new(), text.trim().parse().ok())
            }
            YamlKind::Scalar(text, _) if text.parse::<u32>().is_ok() => {
                (format!("write it without quotes: `{key}: {text}`"), None)
            }
            YamlKind::Scalar(text, _) if key == "index" && text.contains('-') => {
                (format!("write a range as `indexRange: {text}`"), None)
            }
            _ => (format!("write a whole number, such as `{key}: 2`"), None),
        };
        if number.is_none() {
            findings.error(
                node.at,
                format!("`{key}` must be a whole number, but it is {}", node.describe()),
                help,
            );
        }
        number
    }

    /// A list of texts, if the key is present.
    pub(super) fn texts(&self, key: &str, findings: &mut Findings<'_>) -> Option<Vec<Text>> {
        let entry = self.entry(key)?;
        let nodes = sequence(key, "\"...\"", &entry.value, findings).unwrap_or_default();
        let texts =
            nodes.iter().filter_map(|node| text(&format!("an entry of {key}"), node, findings));
        Some(texts.collect())
    }
}

/// Reports an unknown key. Returns the key that the author probably meant.
pub(super) fn unknown_key(
    what: &str,
    key: &Text,
    known: &[&'static str],
    findings: &mut Findings<'_>,
) -> Option<&'static str> {
    let name = key.text.as_str();
    let renamed = RENAMED_KEYS.iter().find(|(old, new)| *old == name && known.contains(new));
    let gone = OLD_KEYS.iter().find(|(old, _)| *old == name);
    let other = OTHER_WORDS.iter().find(|(word, key, _)| *word == name && known.contains(key));
    if let Some((_, meant, help)) = other {
        findings.error(key.at, format!("`{name}` is not a key of {what}"), *help);
        return known.iter().find(|known| *known == meant).copied();
    }
    // YAML reads `selector:h1` as one word.
    if let Some((front, behind)) = name.split_once(':')
        && let Some(meant) = known.iter().find(|known| **known == front.trim())
    {
        let help = format!("write `{meant}: {}`", shorten(behind.trim()));
        findings.error(key.at, format!("a space is missing after `{meant}:`"), help);
        return Some(meant);
    }
    let near = suggest(name, known.iter().copied());
    let help = match (renamed, gone, near, known) {
        (Some((old, new)), ..) => format!("`{old}` is now called `{new}`"),
        (None, Some((_, help)), ..) => (*help).to_owned(),
        (None, None, Some(near), _) => format!("did you mean `{near}`?"),
        (None, None, None, [only]) => format!("the only key of {what} is `{only}`"),
        (None, None, None, _) => {
            format!("the keys of {what} are {}", quoted(known))
        }
    };
    findings.error(key.at, format!("`{}` is not a key of {what}", shorten(name)), help);
    renamed.map(|(_, new)| *new).or(near)
}

/// Joins words to a list: `` `a`, `b` ``.
pub(super) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The inner mapping of a list entry that is written `key: { ... }`.
pub(super) fn wrapped<'n>(
    list: &str,
    key: &'static str,
    node: &'n YamlNode,
    findings: &mut Findings<'_>,
) -> Option<&'n YamlNode> {
    let what = format!("an entry of `{list}`");
    if let Some(inner) = node.get(key) {
        for entry in node.entries().unwrap_or_default() {
            if entry.key.text != key {
                unknown_key(&what, &entry.key, &[key], findings);
            }
        }
        return Some(inner);
    }
    if let Some([entry]) = node.entries()
        && suggest(&entry.key.text, [key]).is_some()
    {
        unknown_key(&what, &entry.key, &[key], findings);
        return Some(&entry.value);
    }
    findings.error(
        node.at,
        format!("{what} must be written `{key}: {{ ... }}`, but it is {}", node.describe()),
        format!("write `{key}:` before it"),
    );
    None
}

/// The entries of a mapping.
pub(super) fn mapping<'n>(
    what: &str,
    node: &'n YamlNode,
    findings: &mut Findings<'_>,
) -> Option<&'n [YamlEntry]> {
    let entries = node.entries();
    if entries.is_none() {
        findings.error(
            node.at,
            format!("{what} must be a mapping, but it is {}", node.describe()),
            "write indented `key: value` lines below it",
        );
    }
    entries
}

/// The nodes of a list. The message shows the example as an entry.
pub(super) fn sequence<'n>(
    key: &str,
    example: &str,
    node: &'n YamlNode,
    findings: &mut Findings<'_>,
) -> Option<&'n [YamlNode]> {
    if let YamlKind::Sequence(nodes) = &node.kind {
        return Some(nodes);
    }
    findings.error(
        node.at,
        format!("`{key}` must be a list, but it is {}", node.describe()),
        format!("write it as a list: `{key}: [ {example} ]`"),
    );
    None
}

/// A scalar of the type text.
pub(super) fn text(key: &str, node: &YamlNode, findings: &mut Findings<'_>) -> Option<Text> {
    advised_text(key, node, "", findings)
}

/// A scalar of the type text. The advice is for an empty value, a number or a boolean.
pub(super) fn advised_text(
    key: &str,
    node: &YamlNode,
    advice: &str,
    findings: &mut Findings<'_>,
) -> Option<Text> {
    let help = match &node.kind {
        YamlKind::Scalar(text, ScalarType::Text | ScalarType::Filled) => {
            return Some(Text { text: text.clone(), at: node.at });
        }
        YamlKind::Scalar(_, ScalarType::Null) if begins_comment(node, findings) => {
            "`#` begins a comment: put the text in quotes".to_owned()
        }
        YamlKind::Scalar(..) if !advice.is_empty() => advice.to_owned(),
        YamlKind::Scalar(text, ScalarType::Boolean(_) | ScalarType::Number) => {
            format!("put it in quotes: `\"{}\"`", shorten(text))
        }
        YamlKind::Scalar(_, ScalarType::Null)
            if matches!(key, "default" | "all" | "thousands" | "value") =>
        {
            "write a text after the colon, or `\"\"`".to_owned()
        }
        YamlKind::Scalar(_, ScalarType::Null) => {
            "write a text after the colon, or remove the key".to_owned()
        }
        YamlKind::Sequence(_) | YamlKind::Mapping(_) => {
            "write one text; put it in quotes if it contains brackets or `: `".to_owned()
        }
    };
    let shown = match key.strip_prefix("an entry of ") {
        Some(list) => format!("an entry of `{list}`"),
        None => format!("`{key}`"),
    };
    findings.error(node.at, format!("{shown} must be text, but it is {}", node.describe()), help);
    None
}

/// Whether a comment takes the place of the value: `price: #price`.
fn begins_comment(node: &YamlNode, findings: &Findings<'_>) -> bool {
    let line = findings.sources.line(node.at.file, node.at.line).unwrap_or_default();
    let behind: String = line.chars().skip(node.at.column as usize - 1).collect();
    let value = behind.split_once(':').map_or("", |(_, value)| value.trim_start());
    value.starts_with('#') && !value.starts_with("# ")
}

/// A boolean value.
pub(super) fn boolean(key: &str, node: &YamlNode, findings: &mut Findings<'_>) -> Option<bool> {
    match &node.kind {
        YamlKind::Scalar(_, ScalarType::Boolean(value)) => return Some(*value),
        YamlKind::Scalar(text, ScalarType::Filled) if matches!(text.as_str(), "true" | "false") => {
            return Some(text == "true");
        }
        _ => {}
    }
    findings.error(
        node.at,
        format!("`{key}` must be `true` or `false`, but it is {}", node.describe()),
        format!("write `{key}: true` or `{key}: false`, without quotes"),
    );
    None
}

/// Reports an empty name, and warns of a name that Scoopi does not accept.
pub(super) fn check_name(what: &str, name: &Text, findings: &mut Findings<'_>) {
    if name.text.trim().is_empty() {
        findings.error(
            name.at,
            format!("the name of {what} is empty"),
            "write a name before the colon",
        );
    } else if name.text.contains(['/', '~']) {
        findings.warn(
            name.at,
            format!(
                "the name `{}` contains `/` or `~`, which Scoopi does not accept",
                shorten(&name.text)
            ),
            "use letters, digits and `_` if Scoopi must read these definitions too",
        );
    }
}
