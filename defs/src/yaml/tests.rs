//! The problems of invalid YAML.

use crate::testing::{check, check_raw};

#[test]
fn unquoted_booleans_and_digits_are_not_text() {
    check(
        r"
locatorGroups:
  g:
    locators: [ { name: 12, url: yes } ]
taskGroups:
  g: { t: { dataDef: d }, live: 0 }
dataDefs:
  d:
    query: { block: b }
    items: [ item: { name: Off, match: 1.5, value: -3, indexRange: 7, filters: [ filter: { type: value, pattern: 0x1F } ] } ]
",
        r#"
3:25 `name` must be text, but it is the number `12` [put it in quotes: `"12"`]
3:34 `url` must be text, but it is the boolean `yes` [put it in quotes: `"yes"`]
5:33 `live` must be text, but it is the number `0` [put it in quotes: `"0"`]
9:28 `name` must be text, but it is the boolean `Off` [put it in quotes: `"Off"`]
9:40 `match` must be text, but it is the number `1.5` [put it in quotes: `"1.5"`]
9:52 `value` must be text, but it is the number `-3` [put it in quotes: `"-3"`]
9:68 `indexRange` must be text, but it is the number `7` [put it in quotes: `"7"`]
9:114 `pattern` must be text, but it is the number `0x1F` [put it in quotes: `"0x1F"`]
"#,
    );
}

#[test]
fn quoted_words_and_ranges_are_text() {
    check(
        r#"
dataDefs:
  d:
    query: { block: b }
    items:
      - item: { name: "12", match: "yes", indexRange: 7-9 }
      - item: { name: 'no', value: "", indexRange: 1-20 }
      - item: { name: !!str 13, value: 12e3 }
"#,
        "",
    );
}

#[test]
fn flow_lists_of_pairs_may_end_in_a_comma() {
    check(
        r"
dataDefs:
  d:
    query: { block: b }
    items: [ item: { name: x, value: v }, item: { name: y, value: v, }, ]
",
        "",
    );
}

#[test]
fn a_duplicate_key_is_reported() {
    check(
        r"
dataDefs:
  d:
    query: { block: b, block: c }
    items: [ item: { name: x, value: v } ]
    query: { block: b }
",
        r"
3:24 the key `block` is written twice in one mapping [line 3 has it too; keep one of them]
5:5 the key `query` is written twice in one mapping [line 3 has it too; keep one of them]
",
    );
}

#[test]
fn aliases_and_merge_keys_are_resolved() {
    check(
        r#"
dataDefs:
  d:
    query: { block: &b "div" }
    items:
      - item: &base { name: x, selector: *b, indexRange: 2-3 }
      - item: { <<: *base, name: y }
      - item: { <<: [ { prefix: [ p ] }, *base ], name: z }
"#,
        "",
    );
}

#[test]
fn an_alias_without_an_anchor_is_reported() {
    check(
        r"
dataDefs:
  d:
    query: { block: *b }
    items: [ item: { name: x, value: v, <<: text } ]
",
        r"
3:21 the alias `*b` has no anchor `&b` before it [define the anchor first, or put the text in quotes]
4:41 `<<` can merge only mappings [give it an alias of a mapping, such as `<<: *base`, or a list of them]
",
    );
}

#[test]
fn an_alias_inside_its_anchor_is_reported() {
    check(
        r"
dataDefs: &a
  d: *a
",
        r"
2:6 the alias is inside its own anchor [a definition cannot contain itself; remove the alias]
",
    );
}

#[test]
fn a_list_or_mapping_as_key_is_reported() {
    check(
        r"
dataDefs:
  d:
    query: { block: b, [ x ]: y, { k: v }: y }
    items: [ item: { name: x, value: v } ]
",
        r"
3:24 a list or mapping cannot be a key [write a name before the `:`; put text that contains brackets in quotes]
3:34 a list or mapping cannot be a key [write a name before the `:`; put text that contains brackets in quotes]
",
    );
}

#[test]
fn a_tab_in_the_indentation_is_reported() {
    for (yaml, place) in [
        ("dataDefs:\n\td: { }\n", "2:1"),
        ("dataDefs:\n  d:\n  \tquery: { }\n", "3:3"),
        ("dataDefs:\n  d: { }\n\te: { }\n", "3:1"),
        ("dataDefs:\n  d: x\n \t y: z\n", "3:2"),
        ("dataDefs:\n  - d\n\n\t- e\n", "4:1"),
        ("dataDefs: |\n\td\n", "2:1"),
        ("dataDefs: >\n  d\n\te\n", "3:1"),
        ("dataDefs: {\n\td: { } }\n", "2:1"),
    ] {
        let expected = format!("{place} a tab in the indentation [replace the tab with spaces]\n");
        check_raw(yaml, &expected);
    }
}

#[test]
fn an_open_bracket_is_reported() {
    check(
        r"
dataDefs:
  d: { query: { block: b }, items: [ item: { name: x }
",
        r"
3:1 a comma or a closing bracket is missing before this [separate the entries between brackets by commas]
",
    );
}

#[test]
fn an_open_quote_is_reported() {
    check(
        r#"
dataDefs:
  d: { query: { block: "b } }
"#,
        r#"
2:24 the closing quote is missing [add the closing quote; inside double quotes write `\"` for a quote]
"#,
    );
}

#[test]
fn an_open_quote_is_reported_at_the_quote() {
    for (yaml, place) in [
        ("foo: 'abc", "1:6"),
        ("foo: 'abc\n", "1:6"),
        ("foo: 'abc\r\n\r\nbar: 1\r\n", "1:6"),
        ("foo: \"abc\nbar: \"x\"\n", "1:6"),
        ("foo: \"abc\\\"\nbar: x\n", "1:6"),
        ("foo: 'it''s\nbar: x\n", "1:6"),
        ("foo: # it's 'here'\n  - 'x'\n  - !!str &a 'abc\n  - c\n", "3:14"),
        ("ä: 'ö'\nfoo:\n  ü: 'abc\n  bar: 'x'\n", "3:6"),
        ("'foo: abc\nbar: 1\n", "1:1"),
    ] {
        let help = "add the closing quote; inside double quotes write `\\\"` for a quote";
        check_raw(yaml, &format!("{place} the closing quote is missing [{help}]\n"));
    }
}

#[test]
fn a_quote_closed_by_a_later_one_is_reported() {
    check_raw(
        r"
a: { b: 'c }
d: { e: 'f' }
",
        r"
1:9 the quote is closed only on line 2, and text follows it [add the closing quote where the text ends]
",
    );
    check_raw(
        r"
a: 'b' c
",
        r"
1:8 text after the closing quote [put the quotes around the whole text]
",
    );
}

#[test]
fn a_quoted_text_of_several_lines_must_be_indented() {
    check_raw(
        r#"
a: "b
c"
"#,
        r"
2:1 a line of a quoted text is not indented enough [indent the line more than the key, or close the quote before it]
",
    );
}

#[test]
fn an_unknown_escape_is_reported() {
    check(
        r#"
dataDefs:
  d: { query: { block: "a\(b" } }
"#,
        r"
2:24 an unknown escape inside double quotes [write `\\` for a backslash, or use single quotes, in which a backslash is a plain character]
",
    );
}

#[test]
fn a_wrong_indentation_is_reported() {
    check(
        r"
dataDefs:
  d:
    query: { block: b }
   items: [ ]
",
        r"
4:4 the indentation of this line does not match the lines around it [indent it like the lines around it, and end each key with `:`]
",
    );
}

#[test]
fn a_missing_colon_is_reported() {
    check(
        r"
dataDefs:
  d
    query: { block: b }
",
        r"
2:3 a colon is missing after `d` [write `d:`]
",
    );
}

#[test]
fn a_missing_comma_is_reported() {
    check(
        r"
dataDefs:
  d: { query: { block: b } items: [] }
",
        r"
2:28 a comma or a closing bracket is missing before this [separate the entries between brackets by commas]
",
    );
}

#[test]
fn a_text_without_needed_quotes_is_reported() {
    check(
        r"
dataDefs:
  d: { query: { block: @id } }
",
        r"
2:24 a text cannot start with `@` [put the text in quotes]
",
    );
}

#[test]
fn only_the_first_document_is_read() {
    check_raw(
        r"
---
locatorGroups: { g: { locators: [ { name: n, url: u } ] } }
taskGroups: { g: { t: { dataDef: d } } }
dataDefs: { d: { query: { block: b }, items: [ item: { name: i, value: v } ] } }
---
anything: [
",
        r"
5:1 warning: only the first document of a file is read [move the text after `---` to another file]
",
    );
}

#[test]
fn an_error_at_the_end_of_the_file_is_shown_at_the_last_text() {
    check_raw(
        r"
dataDefs: { d: [

",
        r"
1:16 the closing bracket of `[` is missing [add the closing bracket, or look for a missing comma or quote before it]
",
    );
}
