//! Splits XML into tags and texts, for pages and for sitemaps.
//!
//! Input that is not well-formed never fails: a `<` that starts no tag is text, and a tag without
//! its end reaches to the end of the input. [`XmlReader::is_cut`] reports the latter.

use std::borrow::Cow;
use std::ops::Range;

use super::charref::reference;

/// One part of an XML text. Ranges are bytes of that text.
#[derive(Debug)]
pub(crate) enum XmlPart<'t> {
    /// A start tag; [`XmlReader::attributes`] has its attributes. Empty means `<a/>`.
    Start {
        name: &'t str,
        is_empty: bool,
    },
    End {
        name: &'t str,
    },
    /// References such as `&amp;` are not resolved.
    Text(Range<usize>),
    CData(Range<usize>),
    Comment(Range<usize>),
}

#[derive(Debug)]
pub(crate) struct XmlReader<'t> {
    text: &'t str,
    at: usize,
    /// Names and raw values in the last start tag.
    pub(super) attributes: Vec<(&'t str, Range<usize>)>,
    /// Whether the text ended inside a tag, comment or section.
    pub(crate) is_cut: bool,
}

impl<'t> XmlReader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0, attributes: Vec::new(), is_cut: false }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The range between two delimiters, of which the first comes next. Moves behind the second.
    fn between(&mut self, start: &str, end: &str) -> Range<usize> {
        let inside = self.at + start.len();
        let found = self.text[inside..].find(end);
        let until = found.map_or(self.text.len(), |found| inside + found);
        self.is_cut |= found.is_none();
        self.at = (until + end.len()).min(self.text.len());
        inside..until
    }

    /// Moves behind a `<!DOCTYPE ...>` and the declarations in its brackets.
    fn skip_declaration(&mut self) {
        let mut depth = 0_usize;
        let end = self.rest().bytes().position(|byte| {
            match byte {
                b'[' => depth += 1,
                b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            byte == b'>' && depth == 0
        });
        self.is_cut |= end.is_none();
        self.at += end.map_or(self.rest().len(), |end| end + 1);
    }

    /// Reads a name of a tag or attribute.
    fn name(&mut self) -> &'t str {
        let rest = self.rest();
        let ends = |c: char| c.is_whitespace() || matches!(c, '>' | '/' | '=');
        let name = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += name.len();
        name
    }

    fn start(&mut self) -> XmlPart<'t> {
        self.at += 1;
        self.attributes.clear();
        let (name, mut is_empty) = (self.name(), false);
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            match self.rest().bytes().next() {
                Some(b'>') => {
                    self.at += 1;
                    break;
                }
                Some(b'/') => {
                    self.at += 1;
                    is_empty = self.rest().starts_with('>');
                }
                Some(_) => self.attribute(),
                None => {
                    self.is_cut = true;
                    break;
                }
            }
        }
        XmlPart::Start { name, is_empty }
    }

    /// Reads `name="value"` and skips an attribute without a quoted value.
    fn attribute(&mut self) {
        let name = self.name();
        let Some(value) = self.rest().trim_start().strip_prefix('=').map(str::trim_start) else {
            return;
        };
        self.at = self.text.len() - value.len();
        for quote in ["\"", "'"] {
            if value.starts_with(quote) {
                let value = self.between(quote, quote);
                self.attributes.push((name, value));
                return;
            }
        }
    }
}

impl<'t> Iterator for XmlReader<'t> {
    type Item = XmlPart<'t>;

    fn next(&mut self) -> Option<XmlPart<'t>> {
        loop {
            let rest = self.rest();
            let mut after = rest.chars();
            let first = after.next()?;
            let is_tag =
                first == '<' && after.next().is_some_and(|c| c.is_alphabetic() || c == '_');
            return Some(if is_tag {
                self.start()
            } else if rest.starts_with("</") {
                let name = self.between("</", ">");
                XmlPart::End { name: self.text[name].trim() }
            } else if rest.starts_with("<![CDATA[") {
                XmlPart::CData(self.between("<![CDATA[", "]]>"))
            } else if rest.starts_with("<!--") {
                XmlPart::Comment(self.between("<!--", "-->"))
            } else if rest.starts_with("<?") {
                self.between("<?", "?>");
                continue;
            } else if rest.starts_with("<!") {
                self.skip_declaration();
                continue;
            } else {
                let start = self.at;
                let inner = &rest[first.len_utf8()..];
                self.at = self.text.len() - inner.find('<').map_or(0, |end| inner.len() - end);
                XmlPart::Text(start..self.at)
            });
        }
    }
}

/// The text with its references resolved; an unknown one stays as it is. In an address or
/// attribute, `&copy=1` is no reference.
pub(crate) fn resolved(text: &str, is_attribute: bool) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let len = if rest.starts_with("&apos;") {
            out.push('\'');
            "&apos;".len()
        } else if let Some(known) = reference(rest.as_bytes(), is_attribute) {
            out.push(known.first);
            out.extend(known.second);
            known.len
        } else {
            out.push('&');
            1
        };
        rest = rest.get(len..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}
