//! The tables of the definition language: every mapping with its keys.
//!
//! The reader, the JSON Schema and the reference page all use these tables, so they know the same
//! keys.

mod classic;
mod reference;
mod schema;
mod short;
#[cfg(test)]
mod tests;

pub(crate) use classic::{
    DATA_DEF, FILE, FILTER, ITEM, LOCATOR, LOCATOR_GROUP, PERSIST, PLUGIN, QUERY, STEP, TASK,
    TASK_GROUP,
};
pub use reference::reference;
pub use schema::schema;
pub(crate) use short::{BLOCK, EXPECT, FIELD, FOLLOW, GROUP, SITEMAP, URL_FILE};

/// A mapping of the definition language.
#[derive(Debug)]
pub(crate) struct MappingShape {
    /// Name in the JSON Schema.
    pub(crate) id: &'static str,
    /// Name with its article, for messages: `an item`.
    pub(crate) what: &'static str,
    /// Its purpose, for the reference and the schema.
    pub(crate) description: &'static str,
    /// The known keys.
    pub(crate) keys: &'static [DefinitionKey],
    /// Description and value of any further key. `None` means that other keys are errors.
    pub(crate) other_keys: Option<(&'static str, ValueShape)>,
    /// An example in YAML, for the reference.
    pub(crate) example: &'static str,
}

/// A key of a mapping.
#[derive(Debug)]
pub(crate) struct DefinitionKey {
    /// The key as written.
    pub(crate) name: &'static str,
    /// The values it accepts.
    pub(crate) value: ValueShape,
    /// Whether it must be present.
    pub(crate) required: bool,
    /// Its effect, in one to three sentences.
    pub(crate) description: &'static str,
}

/// The values that a key accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueShape {
    /// A text.
    Text,
    /// A text, a number or a boolean.
    Scalar,
    /// A whole number from 0.
    Whole,
    /// `true` or `false`.
    Boolean,
    /// A number from 0 to 1, or a percentage.
    Share,
    /// One of these keywords.
    Word(&'static [&'static str]),
    /// This mapping.
    Of(&'static MappingShape),
    /// A list of such values.
    List(&'static ValueShape),
    /// A mapping from names that the author chooses to such values.
    Named(&'static ValueShape),
    /// A list whose entries are written `key: { ... }`.
    Wrapped(&'static str, &'static MappingShape),
    /// One of several values.
    Either(&'static [ValueShape]),
}

/// A text or a list of texts.
const TEXTS: ValueShape =
    ValueShape::Either(&[ValueShape::Text, ValueShape::List(&ValueShape::Text)]);

const fn key(name: &'static str, value: ValueShape, description: &'static str) -> DefinitionKey {
    DefinitionKey { name, value, required: false, description }
}

const fn required(
    name: &'static str,
    value: ValueShape,
    description: &'static str,
) -> DefinitionKey {
    DefinitionKey { name, value, required: true, description }
}

impl MappingShape {
    /// The names of the keys.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }

    /// All mappings, each before the ones that it contains.
    pub(crate) fn all() -> [&'static MappingShape; 19] {
        [
            &FILE,
            &GROUP,
            &URL_FILE,
            &SITEMAP,
            &BLOCK,
            &FIELD,
            &FOLLOW,
            &EXPECT,
            &LOCATOR_GROUP,
            &LOCATOR,
            &TASK_GROUP,
            &TASK,
            &PERSIST,
            &DATA_DEF,
            &QUERY,
            &ITEM,
            &FILTER,
            &STEP,
            &PLUGIN,
        ]
    }
}
