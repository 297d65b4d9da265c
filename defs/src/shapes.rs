//! Every mapping of the definition language, with its keys: what a file may say.
//!
//! Reading, the JSON Schema and the reference page all go by these tables, so none of them can
//! know a key that another does not.

mod classic;
mod new;
mod reference;
mod schema;
#[cfg(test)]
mod tests;

pub use classic::{
    DATA_DEF, FILE, FILTER, ITEM, LOCATOR, LOCATOR_GROUP, PERSIST, PLUGIN, QUERY, STEP, TASK,
    TASK_GROUP,
};
pub use new::{BLOCK, EXPECT, FIELD, FOLLOW, GROUP, SITEMAP, URL_FILE};
pub use reference::reference;
pub use schema::schema;

/// A kind of mapping.
#[derive(Debug)]
pub struct Shape {
    /// Its name in the schema.
    pub id: &'static str,
    /// What it is, with its article: `an item`.
    pub what: &'static str,
    /// What it is for.
    pub words: &'static str,
    /// The keys it may have.
    pub keys: &'static [Key],
    /// What any further key stands for; `None` means there is no other key.
    pub others: Option<(&'static str, Value)>,
    /// An example, in YAML.
    pub example: &'static str,
}

/// A key of a mapping.
#[derive(Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What may stand behind it.
    pub value: Value,
    /// Whether it has to be there.
    pub required: bool,
    /// What it does, in a sentence or two.
    pub words: &'static str,
}

/// What may stand behind a key.
#[derive(Debug, Clone, Copy)]
pub enum Value {
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
    Of(&'static Shape),
    /// A list of them.
    List(&'static Value),
    /// Names of one's own, each with this behind it.
    Named(&'static Value),
    /// A list of mappings with this one key.
    Wrapped(&'static str, &'static Shape),
    /// Any of these.
    Either(&'static [Value]),
}

/// Text, or a list of texts.
const TEXTS: Value = Value::Either(&[Value::Text, Value::List(&Value::Text)]);

const fn key(name: &'static str, value: Value, words: &'static str) -> Key {
    Key { name, value, required: false, words }
}

const fn required(name: &'static str, value: Value, words: &'static str) -> Key {
    Key { name, value, required: true, words }
}

impl Shape {
    /// The names of its keys.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }

    /// All shapes, each before those it holds.
    pub fn all() -> [&'static Shape; 19] {
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
