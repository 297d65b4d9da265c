//! Every mapping of the definition language, with its keys: what a file may say.
//!
//! Reading, the JSON Schema and the reference page all go by these tables, so none of them can
//! know a key that another does not.

mod classic;
mod reference;
mod schema;
mod short;
#[cfg(test)]
mod tests;

pub use classic::{
    DATA_DEF, FILE, FILTER, ITEM, LOCATOR, LOCATOR_GROUP, PERSIST, PLUGIN, QUERY, STEP, TASK,
    TASK_GROUP,
};
pub use reference::reference;
pub use schema::schema;
pub use short::{BLOCK, EXPECT, FIELD, FOLLOW, GROUP, SITEMAP, URL_FILE};

/// A kind of mapping.
#[derive(Debug)]
pub struct MappingShape {
    /// Its name in the schema.
    pub id: &'static str,
    /// What it is, with its article: `an item`.
    pub what: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// The keys it may have.
    pub keys: &'static [DefinitionKey],
    /// What any further key stands for; `None` means there is no other key.
    pub other_keys: Option<(&'static str, ValueShape)>,
    /// An example, in YAML.
    pub example: &'static str,
}

/// A key of a mapping.
#[derive(Debug)]
pub struct DefinitionKey {
    /// As it is written.
    pub name: &'static str,
    /// What may stand behind it.
    pub value: ValueShape,
    /// Whether it has to be there.
    pub required: bool,
    /// What it does, in a sentence or two.
    pub description: &'static str,
}

/// What may stand behind a key.
#[derive(Debug, Clone, Copy)]
pub enum ValueShape {
    /// Text.
    Text,
    /// A text, a number or a boolean.
    Scalar,
    /// A whole number from 0.
    Whole,
    /// `true` or `false`.
    Boolean,
    /// A number from 0 to 1, or a percentage.
    Share,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A mapping of this kind.
    Of(&'static MappingShape),
    /// A list of them.
    List(&'static ValueShape),
    /// Names of one's own, each with this behind it.
    Named(&'static ValueShape),
    /// A list of mappings with this one key.
    Wrapped(&'static str, &'static MappingShape),
    /// Any of these.
    Either(&'static [ValueShape]),
}

/// Text, or a list of texts.
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
    /// The names of its keys.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }

    /// All shapes, each before those it holds.
    pub fn all() -> [&'static MappingShape; 19] {
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
