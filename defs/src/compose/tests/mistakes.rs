//! Each mistake in a short form causes one problem, at its position, with help that fixes it.

use crate::testing::{problems_of, rendered};
use crate::{DefsOptions, from_str};

/// The problems of a group with these lines.
fn group(rest: &str) -> String {
    problems_of(&format!("groups:\n  a:\n    urls: https://a.example/\n{rest}"))
}

/// The problems of a field with this value.
fn field(value: &str) -> String {
    group(&format!("    fields:\n      t: {value}\n"))
}

/// The problems of a group with these addresses.
fn urls(value: &str) -> String {
    problems_of(&format!("groups:\n  a:\n    urls: {value}\n    fields: {{ t: h1 }}\n"))
}

#[test]
fn secrets_are_not_shown() {
    let variable = |name: &str| match name {
        "API_KEY" => Some("hunter2 and more".to_owned()),
        "LONG_TOKEN" => Some("x1".repeat(60)),
        _ => None,
    };
    let options = DefsOptions { variable, ..DefsOptions::default() };
    let yaml = r"
groups:
  ${API_KEY}:
    urls: https://a.example/
    fields:
      t: { selector: h1, type: '${API_KEY}' }
      u: { selector: h1, type: 'a${API_KEY}b' }
    expect: '${LONG_TOKEN}'
    output: '${API_KEY}/${LONG_TOKEN}.xls'
    live: '${API_KEY}'
";
    let problems = from_str("a.yml", yaml, &options).unwrap_err();
    let shown = rendered(&problems.0);
    assert!(shown.contains("there is no type `${API_KEY}`"), "{shown}");
    assert!(shown.contains("`${LONG_TOKEN}...`"), "{shown}");
    assert!(!shown.contains("hunter") && !shown.contains("x1x1"), "{shown}");
}

#[test]
fn keys_outside_a_group_are_reported() {
    assert_eq!(
        problems_of("urls: https://a.example/\nblock: li\nfields: { t: h1 }\n"),
        "1:1 `urls` is a key of a group, but it stands at the top level [move it into a group: \
         `groups: { myGroup: { urls: ... } }`]\n"
    );
    assert_eq!(
        problems_of("a:\n  urls: https://a.example/\n  fields: { t: h1 }\n"),
        "1:1 `a` is a group, but it is not below `groups:` [write `groups:` above it and \
         indent it]\n"
    );
    assert_eq!(
        problems_of("# nothing\n"),
        "1:1 there is nothing to load: no file has `groups` [add `groups:`, below it a name, and \
         below the name `urls:` and `fields:`]\n"
    );
    assert_eq!(
        problems_of("groups:\n  a:\n    fields: { t: h1 }\n"),
        "2:3 the group `a` has no `urls`, and no link leads to it [add `urls:` with a start address, \
         or add `group: a` to a `follow` rule]\n"
    );
    assert_eq!(
        problems_of("groups:\n  a:\n    url: https://a.example/\n    fields: { t: h1 }\n"),
        "3:5 `url` is not a key of a group [did you mean `urls`?]\n"
    );
}

#[test]
fn malformed_queries_are_reported() {
    for (value, expected) in [
        ("a@href", "5:10 a space is missing before `@` [write `a @href`]\n"),
        ("a @", "5:10 the name of an attribute is missing after `@` [write `a @href`]\n"),
        ("“h1”", "5:10 YAML does not accept typographic quotes [write plain ones: `\"h1\"`]\n"),
        (
            "",
            "5:7 `t` must be text, but it is empty [write a selector after the colon, such as `h1`]\n",
        ),
        ("''", "5:10 `t` is empty [write a query]\n"),
        (
            "true",
            "5:10 `t` must be text, but it is the boolean `true` [write a selector, such as `h1`; a \
             constant is `{ value: true }`]\n",
        ),
        (
            "{ selector: .p, attr: href }",
            "5:26 `attr` is not a key of a field [write the attribute after the selector: \
             `selector: .p @href`]\n",
        ),
        (
            "{ css: .p }",
            "5:12 `css` is not a key of a field [write `selector: ...`, with an attribute as \
             `selector: .p @href`]\n",
        ),
        ("{ selector:h1 }", "5:12 a space is missing after `selector:` [write `selector: h1`]\n"),
        (
            "{ selector: a @href, text: own }",
            "5:31 `text` has no effect with an attribute [remove it: it applies to elements only]\n",
        ),
        (
            "{ selector: [] }",
            "5:22 `selector` is empty [write at least one entry, or remove the key]\n",
        ),
        ("{ selector: h1, type: float }", "5:32 there is no type `float` [write `decimal`]\n"),
        (
            "{ selector: a[href], type: url }",
            "5:22 inside `{ }` and `[ ]`, a text with `[`, `]`, `{`, `}` or `,` must be in quotes \
             [write `\"a[href]\"`]\n",
        ),
        (
            "*",
            "5:10 a text that begins with `*` or `&` must be in quotes [put the text in quotes: \
             `\"*\"`]\n",
        ),
        (
            "div #list",
            "5:10 warning: YAML reads ` #list` as a comment [put the text in \
             quotes: `\"div #list\"`, or write `# ` for a comment]\n",
        ),
        ("div # the list", ""),
        ("'a[title=\"x@y\"] @href'", ""),
    ] {
        assert_eq!(field(value), expected, "{value}");
    }
}

#[test]
fn malformed_addresses_and_links_are_reported() {
    const FORMS: &str =
        "[write `[1-100]`, `[001-100]` or `[0-100:20]`; for a plain bracket write `%5B`]\n";
    for bad in ["1-", "-1-3", "1-3:-1", "a-c", "1..3"] {
        let expected = format!("3:11 `[{bad}]` is not a range {FORMS}");
        assert_eq!(urls(&format!("https://a.example/[{bad}]")), expected);
    }
    let open = format!("3:11 the range `[1-3` has no closing bracket {FORMS}");
    assert_eq!(urls("https://a.example/[1-3"), open);
    for good in
        ["https://a.example/?a[]=1&b[x]=2", "https://a.example/[001-020:5]", "http://[::1]/x"]
    {
        assert_eq!(urls(good), "", "{good}");
    }
    assert_eq!(urls("[ { name: x, url: https://a.example/ } ]"), "");
    assert_eq!(
        urls("{ file: s.csv }"),
        "3:19 warning: without `column` every line of the file is an address [add `column: ...` with \
         the name of the column that holds the address]\n"
    );
    let follow = |value: &str| group(&format!("    fields: {{ t: h1 }}\n    follow: {value}\n"));
    assert_eq!(
        follow("true"),
        "5:13 `follow` must be text, but it is the boolean `true` [write a selector of links: `follow: \
         a.next`]\n"
    );
    assert_eq!(
        follow("{ selector: a, allow: '*.html' }"),
        "5:35 `*.html` is a wildcard, not a regular expression [write `'\\.html$'`: it may \
         match anywhere in the address]\n"
    );
}

#[test]
fn malformed_variables_are_reported() {
    let plain = "for a literal `${` write `$${`";
    for (value, message, help) in [
        ("${N-d}", "a default is written after `:-`, as in `${N:-...}`", "write `${N:-d}`; "),
        ("${N:d}", "a default is written after `:-`, as in `${N:-...}`", "write `${N:-d}`; "),
        ("${N", "the variable has no closing `}`", "write `${N}`; "),
        (
            "${a b}",
            "`${a b}` is not the name of a variable",
            "a name has letters, digits and `_`: `${NAME}`; ",
        ),
    ] {
        let expected = format!("5:19 {message} [{help}{plain}]\n");
        assert_eq!(field(&format!("{{ value: '{value}' }}")), expected);
    }
    assert_eq!(
        field("{ value: '${A:-${B:-c}}' }"),
        "5:19 the default of `A` contains another variable [write a default without a \
         variable]\n"
    );
    assert_eq!(field("{ selector: p, script: '`${value + 1}`' }"), "");
    let empty = DefsOptions { variable: |_| Some(String::new()), ..DefsOptions::default() };
    let yaml = "groups: { '${G:-g}': { urls: '${U:-x.html}', fields: { t: h1 } } }";
    let defs = from_str("a.yml", yaml, &empty).unwrap().defs;
    assert_eq!(defs.locator_groups[0].name.text, "g");
    assert_eq!(defs.locator_groups[0].locators[0].url.text, "x.html");
}

#[test]
fn misplaced_lines_are_reported() {
    let start = "groups:\n  a:\n";
    assert_eq!(
        problems_of(&format!("{start}    urls https://a.example/\n    fields: {{ t: h1 }}\n")),
        "3:5 a colon is missing after `urls` [write `urls: https://a.example/`]\n"
    );
    assert_eq!(
        problems_of(&format!("{start}    urls:https://a.example/\n    fields: {{ t: h1 }}\n")),
        "3:5 a space is missing after `urls:` [write `urls: https://a.example/`]\n"
    );
    assert_eq!(
        group("    fields:\n     t: h1\n      u: h2\n"),
        "6:7 this line is indented by 6 spaces, and line 5 by 5 [indent both lines by the same \
         number of spaces if they belong together]\n"
    );
}

#[test]
fn keys_that_exclude_each_other_are_reported() {
    assert_eq!(
        group("    block: { json: '$.a[*]' }\n    fields: { t: { selector: h1 }, u: v }\n"),
        "5:20 `selector` finds nothing on a page that is JSON [write `json: ...`; `$` is the block]\n"
    );
    assert_eq!(
        group("    fields: { t: h1 }\n    output: ../x.csv\n"),
        "5:13 `output` must not contain `..` [name a file below the output directory, or a \
         full path]\n"
    );
    assert_eq!(
        group("    fields: { t: h1 }\n    expect: *y\n"),
        "5:13 the alias `*y` has no anchor `&y` before it [define the anchor first, or put the text \
         in quotes]\n"
    );
}
