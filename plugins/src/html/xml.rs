//! Builds the tree of a page that is XML, such as a feed. Names keep their case, a CDATA section is
//! text, and an element ends at its end tag. A page that is not well-formed still gives a tree.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::time::Instant;

use super::name::{NameId, NameInterner, Namespace};
use super::tree::{InsertPosition, Range32, TreeBuilder};
use super::xml_reader::{XmlPart, XmlReader, resolved};
use super::{AttributeEntry, Document, TreeError, TreeLimits};

/// Parts of a page between two checks of the deadline.
const STEPS: usize = 4096;

/// Parses a page that is XML.
pub(super) fn parse(xml: &str, limits: TreeLimits) -> Result<Document, TreeError> {
    let page = xml.strip_prefix('\u{feff}').unwrap_or(xml);
    if page.len() > u32::MAX as usize / 8 {
        return Err(TreeError::TooLong);
    }
    let mut builder = XmlTreeBuilder {
        page,
        extra: String::new(),
        tree: TreeBuilder::new(page.len()),
        names: NameInterner::default(),
        open: Vec::new(),
        counts: HashMap::new(),
    };
    builder.run(limits)?;
    builder.tree.join_pieces(page, &mut builder.extra);
    if !builder.tree.number_nodes(limits.depth_max) {
        return Err(TreeError::TooDeep(limits.depth_max));
    }
    let text = [page, &builder.extra].concat();
    let names = builder.names.into_others();
    Ok(Document::new(builder.tree.nodes, builder.tree.attributes, names, text))
}

struct XmlTreeBuilder<'p> {
    page: &'p str,
    /// Texts that differ from the page, because their references are resolved.
    extra: String,
    tree: TreeBuilder,
    names: NameInterner,
    open: Vec<(u32, NameId)>,
    /// Number of open elements by name, so that an end tag without a start tag costs no search.
    counts: HashMap<u32, usize>,
}

impl XmlTreeBuilder<'_> {
    fn run(&mut self, limits: TreeLimits) -> Result<(), TreeError> {
        let mut reader = XmlReader::new(self.page);
        let mut steps = 0_usize;
        while let Some(part) = reader.next() {
            self.add(part, &reader.attributes);
            steps += 1;
            if self.tree.nodes.len() > limits.nodes_max {
                return Err(TreeError::TooManyNodes(limits.nodes_max));
            }
            if self.open.len() >= limits.depth_max {
                return Err(TreeError::TooDeep(limits.depth_max));
            }
            if steps.is_multiple_of(STEPS) && limits.deadline.is_some_and(|it| Instant::now() >= it)
            {
                return Err(TreeError::TooSlow);
            }
        }
        Ok(())
    }

    fn add(&mut self, part: XmlPart<'_>, attributes: &[(&str, Range<usize>)]) {
        match part {
            XmlPart::Start { name, is_empty } => self.start(name, is_empty, attributes),
            XmlPart::End { name } => self.end(name),
            XmlPart::Text(text) => {
                let text = self.resolve(text);
                self.text(text);
            }
            XmlPart::CData(text) if text.is_empty() => {}
            XmlPart::CData(text) => self.text(in_page(&text)),
            XmlPart::Comment(text) => {
                self.tree.add_comment(InsertPosition::at_end(self.parent()), in_page(&text));
            }
        }
    }

    fn parent(&self) -> u32 {
        self.open.last().map_or(0, |(node, _)| *node)
    }

    fn text(&mut self, text: Range32) {
        // White space around the root belongs to no element.
        if !self.open.is_empty() {
            self.tree.add_text(InsertPosition::at_end(self.parent()), text);
        }
    }

    /// Resolves the references in a part of the page.
    fn resolve(&mut self, part: Range<usize>) -> Range32 {
        let Cow::Owned(text) = resolved(&self.page[part.clone()], false) else {
            return in_page(&part);
        };
        let start = (self.page.len() + self.extra.len()) as u32;
        self.extra.push_str(&text);
        Range32 { start, len: text.len() as u32 }
    }

    fn start(&mut self, name: &str, is_empty: bool, attributes: &[(&str, Range<usize>)]) {
        let first = self.tree.attributes.len() as u32;
        for (name, value) in attributes {
            let name = self.names.number(name);
            let Range32 { start: at, len } = self.resolve(value.clone());
            self.tree.attributes.push(AttributeEntry { name, at, len });
        }
        let id = self.names.number(name);
        let attributes = Range32 { start: first, len: attributes.len() as u32 };
        let node = self.tree.element(id, Namespace::XML, attributes);
        self.tree.insert(InsertPosition::at_end(self.parent()), node);
        if !is_empty {
            self.open.push((node, id));
            *self.counts.entry(id.raw()).or_default() += 1;
        }
    }

    /// Ends the innermost open element with this name and everything inside it.
    fn end(&mut self, name: &str) {
        let id = self.names.number(name);
        if self.counts.get(&id.raw()).is_none_or(|count| *count == 0) {
            return;
        }
        while let Some((_, last)) = self.open.pop() {
            if let Some(count) = self.counts.get_mut(&last.raw()) {
                *count -= 1;
            }
            if last == id {
                return;
            }
        }
    }
}

fn in_page(part: &Range<usize>) -> Range32 {
    Range32 { start: part.start as u32, len: part.len() as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The elements on one line: name, attributes, and the text in brackets.
    fn outline(xml: &str) -> String {
        let document = parse(xml, TreeLimits::default()).unwrap();
        let nodes = document.all().filter(|node| document.is_element(*node));
        let elements = nodes.map(|node| {
            let attributes: Vec<String> =
                document.attributes(node).map(|(key, value)| format!(" {key}={value}")).collect();
            let name = document.name(node).map_or("", |name| &**name);
            format!("{name}{}[{}]", attributes.concat(), document.text_content(node))
        });
        elements.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_feed_keeps_its_names_and_texts() {
        let xml = "<?xml version='1.0'?><!DOCTYPE rss [<!ENTITY a 'b'>]>\n<rss><item>\
            <title><![CDATA[One & <b>two</b>]]></title><link>http://h/?a=1&amp;b=2</link>\
            <pubDate>x</pubDate><dc:creator a:b='c&quot;' d=\"e>f\"/><br>y</br></item></rss>\n";
        assert_eq!(
            outline(xml),
            "rss[One & <b>two</b>http://h/?a=1&b=2xy] item[One & <b>two</b>http://h/?a=1&b=2xy] \
             title[One & <b>two</b>] link[http://h/?a=1&b=2] pubDate[x] dc:creator a:b=c\" d=e>f[] \
             br[y]"
        );
    }

    #[test]
    fn input_that_is_not_well_formed_gives_a_tree() {
        for xml in [
            "",
            "<",
            "<a",
            "<a b",
            "<a b=",
            "<a b='",
            "<a/",
            "</",
            "<!",
            "<![CDATA[",
            "<!--",
            "<a =x>",
            "<a ==>",
            "<a b=c d='1'>",
            "<é ü='ß'>&#x;&",
            "<a></b></a></a><c>",
            "<!DOCTYPE a [",
            "< a>ü",
        ] {
            outline(xml);
        }
        assert_eq!(outline("<a><b>x</a>y<c>"), "a[x] b[x] c[]");
        assert_eq!(outline("<a>1 < 2 & 3<b x y='1'/></a>"), "a[1 < 2 & 3] b y=1[]");
    }

    #[test]
    fn limits_refuse_a_page() {
        let deep = "<a>".repeat(6_000);
        assert_eq!(parse(&deep, TreeLimits::default()).err(), Some(TreeError::TooDeep(5_000)));
        let limits = TreeLimits { nodes_max: 10, ..TreeLimits::default() };
        assert_eq!(parse(&"<a/>".repeat(20), limits).err(), Some(TreeError::TooManyNodes(10)));
    }
}
