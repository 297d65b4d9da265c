//! The sections of the classic form.

use super::new::{
    BLOCK_VALUE, BLOCK_WORDS, COLUMNS_VALUE, COLUMNS_WORDS, EXPECT_WORDS, FIELDS_VALUE,
    FIELDS_WORDS, FOLLOW_VALUE, FOLLOW_WORDS, GROUP, OUTPUT_WORDS, SITEMAP_VALUE,
    START_SEQUENCE_WORDS, STEPS_WORDS, URLS_VALUE,
};
use super::{EXPECT, Shape, Value, key, required};

pub(super) const STEPS_VALUE: Value =
    Value::Either(&[Value::Text, Value::Named(&Value::Named(&Value::Of(&STEP)))]);

/// A definition file.
pub static FILE: Shape = Shape {
    id: "file",
    what: "a definition file",
    words: "All files of a directory together are one set of definitions; names of files carry no \
            meaning. `groups` is the short form; the other sections are the classic one, and both \
            may be mixed.",
    keys: &[
        key(
            "groups",
            Value::Named(&Value::Of(&GROUP)),
            "Pages and what to take from them, in one place.",
        ),
        key(
            "locatorGroups",
            Value::Named(&Value::Of(&LOCATOR_GROUP)),
            "Which pages to load, by group.",
        ),
        key(
            "taskGroups",
            Value::Named(&Value::Of(&TASK_GROUP)),
            "What to do with the pages of the locator group of the same name.",
        ),
        key("dataDefs", Value::Named(&Value::Of(&DATA_DEF)), "What to take from a page."),
        key(
            "steps",
            Value::Named(&Value::Named(&Value::Either(&[
                Value::Of(&STEP),
                Value::Named(&Value::Of(&STEP)),
            ]))),
            "Chains of steps, by name: all steps of a chain, or the name of the chain it is based on \
             with steps to replace or insert.",
        ),
    ],
    others: None,
    example: "",
};

/// An entry of `locatorGroups`.
pub static LOCATOR_GROUP: Shape = Shape {
    id: "locatorGroup",
    what: "a locator group",
    words: "Pages to load; the task group of the same name works on them.",
    keys: &[
        key(
            "locators",
            Value::List(&Value::Either(&[Value::Text, Value::Of(&LOCATOR)])),
            "The pages: addresses with names, or bare addresses.",
        ),
        key("urls", URLS_VALUE, "Further addresses: with ranges, or from a file."),
        key("sitemap", SITEMAP_VALUE, "Sitemaps whose addresses are pages of the group."),
        key("startSequence", Value::Whole, START_SEQUENCE_WORDS),
    ],
    others: None,
    example: r"locatorGroups:
  quotes:
    locators: [ { name: acme, url: https://example.org/acme } ]",
};

/// An entry of `locators`.
pub static LOCATOR: Shape = Shape {
    id: "locator",
    what: "a locator",
    words: "One page to load. A bare address is short for one whose name is the address.",
    keys: &[
        required("name", Value::Text, "First column of the classic form's rows."),
        required(
            "url",
            Value::Text,
            "`http(s)://...`, `file:...`, or a path: from the current directory or beside the definitions.",
        ),
    ],
    others: None,
    example: "{ name: acme, url: https://example.org/acme }",
};

/// An entry of `taskGroups`.
pub static TASK_GROUP: Shape = Shape {
    id: "taskGroup",
    what: "a task group",
    words: "Tasks for the pages of a group. A page is loaded once, whatever the number of tasks.",
    keys: &[key(
        "live",
        Value::Text,
        "How long a loaded page stays usable for later runs: `P1W`, `PT6H`. Default: not at all.",
    )],
    others: Some(("Any other key is a task of that name.", Value::Of(&TASK))),
    example: r"taskGroups:
  quotes:
    live: P1D
    priceTask: { dataDef: price }",
};

/// A task.
pub static TASK: Shape = Shape {
    id: "task",
    what: "a task",
    words: "One data definition applied to a page, named by `dataDef` or written in place.",
    keys: &[
        key("dataDef", Value::Text, "Name of the data definition."),
        key("block", BLOCK_VALUE, BLOCK_WORDS),
        key("fields", FIELDS_VALUE, FIELDS_WORDS),
        key("columns", COLUMNS_VALUE, COLUMNS_WORDS),
        key("follow", FOLLOW_VALUE, FOLLOW_WORDS),
        key("expect", Value::Of(&EXPECT), EXPECT_WORDS),
        key("output", Value::Text, OUTPUT_WORDS),
        key("steps", STEPS_VALUE, STEPS_WORDS),
        key("persist", Value::Of(&PERSIST), "What is kept for later runs."),
    ],
    others: None,
    example: "priceTask: { dataDef: price, steps: htmlUnitDefault }",
};

/// `persist` of a task.
pub static PERSIST: Shape = Shape {
    id: "persist",
    what: "`persist`",
    words: "What is kept for later runs while the page is live.",
    keys: &[key("data", Value::Boolean, "Whether parsed data is kept. Default: true.")],
    others: None,
    example: "persist: { data: false }",
};

/// An entry of `dataDefs`.
pub static DATA_DEF: Shape = Shape {
    id: "dataDef",
    what: "a dataDef",
    words: "What to take from a page: a record with `fields`, or the classic `query` and `items`.",
    keys: &[
        key("block", BLOCK_VALUE, BLOCK_WORDS),
        key("fields", FIELDS_VALUE, FIELDS_WORDS),
        key("columns", COLUMNS_VALUE, COLUMNS_WORDS),
        key("follow", FOLLOW_VALUE, FOLLOW_WORDS),
        key("expect", Value::Of(&EXPECT), EXPECT_WORDS),
        key("query", Value::Of(&QUERY), "Classic: where the facts are."),
        key(
            "items",
            Value::Wrapped("item", &ITEM),
            "Classic: the first axis; every item gives rows.",
        ),
        key(
            "dims",
            Value::Wrapped("item", &ITEM),
            "Classic: further axes; rows are all combinations.",
        ),
        key(
            "facts",
            Value::Wrapped("item", &ITEM),
            "Classic: the last axis. Default: one entry, `fact`.",
        ),
    ],
    others: None,
    example: r#"dataDefs:
  price:
    query: { block: "div#price", selector: span }
    items: [ item: { name: Price, value: Price } ]"#,
};

/// `query` of a classic data definition.
pub static QUERY: Shape = Shape {
    id: "query",
    what: "a query",
    words: "The block a page is searched in, and the selector of the fact. CSS or XPath, as the \
            task's parser has it; `%{item.index}` and other variables may stand in both.",
    keys: &[
        required("block", Value::Text, "Query for the block."),
        key(
            "selector",
            Value::Text,
            "Query for the fact, inside the block; ` attribute: name` at its end takes an attribute.",
        ),
    ],
    others: None,
    example: r##"query: { block: "#prices tr:nth-child(%{item.index})", selector: td.price }"##,
};

/// An entry of `items`, `dims` or `facts`.
pub static ITEM: Shape = Shape {
    id: "item",
    what: "an item",
    words: "One axis of the classic form: a value, or a query for it, and the indexes it runs through.",
    keys: &[
        required("name", Value::Text, "Name for variables and converters; not printed."),
        key("value", Value::Text, "A constant value."),
        key(
            "match",
            Value::Text,
            "Text to look for with `%{item.match}`; also the value, without its backslashes.",
        ),
        key("script", Value::Text, "JavaScript expression for the value."),
        key(
            "selector",
            Value::Text,
            "Query for the value, inside the block; ` attribute: name` at its end takes an attribute.",
        ),
        key("index", Value::Whole, "What `%{index}` stands for. Default: 1."),
        key(
            "indexRange",
            Value::Text,
            "Indexes to run through: `2-6`, or `5-` until `breakAfter`.",
        ),
        key("breakAfter", Value::List(&Value::Text), "Values after which an open range ends."),
        key("filters", Value::Wrapped("filter", &FILTER), "Rows that are dropped."),
        key(
            "prefix",
            Value::List(&Value::Text),
            "Texts put in front of the value, each before the last.",
        ),
        key(
            "linkGroup",
            Value::Text,
            "Task group of the pages that the value, an address, leads to.",
        ),
        key("linkBreakOn", Value::List(&Value::Text), "Addresses that are not followed."),
        key("order", Value::Whole, "What `%{order}` stands for. Default: the place in the list."),
    ],
    others: None,
    example: r#"item: { name: year, selector: "th:nth-child(%{index})", indexRange: 2-6 }"#,
};

/// A filter of an item.
pub static FILTER: Shape = Shape {
    id: "filter",
    what: "a filter",
    words: "Drops the rows whose value its pattern fits.",
    keys: &[
        required(
            "type",
            Value::Word(&["value", "match"]),
            "What is looked at: the `value`, or the item's `match`.",
        ),
        required(
            "pattern",
            Value::Text,
            "The text itself, a regular expression for all of it, or one space for blank.",
        ),
    ],
    others: None,
    example: r#"filters: [ filter: { type: value, pattern: "" } ]"#,
};

/// A step of a chain.
pub static STEP: Shape = Shape {
    id: "step",
    what: "a step",
    words: "One step of a chain. `start` and `end` are the ends of a chain.",
    keys: &[
        required(
            "class",
            Value::Text,
            "What it does: `page_loader`, `css_parser`, `data_filter`, ... or a class string of Scoopi.",
        ),
        required("previous", Value::Text, "Step before it, or `start`."),
        required("next", Value::Text, "Step after it, or `end`."),
        key(
            "plugins",
            Value::Wrapped("plugin", &PLUGIN),
            "Appenders, encoders, converters or scripts of the step.",
        ),
    ],
    others: None,
    example: "links: { class: locator_creator, previous: parser, next: end }",
};

/// A plugin of a step.
pub static PLUGIN: Shape = Shape {
    id: "plugin",
    what: "a plugin",
    words: "An appender, encoder, converter or script, with properties of its own.",
    keys: &[
        required("name", Value::Text, "Its name."),
        required(
            "class",
            Value::Text,
            "What it is: `file`, `csv`, `jsonl`, `date_roller`, `date_formatter`, ... or a class string of Scoopi.",
        ),
        key(
            "plugins",
            Value::Wrapped("plugin", &PLUGIN),
            "Plugins inside it: the encoder of an appender.",
        ),
    ],
    others: Some((
        "Any other key is a property of the plugin.",
        Value::Either(&[Value::Scalar, Value::List(&Value::Scalar)]),
    )),
    example: r#"plugin: { name: csv, class: csv, delimiter: "|" }"#,
};
