//! The tests of the html5lib project, run from where the variable `HTML5LIB_TESTS` says: a folder
//! with `tree-construction/*.dat` and `tokenizer/*.test` in it. They are not part of this project.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::*;

fn folder(name: &str) -> Option<Vec<PathBuf>> {
    let Some(root) = std::env::var_os("HTML5LIB_TESTS") else {
        println!("HTML5LIB_TESTS is not set: the html5lib tests are not run");
        return None;
    };
    let entries = std::fs::read_dir(Path::new(&root).join(name)).unwrap();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    Some(all)
}

#[derive(Default)]
struct Case {
    data: String,
    document: String,
    is_fragment: bool,
    is_scripted: bool,
}

/// The cases of a file: parts that start with a line such as `#data`.
fn cases(text: &str) -> Vec<Case> {
    let mut all: Vec<Case> = vec![];
    let mut part = "";
    for line in text.lines() {
        match line {
            "#data" => all.push(Case::default()),
            "#document-fragment" => all.last_mut().unwrap().is_fragment = true,
            "#script-on" => all.last_mut().unwrap().is_scripted = true,
            _ => {}
        }
        if line.starts_with('#')
            && [
                "#data",
                "#errors",
                "#new-errors",
                "#document",
                "#document-fragment",
                "#script-on",
                "#script-off",
            ]
            .contains(&line)
        {
            part = line;
            continue;
        }
        let Some(case) = all.last_mut() else { continue };
        match part {
            "#data" => case.data.extend([line, "\n"]),
            "#document" => case.document.extend([line, "\n"]),
            _ => {}
        }
    }
    for case in &mut all {
        case.data.pop();
        case.document.truncate(case.document.trim_end_matches('\n').len());
    }
    all
}

/// The tree as html5lib writes it down; of a doctype only that it is there.
fn written(document: &Document) -> String {
    let mut out = String::new();
    let mut open: Vec<NodeId> = vec![];
    for id in document.all().skip(1) {
        while open.last().is_some_and(|last| !document.is_inside(id, *last)) {
            open.pop();
        }
        let is_template = |id: &&NodeId| {
            document.name(**id).is_some_and(|name| &**name == "template")
                && document.namespace(**id) == Some(&Namespace::HTML)
        };
        let depth = open.len() + open.iter().filter(is_template).count();
        let indent = format!("| {}", "  ".repeat(depth));
        match document.kind(id) {
            NodeKind::Document => {}
            NodeKind::Doctype => writeln!(out, "{indent}<!DOCTYPE>").unwrap(),
            NodeKind::Text => writeln!(out, "{indent}\"{}\"", document.text(id).unwrap()).unwrap(),
            NodeKind::Comment => {
                writeln!(out, "{indent}<!-- {} -->", document.text(id).unwrap()).unwrap();
            }
            NodeKind::Element => {
                let prefix = match *document.namespace(id).unwrap() {
                    Namespace::SVG => "svg ",
                    Namespace::MATHML => "math ",
                    _ => "",
                };
                writeln!(out, "{indent}<{prefix}{}>", document.name(id).unwrap()).unwrap();
                let mut attributes: Vec<String> = document
                    .attributes(id)
                    .map(|(name, value)| {
                        let name = match name.split_once(':') {
                            Some((space, local)) if !prefix.is_empty() && is_adjusted(name) => {
                                format!("{space} {local}")
                            }
                            _ => name.to_string(),
                        };
                        format!("{indent}  {name}=\"{value}\"")
                    })
                    .collect();
                attributes.sort();
                for line in attributes {
                    writeln!(out, "{line}").unwrap();
                }
                open.push(id);
                if is_template(&&id) {
                    writeln!(out, "{indent}  content").unwrap();
                }
            }
        }
    }
    out.pop();
    out
}

fn is_adjusted(name: &str) -> bool {
    [
        "xlink:actuate",
        "xlink:arcrole",
        "xlink:href",
        "xlink:role",
        "xlink:show",
        "xlink:title",
        "xlink:type",
        "xml:lang",
        "xml:space",
        "xmlns:xlink",
    ]
    .contains(&name)
}

/// Of a doctype, nothing but that it is there: the tree keeps no more.
fn without_doctypes(text: &str) -> String {
    let lines = text
        .split('\n')
        .map(|line| if line.starts_with("| <!DOCTYPE") { "| <!DOCTYPE>" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn tree_construction() {
    let Some(files) = folder("tree-construction") else { return };
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "dat")) {
        let text = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
        for case in cases(&text) {
            if case.is_fragment || case.is_scripted {
                skipped += 1;
                continue;
            }
            let document = Document::parse(&case.data, TreeLimits::default()).unwrap();
            check_links(&document);
            let (ours, wanted) = (written(&document), without_doctypes(&case.document));
            if ours == wanted {
                passed += 1;
            } else {
                failed += 1;
                let name = file.file_name().unwrap().display();
                println!("--- {name}: {:?}\nours:\n{ours}\nwanted:\n{wanted}", case.data);
            }
        }
    }
    println!("tree construction: {passed} passed, {failed} failed, {skipped} left out");
}
