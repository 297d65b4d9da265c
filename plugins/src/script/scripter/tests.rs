use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use spoonbill_defs::{PluginDef, PluginValue, Text};

use super::super::testing::run_facts;
use super::super::{Limits, ScriptChain, ScriptError, Scripter};
use crate::data::{Axis, AxisKind, Data, Row};

fn axis(kind: AxisKind, item_name: &str, value: &str) -> Axis {
    Axis {
        kind,
        item_name: item_name.into(),
        value: Some(value.to_owned()),
        match_text: None,
        index: Some(1),
        order: None,
    }
}

fn data(rows: usize) -> Data {
    let rows = (0..rows).map(|number| Row {
        name: "acme".into(),
        group: "bs".into(),
        axes: vec![
            axis(AxisKind::Item, "item", &format!("Item {number}")),
            axis(AxisKind::Dim, "year", "Dec '16"),
            axis(AxisKind::Fact, "fact", &format!("{number}.50")),
        ],
    });
    Data {
        name: "acme:bsTask:bs".to_owned(),
        data_def: "bs".to_owned(),
        rows: rows.collect(),
        tags: vec![("a".to_owned(), "1".to_owned())],
        named: false,
    }
}

fn plugin(files: &[&str]) -> PluginDef {
    let mut options = vec![(Text::new("script"), PluginValue::One(Text::new(files[0])))];
    if files.len() > 1 {
        let more = files[1..].iter().map(|&file| Text::new(file)).collect();
        options.push((Text::new("scripts"), PluginValue::Many(more)));
    }
    PluginDef {
        name: Text::new("convert"),
        class: Text::new("script"),
        options,
        plugins: Vec::new(),
    }
}

fn chain(plugins: &[PluginDef], files: &[(&str, &str)]) -> ScriptChain {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let read = |name: &str| {
        let found = files.get(name).map(|&text| text.to_owned());
        found.ok_or_else(|| "no such file".to_owned())
    };
    ScriptChain::from_def(plugins, &read).unwrap()
}

fn scripter(source: &str) -> Scripter {
    let chain = chain(&[plugin(&["main.js"])], &[("main.js", source)]);
    Scripter::new(&chain, &run_facts(), Limits::default())
}

/// Runs the body of `execute(data)` over two rows.
fn run(body: &str) -> Data {
    let source = format!("function execute(data) {{ {body}; return data; }}");
    let result = scripter(&source).run(data(2));
    result.unwrap_or_else(|error| panic!("{body}: {error}"))
}

/// Checks that an expression over `data`, `row` and `axis` has this text.
fn check(expression: &str, expect: &str) {
    let result = run(&format!(
        "var row = data.getItems().get(0), axis = row.getAxes().get(1);
         axis.setValue({expression})"
    ));
    assert_eq!(result.rows[0].axes[1].value.as_deref(), Some(expect), "{expression}");
}

#[test]
fn data_comes_back_as_it_went_in() {
    let mut whole = data(3);
    whole.rows[1].axes[0].match_text = Some("a\\.b".into());
    whole.rows[1].axes[0].order = Some(7);
    whole.rows[2].axes[2].value = None;
    whole.rows[2].axes[2].index = None;
    let same = scripter("function execute(data) { return data }").run(whole.clone());
    assert_eq!(same, Ok(whole.clone()));
    let copy = scripter("function execute(data) { return data.copy() }").run(whole.clone());
    assert_eq!(copy, Ok(whole));
    let none = scripter("function execute(data) { return data }").run(data(0)).unwrap();
    assert_eq!(none.rows, []);
}

#[test]
fn data_has_its_documented_methods() {
    check("data.getName()", "acme:bsTask:bs");
    check("data.getDataDef()", "bs");
    check("data.getRunDate()", "2020-05-06T00:00:00");
    check("data.getItems().size()", "2");
    check("data.getTagValue('a')", "1");
    check("String(data.getTagValue('b'))", "null");
    assert_eq!(
        run("data.addTag('b', 2); data.addTag('a', 3)").tags,
        [("a".to_owned(), "3".to_owned()), ("b".to_owned(), "2".to_owned()),]
    );
    let added = run(
        "var row = data.getItems().get(0).copy(); row.setValue('item', 'new'); data.addItem(row)",
    );
    assert_eq!(added.rows.len(), 3);
    assert_eq!(added.rows[2].axes[0].value.as_deref(), Some("new"));
    assert_eq!(added.rows[0].axes[0].value.as_deref(), Some("Item 0"));
    let removed = run("data.removeItem(data.getItems().get(0))");
    assert_eq!(removed.rows.len(), 1);
    assert_eq!(removed.rows[0].axes[0].value.as_deref(), Some("Item 1"));
    let set = run("data.setItems([data.getItems().get(1)])");
    assert_eq!(set.rows.len(), 1);
    assert_eq!(set.rows[0].axes[0].value.as_deref(), Some("Item 1"));
    check("data.removeItem(data.copy().getItems().get(0))", "false");
    check("data.items.length + data.name", "2acme:bsTask:bs");
}

#[test]
fn rows_have_their_documented_methods() {
    check("row.getName() + row.getGroup()", "acmebs");
    check("row.getAxes().size()", "3");
    check("row.getAxis('fact').getValue()", "0.50");
    check("row.getAxis('FACT').getValue()", "0.50");
    check("row.getAxisByItemName('year').getValue()", "Dec '16");
    check("String(row.getAxisByItemName('month'))", "null");
    check("row.getFirstAxis().getValue()", "Item 0");
    check("row.getItemNames().get(2)", "fact");
    check("row.getItemNames()", "item,year,fact");
    check("row.getAxisMap().get('year') === axis", "true");
    check("row.getAxisMap().size() + ' ' + row.getAxisMap().keySet()", "3 item,year,fact");
    check("row.getValue('item')", "Item 0");
    check("row.getParent() === data", "true");
    let row = run("var row = data.getItems().get(0); row.setName('n'); row.setGroup('g');
         row.setValue('dim', 2016); var more = row.getAxis('dim').copy(); more.setValue('x');
         row.addAxis(more)")
    .rows
    .remove(0);
    assert_eq!((&*row.name, &*row.group), ("n", "g"));
    let values: Vec<_> = row.axes.iter().map(|axis| axis.value.as_deref()).collect();
    assert_eq!(values, [Some("Item 0"), Some("2016"), Some("0.50"), Some("x")]);
}

#[test]
fn axes_have_their_documented_methods() {
    check("axis.getAxisName() + ' ' + axis.getItemName()", "dim year");
    check("axis.getValue()", "Dec '16");
    check("axis.getIndex() + 1", "2");
    check("String(axis.getOrder()) + axis.getMatch()", "nullnull");
    check("axis.value + axis.itemName", "Dec '16year");
    let axis = run(
        "var axis = data.items[1].axes[0]; axis.setMatch('m'); axis.setIndex(5); axis.setOrder('6');
         axis.setValue(null); axis.copy().setValue('lost'); data.items[1].axes[1].value = 3.0",
    );
    let (item, dim) = (&axis.rows[1].axes[0], &axis.rows[1].axes[1]);
    assert_eq!(item.match_text.as_deref(), Some("m"));
    assert_eq!((item.index, item.order, item.value.as_deref()), (Some(5), Some(6), None));
    assert_eq!(dim.value.as_deref(), Some("3"));
}

#[test]
fn values_become_text() {
    check("new Date(2021, 0, 31)", "2021-01-31T00:00:00");
    check("configs.getRunDateTime()", "2020-05-06T07:08:09");
    check("'a\\ud800'", "a\u{fffd}");
    check("12.50", "12.5");
    check("new Date(NaN)", "Invalid Date");
    check("row.getAxis('fact')", "fact fact = 0.50");
    check("true", "true");
}

#[test]
fn lists_have_the_methods_of_java_and_javascript() {
    check(
        "(function () { var n = ''; for (var r of data.getItems()) n += r.getValue('item'); return n })()",
        "Item 0Item 1",
    );
    check("data.getItems()[1].getValue('item')", "Item 1");
    check("data.getItems().length + data.getItems().size()", "4");
    check("data.getItems().isEmpty()", "false");
    check("data.getItems().contains(row) + ' ' + data.getItems().indexOf(row)", "true 0");
    check(
        "(function () { var it = data.getItems().iterator(), n = 0; while (it.hasNext()) { it.next(); n++ } return n })()",
        "2",
    );
    check(
        "data.getItems().map(function (r) { return r.getValue('item') }).join('+')",
        "Item 0+Item 1",
    );
    check(
        "(function () { try { data.getItems().get(2) } catch (e) { return e.message } })()",
        "index 2 of a list of 2",
    );
    assert_eq!(run("data.getItems().remove(0)").rows.len(), 1);
    assert_eq!(run("data.getItems().clear()").rows.len(), 0);
    assert_eq!(run("data.getItems().add(data.getItems().get(0).copy())").rows.len(), 3);
    assert_eq!(
        run("for (i = data.items.size() - 1; i >= 0; i--) data.items.remove(i)").rows.len(),
        0
    );
}

/// A library as bundlers write it: it looks for loaders and falls back to the global object.
const LIBRARY: &str = r#"!function(e,t){"object"==typeof exports&&"undefined"!=typeof module?module.exports=t():
"function"==typeof define&&define.amd?define(t):e.tiny=t()}(this,function(){"use strict";var m={Dec:12};return function(s){var p=/^(\w{3}) '(\d\d)$/.exec(s);
return new Date(2000+ +p[2],m[p[1]],0)}});"#;

#[test]
fn a_library_attaches_itself_to_the_global_object() {
    let main = "calls = 0;
        function execute(data) {
            calls++;
            for (i = 0; i < data.getItems().size(); i++) {
                row = data.getItems().get(i);
                day = tiny(row.getValue('dim'));
                row.setValue('dim', day.getFullYear() + '-' + (day.getMonth() + 1) + '-' + day.getDate());
                row.setValue('fact', calls);
            }
            return data;
        }";
    let chain = chain(
        &[plugin(&["main.js", "lib/tiny.min.js"])],
        &[("main.js", main), ("lib/tiny.min.js", LIBRARY)],
    );
    let mut scripter = Scripter::new(&chain, &run_facts(), Limits::default());
    for call in 1..=3 {
        let result = scripter.run(data(2)).unwrap();
        assert_eq!(result.rows[1].axes[1].value.as_deref(), Some("2016-12-31"));
        assert_eq!(result.rows[1].axes[2].value, Some(call.to_string()));
    }
}

#[test]
fn plugins_pass_on_their_results_and_have_separate_globals() {
    let first = "var mine = 1; function execute(data) { return [data, 'from first'] }";
    let second = "const execute = function (pair) {
        pair[0].getItems().get(0).setValue('item', pair[1] + typeof mine); return pair[0] }";
    let chain = chain(
        &[plugin(&["first.js"]), plugin(&["second.js"])],
        &[("first.js", first), ("second.js", second)],
    );
    let mut scripter = Scripter::new(&chain, &run_facts(), Limits::default());
    for _ in 0..2 {
        let result = scripter.run(data(1)).unwrap();
        assert_eq!(result.rows[0].axes[0].value.as_deref(), Some("from firstundefined"));
    }
}

#[test]
fn a_date_of_a_later_plugin_prints_by_the_pattern_too() {
    let first = "function execute(data) { return data }";
    let second =
        "function execute(d) { d.items[0].setValue('dim', new Date(2021, 0, 31)); return d }";
    let chain = chain(
        &[plugin(&["first.js"]), plugin(&["second.js"])],
        &[("first.js", first), ("second.js", second)],
    );
    let result = Scripter::new(&chain, &run_facts(), Limits::default()).run(data(1)).unwrap();
    assert_eq!(result.rows[0].axes[1].value.as_deref(), Some("2021-01-31T00:00:00"));
}

#[test]
fn the_entry_point_can_be_changed() {
    let mut plugin = plugin(&["main.js"]);
    let entry = PluginValue::One(Text::new("app.start"));
    plugin.options.push((Text::new("entryPoint"), entry));
    let source = "var app = { word: 'x', start: function (d) { d.items[0].setValue('item', this.word); return d } }";
    let chain = chain(&[plugin], &[("main.js", source)]);
    let result = Scripter::new(&chain, &run_facts(), Limits::default()).run(data(1)).unwrap();
    assert_eq!(result.rows[0].axes[0].value.as_deref(), Some("x"));
}

fn fail(source: &str) -> String {
    scripter(source).run(data(1)).unwrap_err().to_string()
}

#[test]
fn a_result_that_is_not_data_is_an_error() {
    assert_eq!(
        fail("function execute(d) {}"),
        "`main.js`: script returned nothing, `execute` must return the data"
    );
    assert_eq!(
        fail("function execute(d) { return null }"),
        "`main.js`: script returned nothing, `execute` must return the data"
    );
    for (value, got) in [
        ("'x'", "a string"),
        ("[d]", "a list"),
        ("{}", "an object"),
        ("d.items[0]", "a row"),
        ("d.getItems()", "a list"),
        ("Promise.resolve(d)", "an object"),
    ] {
        let error = fail(&format!("function execute(d) {{ return {value} }}"));
        assert_eq!(
            error,
            format!("`main.js`: script returned {got}, the last script must return the data")
        );
    }
    assert_eq!(
        fail("var x = 1"),
        "`main.js` defines no function `execute` (property `entryPoint`)"
    );
    assert!(
        fail("function execute(d) { d.items.push(1); return d }")
            .contains("a value that is not a row")
    );
    assert!(
        fail("function execute(d) { d.items[0].axes.push(1); return d }")
            .contains("a value that is not an axis")
    );
    assert!(fail("function execute(d) { d.addItem({}) }").contains("a value that is not a row"));
    assert!(fail("function execute(d) { d.items[0].addAxis({}) }").contains("takes an axis"));
    assert!(
        fail("function execute(d) { d.items[0].getAxis('row') }")
            .contains("there is no axis `row`")
    );
    assert!(
        fail("function execute(d) { d.items[0].axes[0].setIndex(-1) }")
            .contains("index must be a whole number")
    );
}

#[test]
fn errors_name_file_and_line() {
    let error = fail("function execute(data) {\n  return data.getItem();\n}");
    assert_eq!(error, "`main.js` line 2, column 15: TypeError: not a function");
    let error = fail("function execute(data) {\n  data.items.get(9);\n}");
    assert_eq!(error, "`main.js` line 2, column 14: RangeError: index 9 of a list of 1");
    let error = fail("\n\nmissing();");
    assert_eq!(error, "`main.js` line 3, column 1: ReferenceError: missing is not defined");
}

#[test]
fn after_a_limit_the_next_call_starts_with_fresh_globals() {
    let source = "calls = 0; bomb = [];
        function execute(data) {
            calls++;
            if (data.getItems().size() === 2) for (;;) {}
            if (data.getItems().size() === 3) for (;;) bomb.push('x'.repeat(1e6));
            if (data.getItems().size() === 4) return execute(data) + execute(data);
            data.getItems().get(0).setValue('fact', calls);
            return data;
        }";
    let chain = chain(&[plugin(&["main.js"])], &[("main.js", source)]);
    let limits = Limits { time: Duration::from_secs(1), ..Limits::default() };
    let mut scripter = Scripter::new(&chain, &run_facts(), limits);
    let calls = |data: Data| data.rows[0].axes[2].value.clone().unwrap();
    assert_eq!(calls(scripter.run(data(1)).unwrap()), "1");
    assert_eq!(calls(scripter.run(data(1)).unwrap()), "2");
    assert!(matches!(scripter.run(data(2)), Err(ScriptError::TimeLimit { .. })));
    assert_eq!(calls(scripter.run(data(1)).unwrap()), "1");
    assert!(matches!(scripter.run(data(3)), Err(ScriptError::MemoryLimit { .. })));
    assert_eq!(calls(scripter.run(data(1)).unwrap()), "1");
    assert!(matches!(scripter.run(data(4)), Err(ScriptError::StackLimit { .. })));
    assert_eq!(calls(scripter.run(data(1)).unwrap()), "1");
}

#[test]
fn an_error_keeps_the_globals() {
    let mut scripter = scripter(
        "calls = 0; function execute(d) { if (++calls === 2) throw new Error('second'); log(calls); return d }",
    );
    scripter.run(data(1)).unwrap();
    assert!(scripter.run(data(1)).is_err());
    scripter.run(data(1)).unwrap();
    assert_eq!(scripter.take_log(), ["1", "3"]);
}

#[test]
fn a_chain_may_be_shared_by_threads() {
    fn shared<T: Send + Sync + 'static>(value: T) -> Arc<T> {
        Arc::new(value)
    }
    let source = "function execute(d) { return d }";
    let chain = shared(chain(&[plugin(&["main.js"])], &[("main.js", source)]));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let chain = Arc::clone(&chain);
            std::thread::spawn(move || {
                let mut scripter = Scripter::new(&chain, &run_facts(), Limits::default());
                scripter.run(data(5)).map(|data| data.rows.len())
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Ok(5));
    }
}
