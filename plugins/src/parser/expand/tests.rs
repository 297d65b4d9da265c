mod ends;

use spoonbill_defs::{DataDef, IndexRange, Item, ItemQuery, Text};

use super::*;

/// A page as a function from `block|selector|attribute` to text. It records the questions.
struct FakePage<F> {
    answer: F,
    asked: Vec<String>,
}

impl<F: FnMut(&str) -> Option<String>> FakePage<F> {
    fn new(answer: F) -> Self {
        Self { answer, asked: Vec::new() }
    }

    fn ask(&mut self, question: String) -> Result<Option<String>, ParseError> {
        let found = (self.answer)(&question);
        self.asked.push(question);
        if found.as_deref() == Some("!") {
            let question = self.asked.last().cloned().unwrap_or_default();
            return Err(ParseError::query(&question, &"broken"));
        }
        Ok(found)
    }
}

impl<F: FnMut(&str) -> Option<String>> Queries for FakePage<F> {
    fn query(
        &mut self,
        block: &str,
        selector: &str,
        attribute: Option<&str>,
    ) -> Result<Option<String>, ParseError> {
        let attribute = attribute.map(|name| format!("|{name}"));
        self.ask(format!("{block}|{selector}{}", attribute.unwrap_or_default()))
    }
}

impl<F: FnMut(&str) -> Option<String>> Scripts for FakePage<F> {
    fn eval(&mut self, expression: &str) -> Result<Option<String>, ParseError> {
        self.ask(expression.to_owned())
    }
}

#[expect(clippy::unnecessary_wraps, reason = "keys are optional")]
fn text(words: &str) -> Option<Text> {
    Some(Text::new(words))
}

fn texts(words: &[&str]) -> Vec<Text> {
    words.iter().map(|word| Text::new(*word)).collect()
}

fn item(name: &str) -> Item {
    Item { name: Text::new(name), ..Item::default() }
}

fn seek(name: &str, selector: &str, first: u32, last: impl Into<Option<u32>>) -> Item {
    Item { selector: text(selector), range: IndexRange { first, last: last.into() }, ..item(name) }
}

fn breaking(mut item: Item, values: &[&str]) -> Item {
    item.break_after = Some(texts(values));
    item
}

fn def(items: Vec<Item>, dims: Vec<Item>) -> DataDef {
    DataDef {
        name: Text::new("bs"),
        query: ItemQuery { block: Text::new("B"), selector: text("%{item.index},%{index}") },
        items,
        dims,
        facts: vec![item("fact")],
        ..DataDef::default()
    }
}

const LIMITS: ExpandLimits = ExpandLimits { rows_max: 1000, deadline: None };

fn context() -> ExpandContext {
    ExpandContext {
        locator: "acme".into(),
        group: "bsGroup".into(),
        label: "acme:bsTask:bs".to_owned(),
    }
}

fn fact_text() -> FactText {
    FactText {
        blank_replace: true,
        blank_with: "(blank)".to_owned(),
        not_found_with: "(none)".to_owned(),
    }
}

fn run(
    def: &DataDef,
    queries: &mut dyn Queries,
    scripts: &mut dyn Scripts,
) -> Result<Expansion, ParseError> {
    let plan = DataDefPlan::compile(def).unwrap();
    plan.expand(&context(), queries, scripts, &fact_text(), &LIMITS)
}

fn lines(expansion: &Expansion) -> Vec<String> {
    let rows = expansion.data.rows.iter();
    rows.map(|row| {
        let values = row.axes.iter();
        let values = values.map(|axis| axis.value.clone().unwrap_or("null".to_owned()));
        values.collect::<Vec<_>>().join("|")
    })
    .collect()
}

fn check(def: &DataDef, page: impl FnMut(&str) -> Option<String>, expect: &[&str]) -> Expansion {
    let mut scripts = FakePage::new(|_: &str| None);
    let expansion = run(def, &mut FakePage::new(page), &mut scripts).unwrap();
    assert_eq!(lines(&expansion), expect);
    expansion
}

/// Answers each question with the question itself.
#[expect(clippy::unnecessary_wraps, reason = "a page may hold nothing")]
fn echo(question: &str) -> Option<String> {
    Some(question.replace("B|", ""))
}

#[test]
fn the_rightmost_axis_is_the_innermost_loop() {
    let items = vec![seek("a", "a%{index}", 1, 2), seek("b", "b%{index}", 7, 7)];
    let mut def = def(items, vec![seek("x", "x%{index}", 1, 2), seek("y", "y%{index}", 4, 5)]);
    def.query.selector = text("%{item.index}.%{dim.x.index}.%{dim.y.index}");
    let expansion = check(
        &def,
        echo,
        &[
            "a1|x1|y4|1.1.4",
            "a1|x1|y5|1.1.5",
            "a1|x2|y4|1.2.4",
            "a1|x2|y5|1.2.5",
            "a2|x1|y4|2.1.4",
            "a2|x1|y5|2.1.5",
            "a2|x2|y4|2.2.4",
            "a2|x2|y5|2.2.5",
            "b7|x1|y4|7.1.4",
            "b7|x1|y5|7.1.5",
            "b7|x2|y4|7.2.4",
            "b7|x2|y5|7.2.5",
        ],
    );
    let Data { name, data_def, rows, .. } = &expansion.data;
    assert_eq!((&**name, &**data_def), ("acme:bsTask:bs", "bs"));
    assert_eq!((&*rows[0].name, &*rows[0].group), ("acme", "bsGroup"));
    let indexes: Vec<_> = rows[5].axes.iter().map(|axis| axis.index).collect();
    assert_eq!(indexes, [Some(2), Some(1), Some(5), Some(1)]);
    assert_eq!(rows[5].axes[2].kind, AxisKind::Dim);
    assert_eq!(&*rows[5].axes[2].item_name, "y");
    assert!(expansion.notes.is_empty());
}

#[test]
fn constants_are_printed_without_prefix_break_or_script() {
    let constant = Item {
        value: text(r"a\b"),
        match_text: text("not this"),
        prefix: texts(&["p"]),
        break_after: Some(texts(&[r"a\b"])),
        range: IndexRange { first: 1, last: Some(2) },
        ..item("c")
    };
    let matching = Item {
        match_text: text(r"EPS \(TTM\)"),
        script: text("no"),
        prefix: texts(&["p"]),
        ..item("m")
    };
    let mut def = def(vec![constant, matching], vec![]);
    def.facts[0].value = text(" ");
    let expansion =
        check(&def, |_| panic!("a constant needs no query"), &["a\\b| ", "a\\b| ", "EPS (TTM)| "]);
    let eps = &expansion.data.rows[2].axes[0];
    assert_eq!(eps.match_text.as_deref(), Some(r"EPS \(TTM\)"));
}

#[test]
fn each_prefix_is_put_before_the_last() {
    let mut prefixed = seek("a", "a", 1, 1);
    prefixed.prefix = texts(&["p1 ", "p2 ", "p3 "]);
    let mut missing = prefixed.clone();
    missing.name = Text::new("b");
    missing.selector = text("nothing");
    let mut def = def(vec![prefixed, missing], vec![]);
    def.facts[0].prefix = texts(&["$"]);
    def.query.selector = text("%{item.value}");
    check(
        &def,
        |question| (question != "B|nothing").then(|| echo(question))?,
        &["p3 p2 p1 a|$p3 p2 p1 a", "null|$%{item.value}"],
    );
}

#[test]
fn missing_and_blank_facts_are_replaced_but_items_never() {
    let def = def(vec![seek("a", "%{index}", 1, 6)], vec![]);
    let page = |question: &str| match question {
        "B|1" | "B|1,1" => None,
        "B|2" | "B|2,1" => Some(" \n".to_owned()),
        "B|3" | "B|3,1" => Some(" Null ".to_owned()),
        "B|4" | "B|4,1" => Some("\u{a0}".to_owned()),
        "B|5" | "B|5,1" => Some(String::new()),
        _ => Some("6".to_owned()),
    };
    let expect =
        ["null|(none)", " \n|(blank)", " Null |(none)", "\u{a0}|\u{a0}", "|(blank)", "6|6"];
    check(&def, page, &expect);
}

#[test]
fn blank_facts_stay_if_the_setting_says_so() {
    let plan = DataDefPlan::compile(&def(vec![seek("a", "a", 1, 1)], vec![])).unwrap();
    let mut facts = fact_text();
    facts.blank_replace = false;
    let mut page = FakePage::new(|_: &str| Some(" ".to_owned()));
    let mut scripts = FakePage::new(|_: &str| None);
    let expansion = plan.expand(&context(), &mut page, &mut scripts, &facts, &LIMITS).unwrap();
    assert_eq!(lines(&expansion), [" | "]);
}

#[test]
fn a_query_runs_only_if_the_script_gives_null() {
    let mut scripted = seek("a", "q%{index}", 1, 3);
    scripted.script = text("f(%{index})");
    scripted.prefix = texts(&["p-"]);
    let mut def = def(vec![scripted], vec![]);
    def.facts[0].script = text("g()");
    let mut scripts = FakePage::new(|script: &str| match script {
        "f(1)" => None,
        "f(2)" => Some(String::new()),
        "g()" => Some("null".to_owned()),
        _ => Some(script.to_owned()),
    });
    let mut page = FakePage::new(echo);
    let expansion = run(&def, &mut page, &mut scripts).unwrap();
    assert_eq!(lines(&expansion), ["p-q1|(none)", "p-|(none)", "p-f(3)|(none)"]);
    assert_eq!(page.asked, ["B|q1"]);
    assert_eq!(scripts.asked, ["f(1)", "g()", "f(2)", "f(3)"], "g() runs once per page");
}

#[test]
fn each_cell_is_queried_once_even_if_missing() {
    let mut def = def(vec![seek("a", "%{index}", 1, 3)], vec![seek("x", "x%{index}", 1, 2)]);
    def.dims.push(seek("href", "x1 attribute: href", 1, 1));
    def.query.selector = text("none");
    let mut page =
        FakePage::new(|question: &str| (question != "B|none").then(|| echo(question))?);
    let mut scripts = FakePage::new(|_: &str| None);
    run(&def, &mut page, &mut scripts).unwrap();
    assert_eq!(page.asked, ["B|1", "B|x1", "B|x1|href", "B|none", "B|x2", "B|2", "B|3"]);
}

#[test]
fn an_axis_can_use_an_index_further_right() {
    let items = vec![seek("a", "a%{dim.index}", 1, 2)];
    let mut def = def(items, vec![seek("x", "x", 8, 9)]);
    def.query.selector = text("%{item.value}");
    check(&def, echo, &["a8|x|a8", "a9|x|a9", "a8|x|a8", "a9|x|a9"]);
}

#[test]
fn an_axis_cannot_use_a_value_further_right() {
    let items = vec![seek("a", "a%{index}%{dim.value}", 1, 2)];
    let mut def = def(items, vec![seek("x", "x%{index}", 8, 8)]);
    def.query.selector = text("f");
    check(&def, echo, &["a1%{dim.value}|x8|f", "a2%{dim.value}|x8|f"]);
    let plan = DataDefPlan::compile(&def).unwrap();
    let warning = &plan.warnings()[0].message;
    assert!(warning.contains("`%{dim.value}` has no value"), "{warning}");
}

#[test]
fn a_value_that_holds_a_variable_is_filled_in_for_every_row() {
    let dims = vec![seek("x", "%{item.value}", 1, 1), seek("y", "y%{index}", 1, 2)];
    let mut def = def(vec![seek("a", "a", 1, 1)], dims);
    def.query.selector = text("f");
    let page = |question: &str| match question {
        "B|a" => Some("%{dim.y.index} of %{what}".to_owned()),
        _ => echo(question),
    };
    let item = "%{dim.y.index} of %{what}";
    let expect = [1, 2].map(|y| format!("{item}|{y} of %{{what}}|y{y}|f"));
    check(&def, page, &[&expect[0], &expect[1]]);
}

#[test]
fn three_part_variables_on_items_and_variables_in_the_block() {
    let mut def = def(
        vec![seek("a", "v%{item.a.index}", 4, 4)],
        vec![seek("x", "%{item.a.value}-%{dim.x.index}", 2, 2)],
    );
    def.query.block = Text::new("tr[%{item.a.index}]");
    def.query.selector = text("%{item.a.itemName} attribute: %{dim.x.itemName}%{fact.index}");
    let expect = ["tr[4]|v4|tr[4]|tr[4]|v4-2|tr[4]|a|x1"];
    check(&def, |question| Some(question.to_owned()), &expect);
}

#[test]
fn a_definition_can_name_its_facts() {
    let mut def = def(vec![seek("a", "a", 1, 1)], vec![]);
    def.query.selector = text("%{itemName}%{index}%{order}");
    let mut first = seek("open", "ignored", 1, 2);
    first.order = Some(9);
    first.prefix = texts(&["$"]);
    let mut second = item("close");
    second.value = text("shut");
    def.facts = vec![first, second];
    check(&def, echo, &["a|$open19", "a|$open29", "a|shut"]);
    def.facts.clear();
    check(&def, echo, &["a|fact1%{order}"]);
}

#[test]
fn without_a_selector_there_is_no_value() {
    let mut def = def(vec![item("a")], vec![]);
    def.query.selector = None;
    check(&def, |_| panic!("a constant needs no query"), &["null|(none)"]);
}

#[test]
fn errors_name_definition_and_item() {
    let def = def(vec![seek("a", "a", 1, 1)], vec![]);
    let mut page = FakePage::new(|_: &str| Some("!".to_owned()));
    let error = run(&def, &mut page, &mut FakePage::new(|_: &str| None)).unwrap_err();
    assert_eq!(error.to_string(), "dataDef `bs`, item `a`: query `B|a`: broken");
}

#[test]
fn compiling_reports_all_problems() {
    let mut items = vec![seek("a", "%{idex}", 1, 1), seek("b", "%{item.a.index}", 1, 1)];
    items.push(seek("b", "%{dim.index}", 1, 1));
    items[1].script = text("%{a.b.c.d}");
    let mut def = def(items, vec![]);
    def.query.block = Text::new("%{fact.value.x}");
    let problems = DataDefPlan::compile(&def).unwrap_err();
    let all: Vec<&str> = problems.iter().map(|problem| &*problem.message).collect();
    assert_eq!(
        all,
        [
            "dataDef `bs` has more than one item named `b`",
            "variable `%{fact.value.x}`: there is no property `x`",
            "variable `%{idex}`: there is no property `idex`; did you mean `index`?",
            "variable `%{a.b.c.d}`: it has 4 parts, but the most are three: kind, item name, property",
            "variable `%{item.a.index}`: the rows of item `b` have no item named `a`",
            "variable `%{dim.index}`: the definition has no dim",
        ]
    );
}

#[test]
fn plans_can_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<DataDefPlan>();
}
