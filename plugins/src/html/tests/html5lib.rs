//! The tests of the html5lib project, which are not in this repository. They run if
//! `HTML5LIB_TESTS` names a folder that contains `tree-construction/*.dat` and `tokenizer/*.test`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::*;

fn folder(name: &str) -> Option<Vec<PathBuf>> {
    let Some(root) = std::env::var_os("HTML5LIB_TESTS") else {
        println!("HTML5LIB_TESTS is not set: skipped the html5lib tests");
        return None;
    };
    let entries = std::fs::read_dir(Path::new(&root).join(name)).unwrap();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    Some(all)
}

#[derive(Default)]
struct TreeCase {
    data: String,
    document: String,
    is_fragment: bool,
    is_scripted: bool,
}

/// The cases of a file. Each consists of parts that start with a line such as `#data`.
fn cases(text: &str) -> Vec<TreeCase> {
    let mut all: Vec<TreeCase> = vec![];
    let mut part = "";
    for line in text.lines() {
        match line {
            "#data" => all.push(TreeCase::default()),
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

/// The tree in html5lib's format, with each doctype reduced to `<!DOCTYPE>`.
fn html5lib_dump(document: &Document) -> String {
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

/// Reduces doctypes in the expected tree, because ours keeps only that there is one.
fn without_doctypes(text: &str) -> String {
    let lines = text
        .split('\n')
        .map(|line| if line.starts_with("| <!DOCTYPE") { "| <!DOCTYPE>" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn tree_construction_tests_of_html5lib_pass() {
    let Some(files) = folder("tree-construction") else { return };
    let (mut passed, mut otherwise, mut failed, mut skipped) = (0, 0, 0, 0);
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "dat")) {
        let text = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
        for case in cases(&text) {
            if case.is_fragment || case.is_scripted {
                skipped += 1;
                continue;
            }
            let document = Document::parse(&case.data, TreeLimits::default()).unwrap();
            check_links(&document);
            let (ours, wanted) = (html5lib_dump(&document), without_doctypes(&case.document));
            if ours == wanted {
                passed += 1;
            } else if differs_on_purpose(&case.data) {
                otherwise += 1;
            } else {
                failed += 1;
                let name = file.file_name().unwrap().display();
                println!("--- {name}: {:?}\nours:\n{ours}\nwanted:\n{wanted}", case.data);
            }
        }
    }
    println!(
        "tree construction: {passed} passed, {otherwise} differ on purpose, {failed} failed, \
         {skipped} skipped"
    );
    assert_eq!(failed, 0);
}

/// Pages for which our tree differs on purpose.
fn differs_on_purpose(data: &str) -> bool {
    // Since 2025 the standard allows nearly all elements in a `<select>`.
    data.contains("<select")
        // The expected tree is one of quirks mode.
        || data.contains("<p><table>") && !data.to_ascii_lowercase().contains("<!doctype")
}

/// A token of the tokenizer, or the node that it becomes. End tags become no node and are left out.
#[derive(Debug, PartialEq)]
enum PlainToken {
    Text(String),
    Comment(String),
    Start(String, BTreeMap<String, String>),
}

fn push_token(all: &mut Vec<PlainToken>, next: PlainToken) {
    match (all.last_mut(), next) {
        (Some(PlainToken::Text(last)), PlainToken::Text(more)) => last.push_str(&more),
        (_, next) => all.push(next),
    }
}

/// The expected tokens of a test; `None` if the rules of the tree would change them.
fn wanted(output: &serde_json::Value) -> Option<Vec<PlainToken>> {
    let mut all = vec![];
    for token in output.as_array()? {
        let token = token.as_array()?;
        let text = |at: usize| token.get(at).and_then(|text| text.as_str()).map(str::to_owned);
        match token[0].as_str()? {
            "Character" => push_token(&mut all, PlainToken::Text(text(1)?)),
            "Comment" => push_token(&mut all, PlainToken::Comment(text(1)?)),
            "StartTag" => {
                let name = text(1)?;
                if NameId::is_known(name::NameInterner::default().number(&name)) {
                    return None;
                }
                let attributes = token[2].as_object()?.iter();
                let attributes = attributes
                    .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
                push_token(&mut all, PlainToken::Start(name, attributes.collect()));
            }
            "EndTag" if !["p", "br", "body", "html"].contains(&&*text(1)?) => {}
            _ => return None,
        }
    }
    let has_nul = |seen: &PlainToken| matches!(seen, PlainToken::Text(text) if text.contains('\0'));
    (!all.iter().any(has_nul)).then_some(all)
}

/// The nodes of the tree after the first `skip`, as tokens.
fn tokens_of(document: &Document, skip: usize) -> Vec<PlainToken> {
    let mut all = vec![];
    for id in document.all().skip(skip) {
        let words = || document.text(id).unwrap().to_owned();
        match document.kind(id) {
            NodeKind::Text => push_token(&mut all, PlainToken::Text(words())),
            NodeKind::Comment => push_token(&mut all, PlainToken::Comment(words())),
            NodeKind::Element => {
                let attributes = document.attributes(id);
                let attributes =
                    attributes.map(|(name, value)| (name.to_string(), value.to_owned()));
                let name = document.name(id).unwrap().to_string();
                push_token(&mut all, PlainToken::Start(name, attributes.collect()));
            }
            _ => {}
        }
    }
    all
}

/// The text of a test whose escapes are escaped twice; `None` if it is not valid text.
fn unescaped(text: &str) -> Option<String> {
    let quoted = text.replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    serde_json::from_str(&format!("\"{quoted}\"")).ok()
}

#[test]
fn tokenizer_tests_of_html5lib_pass() {
    let Some(files) = folder("tokenizer") else { return };
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "test")) {
        let text = std::fs::read_to_string(file).unwrap();
        // A file with unpaired surrogates is not valid JSON for `serde_json`.
        let Ok(json) = serde_json::from_str::<serde_json::Value>(&text) else {
            println!("{}: skipped, it contains unpaired surrogates", file.display());
            continue;
        };
        for test in json["tests"].as_array().into_iter().flatten() {
            let states = test["initialStates"].as_array().cloned().unwrap_or_default();
            let states = if states.is_empty() { vec!["Data state".into()] } else { states };
            for state in states {
                match run_token_test(test, state.as_str().unwrap()) {
                    None => skipped += 1,
                    Some(true) => passed += 1,
                    Some(false) => failed += 1,
                }
            }
        }
    }
    println!("tokenizer: {passed} passed, {failed} failed, {skipped} skipped");
    assert_eq!(failed, 0);
}

fn run_token_test(test: &serde_json::Value, state: &str) -> Option<bool> {
    let is_escaped = test["doubleEscaped"].as_bool() == Some(true);
    let (input, output) = if is_escaped {
        let output = test["output"].to_string().replace("\\\\", "\\");
        (unescaped(test["input"].as_str()?)?, serde_json::from_str(&output).ok()?)
    } else {
        (test["input"].as_str()?.to_owned(), test["output"].clone())
    };
    let last = test["lastStartTag"].as_str();
    let (start, skip) = match (state, last) {
        ("Data state", _) => ("<body>".to_owned(), 4),
        ("PLAINTEXT state", _) => ("<body><plaintext>".to_owned(), 5),
        ("RCDATA state", Some(name @ ("title" | "textarea")))
        | ("RAWTEXT state", Some(name @ ("style" | "xmp" | "noembed")))
        | ("Script data state", Some(name @ "script")) => (format!("<body><{name}>"), 5),
        ("RCDATA state", None) if !input.starts_with('\n') => ("<body><title>".to_owned(), 5),
        _ => return None,
    };
    let wanted = wanted(&output)?;
    let document = Document::parse(&format!("{start}{input}"), TreeLimits::default()).unwrap();
    let seen = tokens_of(&document, skip);
    if seen != wanted {
        println!("--- {state}: {input:?}\nours: {seen:?}\nwanted: {wanted:?}");
    }
    Some(seen == wanted)
}
