//! `check` reports all problems of all files at once and writes nothing.

use crate::harness::Workdir;
use crate::harness::defs::{TITLE, job, titled};

#[test]
fn check_accepts_sound_definitions() {
    let work = Workdir::with_defs(&job(&[("a", "a.html"), ("b", "b.html")], TITLE));
    let ending = work.spoonbill(&["check", "defs"]);
    insta::assert_snapshot!(ending.shown(&work), @r#"
    exit 0
    --- stderr
    ok: 2 locators in 1 group, 1 task, 1 data definition
    "#);
    assert_eq!(work.list("."), [".logs", "defs"], "check wrote a file");
}

#[test]
fn check_explains_how_pages_are_read() {
    let work = Workdir::with_defs(
        "groups:
  list:
    urls: https://example.com/
    follow: { selector: a.item, group: item }
  item:
    fields:
      title: h1
      price: { xpath: //b }
",
    );
    let ending = work.spoonbill(&["check", "defs", "--explain"]);
    insta::assert_snapshot!(ending.shown(&work), @r#"
    exit 0
    --- stdout
    group `item`: a page is read once, into a tree as the HTML standard says
        task `item` looks up 2 fields
    group `list`: a page is read once, into a tree as the HTML standard says
        task `list` looks up links
    a run compiles selectors, patterns and scripts once; selectors use an index of a page's elements by name, id and class
    --- stderr
    ok: 1 locator in 1 group, 2 tasks, 2 data definitions
    "#);
}

const FIRST: &str = r#"locatorGroups:
  prices:
    locators:
      - { name: acme, url: acme.html }
      - { name: acme, link: acme.html }
taskGroups:
  prices:
    priceTask:
      dataDef: prise
    linkTask:
      dataDef: links
      steps:
        jsoupDefalt:
          process: { class: locator_creator, previous: parser, next: seeder }
    dateTask:
      dataDef: dates
      steps:
        jsoupDefault:
          convert:
            class: data_convertor
            previous: filtre
            next: appender
    soundTask:
      dataDef: dates
"#;

const SECOND: &str = r#"dataDefs:
  price:
    query: { block: "div:nth-child(", selector: "p" }
    items:
      - item: { name: a, value: 1 }
      - item: { name: a, selecter: "p" }
  links:
    query: { block: body }
    items:
      - item: { name: link, linkGroup: nowhere, selector: "a attribute: href" }
  dates:
    query: { block: body, selector: "p > > b" }
    items:
      - item: { name: i, script: "1 +", indexRange: "x-y" }
    dims:
      - item: { name: d, selector: "%{dim.e.index}", filters: [ filter: { type: value, pattern: "(" } ] }
"#;

#[test]
fn check_reports_all_problems_of_two_files() {
    let work = Workdir::new();
    work.write("defs/first.yml", FIRST);
    work.write("defs/second.yml", SECOND);
    let ending = work.spoonbill(&["check", "defs"]);
    insta::assert_snapshot!(ending.shown(&work), @r#"
    exit 3
    --- stderr
    error: a locator needs the key `url`
     --> defs/first.yml:5:9
      |
    5 |       - { name: acme, link: acme.html }
      |         ^ add `url: ...`
    error: `link` is not a key of a locator
     --> defs/first.yml:5:23
      |
    5 |       - { name: acme, link: acme.html }
      |                       ^^^^ the keys of a locator are `name`, `url`
    error: task `priceTask` uses dataDef `prise`, which no file defines
     --> defs/first.yml:9:16
      |
    9 |       dataDef: prise
      |                ^^^^^ did you mean `price`?
    error: there is no chain of steps `jsoupDefalt`
      --> defs/first.yml:13:9
       |
    13 |         jsoupDefalt:
       |         ^^^^^^^^^^^ did you mean `jsoupDefault`?
    error: there is no step class `data_convertor`
      --> defs/first.yml:20:20
       |
    20 |             class: data_convertor
       |                    ^^^^^^^^^^^^^^ did you mean `data_converter`?
    error: step `convert` cannot follow `filtre`: its chain has no such step
      --> defs/first.yml:21:23
       |
    21 |             previous: filtre
       |                       ^^^^^^ did you mean `filter`?
    error: bad selector: `)` is missing
     --> defs/second.yml:3:36
      |
    3 |     query: { block: "div:nth-child(", selector: "p" }
      |                                    ^
    error: `value` must be text, but it is the number `1`
     --> defs/second.yml:5:33
      |
    5 |       - item: { name: a, value: 1 }
      |                                 ^ put it in quotes: `"1"`
    error: two entries of the dataDef have the name `a`
     --> defs/second.yml:6:23
      |
    6 |       - item: { name: a, selecter: "p" }
      |                       ^ line 5 has the same name; names must be unique in items, dims and facts
    error: `selecter` is not a key of an item
     --> defs/second.yml:6:26
      |
    6 |       - item: { name: a, selecter: "p" }
      |                          ^^^^^^^^ did you mean `selector`?
    error: item `link` links to task group `nowhere`, which no file defines
      --> defs/second.yml:10:40
       |
    10 |       - item: { name: link, linkGroup: nowhere, selector: "a attribute: href" }
       |                                        ^^^^^^^ add `nowhere:` below `taskGroups:`
    error: bad selector: a selector is missing before `>`
      --> defs/second.yml:12:42
       |
    12 |     query: { block: body, selector: "p > > b" }
       |                                          ^
    error: script of item `i`: `script` line 1, column 4: SyntaxError: unexpected token in expression: ''
      --> defs/second.yml:14:34
       |
    14 |       - item: { name: i, script: "1 +", indexRange: "x-y" }
       |                                  ^^^^^
    error: `x-y` is not a range of indexes
      --> defs/second.yml:14:53
       |
    14 |       - item: { name: i, script: "1 +", indexRange: "x-y" }
       |                                                     ^^^^^ write `2-6`, or `5-` for a range that `breakAfter` ends
    error: the axis `dim` has no item `e`
      --> defs/second.yml:16:37
       |
    16 |       - item: { name: d, selector: "%{dim.e.index}", filters: [ filter: { type: value, pattern: "(" } ] }
       |                                     ^^^^^^^^^^^^^^ the middle part must be a name from `dims`
    error: filter `(` is not a regular expression: Parsing error at position 1: Opening parenthesis without closing parenthesis
      --> defs/second.yml:16:97
       |
    16 |       - item: { name: d, selector: "%{dim.e.index}", filters: [ filter: { type: value, pattern: "(" } ] }
       |                                                                                                 ^^^ put literal text between `\Q` and `\E`
    16 errors
    "#);
}

/// Definitions whose structure and names are right, with errors in queries, scripts and plugins.
const DEEPER: &str = r#"locatorGroups:
  g: { locators: [ { name: acme, url: acme.html } ] }
taskGroups:
  g:
    css: { dataDef: css }
    xpath: { dataDef: xpath, steps: htmlUnitDefault }
    convert:
      dataDef: css
      steps:
        jsoupDefault:
          converter:
            class: data_converter
            previous: filter
            next: appender
            plugins:
              - plugin: { name: a, class: date_roler, item: day, inPattern: "yyyy", outPattern: "yyyy", roll: "MONTH=ceil" }
              - plugin: { name: b, class: date_roller, item: day, inPattern: "yyyy'", outPattern: "bbb", roll: "MOON=full" }
              - plugin: { name: c, class: date_formatter, item: nobody, inPattern: "yyyy" }
    script:
      dataDef: css
      steps:
        jsoupDefault:
          script:
            class: scripter
            previous: filter
            next: appender
            plugins:
              - plugin: { name: s, class: script, script: missing.js }
              - plugin: { name: t, class: script, script: broken.js }
    append:
      dataDef: css
      steps:
        jsoupDefault:
          appender:
            class: data_appender
            previous: filter
            next: end
            plugins:
              - plugin: { name: f, class: file }
              - plugin: { name: g, class: file, file: g.txt, plugins: [ plugin: { name: c, class: csv, delimiter: "||", includeTag: true } ] }
dataDefs:
  css:
    query: { block: "div:nth-child(x)", selector: "p:contain(x)" }
    items: [ item: { name: i, script: "1 +" } ]
    dims: [ item: { name: day, selector: "p[", filters: [ filter: { type: value, pattern: "(" } ] } ]
  xpath:
    query: { block: "//div[", selector: "p" }
    items: [ item: { name: i, selector: "foo(.)" } ]
"#;

#[test]
fn check_compiles_queries_scripts_patterns_and_plugins() {
    let work = Workdir::with_defs(DEEPER);
    work.write("defs/broken.js", "function execute(data) {\n  return data;\n");
    let ending = work.spoonbill(&["check", "defs"]);
    insta::assert_snapshot!(ending.shown(&work), @r#"
    exit 3
    --- stderr
    error: there is no converter `date_roler`
      --> defs/job.yml:16:43
       |
    16 |               - plugin: { name: a, class: date_roler, item: day, inPattern: "yyyy", outPattern: "yyyy", roll: "MONTH=ceil" }
       |                                           ^^^^^^^^^^ did you mean `date_roller`?
    error: date pattern `yyyy'`: the quote ' at offset 4 is never closed; write '' for an apostrophe
      --> defs/job.yml:17:78
       |
    17 |               - plugin: { name: b, class: date_roller, item: day, inPattern: "yyyy'", outPattern: "bbb", roll: "MOON=full" }
       |                                                                              ^^^^^^^
    error: date pattern `bbb`: `b` at offset 0 is not a pattern letter; put plain text in '...'
      --> defs/job.yml:17:99
       |
    17 |               - plugin: { name: b, class: date_roller, item: day, inPattern: "yyyy'", outPattern: "bbb", roll: "MOON=full" }
       |                                                                                                   ^^^^^
    error: roll has no field `MOON`
      --> defs/job.yml:17:112
       |
    17 |               - plugin: { name: b, class: date_roller, item: day, inPattern: "yyyy'", outPattern: "bbb", roll: "MOON=full" }
       |                                                                                                                ^^^^^^^^^^^ use one of `ERA`, `YEAR`, `MONTH`, `DATE`, `DAY_OF_MONTH`, `DAY_OF_YEAR`, `DAY_OF_WEEK`, `DAY_OF_WEEK_IN_MONTH`, `WEEK_OF_YEAR`, `WEEK_OF_MONTH`, `AM_PM`, `HOUR`, `HOUR_OF_DAY`, `MINUTE`, `SECOND`, `MILLISECOND`
    error: plugin `c` lacks property `outPattern`
      --> defs/job.yml:18:33
       |
    18 |               - plugin: { name: c, class: date_formatter, item: nobody, inPattern: "yyyy" }
       |                                 ^
    error: script file `missing.js` cannot be read: file `missing.js` was not found
      --> defs/job.yml:28:59
       |
    28 |               - plugin: { name: s, class: script, script: missing.js }
       |                                                           ^^^^^^^^^^
    error: `broken.js` line 3, column 1: SyntaxError: unexpected token in expression: ''
      --> defs/job.yml:29:59
       |
    29 |               - plugin: { name: t, class: script, script: broken.js }
       |                                                           ^^^^^^^^^ scripts are plain JavaScript: no modules, no Java types
    error: file appender `f` has no `file`
      --> defs/job.yml:39:33
       |
    39 |               - plugin: { name: f, class: file }
       |                                 ^ add `file: output/data.txt`
    error: appender `f` has no encoder
      --> defs/job.yml:39:33
       |
    39 |               - plugin: { name: f, class: file }
       |                                 ^ add `plugins: [ plugin: { name: csv, class: csv } ]` to it
    error: plugin `c` has no property `includeTag`
      --> defs/job.yml:40:121
       |
    40 |               - plugin: { name: g, class: file, file: g.txt, plugins: [ plugin: { name: c, class: csv, delimiter: "||", includeTag: true } ] }
       |                                                                                                                         ^^^^^^^^^^ did you mean `includeTags`?
    error: bad selector: `x` is not a position: use `3`, `2n+1`, `odd` or `even`
      --> defs/job.yml:43:36
       |
    43 |     query: { block: "div:nth-child(x)", selector: "p:contain(x)" }
       |                                    ^
    error: bad selector: unknown pseudo-class `:contain`; did you mean `:contains`?
      --> defs/job.yml:43:53
       |
    43 |     query: { block: "div:nth-child(x)", selector: "p:contain(x)" }
       |                                                     ^
    error: script of item `i`: `script` line 1, column 4: SyntaxError: unexpected token in expression: ''
      --> defs/job.yml:44:39
       |
    44 |     items: [ item: { name: i, script: "1 +" } ]
       |                                       ^^^^^
    error: bad selector: `[` has no matching `]`
      --> defs/job.yml:45:44
       |
    45 |     dims: [ item: { name: day, selector: "p[", filters: [ filter: { type: value, pattern: "(" } ] } ]
       |                                            ^
    error: filter `(` is not a regular expression: Parsing error at position 1: Opening parenthesis without closing parenthesis
      --> defs/job.yml:45:91
       |
    45 |     dims: [ item: { name: day, selector: "p[", filters: [ filter: { type: value, pattern: "(" } ] } ]
       |                                                                                           ^^^ put literal text between `\Q` and `\E`
    error: bad XPath: expected a name, `*` or `text()`, found the end
      --> defs/job.yml:47:28
       |
    47 |     query: { block: "//div[", selector: "p" }
       |                            ^
    error: bad XPath: XPath 1.0 has no function `foo`; did you mean `floor`?
      --> defs/job.yml:48:42
       |
    48 |     items: [ item: { name: i, selector: "foo(.)" } ]
       |                                          ^
    17 errors
    "#);
}

#[test]
fn broken_yaml_is_shown_with_its_line() {
    let work = Workdir::with_defs("locatorGroups:\n  g: [ 1,\ntaskGroups: }\n");
    let ending = work.spoonbill(&["check", "defs"]);
    insta::assert_snapshot!(ending.shown(&work), @r#"
    exit 3
    --- stderr
    error: `}` does not match `[`
     --> defs/job.yml:2:6
      |
    2 |   g: [ 1,
      |      ^ use a matching pair of brackets
    1 error
    "#);
}

#[test]
fn check_reports_duplicate_names_and_wrong_types() {
    let work = Workdir::with_defs(&job(&[("a", "a.html")], TITLE));
    work.write(
        "defs/more.yml",
        "taskGroups:\n  g:\n    live: 5\n    t: { dataDef: d, persist: { data: maybe } }\n\
         dataDefs:\n  d:\n    query: { block: [ a ] }\n    items: { item: { name: 1 } }\n\
         extras: {}\n",
    );
    let ending = work.spoonbill(&["check", "defs"]);
    insta::assert_snapshot!(ending.shown(&work), @r#"
    exit 3
    --- stderr
    warning: `g` replaces the different definition at defs/job.yml:6
     --> defs/more.yml:2:3
      |
    2 |   g:
      |   ^ rename or remove one of them: definitions of the same name are not merged
    error: `live` must be text, but it is the number `5`
     --> defs/more.yml:3:11
      |
    3 |     live: 5
      |           ^ put it in quotes: `"5"`
    error: `data` must be `true` or `false`, but it is the text `maybe`
     --> defs/more.yml:4:39
      |
    4 |     t: { dataDef: d, persist: { data: maybe } }
      |                                       ^^^^^ write `data: true` or `data: false`, without quotes
    warning: `d` replaces the different definition at defs/job.yml:10
     --> defs/more.yml:6:3
      |
    6 |   d:
      |   ^ rename or remove one of them: definitions of the same name are not merged
    error: `block` must be text, but it is a list
     --> defs/more.yml:7:21
      |
    7 |     query: { block: [ a ] }
      |                     ^ write one text; put it in quotes if it contains brackets or `: `
    error: `items` must be a list, but it is a mapping
     --> defs/more.yml:8:12
      |
    8 |     items: { item: { name: 1 } }
      |            ^ write it as a list: `items: [ item: { name: ... } ]`
    error: `extras` is not a key of a definition file
     --> defs/more.yml:9:1
      |
    9 | extras: {}
      | ^^^^^^ the keys of a definition file are `groups`, `locatorGroups`, `taskGroups`, `dataDefs`, `steps`
    5 errors, 2 warnings
    "#);
}

#[test]
fn a_run_prints_the_problems_of_check_and_writes_nothing() {
    let work = Workdir::new();
    work.write("defs/first.yml", FIRST);
    work.write("defs/second.yml", SECOND);
    let check = work.spoonbill(&["check", "defs"]);
    let run = work.run(&[]);
    assert_eq!((run.code, &run.stdout, &run.stderr), (3, &check.stdout, &check.stderr));
    assert_eq!(work.list("."), [".logs", "defs"], "the run wrote a file");
}

#[test]
fn a_directory_without_definitions_is_refused() {
    let work = Workdir::new();
    let missing = work.run(&[]);
    insta::assert_snapshot!(missing.shown(&work), @r#"
    exit 3
    --- stderr
    error: no directory `defs` with definition files
      check the path; a relative path starts at the current directory
    1 error
    "#);
    work.write("defs/readme.txt", "no definitions");
    let empty = work.run(&[]);
    insta::assert_snapshot!(empty.shown(&work), @r#"
    exit 3
    --- stderr
    error: no definition file in `defs`
      definition files end in `.yml` or `.yaml`; subfolders are searched too
    1 error
    "#);
    work.write("defs/empty.yml", "# nothing\n");
    let comment = work.spoonbill(&["check", "defs"]);
    insta::assert_snapshot!(comment.shown(&work), @r#"
    exit 3
    --- stderr
    error: there is nothing to load: no file has `groups`
     --> defs/empty.yml:1:1
      |
    1 | # nothing
      | ^ add `groups:`, below it a name, and below the name `urls:` and `fields:`
    1 error
    "#);
    assert_eq!(work.list("."), [".logs", "defs"]);
}

#[test]
fn definitions_in_several_files_and_folders_are_one_set() {
    let work = Workdir::new();
    let whole = job(&[("acme", "page.html")], TITLE);
    let (locators, rest) = whole.split_at(whole.find("taskGroups").unwrap());
    let (tasks, data_defs) = rest.split_at(rest.find("dataDefs").unwrap());
    work.write("defs/a.yml", locators);
    work.write("defs/sub/b.yaml", tasks);
    work.write("defs/sub/deep/c.yml", data_defs);
    work.write("defs/d.yml.bak", "not: read");
    work.write("page.html", titled("x"));
    assert_eq!(work.rows(&[]), ["acme|g|title|x"]);
}
