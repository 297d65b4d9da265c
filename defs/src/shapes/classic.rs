//! The sections of the classic form.

use super::new::{
    BLOCK_DESCRIPTION, BLOCK_VALUE, COLUMNS_DESCRIPTION, COLUMNS_VALUE, EXPECT_DESCRIPTION,
    FIELDS_DESCRIPTION, FIELDS_VALUE, FOLLOW_DESCRIPTION, FOLLOW_VALUE, GROUP, OUTPUT_DESCRIPTION,
    SITEMAP_VALUE, START_SEQUENCE_DESCRIPTION, STEPS_DESCRIPTION, URLS_VALUE,
};
use super::{EXPECT, MappingShape, ValueShape, key, required};

pub(super) const STEPS_VALUE: ValueShape = ValueShape::Either(&[
    ValueShape::Text,
    ValueShape::Named(&ValueShape::Named(&ValueShape::Of(&STEP))),
]);

/// A definition file.
pub static FILE: MappingShape = MappingShape {
    id: "file",
    what: "a definition file",
    description: "All files of a directory together are one set of definitions; names of files carry no \
            meaning. `groups` is the short form; the other sections are the classic one, and both \
            may be mixed.",
    keys: &[
        key(
            "groups",
            ValueShape::Named(&ValueShape::Of(&GROUP)),
            "Pages and what to take from them, in one place.",
        ),
        key(
            "locatorGroups",
            ValueShape::Named(&ValueShape::Of(&LOCATOR_GROUP)),
            "Which pages to load, by group.",
        ),
        key(
            "taskGroups",
            ValueShape::Named(&ValueShape::Of(&TASK_GROUP)),
            "What to do with the pages of the locator group of the same name.",
        ),
        key("dataDefs", ValueShape::Named(&ValueShape::Of(&DATA_DEF)), "What to take from a page."),
        key(
            "steps",
            ValueShape::Named(&ValueShape::Named(&ValueShape::Either(&[
                ValueShape::Of(&STEP),
                ValueShape::Named(&ValueShape::Of(&STEP)),
            ]))),
            "Chains of steps, by name: all steps of a chain, or the name of the chain it is based on \
             with steps to replace or insert.",
        ),
    ],
    other_keys: None,
    example: "",
};

/// An entry of `locatorGroups`.
pub static LOCATOR_GROUP: MappingShape = MappingShape {
    id: "locatorGroup",
    what: "a locator group",
    description: "Pages to load; the task group of the same name works on them.",
    keys: &[
        key(
            "locators",
            ValueShape::List(&ValueShape::Either(&[ValueShape::Text, ValueShape::Of(&LOCATOR)])),
            "The pages: addresses with names, or bare addresses.",
        ),
        key("urls", URLS_VALUE, "Further addresses: with ranges, or from a file."),
        key("sitemap", SITEMAP_VALUE, "Sitemaps whose addresses are pages of the group."),
        key("startSequence", ValueShape::Whole, START_SEQUENCE_DESCRIPTION),
    ],
    other_keys: None,
    example: r"locatorGroups:
  quotes:
    locators: [ { name: acme, url: https://example.org/acme } ]",
};

/// An entry of `locators`.
pub static LOCATOR: MappingShape = MappingShape {
    id: "locator",
    what: "a locator",
    description: "One page to load. A bare address is short for one whose name is the address.",
    keys: &[
        required("name", ValueShape::Text, "First column of the classic form's rows."),
        required(
            "url",
            ValueShape::Text,
            "`http(s)://...`, `file:...`, or a path: from the current directory or beside the definitions.",
        ),
    ],
    other_keys: None,
    example: "{ name: acme, url: https://example.org/acme }",
};

/// An entry of `taskGroups`.
pub static TASK_GROUP: MappingShape = MappingShape {
    id: "taskGroup",
    what: "a task group",
    description: "Tasks for the pages of a group. A page is loaded once, whatever the number of tasks.",
    keys: &[key(
        "live",
        ValueShape::Text,
        "How long a loaded page stays usable for later runs: `P1W`, `PT6H`. Default: not at all.",
    )],
    other_keys: Some(("Any other key is a task of that name.", ValueShape::Of(&TASK))),
    example: r"taskGroups:
  quotes:
    live: P1D
    priceTask: { dataDef: price }",
};

/// A task.
pub static TASK: MappingShape = MappingShape {
    id: "task",
    what: "a task",
    description: "One data definition applied to a page, named by `dataDef` or written in place.",
    keys: &[
        key("dataDef", ValueShape::Text, "Name of the data definition."),
        key("block", BLOCK_VALUE, BLOCK_DESCRIPTION),
        key("fields", FIELDS_VALUE, FIELDS_DESCRIPTION),
        key("columns", COLUMNS_VALUE, COLUMNS_DESCRIPTION),
        key("follow", FOLLOW_VALUE, FOLLOW_DESCRIPTION),
        key("expect", ValueShape::Of(&EXPECT), EXPECT_DESCRIPTION),
        key("output", ValueShape::Text, OUTPUT_DESCRIPTION),
        key("steps", STEPS_VALUE, STEPS_DESCRIPTION),
        key("persist", ValueShape::Of(&PERSIST), "What is kept for later runs."),
    ],
    other_keys: None,
    example: "priceTask: { dataDef: price, steps: htmlUnitDefault }",
};

/// `persist` of a task.
pub static PERSIST: MappingShape = MappingShape {
    id: "persist",
    what: "`persist`",
    description: "What is kept for later runs while the page is live.",
    keys: &[key("data", ValueShape::Boolean, "Whether parsed data is kept. Default: true.")],
    other_keys: None,
    example: "persist: { data: false }",
};

/// An entry of `dataDefs`.
pub static DATA_DEF: MappingShape = MappingShape {
    id: "dataDef",
    what: "a dataDef",
    description: "What to take from a page: a record with `fields`, or the classic `query` and `items`.",
    keys: &[
        key("block", BLOCK_VALUE, BLOCK_DESCRIPTION),
        key("fields", FIELDS_VALUE, FIELDS_DESCRIPTION),
        key("columns", COLUMNS_VALUE, COLUMNS_DESCRIPTION),
        key("follow", FOLLOW_VALUE, FOLLOW_DESCRIPTION),
        key("expect", ValueShape::Of(&EXPECT), EXPECT_DESCRIPTION),
        key("query", ValueShape::Of(&QUERY), "Classic: where the facts are."),
        key(
            "items",
            ValueShape::Wrapped("item", &ITEM),
            "Classic: the first axis; every item gives rows.",
        ),
        key(
            "dims",
            ValueShape::Wrapped("item", &ITEM),
            "Classic: further axes; rows are all combinations.",
        ),
        key(
            "facts",
            ValueShape::Wrapped("item", &ITEM),
            "Classic: the last axis. Default: one entry, `fact`.",
        ),
    ],
    other_keys: None,
    example: r#"dataDefs:
  price:
    query: { block: "div#price", selector: span }
    items: [ item: { name: Price, value: Price } ]"#,
};

/// `query` of a classic data definition.
pub static QUERY: MappingShape = MappingShape {
    id: "query",
    what: "a query",
    description: "The block a page is searched in, and the selector of the fact. CSS or XPath, as the \
            task's parser has it; `%{item.index}` and other variables may stand in both.",
    keys: &[
        required("block", ValueShape::Text, "Query for the block."),
        key(
            "selector",
            ValueShape::Text,
            "Query for the fact, inside the block; ` attribute: name` at its end takes an attribute.",
        ),
    ],
    other_keys: None,
    example: r##"query: { block: "#prices tr:nth-child(%{item.index})", selector: td.price }"##,
};

/// An entry of `items`, `dims` or `facts`.
pub static ITEM: MappingShape = MappingShape {
    id: "item",
    what: "an item",
    description: "One axis of the classic form: a value, or a query for it, and the indexes it runs through.",
    keys: &[
        required("name", ValueShape::Text, "Name for variables and converters; not printed."),
        key("value", ValueShape::Text, "A constant value."),
        key(
            "match",
            ValueShape::Text,
            "Text to look for with `%{item.match}`; also the value, without its backslashes.",
        ),
        key("script", ValueShape::Text, "JavaScript expression for the value."),
        key(
            "selector",
            ValueShape::Text,
            "Query for the value, inside the block; ` attribute: name` at its end takes an attribute.",
        ),
        key("index", ValueShape::Whole, "What `%{index}` stands for. Default: 1."),
        key(
            "indexRange",
            ValueShape::Text,
            "Indexes to run through: `2-6`, or `5-` until `breakAfter`.",
        ),
        key(
            "breakAfter",
            ValueShape::List(&ValueShape::Text),
            "Values after which an open range ends.",
        ),
        key("filters", ValueShape::Wrapped("filter", &FILTER), "Rows that are dropped."),
        key(
            "prefix",
            ValueShape::List(&ValueShape::Text),
            "Texts put in front of the value, each before the last.",
        ),
        key(
            "linkGroup",
            ValueShape::Text,
            "Task group of the pages that the value, an address, leads to.",
        ),
        key("linkBreakOn", ValueShape::List(&ValueShape::Text), "Addresses that are not followed."),
        key(
            "order",
            ValueShape::Whole,
            "What `%{order}` stands for. Default: the place in the list.",
        ),
    ],
    other_keys: None,
    example: r#"item: { name: year, selector: "th:nth-child(%{index})", indexRange: 2-6 }"#,
};

/// A filter of an item.
pub static FILTER: MappingShape = MappingShape {
    id: "filter",
    what: "a filter",
    description: "Drops the rows whose value its pattern fits.",
    keys: &[
        required(
            "type",
            ValueShape::Word(&["value", "match"]),
            "What is looked at: the `value`, or the item's `match`.",
        ),
        required(
            "pattern",
            ValueShape::Text,
            "The text itself, a regular expression for all of it, or one space for blank.",
        ),
    ],
    other_keys: None,
    example: r#"filters: [ filter: { type: value, pattern: "" } ]"#,
};

/// A step of a chain.
pub static STEP: MappingShape = MappingShape {
    id: "step",
    what: "a step",
    description: "One step of a chain. `start` and `end` are the ends of a chain.",
    keys: &[
        required(
            "class",
            ValueShape::Text,
            "What it does: `page_loader`, `css_parser`, `data_filter`, ... or a class string of Scoopi.",
        ),
        required("previous", ValueShape::Text, "Step before it, or `start`."),
        required("next", ValueShape::Text, "Step after it, or `end`."),
        key(
            "plugins",
            ValueShape::Wrapped("plugin", &PLUGIN),
            "Appenders, encoders, converters or scripts of the step.",
        ),
    ],
    other_keys: None,
    example: "links: { class: locator_creator, previous: parser, next: end }",
};

/// A plugin of a step.
pub static PLUGIN: MappingShape = MappingShape {
    id: "plugin",
    what: "a plugin",
    description: "An appender, encoder, converter or script, with properties of its own.",
    keys: &[
        required("name", ValueShape::Text, "Its name."),
        required(
            "class",
            ValueShape::Text,
            "What it is: `file`, `csv`, `jsonl`, `date_roller`, `date_formatter`, ... or a class string of Scoopi.",
        ),
        key(
            "plugins",
            ValueShape::Wrapped("plugin", &PLUGIN),
            "Plugins inside it: the encoder of an appender.",
        ),
    ],
    other_keys: Some((
        "Any other key is a property of the plugin.",
        ValueShape::Either(&[ValueShape::Scalar, ValueShape::List(&ValueShape::Scalar)]),
    )),
    example: r#"plugin: { name: csv, class: csv, delimiter: "|" }"#,
};
