//! The mappings of the short form: groups, fields, links to follow, expectations.

use super::{DefinitionKey, MappingShape, PERSIST, STEP, TASK, TEXTS, ValueShape, key, required};
use crate::follow::FollowScope;
use crate::records::{FieldType, PageColumn, TextKind};

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

pub(super) const LOCATORS_VALUE: ValueShape =
    ValueShape::List(&ValueShape::Either(&[ValueShape::Text, ValueShape::Of(&super::LOCATOR)]));

const BLOCK_VALUE: ValueShape = ValueShape::Either(&[ValueShape::Text, ValueShape::Of(&BLOCK)]);
const FIELDS_VALUE: ValueShape =
    ValueShape::Named(&ValueShape::Either(&[ValueShape::Text, ValueShape::Of(&FIELD)]));
const FOLLOW_VALUE: ValueShape = ValueShape::Either(&[
    ValueShape::Text,
    ValueShape::Of(&FOLLOW),
    ValueShape::List(&ValueShape::Either(&[ValueShape::Text, ValueShape::Of(&FOLLOW)])),
]);
const URLS_VALUE: ValueShape = ValueShape::Either(&[
    ValueShape::Text,
    ValueShape::Of(&URL_FILE),
    ValueShape::Of(&super::LOCATOR),
    ValueShape::List(&ValueShape::Either(&[
        ValueShape::Text,
        ValueShape::Of(&URL_FILE),
        ValueShape::Of(&super::LOCATOR),
    ])),
]);
const SITEMAP_VALUE: ValueShape = ValueShape::Either(&[
    ValueShape::Text,
    ValueShape::Of(&SITEMAP),
    ValueShape::List(&ValueShape::Either(&[ValueShape::Text, ValueShape::Of(&SITEMAP)])),
]);
const STEPS_VALUE: ValueShape = ValueShape::Either(&[
    ValueShape::Text,
    ValueShape::Named(&ValueShape::Named(&ValueShape::Of(&STEP))),
]);

// Keys that several mappings share.
pub(super) const BLOCK_KEY: DefinitionKey = key(
    "block",
    BLOCK_VALUE,
    "Selects the rows: each match is one row. Without it, the whole page is one row.",
);
pub(super) const FIELDS_KEY: DefinitionKey =
    key("fields", FIELDS_VALUE, "The columns by name, in order. Each is a selector, or a mapping.");
pub(super) const COLUMNS_KEY: DefinitionKey = key(
    "columns",
    ValueShape::List(&ValueShape::Word(&COLUMNS)),
    "Columns about the page, placed before the fields.",
);
pub(super) const FOLLOW_KEY: DefinitionKey = key(
    "follow",
    FOLLOW_VALUE,
    "Links to follow: a selector, a mapping, or a list of them. Each page is loaded once per group \
     and run.",
);
pub(super) const EXPECT_KEY: DefinitionKey =
    key("expect", ValueShape::Of(&EXPECT), EXPECT.description);
pub(super) const URLS_KEY: DefinitionKey = key(
    "urls",
    URLS_VALUE,
    "Pages to start from: addresses, addresses with a name, or files of addresses. An address may \
     contain ranges: `/page/[1-100]`, `[001-100]`, `[0-100:20]`. A path without a scheme is a local \
     file.",
);
pub(super) const SITEMAP_KEY: DefinitionKey =
    key("sitemap", SITEMAP_VALUE, "Sitemaps whose addresses are pages of the group.");
pub(super) const OUTPUT_KEY: DefinitionKey = key(
    "output",
    ValueShape::Text,
    "File for the rows, in the folder of the run. Its ending sets the format: `.csv`, `.tsv` or \
     `.jsonl`. Default: the name of the data definition with `.csv`.",
);
pub(super) const STEPS_KEY: DefinitionKey = key(
    "steps",
    STEPS_VALUE,
    "Chain of steps for each page: the name of a chain, or its name with steps to replace or \
     insert. Rarely needed.",
);
pub(super) const PERSIST_KEY: DefinitionKey =
    key("persist", ValueShape::Of(&PERSIST), "Data that later runs may reuse.");
pub(super) const LIVE_KEY: DefinitionKey = key(
    "live",
    ValueShape::Text,
    "How long later runs may reuse a loaded page: `P1W`, `PT6H`. Default: they load it again.",
);
pub(super) const START_SEQUENCE_KEY: DefinitionKey = key(
    "startSequence",
    ValueShape::Whole,
    "Order of groups. A page of this group is loaded only when no page of a group with a smaller \
     number is waiting or in progress. Default: 0.",
);

/// One entry of `groups`.
pub(crate) static GROUP: MappingShape = MappingShape {
    id: "group",
    what: "a group",
    description: "Pages, the fields to take from them, and the links to follow. It is short for a \
                  locator group, a task group and a dataDef of the same name.",
    keys: &[
        URLS_KEY,
        SITEMAP_KEY,
        key("locators", LOCATORS_VALUE, "Addresses with names, as in `locatorGroups`."),
        BLOCK_KEY,
        FIELDS_KEY,
        COLUMNS_KEY,
        FOLLOW_KEY,
        EXPECT_KEY,
        OUTPUT_KEY,
        key("dataDef", ValueShape::Text, "Name of a dataDef to use instead of `fields`."),
        key(
            "tasks",
            ValueShape::Named(&ValueShape::Of(&TASK)),
            "Several tasks for the same page, by name, instead of `fields` or `dataDef`.",
        ),
        STEPS_KEY,
        PERSIST_KEY,
        LIVE_KEY,
        START_SEQUENCE_KEY,
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

/// A file of addresses, as an entry of `urls`.
pub(crate) static URL_FILE: MappingShape = MappingShape {
    id: "urlFile",
    what: "an entry of `urls`",
    description: "A file of addresses: one per line, or one column of a CSV file with a header.",
    keys: &[
        required(
            "file",
            ValueShape::Text,
            "Path of the file, relative to the current directory or to the definitions.",
        ),
        key("column", ValueShape::Text, "CSV column with the address."),
        key("name", ValueShape::Text, "CSV column with the name of the locator."),
    ],
    other_keys: None,
    example: "urls: { file: shops.csv, column: homepage, name: shop }",
};

/// One entry of `sitemap`.
pub(crate) static SITEMAP: MappingShape = MappingShape {
    id: "sitemap",
    what: "a sitemap",
    description: "The addresses of a sitemap. The engine also reads the sitemaps that an index \
                  lists, and unpacks `.gz`.",
    keys: &[
        required("url", ValueShape::Text, "Address of the sitemap, or of an index of sitemaps."),
        key("allow", TEXTS, "Regular expressions. An address must match one of them somewhere."),
        key("deny", TEXTS, "Regular expressions. An address that matches one of them is skipped."),
        key("maxPages", ValueShape::Whole, "Maximum number of pages to take from it in one run."),
    ],
    other_keys: None,
    example: "sitemap: { url: https://shop.example/sitemap.xml, allow: /products/ }",
};

/// The mapping below `block`.
pub(crate) static BLOCK: MappingShape = MappingShape {
    id: "block",
    what: "a block",
    description: "Selects the rows of a page: each match is one row.",
    keys: &[
        key("selector", ValueShape::Text, "CSS selector."),
        key("xpath", ValueShape::Text, "XPath 1.0 expression."),
        key(
            "json",
            ValueShape::Text,
            "JSON path of the rows. It applies to the text that `selector` or `xpath` finds, or \
             else to the whole page. In such a block, a plain text in `fields` is a JSON path.",
        ),
    ],
    other_keys: None,
    example: r#"block: { json: "$.results[*]" }"#,
};

const FIELD_KEYS: &[DefinitionKey] = &[
    key(
        "selector",
        TEXTS,
        "CSS selector, applied inside the block. ` @name` at its end takes an attribute, as does \
         ` attribute: name`. `.` is the block itself. In a list, the first that finds a value counts.",
    ),
    key(
        "xpath",
        TEXTS,
        "XPath 1.0 expression. `.//td` starts at the block, `//td` at the page. Of a list, the \
         first that finds a value counts.",
    ),
    key(
        "json",
        ValueShape::Text,
        "JSON path into the text that the selector finds, into the JSON block, or into the page.",
    ),
    key(
        "jsonld",
        ValueShape::Text,
        "Path into the JSON-LD of the page, such as `Product.offers.price`. A first name with a \
         capital letter is the `@type` to search.",
    ),
    key(
        "text",
        ValueShape::Word(&names(&TextKind::ALL)),
        "`whole`: all text of the element (default). `own`: without the text of inner elements. \
         `html`: the inner HTML.",
    ),
    key(
        "all",
        ValueShape::Either(&[ValueShape::Text, ValueShape::Boolean]),
        "Take all matches, joined by this text. `true` joins them by `, `.",
    ),
    key(
        "regex",
        ValueShape::Text,
        "Regular expression. Its first group becomes the value, or its whole match without a group.",
    ),
    key(
        "script",
        ValueShape::Text,
        "JavaScript expression that computes the value. `value` is the text found before.",
    ),
    key("value", ValueShape::Scalar, "A constant instead of a query."),
    key(
        "type",
        ValueShape::Word(&FieldType::NAMES),
        "Type of the value. A value that does not fit leaves the cell empty and is reported. \
         Default: `text`.",
    ),
    key("decimal", ValueShape::Text, "For numbers: the decimal separator. Default: `.`."),
    key(
        "thousands",
        ValueShape::Text,
        "For numbers: the separator of thousands. Default: `,`, or `.` if `decimal` is `,`.",
    ),
    key("trueWhen", TEXTS, "For booleans: texts that are true. Any other text is false."),
    key("in", TEXTS, "For dates: Java patterns to read, such as `dd MMM yyyy`. Default: ISO 8601."),
    key("out", ValueShape::Text, "For dates: Java pattern to write. Default: `yyyy-MM-dd`."),
    key("default", ValueShape::Scalar, "Value of an empty cell."),
    key("required", ValueShape::Boolean, "Drop and count each row that has no value here."),
];

/// One entry of `fields`.
pub(crate) static FIELD: MappingShape = MappingShape {
    id: "field",
    what: "a field",
    description: "One column. A plain selector is short for `{ selector: ... }`.",
    keys: FIELD_KEYS,
    other_keys: None,
    example: r"price: { selector: [ .sale, .price ], regex: '[\d.,]+', type: decimal, required: true }",
};

/// One entry of `follow`.
pub(crate) static FOLLOW: MappingShape = MappingShape {
    id: "follow",
    what: "a follow rule",
    description: "Links to further pages. A plain selector is short for `{ selector: ... }`.",
    keys: &[
        key(
            "selector",
            ValueShape::Text,
            "CSS selector of the links. It takes their `href`, or else `src`; ` @name` at its end \
             takes another attribute.",
        ),
        key("xpath", ValueShape::Text, "XPath 1.0 expression instead of a selector."),
        key("group", ValueShape::Text, "Group of the new pages. Default: the group of this page."),
        key(
            "scope",
            ValueShape::Word(&SCOPES),
            "Where a link may lead. `host` (default): the same host. `domain`: the same domain. \
             `prefix`: addresses that begin like the start page's. `any`: anywhere.",
        ),
        key("allow", TEXTS, "Regular expressions. An address must match one of them somewhere."),
        key("deny", TEXTS, "Regular expressions. An address that matches one of them is skipped."),
        key(
            "maxDepth",
            ValueShape::Whole,
            "Maximum number of links between a start page and the new page. The engine then loads \
             the pages level by level.",
        ),
        key("maxPages", ValueShape::Whole, "Maximum number of pages that this rule adds to a run."),
    ],
    other_keys: None,
    example: r"follow:
  - a.next
  - { selector: a.item, group: item, deny: /archive/, maxPages: 500 }",
};

/// The mapping below `expect`.
pub(crate) static EXPECT: MappingShape = MappingShape {
    id: "expect",
    what: "`expect`",
    description: "Requirements for the rows of a run. If one is not met, the report names it and the \
                  exit code is 5.",
    keys: &[
        key("minRows", ValueShape::Whole, "Minimum number of rows of a run."),
        key("maxRows", ValueShape::Whole, "Maximum number of rows of a run."),
        key(
            "fill",
            ValueShape::Named(&ValueShape::Share),
            "By field: smallest share of rows with a value, as `95%` or `0.95`.",
        ),
        key(
            "pattern",
            ValueShape::Named(&ValueShape::Text),
            "By field: regular expression that each value must match as a whole.",
        ),
    ],
    other_keys: None,
    example: r"expect: { minRows: 100, fill: { price: 95% }, pattern: { sku: 'SKU-\d+' } }",
};
