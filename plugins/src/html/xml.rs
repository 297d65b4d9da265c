//! Pages that are XML, such as feeds. Names keep their letters, a CDATA section is text, and every
//! element ends where its end tag stands. What is not well-formed is read as far as it makes sense.

use std::collections::HashMap;
use std::time::Instant;

use super::charref::reference;
use super::name::{NameId, NameInterner, Namespace};
use super::tree::{InsertPosition, Range32, TreeBuilder};
use super::{AttributeEntry, Document, TreeError, TreeLimits};

/// Parts of a page between two looks at the clock.
const STEPS: usize = 4096;

/// Parses a page that is XML.
pub(super) fn parse(xml: &str, limits: TreeLimits) -> Result<Document, TreeError> {
    let page = xml.strip_prefix('\u{feff}').unwrap_or(xml);
    if page.len() > u32::MAX as usize / 8 {
        return Err(TreeError::TooLong);
    }
    let mut reader = Reader {
        page,
        extra: String::new(),
        tree: TreeBuilder::new(page.len()),
        names: NameInterner::default(),
        open: Vec::new(),
        counts: HashMap::new(),
    };
    reader.run(limits)?;
    reader.tree.join_pieces(page, &mut reader.extra);
    if !reader.tree.number_nodes(limits.depth_max) {
        return Err(TreeError::TooDeep(limits.depth_max));
    }
    let text = [page, &reader.extra].concat();
    let names = reader.names.into_others();
    Ok(Document::new(reader.tree.nodes, reader.tree.attributes, names, text))
}

struct Reader<'p> {
    page: &'p str,
    /// Texts that do not stand so in the page.
    extra: String,
    tree: TreeBuilder,
    names: NameInterner,
    open: Vec<(u32, NameId)>,
    /// How many open elements have a name.
    counts: HashMap<u32, usize>,
}

impl Reader<'_> {
    fn run(&mut self, limits: TreeLimits) -> Result<(), TreeError> {
        let (mut at, mut steps) = (0, 0_usize);
        while at < self.page.len() {
            at = self.step(at);
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

    /// Reads one text or tag; gives where the next one starts.
    fn step(&mut self, at: usize) -> usize {
        let rest = &self.page[at..];
        let past = |start: &str, end: &str| {
            let inside = at + start.len();
            let found = self.page[inside..].find(end);
            let until = found.map_or(self.page.len(), |found| inside + found);
            (inside, until, (until + end.len()).min(self.page.len()))
        };
        if let Some(data) = rest.strip_prefix("<![CDATA[") {
            let (start, end, next) = past("<![CDATA[", "]]>");
            if !data.is_empty() && end > start {
                self.text(Range32 { start: start as u32, len: (end - start) as u32 });
            }
            return next;
        }
        if rest.starts_with("<!--") {
            let (start, end, next) = past("<!--", "-->");
            let words = Range32 { start: start as u32, len: (end - start) as u32 };
            self.tree.add_comment(InsertPosition::at_end(self.parent()), words);
            return next;
        }
        if rest.starts_with("<?") {
            return past("<?", "?>").2;
        }
        if rest.starts_with("<!") {
            return self.skip_declaration(at);
        }
        if rest.starts_with("</") {
            let (start, end, next) = past("</", ">");
            self.end(self.page[start..end].trim());
            return next;
        }
        if rest
            .strip_prefix('<')
            .is_some_and(|it| it.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        {
            return self.start(at + 1);
        }
        // Text up to the next tag; a lone `<` is a letter.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let len = rest[first..].find('<').map_or(rest.len(), |found| first + found);
        self.words(at, at + len);
        at + len
    }

    fn parent(&self) -> u32 {
        self.open.last().map_or(0, |(node, _)| *node)
    }

    /// A `<!DOCTYPE ...>`, with the declarations in its brackets.
    fn skip_declaration(&self, at: usize) -> usize {
        let rest = &self.page[at..];
        let end = rest.find('>').map_or(rest.len(), |end| end + 1);
        match rest[..end].find('[') {
            Some(open) => rest[open..].find("]>").map_or(self.page.len(), |it| at + open + it + 2),
            None => at + end,
        }
    }

    fn text(&mut self, words: Range32) {
        // White space around the root belongs to nobody.
        if !self.open.is_empty() {
            self.tree.add_text(InsertPosition::at_end(self.parent()), words);
        }
    }

    fn words(&mut self, start: usize, end: usize) {
        let words = self.span(start, end);
        self.text(words);
    }

    /// A part of the page with its references resolved.
    fn span(&mut self, start: usize, end: usize) -> Range32 {
        let text = &self.page[start..end];
        if !text.contains('&') {
            return Range32 { start: start as u32, len: (end - start) as u32 };
        }
        let from = self.extra.len();
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            self.extra.push_str(&rest[..at]);
            rest = &rest[at..];
            let len = if let Some(apostrophe) = rest.strip_prefix("&apos;") {
                self.extra.push('\'');
                rest.len() - apostrophe.len()
            } else if let Some(known) = reference(rest.as_bytes(), false) {
                self.extra.push(known.first);
                self.extra.extend(known.second);
                known.len
            } else {
                self.extra.push('&');
                1
            };
            rest = rest.get(len..).unwrap_or_default();
        }
        self.extra.push_str(rest);
        let len = (self.extra.len() - from) as u32;
        Range32 { start: (self.page.len() + from) as u32, len }
    }

    /// Reads a start tag from its name on.
    fn start(&mut self, at: usize) -> usize {
        let ends = |c: char| c.is_whitespace() || matches!(c, '>' | '/' | '=');
        let length = |from: usize| self.page[from..].find(ends).unwrap_or(self.page.len() - from);
        let name = self.page[at..at + length(at)].to_owned();
        let mut at = at + name.len();
        let first = self.tree.attributes.len();
        let mut is_complete = false;
        loop {
            let rest = &self.page[at..];
            at += rest.len() - rest.trim_start().len();
            match self.page[at..].chars().next() {
                None => break,
                Some('>') => {
                    at += 1;
                    break;
                }
                Some('/') => {
                    is_complete = self.page[at + 1..].starts_with('>');
                    at += 1;
                }
                Some(_) => at = self.attribute(at),
            }
        }
        let count = self.tree.attributes.len() - first;
        let id = self.names.number(&name);
        let attributes = Range32 { start: first as u32, len: count as u32 };
        let node = self.tree.element(id, Namespace::XML, attributes);
        self.tree.insert(InsertPosition::at_end(self.parent()), node);
        if !is_complete {
            self.open.push((node, id));
            *self.counts.entry(id.raw()).or_default() += 1;
        }
        at
    }

    /// Reads `name="value"`; what has no value is passed over.
    fn attribute(&mut self, at: usize) -> usize {
        let rest = &self.page[at..];
        let ends = |c: char| c.is_whitespace() || matches!(c, '>' | '/' | '=');
        let length = rest.find(ends).unwrap_or(rest.len());
        let name = &rest[..length];
        let after = rest[length..].trim_start();
        let Some(value) = after.strip_prefix('=').map(str::trim_start) else {
            return at + length.max(1);
        };
        let start = self.page.len() - value.len();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let Some(quote) = quote else {
            return start.max(at + 1);
        };
        let end = value[1..].find(quote).map_or(self.page.len(), |end| start + 1 + end);
        let name = self.names.number(name);
        let Range32 { start: place, len } = self.span(start + 1, end);
        self.tree.attributes.push(AttributeEntry { name, at: place, len });
        (end + 1).min(self.page.len())
    }

    /// Ends the innermost element of that name and all in it.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Element names with their own texts and attributes, as an outline.
    fn outline(xml: &str) -> String {
        let document = parse(xml, TreeLimits::default()).unwrap();
        let nodes = document.all().filter(|node| document.is_element(*node));
        let told = nodes.map(|node| {
            let attributes: Vec<String> =
                document.attributes(node).map(|(key, value)| format!(" {key}={value}")).collect();
            let name = document.name(node).map_or("", |name| &**name);
            format!("{name}{}[{}]", attributes.concat(), document.text_content(node))
        });
        told.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn feeds() {
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
    fn what_is_broken_is_read_all_the_same() {
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
            "< a>ü",
        ] {
            outline(xml);
        }
        assert_eq!(outline("<a><b>x</a>y<c>"), "a[x] b[x] c[]");
        assert_eq!(outline("<a>1 < 2 & 3<b x y='1'/></a>"), "a[1 < 2 & 3] b y=1[]");
    }

    #[test]
    fn limits() {
        let deep = "<a>".repeat(6_000);
        assert_eq!(parse(&deep, TreeLimits::default()).err(), Some(TreeError::TooDeep(5_000)));
        let limits = TreeLimits { nodes_max: 10, ..TreeLimits::default() };
        assert_eq!(parse(&"<a/>".repeat(20), limits).err(), Some(TreeError::TooManyNodes(10)));
    }
}
