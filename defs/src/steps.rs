//! The key `steps`: chains of steps and their plugins.

use serde::{Deserialize, Serialize};

use crate::text::Text;

/// One step of an effective chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Name of the step in its chain.
    pub name: Text,
    /// Kind of step.
    pub kind: StepKind,
    /// Plugins of the step, in document order.
    pub plugins: Vec<PluginDef>,
}

/// The kinds of steps. Each has a class string of Scoopi, or a short alias, or both.
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
    /// Reads the addresses of a sitemap.
    SitemapParser,
    /// Interactive CSS console.
    CssAnalyzer,
    /// Interactive XPath console.
    XpathAnalyzer,
    /// Drops rows that a filter matches.
    DataFilter,
    /// Converts values.
    DataConverter,
    /// Creates new locators from links.
    LocatorCreator,
    /// Runs scripts over the data.
    Scripter,
    /// Encodes and appends rows.
    DataAppender,
}

/// A plugin of a step: a class and its properties, which the plugin interprets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PluginDef {
    /// Name of the plugin.
    pub name: Text,
    /// Class string or alias, as written.
    pub class: Text,
    /// All other properties, in document order. Every scalar is read as text.
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
    /// The scalar property `key`, if present.
    pub fn option(&self, key: &str) -> Option<&Text> {
        match self.value(key)? {
            PluginValue::One(text) => Some(text),
            PluginValue::Many(_) => None,
        }
    }

    /// The property `key` as a list. A scalar is a list of one.
    pub fn list(&self, key: &str) -> Vec<&Text> {
        match self.value(key) {
            None => Vec::new(),
            Some(PluginValue::One(text)) => vec![text],
            Some(PluginValue::Many(texts)) => texts.iter().collect(),
        }
    }

    fn value(&self, key: &str) -> Option<&PluginValue> {
        self.options.iter().find(|(name, _)| name.text == key).map(|(_, value)| value)
    }
}

/// Every class name of a step and its kind.
const STEP_CLASSES: &[(&str, StepKind)] = &[
    ("org.codetab.scoopi.step.extract.LocatorSeeder", StepKind::LocatorSeeder),
    ("locator_seeder", StepKind::LocatorSeeder),
    ("org.codetab.scoopi.step.extract.PageLoader", StepKind::PageLoader),
    ("page_loader", StepKind::PageLoader),
    ("org.codetab.scoopi.step.extract.DomLoader", StepKind::DomLoader),
    ("dom_loader", StepKind::DomLoader),
    ("org.codetab.scoopi.step.parse.jsoup.Parser", StepKind::CssParser),
    ("css_parser", StepKind::CssParser),
    ("jsoup_parser", StepKind::CssParser),
    ("org.codetab.scoopi.step.parse.htmlunit.Parser", StepKind::XpathParser),
    ("xpath_parser", StepKind::XpathParser),
    ("htmlunit_parser", StepKind::XpathParser),
    ("sitemap_parser", StepKind::SitemapParser),
    ("org.codetab.scoopi.step.parse.jsoup.QueryAnalyzer", StepKind::CssAnalyzer),
    ("css_analyzer", StepKind::CssAnalyzer),
    ("org.codetab.scoopi.step.parse.htmlunit.QueryAnalyzer", StepKind::XpathAnalyzer),
    ("xpath_analyzer", StepKind::XpathAnalyzer),
    ("org.codetab.scoopi.step.process.DataFilter", StepKind::DataFilter),
    ("data_filter", StepKind::DataFilter),
    ("org.codetab.scoopi.step.process.DataConverter", StepKind::DataConverter),
    ("data_converter", StepKind::DataConverter),
    ("org.codetab.scoopi.step.process.LocatorCreator", StepKind::LocatorCreator),
    ("locator_creator", StepKind::LocatorCreator),
    ("org.codetab.scoopi.step.script.Scripter", StepKind::Scripter),
    ("scripter", StepKind::Scripter),
    ("org.codetab.scoopi.step.load.DataAppender", StepKind::DataAppender),
    ("data_appender", StepKind::DataAppender),
    // Class strings from older public guides.
    ("org.codetab.scoopi.step.extract.URLLoader", StepKind::PageLoader),
    ("org.codetab.scoopi.step.convert.DataFilter", StepKind::DataFilter),
    ("org.codetab.scoopi.step.convert.DataConverter", StepKind::DataConverter),
    ("org.codetab.scoopi.step.convert.LocatorCreator", StepKind::LocatorCreator),
];

/// The kind of step of a class name: a class string of Scoopi, an older one, or an alias.
pub(crate) fn step_kind(class: &str) -> Option<StepKind> {
    STEP_CLASSES.iter().find(|(name, _)| *name == class).map(|(_, kind)| *kind)
}

/// The names that [`step_kind`] knows.
pub(crate) fn step_classes() -> impl Iterator<Item = &'static str> {
    STEP_CLASSES.iter().map(|(name, _)| *name)
}

impl StepKind {
    /// Whether the step loads a page.
    pub(crate) fn is_loader(self) -> bool {
        matches!(self, Self::PageLoader | Self::DomLoader)
    }

    /// Whether the step turns a page into data.
    pub fn is_parser(self) -> bool {
        matches!(self, Self::CssParser | Self::XpathParser)
    }
}
