//! The tokenizer: text without tags (`<script>`, `<style>`, `<title>` and the like), comments,
//! doctypes and CDATA sections.

use super::HtmlDialect;
use super::name::name_of;
use super::parse::{HtmlParser, HtmlToken, TokenizerState};
use super::stack::IS_HTML;
use super::tokens::ends_name;
use super::tree::Range32;

impl HtmlParser<'_> {
    /// Reads the text of a `<title>` or `<textarea>`, in which references are resolved.
    pub(super) fn read_rcdata(&mut self) {
        let end = self.end_tag_from(self.at);
        self.read_raw_to(end, true);
    }

    /// Reads the text of a `<style>` or similar element, in which nothing is resolved.
    pub(super) fn read_rawtext(&mut self) {
        let end = self.end_tag_from(self.at);
        self.read_raw_to(end, false);
    }

    /// Reads the code of a `<script>`.
    pub(super) fn read_script(&mut self) {
        let end = self.script_end();
        self.read_raw_to(end, false);
    }

    pub(super) fn read_plaintext(&mut self) {
        let text = self.replaced(self.at, self.page.len(), false);
        self.at = self.page.len();
        self.text(text);
    }

    fn read_raw_to(&mut self, end: Option<usize>, resolves: bool) {
        let text = self.replaced(self.at, end.unwrap_or(self.page.len()), resolves);
        let text = self.without_first_line_feed(text);
        self.skips_line_feed = false;
        self.insert_text(text);
        let name_len = self.raw_name().len();
        let after = end.and_then(|end| self.skip_attributes(end + 2 + name_len));
        match after {
            Some(at) => {
                self.at = at;
                self.state = TokenizerState::Data;
                self.stack.pop();
            }
            None => self.ignore_rest(),
        }
    }

    /// The name of the current node, whose end tag ends the text.
    fn raw_name(&self) -> &'static str {
        let name = self.stack.top().name;
        if name.is_known() { name_of(name, &[]) } else { "" }
    }

    /// The position of the end tag of the current node.
    fn end_tag_from(&self, from: usize) -> Option<usize> {
        let name = self.raw_name();
        let rest = &self.page.as_bytes()[from..];
        let mut all = memchr::memchr_iter(b'<', rest).map(|at| from + at);
        all.find(|at| self.is_end_tag(*at, name))
    }

    /// Whether an end tag with this name starts at `at`.
    fn is_end_tag(&self, at: usize, name: &str) -> bool {
        self.page.as_bytes().get(at + 1) == Some(&b'/') && self.is_name(at + 2, name)
    }

    fn is_name(&self, at: usize, name: &str) -> bool {
        let found = self.page.as_bytes().get(at..at + name.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
            && self.page.as_bytes().get(at + name.len()).is_some_and(|byte| ends_name(*byte))
    }

    /// The position of the end tag of a script. Inside `<!-- ... -->`, a nested `<script>` takes
    /// one end tag for itself.
    fn script_end(&self) -> Option<usize> {
        const NAME: &str = "script";
        let bytes = self.page.as_bytes();
        let mut at = self.at;
        let (mut in_comment, mut in_script) = (false, false);
        loop {
            let rest = bytes.get(at..)?;
            at += if in_comment {
                memchr::memchr2(b'<', b'-', rest)?
            } else {
                memchr::memchr(b'<', rest)?
            };
            let rest = &bytes[at..];
            if rest[0] == b'-' {
                if rest.starts_with(b"-->") {
                    (in_comment, in_script) = (false, false);
                }
                at += 1;
            } else if self.is_end_tag(at, NAME) {
                if !in_script {
                    return Some(at);
                }
                in_script = false;
                at += 2 + NAME.len();
            } else if !in_comment && rest.starts_with(b"<!--") {
                in_comment = true;
                // `<!-->` closes the comment with the dashes that opened it.
                at += 2;
            } else {
                in_script |= in_comment && self.is_name(at + 1, NAME);
                at += 1;
            }
        }
    }

    /// Reads a token that starts with `<!`.
    pub(super) fn read_declaration(&mut self) {
        let start = self.at + 2;
        let rest = &self.page.as_bytes()[start..];
        let is_doctype = |name: &[u8]| name.eq_ignore_ascii_case(b"doctype");
        if rest.starts_with(b"--") {
            self.read_comment(start + 2);
        } else if rest.get(..7).is_some_and(is_doctype) {
            // A `>` ends a doctype even inside quotes.
            let end = memchr::memchr(b'>', rest);
            self.at = end.map_or(self.page.len(), |end| start + end + 1);
            self.process(HtmlToken::Doctype);
        } else if rest.starts_with(b"[CDATA[") && self.takes_cdata() {
            self.read_cdata(start + 7);
        } else {
            self.read_bogus_comment(start);
        }
    }

    fn takes_cdata(&self) -> bool {
        self.dialect == HtmlDialect::Jsoup || !self.stack.top().has(IS_HTML)
    }

    fn read_comment(&mut self, start: usize) {
        let rest = &self.page.as_bytes()[start..];
        let (len, end) = if rest.starts_with(b">") {
            (0, 1)
        } else if rest.starts_with(b"->") {
            (0, 2)
        } else {
            comment_end(rest)
        };
        self.comment(start, start + len, start + end);
    }

    /// Reads a bogus comment, which ends at the next `>`.
    pub(super) fn read_bogus_comment(&mut self, start: usize) {
        let rest = &self.page.as_bytes()[start..];
        let len = memchr::memchr(b'>', rest).unwrap_or(rest.len());
        self.comment(start, start + len, self.page.len().min(start + len + 1));
    }

    fn comment(&mut self, start: usize, end: usize, after: usize) {
        let text = self.replaced(start, end, false);
        self.at = after;
        self.process(HtmlToken::Comment(text));
    }

    fn read_cdata(&mut self, start: usize) {
        let rest = &self.page.as_bytes()[start..];
        let found = memchr::memmem::find(rest, b"]]>");
        let end = found.map_or(self.page.len(), |len| start + len);
        self.at = if found.is_some() { end + 3 } else { end };
        let mut from = start;
        while from < end {
            let text = &self.page.as_bytes()[from..end];
            let len = if self.has_nul { memchr::memchr(0, text) } else { None };
            let len = len.unwrap_or(text.len());
            self.text(Range32 { start: from as u32, len: len as u32 });
            from += len;
            if from < end {
                self.process(HtmlToken::Nul);
                from += 1;
            }
        }
    }
}

/// The length of a comment's text, and the position after the comment.
fn comment_end(text: &[u8]) -> (usize, usize) {
    for at in memchr::memchr_iter(b'-', text) {
        let rest = &text[at..];
        if rest.starts_with(b"-->") {
            return (at, at + 3);
        }
        if rest.starts_with(b"--!>") {
            return (at, at + 4);
        }
    }
    let cut = [&b"--!"[..], b"--", b"-"].into_iter().find(|cut| text.ends_with(cut));
    (text.len() - cut.map_or(0, <[u8]>::len), text.len())
}
