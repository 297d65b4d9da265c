//! Finds the encoding that a page declares, with the prescan of the HTML standard.
//!
//! It is not a parser: it scans 1024 bytes for `meta` tags and skips comments and other tags.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use super::charset::for_label;

const LOOK_MAX: usize = 1024;

/// The encoding that a `meta` tag declares, else the XML declaration.
pub(super) fn encoding(body: &[u8]) -> Option<&'static Encoding> {
    let head = &body[..body.len().min(LOOK_MAX)];
    // The XML declaration itself is UTF-16.
    if head.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if head.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    MetaScan { bytes: head, at: 0 }.meta().or_else(|| xml_declaration(head))
}

/// Corrects impossible declarations: a page with a readable declaration is not UTF-16.
fn corrected(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

struct MetaScan<'a> {
    bytes: &'a [u8],
    at: usize,
}

struct MetaAttribute {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl MetaScan<'_> {
    fn meta(&mut self) -> Option<&'static Encoding> {
        while self.at < self.bytes.len() {
            let rest = &self.bytes[self.at..];
            if rest.starts_with(b"<!--") {
                self.skip_comment()?;
            } else if is_meta(rest) {
                self.at += b"<meta".len();
                if let Some(encoding) = self.meta_attributes() {
                    return Some(encoding);
                }
            } else if is_tag(rest) {
                self.skip_tag()?;
            } else if matches!(rest, [b'<', b'!' | b'/' | b'?', ..]) {
                self.at += rest.iter().position(|&b| b == b'>')?;
            }
            self.at += 1;
        }
        None
    }

    /// Stops at the last byte of a comment. `<!-->` is a complete comment.
    fn skip_comment(&mut self) -> Option<()> {
        let from = self.at + 2;
        let end = self.bytes[from..].windows(3).position(|w| w == b"-->")?;
        self.at = from + end + 2;
        Some(())
    }

    fn skip_tag(&mut self) -> Option<()> {
        let name = self.bytes[self.at..].iter().position(|&b| is_space(b) || b == b'>')?;
        self.at += name;
        while self.attribute().is_some() {}
        Some(())
    }

    fn meta_attributes(&mut self) -> Option<&'static Encoding> {
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut is_pragma = false;
        let mut needs_pragma = false;
        let mut charset = None;
        while let Some(MetaAttribute { name, value }) = self.attribute() {
            if seen.contains(&name) {
                continue;
            }
            match name.as_slice() {
                b"http-equiv" => is_pragma |= value == b"content-type",
                b"content" if charset.is_none() => {
                    charset = label_in_content(&value).and_then(for_label);
                    needs_pragma = charset.is_some();
                }
                b"charset" => {
                    charset = for_label(&value);
                    needs_pragma = false;
                }
                _ => {}
            }
            seen.push(name);
        }
        charset.filter(|_| is_pragma || !needs_pragma).map(corrected)
    }

    /// Reads one attribute in lower case. `None` at the end of the tag or of the input.
    fn attribute(&mut self) -> Option<MetaAttribute> {
        self.skip_while(|b| is_space(b) || b == b'/');
        if self.peek()? == b'>' {
            return None;
        }
        let mut name = Vec::new();
        loop {
            match self.peek()? {
                b'=' if !name.is_empty() => break,
                b if is_space(b) => {
                    self.skip_while(is_space);
                    if self.peek()? == b'=' {
                        break;
                    }
                    return Some(MetaAttribute { name, value: Vec::new() });
                }
                b'/' | b'>' => {
                    return Some(MetaAttribute { name, value: Vec::new() });
                }
                b => name.push(b.to_ascii_lowercase()),
            }
            self.at += 1;
        }
        self.at += 1;
        self.skip_while(is_space);
        let value = match self.peek()? {
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                let value = self.take_until(|b| b == quote)?;
                self.at += 1;
                value
            }
            _ => self.take_until(|b| is_space(b) || b == b'>')?,
        };
        Some(MetaAttribute { name, value })
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
    }

    /// Takes bytes up to the stop, in lower case. `None` if the input ends before.
    fn take_until(&mut self, stop: impl Fn(u8) -> bool) -> Option<Vec<u8>> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&b| stop(b))?;
        self.at += length;
        Some(rest[..length].to_ascii_lowercase())
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0C' | b'\r' | b' ')
}

fn is_meta(rest: &[u8]) -> bool {
    rest.len() > 5
        && rest[..5].eq_ignore_ascii_case(b"<meta")
        && (is_space(rest[5]) || rest[5] == b'/')
}

fn is_tag(rest: &[u8]) -> bool {
    match rest {
        [b'<', b'/', letter, ..] | [b'<', letter, ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

/// The label in `text/html; charset=label`. A `charset` without `=` is skipped.
fn label_in_content(content: &[u8]) -> Option<&[u8]> {
    const WORD: &[u8] = b"charset";
    let mut rest = content;
    loop {
        let found = rest.windows(WORD.len()).position(|w| w == WORD)?;
        rest = rest[found + WORD.len()..].trim_ascii_start();
        if let Some(after) = rest.strip_prefix(b"=") {
            rest = after.trim_ascii_start();
            break;
        }
    }
    if let (quote @ (b'"' | b'\''), inside) = rest.split_first()? {
        let end = inside.iter().position(|b| b == quote)?;
        return Some(&inside[..end]);
    }
    let end = rest.iter().position(|&b| is_space(b) || b == b';');
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// The encoding of `<?xml ... encoding="label"?>`, which must be at the very start.
fn xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    const WORD: &[u8] = b"encoding";
    let rest = head.strip_prefix(b"<?xml")?;
    let rest = &rest[..rest.iter().position(|&b| b == b'>')?];
    let found = rest.windows(WORD.len()).position(|w| w == WORD)?;
    let rest = rest[found + WORD.len()..].trim_ascii_start();
    let (quote, inside) = rest.strip_prefix(b"=")?.trim_ascii_start().split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let label = &inside[..inside.iter().position(|b| b == quote)?];
    for_label(label).map(corrected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expect: &str) {
        let found = encoding(head.as_bytes()).map_or("none", Encoding::name);
        assert_eq!(found, expect, "in {head}");
    }

    #[test]
    fn a_charset_attribute_declares_the_encoding() {
        check("<meta charset=koi8-r>", "KOI8-R");
        check("<!doctype html><html lang=en><head><META  CharSet = 'KOI8-R' />", "KOI8-R");
        check("<meta/charset=\"koi8-r\">", "KOI8-R");
        check("<meta name=x charset=koi8-r>", "KOI8-R");
        check("<meta charset=koi8-r charset=utf-8>", "KOI8-R");
        check("<meta charset='koi8-r'", "KOI8-R");
        check("<meta charset=klingon><meta charset=koi8-r>", "KOI8-R");
    }

    #[test]
    fn a_charset_in_content_needs_http_equiv() {
        check("<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>", "KOI8-R");
        check("<meta content='text/html;charset=\"koi8-r\"' http-equiv='content-type'>", "KOI8-R");
        check("<meta http-equiv=content-type content='charset charset = koi8-r;x'>", "KOI8-R");
        check("<meta content='text/html; charset=koi8-r'>", "none");
        check("<meta http-equiv=refresh content='text/html; charset=koi8-r'>", "none");
        check("<meta http-equiv=content-type content='text/html'>", "none");
        check("<meta http-equiv=content-type content='charset=\"koi8-r'>", "none");
        check("<meta content='charset=koi8-r' charset=utf-8>", "UTF-8");
    }

    #[test]
    fn meta_tags_in_comments_and_attributes_are_skipped() {
        check("<!-- <meta charset=koi8-r> --><meta charset=utf-8>", "UTF-8");
        check("<!--><meta charset=koi8-r>", "KOI8-R");
        check("<!-- <meta charset=koi8-r>", "none");
        check("<p title='<meta charset=koi8-r>'><meta charset=utf-8>", "UTF-8");
        check("</p title='<meta charset=koi8-r>'><meta charset=utf-8>", "UTF-8");
        check("<?php <meta charset=koi8-r>", "none");
        check("<metadata charset=koi8-r>", "none");
        check("a < b <meta charset=koi8-r>", "KOI8-R");
        check("<meta charset=koi8-r", "none");
        check("<meta charset='koi8-r", "none");
        check("<meta", "none");
        check("<", "none");
        check("", "none");
    }

    #[test]
    fn only_the_first_1024_bytes_are_scanned() {
        let tag = "<meta charset=koi8-r>";
        check(&format!("{}{tag}", " ".repeat(LOOK_MAX - tag.len())), "KOI8-R");
        check(&format!("{}{tag}", " ".repeat(LOOK_MAX - tag.len() + 1)), "none");
    }

    #[test]
    fn impossible_declarations_are_corrected() {
        check("<meta charset=utf-16>", "UTF-8");
        check("<meta charset=utf-16be>", "UTF-8");
        check("<meta charset=x-user-defined>", "windows-1252");
    }

    #[test]
    fn an_xml_declaration_comes_after_meta_tags() {
        check("<?xml version='1.0' encoding='koi8-r'?><html>", "KOI8-R");
        check("<?xml version=\"1.0\" encoding = \"utf-16\" ?>", "UTF-8");
        check("<?xml encoding='koi8-r'?><meta charset=windows-1251>", "windows-1251");
        check(" <?xml encoding='koi8-r'?>", "none");
        check("<?xml encoding=koi8-r?>", "none");
        check("<?xml version='1.0'?>", "none");
        check("<\0?\0x\0m\0l\0", "UTF-16LE");
        check("\0<\0?\0x\0m\0l", "UTF-16BE");
    }
}
