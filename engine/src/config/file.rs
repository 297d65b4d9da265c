//! The settings file: YAML as a list of dotted names with their places.
//!
//! It reads the events of the YAML parser, because a value is text until the table gives its kind: `0x10`
//! and `1e3` must arrive as written. A mistake in one place must not hide others.

use std::path::Path;

use granit_parser::{Event, Parser, ScalarStyle, Span as Extent};
use spoonbill_defs::{Problem, Sources, Span};

/// One value of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The dotted name that the nesting makes.
    pub(super) name: String,
    /// The place of the innermost key.
    pub(super) name_at: Span,
    /// The text; `None` for an empty value or `null`.
    pub(super) text: Option<String>,
    /// The place of the text.
    pub(super) text_at: Span,
}

/// Reads a file. Returns its values in order, and the problems of its form.
pub(super) fn read(path: &Path, sources: &mut Sources) -> (Vec<Leaf>, Vec<Problem>) {
    let nowhere = Span::default();
    let shown = path.display();
    let problem = match std::fs::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => return flatten(path, &text, sources),
        Ok(Err(_)) => format!("settings file `{shown}` is not UTF-8"),
        Err(error) => format!("settings file `{shown}` cannot be read: {error}"),
    };
    (Vec::new(), vec![Problem::error(sources, nowhere, problem)])
}

fn flatten(path: &Path, text: &str, sources: &mut Sources) -> (Vec<Leaf>, Vec<Problem>) {
    // A byte order mark would shift the columns of the first line.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let file = sources.add(path, text);
    let mut flattener = Flattener {
        sources,
        file,
        frames: Vec::new(),
        skipping: 0,
        documents: 0,
        leaves: Vec::new(),
        problems: Vec::new(),
    };
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, extent)) => flattener.take(event, extent),
            Err(error) => {
                let mark = *error.marker();
                let at = flattener.span(Extent::new(mark, mark));
                flattener.complain(at, format!("not valid YAML: {}", error.info()));
                break;
            }
        }
    }
    (flattener.leaves, flattener.problems)
}

struct Flattener<'a> {
    sources: &'a Sources,
    file: u32,
    frames: Vec<Frame>,
    /// The depth of a collection that is skipped because it is not allowed there.
    skipping: usize,
    documents: usize,
    leaves: Vec<Leaf>,
    problems: Vec<Problem>,
}

/// A mapping being read.
struct Frame {
    /// The names above it, with a trailing dot.
    prefix: String,
    next: Next,
}

enum Next {
    Key,
    Value {
        name: String,
        at: Span,
    },
    /// The value of a key that was refused.
    Refused,
}

impl Flattener<'_> {
    fn take(&mut self, event: Event<'_>, extent: Extent) {
        if self.skipping > 0 {
            match event {
                Event::MappingStart(..) | Event::SequenceStart(..) => self.skipping += 1,
                Event::MappingEnd | Event::SequenceEnd => self.skipping -= 1,
                _ => {}
            }
            return;
        }
        let at = self.span(extent);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents == 2 {
                    self.complain(at, "a settings file holds one document only".to_owned());
                }
            }
            Event::MappingStart(..) => self.open(at),
            Event::MappingEnd => {
                self.frames.pop();
            }
            Event::SequenceStart(..) => {
                self.refuse(at, "a list");
                self.skipping = 1;
            }
            Event::Alias(..) => self.refuse(at, "an alias"),
            Event::Scalar(text, style, _, tag) => {
                let null = style == ScalarStyle::Plain
                    && tag.is_none()
                    && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                self.scalar((!null).then(|| text.into_owned()), at);
            }
            _ => {}
        }
    }

    fn open(&mut self, at: Span) {
        let prefix = match self.frames.last_mut() {
            None => String::new(),
            Some(frame) => match std::mem::replace(&mut frame.next, Next::Key) {
                Next::Value { name, .. } => format!("{name}."),
                Next::Refused => {
                    self.skipping = 1;
                    return;
                }
                Next::Key => {
                    self.refuse(at, "a mapping");
                    self.skipping = 1;
                    return;
                }
            },
        };
        self.frames.push(Frame { prefix, next: Next::Key });
    }

    fn scalar(&mut self, text: Option<String>, at: Span) {
        let Some(frame) = self.frames.last_mut() else {
            if text.is_some() {
                self.refuse(at, "one text");
            }
            return;
        };
        match std::mem::replace(&mut frame.next, Next::Key) {
            Next::Key => {
                let name = format!("{}{}", frame.prefix, text.unwrap_or_default());
                frame.next = Next::Value { name, at };
            }
            Next::Value { name, at: name_at } => {
                self.leaves.push(Leaf { name, name_at, text, text_at: at });
            }
            Next::Refused => {}
        }
    }

    /// Reports a node that is not allowed here, and continues after it.
    fn refuse(&mut self, at: Span, what: &str) {
        let Some(frame) = self.frames.last_mut() else {
            let message = format!("a settings file is a mapping of names to values, not {what}");
            return self.complain(at, message);
        };
        match std::mem::replace(&mut frame.next, Next::Key) {
            Next::Key => {
                frame.next = Next::Refused;
                self.complain(at, format!("the name of a setting is a text, not {what}"));
            }
            Next::Value { name, .. } => {
                self.complain(at, format!("setting `{name}` takes one value, not {what}"));
            }
            Next::Refused => {}
        }
    }

    fn complain(&mut self, at: Span, message: String) {
        self.problems.push(Problem::error(self.sources, at, message));
    }

    fn span(&self, extent: Extent) -> Span {
        let (start, end) = (extent.start, extent.end);
        let width = if end.line() == start.line() {
            end.col().saturating_sub(start.col())
        } else {
            let line = self.sources.line(self.file, start.line() as u32);
            line.map_or(1, |line| line.chars().count().saturating_sub(start.col()))
        };
        Span {
            file: self.file,
            line: start.line() as u32,
            column: start.col() as u32 + 1,
            width: width.max(1) as u32,
        }
    }
}
