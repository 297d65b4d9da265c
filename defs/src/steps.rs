//! The key `steps`: chains of steps and their plugins.

use serde::{Deserialize, Serialize};

use crate::text::Text;

/// One step of an effective chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Name of the step in its chain.
    pub name: Text,
    /// What the step does.
    pub kind: StepKind,
    /// Plugins of the step, in document order.
    pub plugins: Vec<PluginDef>,
}

/// What a step does. Each has an original class string and a short alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StepKind {
    /// Turns a locator group into jobs.
    LocatorSeeder,
    /// Loads a page by HTTP or from a file.
    PageLoader,
    /// Loads a page in a browser.
    DomLoader,
    /// Parses with CSS selectors (jsoup's dialect).
    CssParser,
    /// Parses with XPath 1.0.
    XpathParser,
    /// Interactive CSS console.
    CssAnalyzer,
    /// Interactive XPath console.
    XpathAnalyzer,
    /// Drops rows that a filter matches.
    DataFilter,
    /// Converts values.
    DataConverter,
    /// Makes new locators from links.
    LocatorCreator,
    /// Runs scripts over the data.
    Scripter,
    /// Encodes and appends rows.
    DataAppender,
}

/// A plugin of a step: a class and its properties, whose meaning is the plugin's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PluginDef {
    /// Name of the plugin.
    pub name: Text,
    /// Class string or alias, as written.
    pub class: Text,
    /// All other properties, in document order; values are read as text whatever their YAML type.
    pub options: Vec<(Text, PluginValue)>,
    /// Nested plugins.
    pub plugins: Vec<PluginDef>,
}

/// The value of a plugin property.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PluginValue {
    /// A scalar.
    One(Text),
    /// A list of scalars.
    Many(Vec<Text>),
}

impl PluginDef {
    /// The scalar property `key`, if it is there.
    pub fn option(&self, key: &str) -> Option<&Text> {
        self.options
            .iter()
            .find(|(name, _)| name.text == key)
            .and_then(|(_, value)| match value {
                PluginValue::One(text) => Some(text),
                PluginValue::Many(_) => None,
            })
    }

    /// The property `key` as a list; a scalar is a list of one.
    pub fn list(&self, key: &str) -> Vec<&Text> {
        self.options
            .iter()
            .find(|(name, _)| name.text == key)
            .map_or_else(Vec::new, |(_, value)| match value {
                PluginValue::One(text) => vec![text],
                PluginValue::Many(texts) => texts.iter().collect(),
            })
    }
}
