//! The problems that references between entries cause.

use crate::testing::check;

#[test]
fn unknown_names_are_reported() {
    check(
        r"
locatorGroups:
  groop: { locators: [ { name: n, url: u } ] }
  other: { locators: [ { name: n, url: u } ] }
taskGroups:
  group:
    a: { dataDef: prise }
    b: { dataDef: somethingElse }
    c: { dataDef: price, steps: links }
dataDefs:
  price:
    query: { block: b }
    items: [ item: { name: i, selector: s, linkGroup: grp }, item: { name: j, selector: s, linkGroup: zzz } ]
steps:
  links: { jsoupDefault: { make: { class: locator_creator, previous: parser, next: seeder } } }
",
        r"
2:3 the locator group `groop` has no task group [did you mean `group`?]
3:3 the locator group `other` has no task group [add `other:` below `taskGroups:`]
6:19 task `a` uses dataDef `prise`, which no file defines [did you mean `price`?]
7:19 task `b` uses dataDef `somethingElse`, which no file defines [add `somethingElse:` below `dataDefs:`]
12:55 item `i` links to task group `grp`, which no file defines [add `grp:` below `taskGroups:`]
12:103 item `j` links to task group `zzz`, which no file defines [add `zzz:` below `taskGroups:`]
",
    );
}

#[test]
fn unused_definitions_cause_warnings() {
    check(
        r"
taskGroups:
  g: { t: { dataDef: d } }
  lonely: { t: { dataDef: d } }
dataDefs:
  d: { query: { block: b }, items: [ item: { name: i, value: v } ] }
  unused: { query: { block: b }, items: [ item: { name: i, value: v } ] }
",
        r"
3:3 warning: no locator group and no link leads to the task group `lonely` [remove it, or use its name in a locator group, a `follow` rule or a `linkGroup`]
6:3 warning: no task uses the dataDef `unused` [remove it, or use it as the `dataDef` of a task]
",
    );
}

#[test]
fn item_names_are_unique_over_all_axes() {
    check(
        r"
dataDefs:
  d:
    query: { block: b }
    items: [ item: { name: a, value: v }, item: { name: fact, value: v } ]
    dims: [ item: { name: a, value: v } ]
    facts: [ item: { name: amount }, item: { name: fact }, item: { name: amount } ]
",
        r"
5:27 two entries of the dataDef have the name `a` [line 4 has the same name; names must be unique in items, dims and facts]
6:52 two entries of the dataDef have the name `fact` [line 4 has the same name; names must be unique in items, dims and facts]
6:74 two entries of the dataDef have the name `amount` [line 6 has the same name; names must be unique in items, dims and facts]
",
    );
}

#[test]
fn facts_can_have_any_name() {
    check(
        r#"
dataDefs:
  d:
    query: { block: b, selector: "td:eq(%{fact.index}) %{item.fact.match}" }
    items: [ item: { name: fact, match: v } ]
    facts:
      - item: { name: amount, script: "%{fact.amount.index}" }
      - item: { name: unit, value: EUR }
"#,
        "",
    );
}

#[test]
fn no_other_entry_has_the_name_of_the_default_fact() {
    check(
        r"
dataDefs:
  d:
    query: { block: b }
    items: [ item: { name: i, value: v } ]
    dims: [ item: { name: fact, value: v } ]
",
        r"
5:27 `fact` is the name of the default fact [rename the entry, or add `facts` with another name]
",
    );
}

#[test]
fn a_variable_that_some_rows_lack_is_reported() {
    check(
        r#"
dataDefs:
  d:
    query: { block: "%{item.a.index}", selector: "%{fact.x.index}" }
    items:
      - item: { name: a, selector: "%{item.a.index} %{fact.y.value}" }
      - item: { name: b, selector: "%{item.a.value} %{fact.z.index}" }
    dims: [ item: { name: c, value: v, script: "%{item.a.index}" } ]
    facts: [ item: { name: x, script: "%{fact.x.index}" }, item: { name: y } ]
"#,
        r"
3:22 a row has only one item, and it may not be `a` [remove the name: `%{item.index}` is the item of the row]
3:51 a row has only one fact, and it may not be `x` [remove the name: `%{fact.index}` is the fact of the row]
5:53 a row has only one fact, and it may not be `y` [remove the name: `%{fact.value}` is the fact of the row]
6:37 a row has only one item, and it may not be `a` [remove the name: `%{item.value}` is the item of the row]
6:53 the axis `fact` has no item `z` [the middle part must be a name from `facts`]
",
    );
}

#[test]
fn a_later_constant_is_known() {
    check(
        r#"
dataDefs:
  d:
    query: { block: b, selector: s }
    items:
      - item: { name: a, selector: "%{dim.value} %{dim.c.value} %{dim.e.value} %{fact.value}" }
    dims:
      - item: { name: b, value: v }
      - item: { name: c, match: m }
      - item: { name: e, selector: s }
    facts: [ item: { name: x, value: v }, item: { name: y, match: m } ]
"#,
        r"
5:65 warning: the value of `dim` is not known yet when `a` is evaluated [axes are evaluated in the order item, dims, fact; use an earlier one]
",
    );
}

#[test]
fn a_suggested_entry_is_not_reported_as_unused() {
    check(
        r"
locatorGroups: { gruop: { locators: [ { name: n, url: u } ] } }
taskGroups: { group: { t: { dataDef: prize } }, links: { t: { dataDef: other } } }
dataDefs:
  price: { query: { block: b }, items: [ item: { name: i, selector: s, linkGroup: lnks } ] }
  cost: { query: { block: b }, items: [ item: { name: i, value: v } ] }
",
        r"
1:18 the locator group `gruop` has no task group [did you mean `group`?]
2:38 task `t` uses dataDef `prize`, which no file defines [did you mean `price`?]
2:72 task `t` uses dataDef `other`, which no file defines [add `other:` below `dataDefs:`]
4:83 item `i` links to task group `lnks`, which no file defines [did you mean `links`?]
5:3 warning: no task uses the dataDef `cost` [remove it, or use it as the `dataDef` of a task]
",
    );
}

#[test]
fn live_is_a_duration_or_a_date() {
    check(
        r#"
locatorGroups: { g: &l { locators: [ { name: n, url: u } ] }, h: *l, i: *l, j: *l }
taskGroups:
  g: { live: PT1W, t: { dataDef: d } }
  h: { live: 1 week, t: { dataDef: d } }
  i: { live: "", t: { dataDef: d } }
  j: { live: 31-12-2037 00:00:00, t: { dataDef: d } }
"#,
        r"
3:14 warning: `live: PT1W` is not a duration, so every run loads the pages again [write a duration such as `PT6H`, `P1D` or `P1W`, or a date and time]
4:14 warning: `live: 1 week` is not a duration, so every run loads the pages again [write a duration such as `PT6H`, `P1D` or `P1W`, or a date and time]
",
    );
}

#[test]
fn malformed_and_unknown_variables_are_reported() {
    check(
        r#"
dataDefs:
  d:
    query:
      block: "tr:nth-child(%{item.index}) %{dim.year.indx} %{col.index}"
      selector: "td %{item.index"
    items:
      - item: { name: a, selector: "%{} %{indx} %{item} %{index:-1} %{item.a.b.index}" }
      - item: { name: b, script: "%%{foo} + %{item.a.index} + %{dim.yeer.index} + %{dim.a.index}" }
    dims: [ item: { name: year, selector: "%{index} %{nameString} %{fact.fact.index}" } ]
"#,
        r"
4:43 the variable `%{dim.year.indx}` does not end with a property [did you mean `index`?]
4:60 there is no axis `col` [the axes are `item`, `dim` and `fact`]
5:18 the variable has no closing `}` [write `%{index}` or `%{dim.year.index}`]
7:37 the variable `%{}` does not end with a property [end it with `index`, `match`, `value`, `order`, `itemName` or `axisName`]
7:41 the variable `%{indx}` does not end with a property [did you mean `index`?]
7:49 the variable `%{item}` does not end with a property [add a property, such as `%{item.index}`]
7:57 `%{index:-1}` has a default, but only `${...}` variables can have one [remove `:-` and the text after it]
7:69 the variable `%{item.a.b.index}` has more than three parts [write `%{axis.name.property}`; rename the item if its name has a dot]
8:36 the variable `%{foo}` does not end with a property [end it with `index`, `match`, `value`, `order`, `itemName` or `axisName`]
8:45 a row has only one item, and it may not be `a` [remove the name: `%{item.index}` is the item of the row]
8:63 the axis `dim` has no item `yeer` [did you mean `year`?]
8:83 the axis `dim` has no item `a` [`a` belongs to the axis `item`: write `item.a`]
",
    );
}

#[test]
fn the_value_of_a_later_axis_causes_a_warning() {
    check(
        r#"
dataDefs:
  d:
    query: { block: "%{item.value}", selector: "%{dim.value}" }
    items: [ item: { name: a, selector: "%{dim.value} %{dim.match} %{item.value}" } ]
    dims:
      - item: { name: b, selector: "%{item.value} %{dim.c.value}" }
      - item: { name: c, selector: "%{dim.b.value}" }
"#,
        r"
4:42 warning: the value of `dim` is not known yet when `a` is evaluated [axes are evaluated in the order item, dims, fact; use an earlier one]
4:68 warning: the value of `item` is not known yet when `a` is evaluated [axes are evaluated in the order item, dims, fact; use an earlier one]
6:51 warning: the value of `dim` is not known yet when `b` is evaluated [axes are evaluated in the order item, dims, fact; use an earlier one]
",
    );
}

#[test]
fn a_variable_of_a_missing_axis_is_reported() {
    check(
        r#"
dataDefs:
  d:
    query: { block: b, selector: "%{dim.index}" }
    items: [ item: { name: a, value: v } ]
"#,
        r"
3:35 the dataDef `d` has no `dims` [add `dims`, or use `item`]
",
    );
}

#[test]
fn steps_must_receive_the_right_payload() {
    check(
        r"
steps:
  noSeeder:
    loader: { class: page_loader, previous: start, next: end }
  noLoader:
    seeder: { class: locator_seeder, previous: start, next: parser }
    parser: { class: css_parser, previous: seeder, next: end }
  noParser:
    seeder: { class: locator_seeder, previous: start, next: loader }
    loader: { class: dom_loader, previous: seeder, next: appender }
    appender: { class: data_appender, previous: loader, next: end }
  afterTheEnd:
    jsoupDefault:
      parser: { class: css_analyzer, previous: loader, next: filter }
  creatorThenAppender:
    jsoupDefault:
      filter: { class: locator_creator, previous: parser, next: appender }
  onlyAppender:
    appender: { class: data_appender, previous: start, next: end }
  seederOnly:
    seeder: { class: locator_seeder, previous: start, next: filter }
    filter: { class: data_filter, previous: seeder, next: end }
locatorGroups: { a: &l { locators: [ { name: n, url: u } ] }, b: *l, c: *l, d: *l, e: *l, f: *l, g: *l }
taskGroups:
  a: { t: { dataDef: d, steps: noSeeder } }
  b: { t: { dataDef: d, steps: noLoader } }
  c: { t: { dataDef: d, steps: noParser } }
  d: { t: { dataDef: d, steps: afterTheEnd } }
  e: { t: { dataDef: links, steps: creatorThenAppender } }
  f: { t: { dataDef: d, steps: onlyAppender } }
  g: { t: { dataDef: d, steps: seederOnly } }
dataDefs:
  d: { query: { block: b }, items: [ item: { name: i, value: v } ] }
  links: { query: { block: b }, items: [ item: { name: i, selector: s, linkGroup: a } ] }
",
        r"
3:5 step `loader` needs a locator, but `start` before it gives a locator group [put a `locator_seeder` step before it]
6:5 step `parser` needs a page, but `seeder` before it gives a locator [put a `page_loader` or `dom_loader` step before it]
10:5 step `appender` needs data, but `loader` before it gives a page [put a `css_parser` or `xpath_parser` step before it]
18:5 step `appender` needs data, but `start` before it gives a locator group [a chain starts with `locator_seeder`, a loader and a parser]
21:5 step `filter` needs data, but `seeder` before it gives a locator [put a loader and a parser before it]
27:8 step `filter` needs data, but `parser` before it gives nothing [make the step before it the last one: `next: end`]
28:8 step `appender` needs data, but `filter` before it gives nothing [make the step before it the last one: `next: end`]
",
    );
}

#[test]
fn link_steps_and_link_groups_need_each_other() {
    check(
        r"
taskGroups:
  g:
    noLink: &t { dataDef: d, steps: { jsoupDefault: { make: { class: locator_creator, previous: parser, next: end } } } }
    constant: { <<: *t, dataDef: constant }
    noCreator: { dataDef: links }
dataDefs:
  d: { query: { block: b }, items: [ item: { name: i, value: v } ] }
  constant: { query: { block: b }, items: [ item: { name: i, match: v, linkGroup: g } ] }
  links: { query: { block: b }, items: [ item: { name: i, selector: s, linkGroup: g } ] }
",
        r"
3:55 warning: step `make` creates no locator from item `i` of dataDef `d`: the item has no `linkGroup` [add `linkGroup: ...` with the task group of the linked pages]
8:69 warning: item `i` creates a locator whose url is always `v` [take the url from the page with a `selector`, without `value` and `match`]
9:83 warning: `linkGroup` has no effect in task `noCreator`: its chain creates no locators [add a `locator_creator` step to the task's `steps`]
",
    );
}

#[test]
fn a_second_loader_of_a_group_causes_a_warning() {
    check(
        r"
taskGroups:
  g:
    a: { dataDef: d }
    b: { dataDef: d, steps: { jsoupDefault: { loader: { class: dom_loader, previous: seeder, next: parser } } } }
",
        r"
4:47 warning: the loader of task `b` does not run: task `a` loads the pages of the group [give both tasks the same loader, or move one to another group]
",
    );
}
