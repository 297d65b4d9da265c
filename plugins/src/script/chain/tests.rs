use spoonbill_defs::{PluginDef, PluginValue, Span, Text};

use super::ScriptChain;
use crate::options::OptionProblem;

fn text(text: &str, line: u32) -> Text {
    Text { text: text.to_owned(), at: Span { file: 0, line, column: 1, width: 1 } }
}

fn plugin(class: &str, options: &[(&str, &[&str])]) -> PluginDef {
    let options = options.iter().zip(3..).map(|((key, values), line)| {
        let value = match values {
            [one] => PluginValue::One(text(one, line)),
            many => PluginValue::Many(many.iter().map(|one| text(one, line)).collect()),
        };
        (text(key, line), value)
    });
    PluginDef {
        name: text("convert", 1),
        class: text(class, 2),
        options: options.collect(),
        plugins: Vec::new(),
    }
}

fn read(name: &str) -> Result<String, String> {
    match name {
        "main.js" | "lib.js" => Ok("function execute(d) { return d }".to_owned()),
        "strict.js" => Ok("'use strict'; with (a) {}".to_owned()),
        "broken.js" => Ok("var a = 1;\nvar b = ;\n".to_owned()),
        "module.js" => Ok("import x from 'y';".to_owned()),
        "wild.js" => Ok("for (;;) {}; throw 1; missing()".to_owned()),
        _ => Err("no such file".to_owned()),
    }
}

fn problems(plugin: &PluginDef) -> Vec<OptionProblem> {
    ScriptChain::from_def(std::slice::from_ref(plugin), &read)
        .map_or_else(|problems| problems, |_| Vec::new())
}

fn check(plugin: &PluginDef, line: u32, message: &str, help: &str) {
    let problems = problems(plugin);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].at.line, line, "{problems:?}");
    assert!(problems[0].message.contains(message), "{problems:?}");
    assert!(problems[0].help.as_deref().unwrap_or_default().contains(help), "{problems:?}");
}

#[test]
fn the_four_classes_are_known() {
    for class in super::CLASSES {
        let plugin =
            plugin(class, &[("script", &["main.js"]), ("scripts", &["lib.js", "wild.js"])]);
        let chain = ScriptChain::from_def(&[plugin], &read).unwrap();
        assert_eq!(chain.links[0].entry_point, "execute");
        let files: Vec<_> = chain.links[0].files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(files, ["main.js", "lib.js", "wild.js"]);
    }
    check(
        &plugin("scrip", &[("script", &["main.js"])]),
        2,
        "`scrip` is not a script plugin",
        "`script`",
    );
}

#[test]
fn properties_are_checked() {
    let main: (&str, &[&str]) = ("script", &["main.js"]);
    check(&plugin("script", &[]), 1, "`convert` has no `script`", "main.js");
    check(
        &plugin("script", &[main, ("entrypoint", &["run"])]),
        4,
        "no property `entrypoint`",
        "`entryPoint`",
    );
    check(
        &plugin("script", &[main, ("colour", &["red"])]),
        4,
        "no property `colour`",
        "`script`, `scripts`",
    );
    check(
        &plugin("script", &[("script", &["main.js", "lib.js"])]),
        3,
        "takes one value",
        "`scripts`",
    );
    check(
        &plugin("script", &[main, ("entryPoint", &["run()"])]),
        4,
        "not the name of a function",
        "parentheses",
    );
    check(
        &plugin("script", &[("script", &["gone.js"])]),
        3,
        "`gone.js` cannot be read: no such file",
        "",
    );
    let mut nested = plugin("script", &[main]);
    nested.plugins.push(plugin("script", &[main]));
    check(&nested, 1, "no nested plugins", "");
    assert!(ScriptChain::from_def(&[], &read).is_err());
}

#[test]
fn files_are_checked_for_syntax() {
    let file = |name: &str| plugin("script", &[("script", &[name])]);
    check(&file("broken.js"), 3, "`broken.js` line 2, column 9: SyntaxError", "plain JavaScript");
    check(&file("module.js"), 3, "`module.js` line 1", "no modules");
    check(&file("strict.js"), 3, "`strict.js` line 1", "");
}

#[test]
fn all_problems_are_reported_at_once() {
    let plugin = plugin(
        "basic",
        &[("script", &["broken.js"]), ("scripts", &["gone.js", "module.js"]), ("x", &["y"])],
    );
    assert_eq!(problems(&plugin).len(), 5);
}
