//! Parses JSON without recursion.

use std::borrow::Cow;

use super::{Json, JsonKind, JsonNode, NodeSpan};

/// Nested arrays and objects.
const DEPTH_MAX: usize = 1_000;

/// Nodes of one text. A node takes 24 bytes.
const NODES_MAX: usize = 4_000_000;

/// Parses the value at the start of `text`. Also returns the offset of its end.
pub(super) fn read(text: &str) -> Option<(Json, usize)> {
    if text.len() >= u32::MAX as usize {
        return None;
    }
    let mut reader =
        JsonReader { bytes: text.as_bytes(), at: 0, nodes: Vec::new(), open: Vec::new() };
    reader.run()?;
    let (nodes, end) = (reader.nodes, reader.at);
    Some((Json { source: text[..end].into(), nodes }, end))
}

struct JsonReader<'t> {
    bytes: &'t [u8],
    at: usize,
    nodes: Vec<NodeSpan>,
    /// Arrays and objects whose end was not read yet.
    open: Vec<JsonNode>,
}

impl JsonReader<'_> {
    fn run(&mut self) -> Option<()> {
        self.space();
        self.value((0, 0))?;
        while let Some(&inner) = self.open.last() {
            self.space();
            let is_object = self.nodes[inner as usize].kind == JsonKind::Object;
            let close = if is_object { b'}' } else { b']' };
            let is_first = self.nodes.len() == inner as usize + 1;
            if !is_first && self.peek()? != close {
                self.expect(b',')?;
                self.space();
            }
            if self.peek()? == close {
                self.at += 1;
                self.close(inner);
                continue;
            }
            let name = if is_object { self.name()? } else { (0, 0) };
            self.value(name)?;
        }
        Some(())
    }

    fn close(&mut self, inner: JsonNode) {
        let after = self.nodes.len() as JsonNode;
        let node = &mut self.nodes[inner as usize];
        node.after = after;
        node.end = self.at as u32;
        self.open.pop();
    }

    fn name(&mut self) -> Option<(u32, u32)> {
        let start = self.at as u32;
        self.quoted()?;
        let name = (start, self.at as u32);
        self.space();
        self.expect(b':')?;
        self.space();
        Some(name)
    }

    /// Reads a scalar, or the opening bracket of an array or object.
    fn value(&mut self, name: (u32, u32)) -> Option<()> {
        let start = self.at;
        let kind = match self.peek()? {
            b'{' => JsonKind::Object,
            b'[' => JsonKind::Array,
            b'"' => JsonKind::Text,
            b't' | b'f' => JsonKind::Boolean,
            b'n' => JsonKind::Null,
            _ => JsonKind::Number,
        };
        match kind {
            JsonKind::Object | JsonKind::Array => {
                if self.open.len() >= DEPTH_MAX {
                    return None;
                }
                self.open.push(self.nodes.len() as JsonNode);
                self.at += 1;
            }
            JsonKind::Text => self.quoted()?,
            JsonKind::Number => self.number()?,
            JsonKind::Boolean | JsonKind::Null => self.word()?,
        }
        if self.nodes.len() >= NODES_MAX {
            return None;
        }
        let after = self.nodes.len() as JsonNode + 1;
        let (start, end) = (start as u32, self.at as u32);
        self.nodes.push(NodeSpan { kind, start, end, after, name });
        Some(())
    }

    fn quoted(&mut self) -> Option<()> {
        self.expect(b'"')?;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        let rest = &self.bytes[self.at..];
        let word =
            ["true", "false", "null"].iter().find(|word| rest.starts_with(word.as_bytes()))?;
        self.at += word.len();
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        self.skip(|byte| byte == b'-', 1);
        self.skip(|byte| byte.is_ascii_digit(), usize::MAX).checked_sub(1)?;
        if self.skip(|byte| byte == b'.', 1) == 1 {
            self.skip(|byte| byte.is_ascii_digit(), usize::MAX).checked_sub(1)?;
        }
        if self.skip(|byte| byte.eq_ignore_ascii_case(&b'e'), 1) == 1 {
            self.skip(|byte| matches!(byte, b'+' | b'-'), 1);
            self.skip(|byte| byte.is_ascii_digit(), usize::MAX).checked_sub(1)?;
        }
        Some(())
    }

    /// Skips at most `max` bytes that match. Returns the number of skipped bytes.
    fn skip(&mut self, is_meant: impl Fn(u8) -> bool, max: usize) -> usize {
        let rest = &self.bytes[self.at..];
        let count = rest.iter().take(max).take_while(|byte| is_meant(**byte)).count();
        self.at += count;
        count
    }

    fn space(&mut self) {
        self.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'), usize::MAX);
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }
}

/// Resolves the escapes of a text. An unknown escape stands for its letter.
pub(super) fn unquote(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(letter) = rest.chars().next() else {
            break;
        };
        rest = &rest[letter.len_utf8()..];
        match letter {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' => {
                let (character, used) = unit(rest);
                out.push(character);
                rest = &rest[used..];
            }
            other => out.push(other),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Decodes what follows `\u`, including a second surrogate. Returns the bytes read as well.
fn unit(rest: &str) -> (char, usize) {
    let number = |text: &str| u16::from_str_radix(text.get(..4)?, 16).ok();
    let Some(first) = number(rest) else {
        return (char::REPLACEMENT_CHARACTER, 0);
    };
    let second = rest[4..].strip_prefix("\\u").and_then(number);
    let pair = second.and_then(|low| char::decode_utf16([first, low]).next()?.ok());
    match pair {
        Some(both) if u32::from(both) > 0xFFFF => (both, 10),
        _ => (char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER), 4),
    }
}
