//! The meaning of definitions that were read: merging, inheritance, ranges, defaults.

#![expect(clippy::unwrap_used, reason = "a test that cannot prepare its files has failed")]

use std::fs;
use std::path::Path;

use spoonbill_defs::{
    Defs, DefsOptions, IndexRange, Item, LoadedDefs, Problems, StepKind, from_str, load,
};

const LOCATORS: &str = "locatorGroups: { g: { locators: [ { name: n, url: u } ] } }\n";
const TASKS: &str = "taskGroups: { g: { t: { dataDef: d } } }\n";
const DATA: &str =
    "dataDefs: { d: { query: { block: b }, items: [ item: { name: i, value: v } ] } }\n";

fn read(text: &str) -> LoadedDefs {
    from_str("a.yml", text, &DefsOptions::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn dir_of(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn messages(problems: &[spoonbill_defs::Problem], dir: &Path) -> Vec<String> {
    let shown = format!("{}/", dir.display());
    problems.iter().map(|problem| problem.message.replace(&shown, "")).collect()
}

fn refused(files: &[(&str, &str)]) -> Vec<String> {
    let dir = dir_of(files);
    let Err(Problems(problems)) = load(dir.path(), &DefsOptions::default()) else {
        panic!("loaded {files:?}");
    };
    messages(&problems, dir.path())
}

/// `name:kind` of every step of the first task.
fn chain(defs: &Defs) -> String {
    let steps = &defs.task_groups[0].tasks[0].steps;
    let steps: Vec<_> =
        steps.iter().map(|step| format!("{}:{:?}", step.name.text, step.kind)).collect();
    steps.join(" ")
}

fn chain_of(task_steps: &str, steps: &str) -> String {
    let tasks = format!("taskGroups: {{ g: {{ t: {{ dataDef: d, steps: {task_steps} }} }} }}\n");
    chain(&read(&format!("{LOCATORS}{tasks}{DATA}{steps}")).defs)
}

fn items(items: &str) -> Vec<Item> {
    let data = format!("dataDefs: {{ d: {{ query: {{ block: b }}, items: [ {items} ] }} }}\n");
    let mut loaded = read(&format!("{LOCATORS}{TASKS}{data}"));
    loaded.defs.data_defs.remove(0).items
}

#[test]
fn a_task_without_steps_has_the_default_chain() {
    let text = format!("{LOCATORS}{TASKS}{DATA}");
    let loaded = read(&text);
    assert_eq!(
        chain(&loaded.defs),
        "seeder:LocatorSeeder loader:PageLoader parser:CssParser filter:DataFilter \
         appender:DataAppender"
    );
    let appender = &loaded.defs.task_groups[0].tasks[0].steps[4];
    let file = &appender.plugins[0];
    assert_eq!(file.option("file").unwrap().text, "output/data.txt");
    assert_eq!(file.plugins[0].option("delimiter").unwrap().text, "|");
    assert!(loaded.defs.task_groups[0].tasks[0].persist_data);

    let options =
        DefsOptions { default_steps: "htmlUnitDefault".to_owned(), ..DefsOptions::default() };
    let loaded = from_str("a.yml", &text, &options).unwrap();
    assert_eq!(loaded.defs.task_groups[0].tasks[0].steps[2].kind, StepKind::XpathParser);
    let options = DefsOptions { default_steps: "nothing".to_owned(), ..DefsOptions::default() };
    let Problems(problems) = from_str("a.yml", &text, &options).unwrap_err();
    assert_eq!(problems[0].message, "there is no chain of steps `nothing`");
}

#[test]
fn steps_are_inserted_and_replaced() {
    assert_eq!(
        chain_of(
            "{ jsoupDefault: { convert: { class: data_converter, previous: filter, next: appender } } }",
            ""
        ),
        "seeder:LocatorSeeder loader:PageLoader parser:CssParser filter:DataFilter \
         convert:DataConverter appender:DataAppender"
    );
    assert_eq!(
        chain_of(
            "{ jsoupDefault: { loader: { class: dom_loader, previous: seeder, next: parser } } }",
            ""
        ),
        "seeder:LocatorSeeder loader:DomLoader parser:CssParser filter:DataFilter \
         appender:DataAppender"
    );
    // An inserted step can follow another inserted step before it.
    assert_eq!(
        chain_of(
            "{ jsoupDefault: { a: { class: scripter, previous: filter, next: appender }, \
             b: { class: data_converter, previous: a, next: appender } } }",
            ""
        ),
        "seeder:LocatorSeeder loader:PageLoader parser:CssParser filter:DataFilter \
         a:Scripter b:DataConverter appender:DataAppender"
    );
    // `end` in any case, and a class string of older guides.
    assert_eq!(
        chain_of(
            "{ jsoupDefault: { parser: { class: org.codetab.scoopi.step.parse.jsoup.QueryAnalyzer, \
             previous: loader, next: END }, loader: { class: \
             org.codetab.scoopi.step.extract.URLLoader, previous: seeder, next: parser } } }",
            ""
        ),
        "seeder:LocatorSeeder loader:PageLoader parser:CssAnalyzer"
    );
}

#[test]
fn a_locator_creator_ends_its_chain() {
    let links = "dataDefs: { d: { query: { block: b }, \
                 items: [ item: { name: i, selector: s, linkGroup: g } ] } }\n";
    for next in ["seeder", "end"] {
        let tasks = format!(
            "taskGroups: {{ g: {{ t: {{ dataDef: d, steps: {{ jsoupDefault: {{ make: {{ \
             class: locator_creator, previous: parser, next: {next} }} }} }} }} }} }}\n"
        );
        let loaded = read(&format!("{LOCATORS}{tasks}{links}"));
        assert_eq!(
            chain(&loaded.defs),
            "seeder:LocatorSeeder loader:PageLoader parser:CssParser make:LocatorCreator"
        );
        assert_eq!(loaded.warnings, []);
    }
}

#[test]
fn chains_inherit_over_several_levels_in_any_order() {
    let steps = "steps:
  third: { second: { loader: { class: dom_loader, previous: seeder, next: parser } } }
  second: { first: { parser: { class: css_analyzer, previous: loader, next: end } } }
  first: { htmlUnitDefault: { } }
";
    assert_eq!(
        chain_of("third", steps),
        "seeder:LocatorSeeder loader:DomLoader parser:CssAnalyzer"
    );
    assert_eq!(
        chain_of("first", steps),
        "seeder:LocatorSeeder loader:PageLoader parser:XpathParser filter:DataFilter \
         appender:DataAppender"
    );
}

#[test]
fn a_user_chain_of_a_built_in_name_wins() {
    let steps = "steps: { jsoupDefault: { htmlUnitDefault: { } } }\n";
    assert!(chain_of("jsoupDefault", steps).contains("parser:XpathParser"));
}

#[test]
fn index_ranges_are_normalised() {
    let range = |keys: &str| items(&format!("item: {{ name: i, selector: s, {keys} }}"))[0].range;
    let bounded = |first, last| IndexRange { first, last: Some(last) };
    let open = |first| IndexRange { first, last: None };
    assert_eq!(range(""), bounded(1, 1));
    assert_eq!(range("index: 4"), bounded(4, 4));
    assert_eq!(range("index: 0"), bounded(0, 0));
    assert_eq!(range("breakAfter: [ x ]"), open(1));
    assert_eq!(range("index: 5, breakAfter: [ x ]"), open(5));
    assert_eq!(range("indexRange: 2-6"), bounded(2, 6));
    assert_eq!(range("indexRange: 6-2"), bounded(2, 6));
    assert_eq!(range("indexRange: \"7\""), bounded(7, 7));
    assert_eq!(range("indexRange: 5-, breakAfter: [ x ]"), open(5));
    assert_eq!(range("indexRange: 2-6-9"), bounded(2, 6));
    assert_eq!(range("indexRange: \"-\""), bounded(0, 0));
    assert_eq!(range("index: 9, indexRange: 1-2"), bounded(1, 2));
}

#[test]
fn facts_are_filled_in() {
    let loaded = read(&format!("{LOCATORS}{TASKS}{DATA}"));
    let facts = &loaded.defs.data_defs[0].facts;
    assert_eq!(facts.len(), 1);
    assert_eq!(facts[0].name.text, "fact");
    assert_eq!(facts[0].range, IndexRange::default());
    assert_eq!(facts[0].order, Some(1));
}

#[test]
fn order_is_the_position_in_the_list() {
    let data = "dataDefs: { d: { query: { block: b }, \
                items: [ item: { name: a, value: v }, item: { name: b, value: v, order: 7 }, \
                item: { name: c, value: v } ], \
                dims: [ item: { name: e, value: v }, item: { name: f, value: v } ], \
                facts: [ item: { name: amount }, item: { name: unit, value: v } ] } }\n";
    let loaded = read(&format!("{LOCATORS}{TASKS}{data}"));
    assert_eq!(loaded.warnings, []);
    let def = &loaded.defs.data_defs[0];
    let orders = |items: &[Item]| items.iter().filter_map(|item| item.order).collect::<Vec<_>>();
    assert_eq!(orders(&def.items), [1, 7, 3]);
    assert_eq!(orders(&def.dims), [1, 2]);
    assert_eq!(orders(&def.facts), [1, 2]);
}

#[test]
fn scalars_aliases_and_line_ends_are_read() {
    let found = items(
        "item: &base { name: \"12\", match: 'yes', prefix: [ &p \"a/\", *p ] }, \
         item: { <<: *base, name: other, match: 12e3 }, ",
    );
    assert_eq!(found[0].name.text, "12");
    assert_eq!(found[0].match_text.as_ref().unwrap().text, "yes");
    assert_eq!(found[1].match_text.as_ref().unwrap().text, "12e3");
    assert_eq!(found[1].prefix.len(), 2);
    assert_eq!(found[1].prefix[1].text, "a/");

    let unix = format!("{LOCATORS}{TASKS}{DATA}");
    let windows = format!("\u{feff}{}", unix.replace('\n', "\r\n"));
    assert_eq!(read(&windows).defs, read(&unix).defs);
    assert_eq!(read(&unix.replace('\n', "\r")).defs, read(&unix).defs);
}

#[test]
fn plugin_properties_are_read_as_text() {
    let steps = "steps: { c: { jsoupDefault: { appender: { class: data_appender, previous: filter, \
                 next: end, plugins: [ plugin: { name: f, class: file, queueSize: 10, on: yes, \
                 empty: , scripts: [ a, 2 ] } ] } } } }\n";
    let tasks = "taskGroups: { g: { t: { dataDef: d, steps: c, persist: { data: off } } } }\n";
    let loaded = read(&format!("{LOCATORS}{tasks}{DATA}{steps}"));
    let task = &loaded.defs.task_groups[0].tasks[0];
    assert!(!task.persist_data);
    let plugin = &task.steps[4].plugins[0];
    assert_eq!(plugin.option("queueSize").unwrap().text, "10");
    assert_eq!(plugin.option("on").unwrap().text, "yes");
    assert_eq!(plugin.option("empty").unwrap().text, "");
    let scripts: Vec<_> = plugin.list("scripts").iter().map(|t| t.as_str()).collect();
    assert_eq!(scripts, ["a", "2"]);
}

#[test]
fn files_of_a_directory_are_merged_in_the_order_of_their_paths() {
    let dir = dir_of(&[
        ("b/tasks.yaml", TASKS),
        ("a.yml", LOCATORS),
        ("c.yml", DATA),
        ("empty.yml", "# nothing but a remark\n"),
        ("blank.yaml", ""),
        ("notes.txt", "not: [ read"),
        ("upper.YML", "not: [ read"),
    ]);
    let loaded = load(dir.path(), &DefsOptions::default()).unwrap();
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.defs.task_groups.len(), 1);
    assert_eq!(loaded.sources.path(0).unwrap(), dir.path().join("a.yml").as_path());
}

#[test]
fn a_later_entry_replaces_an_earlier_one_whole() {
    let dir = dir_of(&[
        ("a.yml", &format!("{LOCATORS}{TASKS}{DATA}")),
        (
            "b.yml",
            &format!(
                "{LOCATORS}dataDefs:\n  d: {{ query: {{ block: other }}, items: [ item: {{ name: j, value: v }} ] }}\n"
            ),
        ),
    ]);
    let loaded = load(dir.path(), &DefsOptions::default()).unwrap();
    assert_eq!(loaded.defs.data_defs[0].query.block.text, "other");
    assert_eq!(loaded.defs.locator_groups.len(), 1);
    assert_eq!(
        messages(&loaded.warnings, dir.path()),
        ["`d` replaces the different definition at a.yml:3"]
    );
    let place = loaded.warnings[0].place.as_ref().unwrap();
    assert!(place.file.ends_with("b.yml"));
    assert_eq!((place.line, place.column, place.width), (3, 3, 1));
}

#[test]
fn directories_without_definitions_are_refused() {
    assert_eq!(refused(&[("notes.txt", "")]).len(), 1);
    let dir = dir_of(&[("a.txt", "x")]);
    let missing = dir.path().join("missing");
    let file = dir.path().join("a.txt");
    for (path, message) in [
        (dir.path(), "no definition file in `"),
        (missing.as_path(), "no directory `"),
        (file.as_path(), "` is a file, not a directory"),
    ] {
        let Problems(problems) = load(path, &DefsOptions::default()).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert!(problems[0].message.contains(message), "{problems:?}");
        assert!(problems[0].help.is_some());
    }
    assert_eq!(
        refused(&[("a.yml", "# nothing\n"), ("b.yml", "")]),
        ["there is nothing to load: no file has `groups`"]
    );
}

#[test]
fn one_broken_file_does_not_hide_problems_of_other_files() {
    assert_eq!(
        refused(&[
            ("a.yml", "dataDefs: { d: [ }\n"),
            ("b.yml", &format!("{LOCATORS}{TASKS}")),
            ("c.yml", "steps: { x: { jsoupDefault: { a: { clas: b } } } }\n"),
        ]),
        [
            "`}` does not match `[`",
            "a step needs the key `previous`",
            "a step needs the key `next`",
            "`clas` is not a key of a step",
        ]
    );
}

#[test]
fn a_file_that_is_not_utf_8_is_named() {
    let dir = dir_of(&[("b.yml", LOCATORS)]);
    fs::write(dir.path().join("a.yml"), b"steps:\n  caf\xe9: { }\n").unwrap();
    let Problems(problems) = load(dir.path(), &DefsOptions::default()).unwrap_err();
    assert_eq!(messages(&problems, dir.path()), ["`a.yml` is not UTF-8"]);
    let place = problems[0].place.as_ref().unwrap();
    assert_eq!((place.line, place.column), (2, 6));
}

#[cfg(unix)]
#[test]
fn symbolic_links_to_files_are_followed_but_not_to_directories() {
    let dir = dir_of(&[("sub/a.yml", &format!("{LOCATORS}{TASKS}{DATA}"))]);
    std::os::unix::fs::symlink(dir.path(), dir.path().join("sub/circle")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("sub/a.yml"), dir.path().join("b.yml")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("gone"), dir.path().join("c.yml")).unwrap();
    let loaded = load(dir.path(), &DefsOptions::default()).unwrap();
    assert_eq!(loaded.warnings, []);
    assert!(loaded.sources.path(1).is_some());
    assert!(loaded.sources.path(2).is_none());
}
