//! The problems of malformed mappings, of base chains and of the order of steps.

mod mistakes;
mod sequence;
mod short;

use crate::testing::{check, check_raw};

#[test]
fn sections_are_known_and_required() {
    check_raw(
        r"
locatorGroup: { }
steps: { }
",
        r"
1:1 no file has the section `taskGroups` [add `taskGroups:` at the top level]
1:1 no file has the section `dataDefs` [add `dataDefs:` at the top level]
1:1 `locatorGroup` is not a key of a definition file [did you mean `locatorGroups`?]
",
    );
}

#[test]
fn a_file_must_be_a_mapping() {
    check_raw(
        r"
- locatorGroups
",
        r"
1:1 a definition file must be a mapping, but it is a list [write indented `key: value` lines below it]
",
    );
}

#[test]
fn sections_must_be_mappings() {
    check_raw(
        r"
locatorGroups:
taskGroups: [ ]
dataDefs: text
steps:
",
        r"
1:1 `locatorGroups` must be a mapping, but it is empty [write indented `key: value` lines below it]
2:13 `taskGroups` must be a mapping, but it is a list [write indented `key: value` lines below it]
3:11 `dataDefs` must be a mapping, but it is the text `text` [write indented `key: value` lines below it]
4:1 `steps` must be a mapping, but it is empty [write indented `key: value` lines below it]
",
    );
}

#[test]
fn a_section_without_locators_is_reported() {
    check(
        r"
locatorGroups: { }
",
        r"
1:1 there are no locators, so there is nothing to load [add a group: `myGroup: { locators: [ { name: ..., url: ... } ] }`]
2:15 warning: no locator group and no link leads to the task group `g` [remove it, or use its name in a locator group, a `follow` rule or a `linkGroup`]
",
    );
}

#[test]
fn malformed_locators_are_reported() {
    check(
        r#"
locatorGroups:
  g: { locators: [ ], extra: 1 }
  h: { locator: [ ] }
  i:
    locators:
      - { name: a, url: x }
      - { name: "", url: "" }
      - { nam: a, url: x }
      - text
      - { name: a, url: x }
  j: { locators: { name: a, url: x } }
  k: text
taskGroups: { g: &t { t: { dataDef: d } }, h: *t, i: *t, j: *t, k: *t }
"#,
        r"
2:18 `locators` is empty [list at least one `{ name: ..., url: ... }`, or a bare address]
2:23 `extra` is not a key of a locator group [the keys of a locator group are `locators`, `urls`, `sitemap`, `startSequence`]
3:8 `locator` is not a key of a locator group [did you mean `locators`?]
7:17 the `name` of a locator is empty [write a text between the quotes of `name`]
7:26 the `url` of a locator is empty [write a text between the quotes of `url`]
8:11 `nam` is not a key of a locator [did you mean `name`?]
10:9 the group lists the locator `a` with this url twice [line 6 has it too; keep one of them]
11:18 `locators` must be a list, but it is a mapping [write it as a list: `locators: [ { name: ..., url: ... } ]`]
12:6 a locator group must be a mapping, but it is the text `text` [write indented `key: value` lines below it]
",
    );
}

#[test]
fn malformed_tasks_are_reported() {
    check(
        r#"
taskGroups:
  g:
    lives: P1W
    a: { dataDefs: d, step: x }
    b: { dataDef: d, persist: { data: "true" } }
    c: { dataDef: d, persist: { document: true } }
    e: [ dataDef ]
    f: { dataDef: d, steps: [ jsoupDefault ] }
    h: { dataDef: "", persist: yes }
"#,
        r"
3:5 `lives` must be a task, but it is the text `P1W` [did you mean `live`?]
4:10 `dataDefs` is not a key of a task [did you mean `dataDef`?]
4:23 `step` is not a key of a task [did you mean `steps`?]
5:39 `data` must be `true` or `false`, but it is the text `true` [write `data: true` or `data: false`, without quotes]
6:33 `document` is not a key of `persist` [the only key of `persist` is `data`]
7:8 a task must be a mapping, but it is a list [write indented `key: value` lines below it]
8:29 `steps` must be text, but it is a list [write one text; put it in quotes if it contains brackets or `: `]
9:19 the `dataDef` of a task is empty [write a text between the quotes of `dataDef`]
9:32 `persist` must be a mapping, but it is the boolean `yes` [write indented `key: value` lines below it]
",
    );
}

#[test]
fn a_group_needs_tasks() {
    check(
        r"
taskGroups:
  g: { live: P1D }
",
        r"
2:3 the task group `g` has no tasks [add one: `myTask: { dataDef: ... }`]
4:13 warning: no task uses the dataDef `d` [remove it, or use it as the `dataDef` of a task]
",
    );
}

#[test]
fn malformed_data_defs_are_reported() {
    check(
        r#"
dataDefs:
  d:
    query: { blok: b, script: s }
    item: [ ]
  e:
    query: text
    items: [ ]
    dims: [ ]
    facts: text
  f:
    query: { block: b }
    items:
      - { name: x }
      - item: { nam: x }
      - item: { name: "" }
      - text
taskGroups: { g: { t: { dataDef: d }, u: { dataDef: e }, v: { dataDef: f } } }
"#,
        r"
3:14 `blok` is not a key of a query [did you mean `block`?]
3:23 `script` is not a key of a query [the keys of a query are `block`, `selector`]
4:5 `item` is not a key of a dataDef [did you mean `items`?]
6:12 a query must be a mapping, but it is the text `text` [write indented `key: value` lines below it]
7:12 `items` is empty [list at least one `item: { name: ... }`]
8:11 `dims` is empty [list at least one `item: { name: ... }`, or remove the key]
9:12 `facts` must be a list, but it is the text `text` [write it as a list: `facts: [ item: { name: ... } ]`]
13:9 an entry of `items` must be written `item: { ... }`, but it is a mapping [write `item:` before it]
14:17 `nam` is not a key of an item [did you mean `name`?]
15:23 the `name` of an item is empty [write a text between the quotes of `name`]
16:9 an entry of `items` must be written `item: { ... }`, but it is the text `text` [write `item:` before it]
",
    );
}

#[test]
fn malformed_items_are_reported() {
    check(
        r#"
dataDefs:
  d:
    query: { block: b }
    items:
      - item: { name: a, index: "2", order: x }
      - item: { name: b, index: 1.5, order: -1 }
      - item: { name: c, index: 2-6 }
      - item: { name: e, breakAfter: x, prefix: [ 1 ], linkBreakOn: [ [ ] ] }
      - item: { name: f, filters: [ { type: value, pattern: x }, filter: { type: value }, filter: { type: vlue, pattern: x } ] }
      - item: { name: g, nameSelector: x, value: ~ }
      - item: { name: h, index: 4294967296 }
"#,
        r#"
5:33 `index` must be a whole number, but it is the text `2` [write it without quotes: `index: 2`]
5:45 `order` must be a whole number, but it is the text `x` [write a whole number, such as `order: 2`]
6:33 `index` must be a whole number, but it is the number `1.5` [write a whole number from 0 to 2147483647, such as `index: 2`]
6:45 `order` must be a whole number, but it is the number `-1` [write a whole number from 0 to 2147483647, such as `order: 2`]
7:33 `index` must be a whole number, but it is the text `2-6` [write a range as `indexRange: 2-6`]
8:38 `breakAfter` must be a list, but it is the text `x` [write it as a list: `breakAfter: [ "..." ]`]
8:51 an entry of `prefix` must be text, but it is the number `1` [put it in quotes: `"1"`]
8:71 an entry of `linkBreakOn` must be text, but it is a list [write one text; put it in quotes if it contains brackets or `: `]
9:37 an entry of `filters` must be written `filter: { ... }`, but it is a mapping [write `filter:` before it]
9:74 a filter needs the key `pattern` [add `pattern: ...`]
9:107 warning: there is no filter type `vlue`, so `value` is used [did you mean `value`?]
10:26 `nameSelector` is not a key of an item [the keys of an item are `name`, `value`, `match`, `script`, `selector`, `index`, `indexRange`, `breakAfter`, `filters`, `prefix`, `linkGroup`, `linkBreakOn`, `order`]
10:43 `value` must be text, but it is empty [write a text after the colon, or `""`]
11:33 `index` must be a whole number, but it is the number `4294967296` [write a whole number from 0 to 2147483647, such as `index: 2`]
"#,
    );
}

#[test]
fn keys_of_the_old_dialect_are_explained() {
    check(
        r"
dataDefs:
  d:
    axis: { }
    query: { region: b, field: s }
    items: [ item: { name: x, prefixes: [ ], members: [ ], tags: [ ] } ]
",
        r"
3:5 `axis` is not a key of a dataDef [`axis` is no longer a key: list the axes as `item` entries below `items` and `dims`]
4:14 `region` is not a key of a query [`region` is now called `block`]
4:25 `field` is not a key of a query [`field` is now called `selector`]
5:31 `prefixes` is not a key of an item [`prefixes` is now called `prefix`]
5:46 `members` is not a key of an item [`members` is no longer a key: list them as `item` entries below `items` or `dims`]
5:60 `tags` is not a key of an item [`tags` is no longer a key: remove it]
",
    );
}

#[test]
fn keys_without_effect_cause_warnings() {
    check(
        r"
dataDefs:
  d:
    query: { block: b }
    items: [ item: { name: a, value: v, index: 2, indexRange: 1-2 } ]
    dims: [ item: { name: b, value: v, linkGroup: g } ]
    facts: [ item: { name: fact, selector: s } ]
",
        r"
4:48 warning: `index` has no effect with `indexRange` [keep one of the two]
5:40 warning: `linkGroup` has no effect in `dims` [only `items` create links; move the entry there]
6:34 warning: `selector` has no effect in `facts` [the `selector` of the query selects the fact]
",
    );
}

#[test]
fn malformed_ranges_are_reported() {
    check(
        r#"
dataDefs:
  d:
    query: { block: b }
    items:
      - item: { name: a, selector: s, indexRange: x }
      - item: { name: b, selector: s, indexRange: "" }
      - item: { name: c, selector: s, indexRange: 1 - 5 }
      - item: { name: e, selector: s, indexRange: "-5" }
      - item: { name: f, selector: s, indexRange: 1-2-3 }
      - item: { name: g, selector: s, indexRange: 5- }
      - item: { name: h, match: m, breakAfter: [ x ] }
      - item: { name: i, selector: s, indexRange: 1-99999999999 }
"#,
        r#"
5:51 `x` is not a range of indexes [write `2-6`, or `5-` for a range that `breakAfter` ends]
6:51 `` is not a range of indexes [write `2-6`, or `5-` for a range that `breakAfter` ends]
7:51 `1 - 5` is not a range of indexes [write `2-6`, or `5-` for a range that `breakAfter` ends]
8:51 `-5` is not a range of indexes [write `2-6`, or `5-` for a range that `breakAfter` ends]
9:51 warning: the range `1-2-3` has a second dash; the text from there on is ignored [write two numbers, such as `2-6`]
10:51 warning: the range never ends: `breakAfter` lists no value [write both ends, or the last value: `breakAfter: [ "..." ]`]
11:23 warning: the range never ends: with `match`, no value of the page can end it [write both ends, such as `indexRange: 1-20`]
12:51 `1-99999999999` is not a range of indexes [write `2-6`, or `5-` for a range that `breakAfter` ends]
"#,
    );
}

#[test]
fn names_are_not_empty_and_contain_no_slash() {
    check(
        r#"
locatorGroups: { "": { locators: [ { name: n, url: u } ] } }
taskGroups: { "": { "": { dataDef: a/b } } }
dataDefs: { a/b: { query: { block: b }, items: [ item: { name: a/b, value: v } ] } }
"#,
        r"
1:18 the name of a locator group is empty [write a name before the colon]
2:15 the name of a task group is empty [write a name before the colon]
2:21 the name of a task is empty [write a name before the colon]
3:13 warning: the name `a/b` contains `/` or `~`, which Scoopi does not accept [use letters, digits and `_` if Scoopi must read these definitions too]
",
    );
}

#[test]
fn malformed_chains_are_reported() {
    check(
        r"
steps:
  empty: { }
  text: jsoupDefault
  bad:
    seeder: { class: locator_seeder, previous: start }
    start: { class: page_loader, previous: seeder, next: end, plugin: [ ] }
  noClass:
    parser: { clas: css_parser, previous: loader, next: end }
  twoBases:
    jsoupDefault: { }
    htmlUnitDefault: { }
  nothing:
    jsoupDefault:
",
        r"
2:3 the chain `empty` has no steps [add steps, or the name of the chain it is based on]
3:9 the chain `text` must be a mapping, but it is the text `jsoupDefault` [write indented `key: value` lines below it]
5:5 a step needs the key `next` [add `next: ...`]
6:5 a step cannot have the name `start` [`start` and `end` are the two ends of a chain; rename the step]
6:63 `plugin` is not a key of a step [did you mean `plugins`?]
8:15 `clas` is not a key of a step [did you mean `class`?]
11:5 warning: the chain `twoBases` can have only one base, so `htmlUnitDefault` is ignored [its base is `jsoupDefault`; define another chain on `htmlUnitDefault`]
13:5 the chain `jsoupDefault` is named without steps to change [add the steps below it, or write `{ }` to use the chain unchanged]
",
    );
}

#[test]
fn malformed_plugins_are_reported() {
    check(
        r"
steps:
  c:
    jsoupDefault:
      appender:
        class: data_appender
        previous: filter
        next: end
        plugins:
          - plugin: { name: 1, class: file }
          - plugin: { name: a, plugins: [ plugin: { name: b } ] }
          - { name: a, class: b }
          - plugin: { name: a, class: b, size: 1, on: yes, list: [ 1, x ], map: { k: v }, deep: [ [ ] ] }
      filter: { class: data_filter, previous: parser, next: appender, plugins: x }
",
        r#"
9:29 `name` must be text, but it is the number `1` [put it in quotes: `"1"`]
10:21 a plugin needs the key `class` [add `class: ...`]
10:51 a plugin needs the key `class` [add `class: ...`]
11:13 an entry of `plugins` must be written `plugin: { ... }`, but it is a mapping [write `plugin:` before it]
12:76 the plugin property `map` must be a text or a list of texts [put it in quotes if it contains brackets or `: `]
12:91 the plugin property `deep` must be a text or a list of texts [put it in quotes if it contains brackets or `: `]
13:80 `plugins` must be a list, but it is the text `x` [write it as a list: `plugins: [ plugin: { name: ..., class: ... } ]`]
"#,
    );
}

#[test]
fn unknown_step_classes_are_reported() {
    check(
        r"
steps:
  c:
    jsoupDefault:
      loader: { class: page_loadr, previous: seeder, next: parser }
      parser: { class: org.codetab.scoopi.step.parse.jsoup.Parsr, previous: loader, next: filter }
      filter: { class: DataFilter, previous: parser, next: appender }
      appender: { class: x.y.Unheard, previous: filter, next: end }
",
        r"
4:24 there is no step class `page_loadr` [did you mean `page_loader`?]
5:24 there is no step class `org.codetab.scoopi.step.parse.jsoup.Parsr` [did you mean `org.codetab.scoopi.step.parse.jsoup.Parser`?]
6:24 there is no step class `DataFilter` [did you mean `org.codetab.scoopi.step.process.DataFilter`?]
7:26 there is no step class `x.y.Unheard` [the classes are `locator_seeder`, `page_loader`, `dom_loader`, `css_parser`, `xpath_parser`, `sitemap_parser`, `css_analyzer`, `xpath_analyzer`, `data_filter`, `data_converter`, `locator_creator`, `scripter` and `data_appender`]
",
    );
}

#[test]
fn unknown_chains_are_reported() {
    check(
        r"
taskGroups:
  g:
    a: { dataDef: d, steps: jsoupDefalt }
    b: { dataDef: d, steps: nothingLikeIt }
    c: { dataDef: d, steps: { htmlunitDefaults: { } } }
    e: { dataDef: d, steps: { jsoupDefault: { }, htmlUnitDefault: { } } }
steps:
  one: { jsopDefault: { } }
",
        r"
3:29 there is no chain of steps `jsoupDefalt` [did you mean `jsoupDefault`?]
4:29 there is no chain of steps `nothingLikeIt` [define it below the top-level `steps:`, or use `jsoupDefault` or `htmlUnitDefault`]
5:31 there is no chain of steps `htmlunitDefaults` [did you mean `htmlUnitDefault`?]
6:29 the `steps` of task `e` must name one chain, not 2 [put the chain below the top-level `steps:` and write its name here]
8:10 there is no base chain `jsopDefault` [did you mean `jsoupDefault`?]
",
    );
}

#[test]
fn chains_based_on_themselves_are_reported() {
    check(
        r"
steps:
  a: { b: { } }
  b: { c: { } }
  c: { b: { } }
  jsoupDefault: { jsoupDefault: { } }
taskGroups: { g: { t: { dataDef: d, steps: a } } }
",
        r"
4:8 the chain `b` is based on itself [base it on a chain that has all its steps, such as `jsoupDefault`]
5:3 warning: `jsoupDefault` replaces the built-in chain of the same name [rename it unless you want to replace the built-in chain; Scoopi ignores the replacement]
5:19 the chain `jsoupDefault` is based on itself [base it on a chain that has all its steps, such as `jsoupDefault`]
",
    );
}

#[test]
fn a_user_chain_wins_over_the_built_in_one() {
    check(
        r"
steps:
  jsoupDefault:
    htmlUnitDefault: { }
",
        r"
2:3 warning: `jsoupDefault` replaces the built-in chain of the same name [rename it unless you want to replace the built-in chain; Scoopi ignores the replacement]
",
    );
}

#[test]
fn inserted_steps_need_a_known_previous_step() {
    check(
        r"
taskGroups:
  g:
    t:
      dataDef: d
      steps:
        jsoupDefault:
          convert: { class: data_converter, previous: filtr, next: appender }
          script: { class: scripter, previous: filter, next: appendr }
    u:
      dataDef: d
      steps:
        jsoupDefault:
          script: { class: scripter, previous: filter, next: appendr }
    v:
      dataDef: d
      steps:
        jsoupDefault:
          first: { class: locator_seeder, previous: start, next: seeder }
",
        r"
7:55 step `convert` cannot follow `filtr`: its chain has no such step [did you mean `filter`?]
8:62 step `script` leads to `appendr`, but its chain has no such step [did you mean `appender`?]
13:62 step `script` leads to `appendr`, but its chain has no such step [did you mean `appender`?]
18:53 step `first` cannot follow `start`: its chain has no such step [`previous` must name a step of the base chain]
",
    );
}

#[test]
fn wrong_links_between_steps_are_reported() {
    check(
        r"
steps:
  noStart:
    a: { class: locator_seeder, previous: b, next: b }
    b: { class: page_loader, previous: a, next: end }
  twoStarts:
    a: { class: locator_seeder, previous: start, next: b }
    b: { class: page_loader, previous: start, next: end }
  circle:
    a: { class: locator_seeder, previous: start, next: b }
    b: { class: page_loader, previous: a, next: c }
    c: { class: css_parser, previous: b, next: b }
  loose:
    a: { class: locator_seeder, previous: start, next: b }
    b: { class: page_loader, previous: x, next: END }
  unreached:
    a: { class: locator_seeder, previous: start, next: c }
    b: { class: page_loader, previous: a, next: c }
    c: { class: page_loader, previous: b, next: end }
taskGroups:
  g:
    a: { dataDef: d, steps: noStart }
    b: { dataDef: d, steps: twoStarts }
    c: { dataDef: d, steps: circle }
    e: { dataDef: d, steps: loose }
  h:
    f: { dataDef: d, steps: unreached }
locatorGroups: { g: &l { locators: [ { name: n, url: u } ] }, h: *l }
",
        r"
3:5 no step of the chain follows `start` [add `previous: start` to its first step]
7:40 `a` and `b` both follow `start` [a chain has one first step; change `previous` of the second one]
11:48 the chain has a cycle: a -> b -> c -> b [write `next: end` in its last step]
14:40 step `b` follows `x`, but its chain has no such step [name a step of the chain, or `start` for its first step]
17:5 warning: step `b` never runs: no step leads to it [write `next: b` in the step before it]
18:40 warning: step `c` names `b` as its `previous`, but `a` leads to it [write `previous: a`]
",
    );
}

#[test]
fn both_ends_of_a_step_are_checked() {
    check(
        r"
steps:
  whole:
    a: { class: locator_seeder, previous: start, next: b }
    b: { class: page_loader, previous: x, next: y }
  noStart:
    a: { class: locator_seeder, previous: x, next: y }
taskGroups:
  g:
    a: { dataDef: d, steps: whole }
    b: { dataDef: d, steps: noStart }
    c: { dataDef: d, steps: noStart }
    e: { dataDef: d, steps: { jsoupDefault: { m: { class: scripter, previous: filtr, next: apender } } } }
    f: { dataDef: d, steps: { jsoupDefault: { filter: { class: data_filter, previous: prser, next: apender } } } }
",
        r"
4:40 step `b` follows `x`, but its chain has no such step [name a step of the chain, or `start` for its first step]
4:49 step `b` leads to `y`, but its chain has no such step [name a step of the chain, or `end` for its last step]
6:5 no step of the chain follows `start` [add `previous: start` to its first step]
6:43 step `a` follows `x`, but its chain has no such step [name a step of the chain, or `start` for its first step]
6:52 step `a` leads to `y`, but its chain has no such step [name a step of the chain, or `end` for its last step]
12:79 step `m` cannot follow `filtr`: its chain has no such step [did you mean `filter`?]
12:92 step `m` leads to `apender`, but its chain has no such step [did you mean `appender`?]
13:87 step `filter` follows `prser`, but its chain has no such step [did you mean `parser`?]
13:100 step `filter` leads to `apender`, but its chain has no such step [did you mean `appender`?]
",
    );
}

#[test]
fn cycles_in_unused_chains_are_reported() {
    check(
        r"
steps:
  unused:
    a: { class: locator_seeder, previous: start, next: b }
    b: { class: page_lodr, previous: x, next: c }
    c: { class: css_parser, previous: b, next: b }
  noStart:
    a: { class: page_loader, previous: b, next: b }
    b: { class: css_parser, previous: a, next: a }
  heir: { unused: { } }
  based: { jsoupDefault: { filter: { class: data_filter, previous: parser, next: loader } } }
  fromItself: { fromItself: { } }
  links: { jsoupDefault: { make: { class: locator_creator, previous: parser, next: seeder } } }
  open: { a: { class: page_loader, previous: start, next: later } }
taskGroups: { g: { t: { dataDef: d, steps: { jsoupDefault: { m: { class: scripter, previous: x, next: end } } } } } }
",
        r"
4:17 there is no step class `page_lodr` [did you mean `page_loader`?]
5:48 the chain has a cycle: a -> b -> c -> b [write `next: end` in its last step]
8:48 the chain has a cycle: a -> b -> a [write `next: end` in its last step]
10:82 the chain has a cycle: seeder -> loader -> parser -> filter -> loader [write `next: end` in its last step]
11:17 the chain `fromItself` is based on itself [base it on a chain that has all its steps, such as `jsoupDefault`]
14:94 step `m` cannot follow `x`: its chain has no such step [`previous` must name a step of the base chain]
",
    );
}
