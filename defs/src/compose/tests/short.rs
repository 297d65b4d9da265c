//! Tests short forms, records, links and variables.

use crate::testing::{check_raw, rendered};
use crate::{Defs, DefsOptions, PageColumn, StepKind, Text, from_str};

/// The definitions of a text that has no problems.
#[track_caller]
fn loaded(yaml: &str) -> Defs {
    let found = from_str("a.yml", yaml, &DefsOptions::default());
    found.unwrap_or_else(|problems| panic!("{}", rendered(&problems.0))).defs
}

#[test]
fn a_group_is_a_locator_group_a_task_group_and_a_definition() {
    let defs = loaded(
        r"
groups:
  books:
    urls: https://books.example/
    block: article
    fields:
      title: h3 a @title
      price: { selector: [ .sale, .price ], type: decimal, decimal: ',' }
    columns: [ url ]
    follow: li.next a
",
    );
    assert_eq!(defs.locator_groups[0].locators[0].name.text, "https://books.example/");
    let task = &defs.task_groups[0].tasks[0];
    assert_eq!((task.name.as_str(), task.data_def.as_str()), ("books", "books"));
    assert_eq!(task.follow[0].group.text, "books");
    let file = task.steps.last().and_then(|step| step.plugins[0].option("file"));
    assert_eq!(file.map(Text::as_str), Some("output/books.csv"));
    let record = defs.data_defs[0].record.as_ref().unwrap();
    let title = &record.fields[0].queries[0];
    let attribute = title.attribute.as_ref().unwrap();
    assert_eq!((title.css.as_ref().unwrap().as_str(), attribute.as_str()), ("h3 a", "title"));
    assert_eq!(record.fields[1].queries.len(), 2);
    assert_eq!(record.columns, [PageColumn::Url]);
}

#[test]
fn classic_and_short_forms_can_be_mixed() {
    let defs = loaded(
        r"
locatorGroups: { a: { locators: [ https://a.example/, { name: b, url: https://b.example/ } ] } }
taskGroups: { a: { t: { dataDef: d }, links: { follow: { selector: a, group: b } } } }
dataDefs: { d: { fields: { title: h1 }, follow: a.next } }
groups: { b: { fields: { name: h2 }, output: names.jsonl } }
",
    );
    let [a, b] = defs.task_groups.as_slice() else { panic!("two groups") };
    assert_eq!(a.tasks[0].follow[0].group.text, "a");
    assert_eq!(a.tasks[1].follow[0].group.text, "b");
    assert_eq!(a.tasks[1].steps.len(), 3);
    let plugin = &b.tasks[0].steps.last().unwrap().plugins[0];
    assert_eq!(plugin.option("file").unwrap().as_str(), "names.jsonl");
    assert_eq!(plugin.plugins[0].class.text, "jsonl");
}

#[test]
fn each_sitemap_becomes_a_group() {
    let defs = loaded(
        r"
groups:
  items:
    sitemap: { url: https://a.example/sitemap.xml, allow: /items/ }
    fields: { title: h1 }
",
    );
    assert_eq!(defs.locator_groups[0].name.text, "items:sitemap");
    let task = &defs.task_groups[0].tasks[0];
    assert_eq!(task.steps.last().unwrap().kind, StepKind::SitemapParser);
    assert_eq!(task.follow[0].group.text, "items");
    assert_eq!(task.follow[0].allow[0].text, "/items/");
}

#[test]
fn mistakes_in_short_forms_are_reported() {
    check_raw(
        r"
groups:
  a:
    urls: [ https://a.example/ ]
    field: { title: h1 }
  b:
    urls: https://b.example/
    fields:
      title: { selectr: h1 }
      price: { type: decmal, selector: b }
      when: { selector: time, in: yyyy }
      both: { selector: a, xpath: //a }
      empty: ''
      url: a @href
    columns: [ url, dept ]
    follow: { selector: a, group: c, scope: site }
    expect: { fill: { prise: 90% , title: most }, minRows: 1 }
    output: rows.xlsx
  c:
    urls: https://c.example/
",
        r"
4:5 `field` is not a key of a group [did you mean `fields`?]
8:16 `selectr` is not a key of a field [did you mean `selector`?]
9:22 there is no type `decmal` [did you mean `decimal`?]
10:31 `in` has no effect on this type [add `type: date`, or remove it]
11:28 `selector` and `xpath` cannot be used together [keep one of the two]
12:14 `empty` is empty [write a query]
13:7 two columns have the name `url` [`columns` on line 14 has it too; rename the field]
14:21 there is no column `dept` [did you mean `depth`?]
15:45 there is no scope `site` [write one of `host`, `domain`, `prefix`, `any`]
16:23 there is no field `prise` [did you mean `price`?]
16:43 a share must be between 0 and 1, but it is the text `most` [write `95%` or `0.95`]
17:13 `rows.xlsx` does not end with a known format [end the name with `.csv`, `.tsv` or `.jsonl`; for any other name add an appender in `steps`]
18:3 a group needs `fields`, `dataDef` or `follow` [add `fields:` with the columns: `title: h1`]
",
    );
}

#[test]
fn variables_come_from_the_lookup_function() {
    let variable = |name: &str| match name {
        "START" => Some("https://a.example/".to_owned()),
        "PAGES" => Some("5".to_owned()),
        "API_TOKEN" => Some("s3cret".to_owned()),
        _ => None,
    };
    let options = DefsOptions { variable, ..DefsOptions::default() };
    let yaml = r"
groups:
  a:
    urls: ${START}list?token=${API_TOKEN}&page=${PAGE:-1}
    fields: { title: h1, price: { value: '$${PRICE}' } }
    follow: { selector: a, maxPages: '${PAGES}' }
";
    let loaded = from_str("a.yml", yaml, &options).unwrap();
    let url = &loaded.defs.locator_groups[0].locators[0].url.text;
    assert_eq!(url, "https://a.example/list?token=s3cret&page=1");
    let task = &loaded.defs.task_groups[0].tasks[0];
    assert_eq!(task.follow[0].max_pages, Some(5));
    let record = loaded.defs.data_defs[0].record.as_ref().unwrap();
    assert_eq!(record.fields[1].value.as_ref().unwrap().as_str(), "${PRICE}");
    assert_eq!(loaded.secrets.get("API_TOKEN").map(String::as_str), Some("s3cret"));
    let missing = yaml.replace("START", "STRAT");
    let problems = from_str("a.yml", &missing, &options).unwrap_err();
    let expected = "4:11 the environment has no variable `STRAT` [set it, or write a default: `${STRAT:-...}`]\n";
    assert_eq!(rendered(&problems.0), expected);
}

#[test]
fn mistakes_with_yaml_syntax_are_explained() {
    let group = |rest: &str| format!("groups:\n  a:\n    urls: https://a.example/\n{rest}");
    let problems = |rest: &str| crate::testing::problems_of(&group(rest));
    assert_eq!(
        problems("    fields:\n      price: #price\n"),
        "5:7 `price` must be text, but it is empty [`#` begins a comment: put the text in quotes]\n"
    );
    assert_eq!(
        problems("    fields: { title: h1 }\n    follow: { selector: a, maxPages: ${N} }\n"),
        "5:38 inside `{ }` and `[ ]`, a variable must be in quotes [write `\"${NAME}\"`]\n"
    );
    assert_eq!(
        problems("    fields:\n      link: a attribute: href\n"),
        "5:13 a text that contains `: ` must be in quotes [write `link: \"a attribute: href\"`]\n"
    );
    assert_eq!(
        problems("    fields:\n      id: @data-id\n"),
        "5:11 a text cannot start with `@` [put the text in quotes]\n"
    );
    assert_eq!(problems("    fields:\n      first: [ h1, h2 ]\n"), "");
}
