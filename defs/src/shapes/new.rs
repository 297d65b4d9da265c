//! Short forms, records and links.

use super::{DefinitionKey, MappingShape, PERSIST, TEXTS, ValueShape, key, required};
use crate::follow::FollowScope;
use crate::records::PageColumn;

const fn names<T: Copy, const N: usize>(all: &[(T, &'static str); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = all[at].1;
        at += 1;
    }
    names
}

const COLUMNS: [&str; 5] = names(&PageColumn::ALL);
const SCOPES: [&str; 4] = names(&FollowScope::ALL);

pub(super) const BLOCK_VALUE: ValueShape =
    ValueShape::Either(&[ValueShape::Text, ValueShape::Of(&BLOCK)]);
pub(super) const FIELDS_VALUE: ValueShape =
    ValueShape::Named(&ValueShape::Either(&[ValueShape::Text, ValueShape::Of(&FIELD)]));
pub(super) const COLUMNS_VALUE: ValueShape = ValueShape::List(&ValueShape::Word(&COLUMNS));
pub(super) const FOLLOW_VALUE: ValueShape = ValueShape::Either(&[
    ValueShape::Text,
    ValueShape::Of(&FOLLOW),
    ValueShape::List(&ValueShape::Either(&[ValueShape::Text, ValueShape::Of(&FOLLOW)])),
]);
pub(super) const URLS_VALUE: ValueShape = ValueShape::Either(&[
    ValueShape::Text,
    ValueShape::Of(&URL_FILE),
    ValueShape::Of(&super::LOCATOR),
    ValueShape::List(&ValueShape::Either(&[
        ValueShape::Text,
        ValueShape::Of(&URL_FILE),
        ValueShape::Of(&super::LOCATOR),
    ])),
]);
pub(super) const SITEMAP_VALUE: ValueShape = ValueShape::Either(&[
    ValueShape::Text,
    ValueShape::Of(&SITEMAP),
    ValueShape::List(&ValueShape::Either(&[ValueShape::Text, ValueShape::Of(&SITEMAP)])),
]);
pub(super) const STEPS_DESCRIPTION: &str = "Chain of steps that a page goes through: the name of a chain, \
     or a mapping of one chain's name to steps that are put into it. Usually left out.";
pub(super) const OUTPUT_DESCRIPTION: &str = "File for the rows, below the folder of the run; its ending \
     decides the format: `.csv`, `.tsv` or `.jsonl`. Default: the name of the data definition with \
     `.csv`.";
pub(super) const FOLLOW_DESCRIPTION: &str = "Links of the page to follow: a selector, a mapping, or a list \
     of them. Each page is loaded once for each group in a run.";
pub(super) const BLOCK_DESCRIPTION: &str = "What on the page is a row: one for each match. Without it, the \
     whole page is one row. A selector, or a mapping with `selector`, `xpath` or `json`.";
pub(super) const FIELDS_DESCRIPTION: &str = "The columns, by name, in the order written: a selector, or a \
     mapping with more to say.";
pub(super) const COLUMNS_DESCRIPTION: &str = "Columns about the page, in front of the fields.";
pub(super) const EXPECT_DESCRIPTION: &str = "What the rows of a run have to be like; if they are not, the \
     report says so and the exit code is 5.";

pub(super) const START_SEQUENCE_DESCRIPTION: &str = "Order among groups: a page of this group is loaded \
     only while no page of a group with a smaller number waits or is in hand, whether it was listed \
     or found by a link. Default: 0.";

/// One entry of `groups`.
pub static GROUP: MappingShape = MappingShape {
    id: "group",
    what: "a group",
    description: "Pages and what to take from them, in one place: addresses, fields and links to follow. \
            It stands for a locator group, a task group and a dataDef of its name.",
    keys: &[
        key(
            "urls",
            URLS_VALUE,
            "Where to start: an address, a list of them, an address with a name as in `locators`, \
             or a file with addresses. An address may hold ranges: `/page/[1-100]`, `[001-100]`, `[0-100:20]`. A path without scheme is a \
             file.",
        ),
        key("sitemap", SITEMAP_VALUE, "Sitemaps whose addresses are pages of the group."),
        key(
            "locators",
            ValueShape::List(&ValueShape::Either(&[
                ValueShape::Text,
                ValueShape::Of(&super::LOCATOR),
            ])),
            "Addresses with names, as in `locatorGroups`.",
        ),
        key("block", BLOCK_VALUE, BLOCK_DESCRIPTION),
        key("fields", FIELDS_VALUE, FIELDS_DESCRIPTION),
        key("columns", COLUMNS_VALUE, COLUMNS_DESCRIPTION),
        key("follow", FOLLOW_VALUE, FOLLOW_DESCRIPTION),
        key("expect", ValueShape::Of(&EXPECT), EXPECT_DESCRIPTION),
        key("output", ValueShape::Text, OUTPUT_DESCRIPTION),
        key("dataDef", ValueShape::Text, "Name of a dataDef to use, instead of `fields`."),
        key(
            "tasks",
            ValueShape::Named(&ValueShape::Of(&super::TASK)),
            "Several tasks on the same page, by name, instead of `fields` or `dataDef`.",
        ),
        key("steps", super::classic::STEPS_VALUE, STEPS_DESCRIPTION),
        key("persist", ValueShape::Of(&PERSIST), "What is kept for later runs."),
        key(
            "live",
            ValueShape::Text,
            "How long a loaded page stays usable for later runs: `P1W`, `PT6H`. Default: not at all.",
        ),
        key("startSequence", ValueShape::Whole, START_SEQUENCE_DESCRIPTION),
    ],
    other_keys: None,
    example: r"groups:
  books:
    urls: https://books.example/page-1.html
    block: article.product
    fields:
      title: h3 a @title
      price: { selector: .price, type: decimal }
    follow: li.next a",
};

/// A file as source of addresses.
pub static URL_FILE: MappingShape = MappingShape {
    id: "urlFile",
    what: "an entry of `urls`",
    description: "Addresses from a file: one on each line, or a column of a CSV file with a header.",
    keys: &[
        required(
            "file",
            ValueShape::Text,
            "Path of the file, from the current directory or beside the definitions.",
        ),
        key("column", ValueShape::Text, "PageColumn of a CSV file that holds the address."),
        key("name", ValueShape::Text, "PageColumn of a CSV file that holds the locator's name."),
    ],
    other_keys: None,
    example: "urls: { file: shops.csv, column: homepage, name: shop }",
};

/// A sitemap as source of addresses.
pub static SITEMAP: MappingShape = MappingShape {
    id: "sitemap",
    what: "a sitemap",
    description: "Addresses from a sitemap; an index leads to its sitemaps, and `.gz` is unpacked.",
    keys: &[
        required("url", ValueShape::Text, "Address of the sitemap or of an index of sitemaps."),
        key("allow", TEXTS, "Regular expressions: only addresses that hold one of them are taken."),
        key("deny", TEXTS, "Regular expressions: addresses that hold one of them are not taken."),
        key("maxPages", ValueShape::Whole, "Pages taken from it in one run, at most."),
    ],
    other_keys: None,
    example: "sitemap: { url: https://shop.example/sitemap.xml, allow: /products/ }",
};

/// What is a row.
pub static BLOCK: MappingShape = MappingShape {
    id: "block",
    what: "a block",
    description: "What on the page is a row: every match of one query.",
    keys: &[
        key("selector", ValueShape::Text, "CSS selector."),
        key("xpath", ValueShape::Text, "XPath 1.0 expression."),
        key(
            "json",
            ValueShape::Text,
            "JSON path whose matches are the rows: into the page itself, or into the text of what \
             `selector` or `xpath` finds. Inside such a block a field that is a plain text is a JSON path.",
        ),
    ],
    other_keys: None,
    example: r#"block: { json: "$.results[*]" }"#,
};

const FIELD_KEYS: &[DefinitionKey] = &[
    key(
        "selector",
        TEXTS,
        "CSS selector inside the block; of a list, the first that gives something. ` @name` at its \
         end takes an attribute (` attribute: name` means the same). `.` is the block itself.",
    ),
    key(
        "xpath",
        TEXTS,
        "XPath 1.0 expression instead; `.//td` begins at the block, `//td` at the page.",
    ),
    key(
        "json",
        ValueShape::Text,
        "JSON path into the text found by the selector, into the JSON block, or into the page.",
    ),
    key(
        "jsonld",
        ValueShape::Text,
        "Path into the JSON-LD of the page, such as `Product.offers.price`: a first name with a \
         capital is the `@type` to look for.",
    ),
    key(
        "text",
        ValueShape::Word(&["whole", "own", "html"]),
        "`whole` text inside (the default), `own` text without that of inner elements, or inner \
         `html`.",
    ),
    key(
        "all",
        ValueShape::Either(&[ValueShape::Text, ValueShape::Boolean]),
        "All matches instead of the first, with this text between them; `true` means `, `.",
    ),
    key(
        "regex",
        ValueShape::Text,
        "Regular expression: its first group, or else its whole match, becomes the value.",
    ),
    key(
        "script",
        ValueShape::Text,
        "JavaScript expression whose result becomes the value; `value` is the text so far.",
    ),
    key("value", ValueShape::Scalar, "A constant, instead of a query."),
    key(
        "type",
        ValueShape::Word(&["text", "integer", "decimal", "boolean", "date", "url"]),
        "What the value has to be. One that does not fit leaves the cell empty and is reported.",
    ),
    key(
        "decimal",
        ValueShape::Text,
        "For numbers: what stands in front of the fraction. Default `.`.",
    ),
    key(
        "thousands",
        ValueShape::Text,
        "For numbers: what stands between groups of digits. Default `,`, or `.` if `decimal` is `,`.",
    ),
    key("trueWhen", TEXTS, "For booleans: texts that mean true; any other text is false."),
    key("in", TEXTS, "For dates: patterns to read by, such as `dd MMM yyyy`. Default ISO 8601."),
    key("out", ValueShape::Text, "For dates: pattern to write by. Default `yyyy-MM-dd`."),
    key("default", ValueShape::Scalar, "The value when there is none."),
    key(
        "required",
        ValueShape::Boolean,
        "Whether a row without this value is dropped, and counted.",
    ),
];

/// A column of a record.
pub static FIELD: MappingShape = MappingShape {
    id: "field",
    what: "a field",
    description: "One column of a record. A plain selector is short for `{ selector: ... }`.",
    keys: FIELD_KEYS,
    other_keys: None,
    example: r"price: { selector: [ .sale, .price ], regex: '[\d.,]+', type: decimal, required: true }",
};

/// Links to follow.
pub static FOLLOW: MappingShape = MappingShape {
    id: "follow",
    what: "a follow rule",
    description: "Links that become pages of a group. A plain selector is short for `{ selector: ... }`.",
    keys: &[
        key(
            "selector",
            ValueShape::Text,
            "CSS selector of the links; their `href` (or `src`) is taken unless ` @name` says otherwise.",
        ),
        key("xpath", ValueShape::Text, "XPath 1.0 expression instead."),
        key(
            "group",
            ValueShape::Text,
            "Group of the pages the links lead to. Default: the page's own.",
        ),
        key(
            "scope",
            ValueShape::Word(&SCOPES),
            "How far a link may lead: to the same `host` (the default), the same `domain`, addresses with the start page's `prefix`, or `any`where.",
        ),
        key(
            "allow",
            TEXTS,
            "Regular expressions: only addresses that hold one of them are followed.",
        ),
        key(
            "deny",
            TEXTS,
            "Regular expressions: addresses that hold one of them are not followed.",
        ),
        key(
            "maxDepth",
            ValueShape::Whole,
            "Links from a start page to the page that is reached, at most. The engine then works level by level.",
        ),
        key("maxPages", ValueShape::Whole, "Pages this rule adds to a run, at most."),
    ],
    other_keys: None,
    example: r"follow:
  - a.next
  - { selector: a.item, group: item, deny: /archive/, maxPages: 500 }",
};

/// Expectations.
pub static EXPECT: MappingShape = MappingShape {
    id: "expect",
    what: "`expect`",
    description: EXPECT_DESCRIPTION,
    keys: &[
        key("minRows", ValueShape::Whole, "Rows of the run, at least."),
        key("maxRows", ValueShape::Whole, "Rows of the run, at most."),
        key(
            "fill",
            ValueShape::Named(&ValueShape::Share),
            "For fields: the share of rows that have a value, at least: `95%` or `0.95`.",
        ),
        key(
            "pattern",
            ValueShape::Named(&ValueShape::Text),
            "For fields: a regular expression that every value has to fit as a whole.",
        ),
    ],
    other_keys: None,
    example: r"expect: { minRows: 100, fill: { price: 95% }, pattern: { sku: 'SKU-\d+' } }",
};
