//! The mappings of the classic form, and the top level of a file.

use super::short::{
    BLOCK_KEY, COLUMNS_KEY, EXPECT_KEY, FIELDS_KEY, FOLLOW_KEY, GROUP, LIVE_KEY, LOCATORS_VALUE,
    OUTPUT_KEY, PERSIST_KEY, SITEMAP_KEY, START_SEQUENCE_KEY, STEPS_KEY, URLS_KEY,
};
use super::{MappingShape, ValueShape, key, required};

const ITEMS_VALUE: ValueShape = ValueShape::Wrapped("item", &ITEM);
const TEXT_LIST: ValueShape = ValueShape::List(&ValueShape::Text);

/// The top level of a definition file.
pub(crate) static FILE: MappingShape = MappingShape {
    id: "file",
    what: "a definition file",
    description: "All files of a directory form one set of definitions. File names have no meaning. \
                  `groups` is the short form. `locatorGroups`, `taskGroups` and `dataDefs` are the classic form. Both can be \
                  mixed.",
    keys: &[
        key(
            "groups",
            ValueShape::Named(&ValueShape::Of(&GROUP)),
            "Pages and the rows to take from them, in one place.",
        ),
        key(
            "locatorGroups",
            ValueShape::Named(&ValueShape::Of(&LOCATOR_GROUP)),
            "Pages to load, by group.",
        ),
        key(
            "taskGroups",
            ValueShape::Named(&ValueShape::Of(&TASK_GROUP)),
            "Tasks for the pages of the locator group of the same name.",
        ),
        key("dataDefs", ValueShape::Named(&ValueShape::Of(&DATA_DEF)), "Rows to take from a page."),
        key(
            "steps",
            ValueShape::Named(&ValueShape::Named(&ValueShape::Either(&[
                ValueShape::Of(&STEP),
                ValueShape::Named(&ValueShape::Of(&STEP)),
            ]))),
            "Chains of steps, by name. A chain lists all its steps, or names the chain that it is \
             based on and the steps to replace or insert.",
        ),
    ],
    other_keys: None,
    example: "",
};

/// An entry of `locatorGroups`.
pub(crate) static LOCATOR_GROUP: MappingShape = MappingShape {
    id: "locatorGroup",
    what: "a locator group",
    description: "Pages to load. The task group of the same name processes them.",
    keys: &[
        key("locators", LOCATORS_VALUE, "Addresses with names, or plain addresses."),
        URLS_KEY,
        SITEMAP_KEY,
        START_SEQUENCE_KEY,
    ],
    other_keys: None,
    example: r"locatorGroups:
  quotes:
    locators: [ { name: acme, url: https://example.org/acme } ]",
};

/// An entry of `locators`.
pub(crate) static LOCATOR: MappingShape = MappingShape {
    id: "locator",
    what: "a locator",
    description: "One page to load. If only the address is given, it is also the name.",
    keys: &[
        required("name", ValueShape::Text, "First column of the rows of the classic form."),
        required(
            "url",
            ValueShape::Text,
            "`http(s)://...`, `file:...`, or a path relative to the current directory or to the \
             definitions.",
        ),
    ],
    other_keys: None,
    example: "{ name: acme, url: https://example.org/acme }",
};

/// An entry of `taskGroups`.
pub(crate) static TASK_GROUP: MappingShape = MappingShape {
    id: "taskGroup",
    what: "a task group",
    description: "Tasks for the pages of a group. A page is loaded once for all of them.",
    keys: &[LIVE_KEY],
    other_keys: Some(("Any other key is a task of that name.", ValueShape::Of(&TASK))),
    example: r"taskGroups:
  quotes:
    live: P1D
    priceTask: { dataDef: price }",
};

/// A task of a task group, or an entry of `tasks`.
pub(crate) static TASK: MappingShape = MappingShape {
    id: "task",
    what: "a task",
    description: "One data definition for a page: named by `dataDef`, or written in place.",
    keys: &[
        key("dataDef", ValueShape::Text, "Name of the data definition."),
        BLOCK_KEY,
        FIELDS_KEY,
        COLUMNS_KEY,
        FOLLOW_KEY,
        EXPECT_KEY,
        OUTPUT_KEY,
        STEPS_KEY,
        PERSIST_KEY,
    ],
    other_keys: None,
    example: "priceTask: { dataDef: price, steps: htmlUnitDefault }",
};

/// `persist` of a task.
pub(crate) static PERSIST: MappingShape = MappingShape {
    id: "persist",
    what: "`persist`",
    description: "Data that later runs may reuse during the time that `live` sets.",
    keys: &[key("data", ValueShape::Boolean, "Keep the parsed data. Default: true.")],
    other_keys: None,
    example: "persist: { data: false }",
};

/// An entry of `dataDefs`.
pub(crate) static DATA_DEF: MappingShape = MappingShape {
    id: "dataDef",
    what: "a dataDef",
    description: "Rows to take from a page: a record with `fields`, or the classic `query` and \
                  `items`.",
    keys: &[
        BLOCK_KEY,
        FIELDS_KEY,
        COLUMNS_KEY,
        FOLLOW_KEY,
        EXPECT_KEY,
        key("query", ValueShape::Of(&QUERY), "Classic: where the facts are."),
        key("items", ITEMS_VALUE, "Classic: the first axis. Each item gives rows."),
        key("dims", ITEMS_VALUE, "Classic: further axes. The rows are all combinations."),
        key("facts", ITEMS_VALUE, "Classic: the last axis. Default: one entry, `fact`."),
    ],
    other_keys: None,
    example: r#"dataDefs:
  price:
    query: { block: "div#price", selector: span }
    items: [ item: { name: Price, value: Price } ]"#,
};

/// `query` of a classic data definition.
pub(crate) static QUERY: MappingShape = MappingShape {
    id: "query",
    what: "a query",
    description: "The block to search, and the selector of the fact. Both are CSS or XPath, \
                  depending on the parser of the task. Both may contain variables such as \
                  `%{item.index}`.",
    keys: &[
        required("block", ValueShape::Text, "Query for the block."),
        key(
            "selector",
            ValueShape::Text,
            "Query for the fact, inside the block. ` attribute: name` at its end takes an attribute.",
        ),
    ],
    other_keys: None,
    example: r##"query: { block: "#prices tr:nth-child(%{item.index})", selector: td.price }"##,
};

/// An entry of `items`, `dims` or `facts`.
pub(crate) static ITEM: MappingShape = MappingShape {
    id: "item",
    what: "an item",
    description: "One entry of an axis: a value or a query for it, and the indexes to try.",
    keys: &[
        required("name", ValueShape::Text, "Name for variables and converters. It is not printed."),
        key("value", ValueShape::Text, "A constant value."),
        key(
            "match",
            ValueShape::Text,
            "Text for the variable `%{item.match}`. Without its backslashes, it is also the value.",
        ),
        key("script", ValueShape::Text, "JavaScript expression for the value."),
        key(
            "selector",
            ValueShape::Text,
            "Query for the value, inside the block. ` attribute: name` at its end takes an \
             attribute.",
        ),
        key("index", ValueShape::Whole, "Value of `%{index}`. Default: 1."),
        key("indexRange", ValueShape::Text, "Indexes to try: `2-6`, or `5-` until `breakAfter`."),
        key("breakAfter", TEXT_LIST, "Values that end an open range."),
        key("filters", ValueShape::Wrapped("filter", &FILTER), "Filters that drop rows."),
        key(
            "prefix",
            TEXT_LIST,
            "Texts to put before the value. The last of the list comes first in the result.",
        ),
        key(
            "linkGroup",
            ValueShape::Text,
            "Task group of the page that the value, an address, leads to.",
        ),
        key("linkBreakOn", TEXT_LIST, "Addresses that are not followed."),
        key("order", ValueShape::Whole, "Value of `%{order}`. Default: the position in the list."),
    ],
    other_keys: None,
    example: r#"item: { name: year, selector: "th:nth-child(%{index})", indexRange: 2-6 }"#,
};

/// A filter of an item.
pub(crate) static FILTER: MappingShape = MappingShape {
    id: "filter",
    what: "a filter",
    description: "Drops the rows that match its pattern.",
    keys: &[
        required(
            "type",
            ValueShape::Word(&["value", "match"]),
            "Text to compare: the `value`, or the `match` of the item.",
        ),
        required(
            "pattern",
            ValueShape::Text,
            "The text itself, a regular expression for the whole text, or one space for a blank \
             text.",
        ),
    ],
    other_keys: None,
    example: r#"filters: [ filter: { type: value, pattern: "" } ]"#,
};

/// A step of a chain.
pub(crate) static STEP: MappingShape = MappingShape {
    id: "step",
    what: "a step",
    description: "One step of a chain. A chain runs from `start` to `end`.",
    keys: &[
        required(
            "class",
            ValueShape::Text,
            "Kind of step: `page_loader`, `css_parser`, `data_filter`, ... or a class of Scoopi.",
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
pub(crate) static PLUGIN: MappingShape = MappingShape {
    id: "plugin",
    what: "a plugin",
    description: "An appender, encoder, converter or script with its properties.",
    keys: &[
        required("name", ValueShape::Text, "Name of the plugin."),
        required(
            "class",
            ValueShape::Text,
            "Kind of plugin: `file`, `csv`, `jsonl`, `date_roller`, `date_formatter`, ... or a \
             class of Scoopi.",
        ),
        key(
            "plugins",
            ValueShape::Wrapped("plugin", &PLUGIN),
            "Inner plugins, such as the encoder of an appender.",
        ),
    ],
    other_keys: Some((
        "Any other key is a property of the plugin.",
        ValueShape::Either(&[ValueShape::Scalar, ValueShape::List(&ValueShape::Scalar)]),
    )),
    example: r#"plugin: { name: csv, class: csv, delimiter: "|" }"#,
};
