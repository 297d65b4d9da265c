//! Converters: text of one axis in, text out.
//!
//! A converter fails rather than guess; the step then fails the data, so no row is half converted.

mod date;
mod roll;

#[cfg(test)]
mod tests;

use spoonbill_defs::PluginDef;

use crate::data::Data;
use crate::dates::DateSetup;
use crate::options::{OptionProblem, Options, advice};

pub use date::{DateFormatter, DateRoller};

/// Turns the text of an axis into another.
pub trait Converter: Send + Sync + std::fmt::Debug {
    /// Converts one text.
    fn convert(&self, text: &str) -> Result<String, ConvertError>;
}

/// A converter and the item whose axis it converts.
#[derive(Debug)]
pub struct ItemConverter {
    /// Name of the item.
    pub item: String,
    /// What to do with its value.
    pub converter: Box<dyn Converter>,
}

/// Why a value could not be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// No alternative of the pattern fits the text.
    #[error("`{value}` does not fit the date pattern `{pattern}`")]
    NoFit {
        /// The text.
        value: String,
        /// All alternatives, as written.
        pattern: String,
    },
    /// The rolled date lies outside the years that can be written.
    #[error("`{value}` rolls to a date beyond the year 9999")]
    OutOfRange {
        /// The text.
        value: String,
    },
    /// A row lacks the axis.
    #[error("a row of `{data}` has no item `{item}` to convert")]
    NoAxis {
        /// Label of the data.
        data: String,
        /// Name of the item.
        item: String,
    },
    /// A row has the axis, but nothing was found for it.
    #[error("item `{item}` has no value to convert")]
    NoValue {
        /// Name of the item.
        item: String,
    },
    /// A converter refused the value of an item.
    #[error("item `{item}`: {error}")]
    Item {
        /// Name of the item.
        item: String,
        /// What the converter said.
        error: Box<ConvertError>,
    },
}

/// The converters there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConverterKind {
    /// Moves calendar fields of a date.
    DateRoller,
    /// Writes a date in another form.
    DateFormatter,
}

/// Every class string and alias, each once.
const CLASSES: &[(&str, ConverterKind)] = &[
    ("org.codetab.scoopi.plugin.converter.DateRoller", ConverterKind::DateRoller),
    ("date_roller", ConverterKind::DateRoller),
    // Spelled with one `t` by everyone who has written it so far.
    ("org.codetab.scoopi.plugin.converter.DateFormater", ConverterKind::DateFormatter),
    ("date_formatter", ConverterKind::DateFormatter),
];

/// The converter that a class string or alias means.
pub fn kind_of(class: &str) -> Option<ConverterKind> {
    CLASSES.iter().find(|(name, _)| *name == class).map(|(_, kind)| *kind)
}

/// Whether a class string or alias means a converter.
pub fn is_converter(class: &str) -> bool {
    kind_of(class).is_some()
}

/// Builds the converter of a plugin, or tells everything that is wrong with its properties.
pub fn from_def(def: &PluginDef, setup: &DateSetup) -> Result<ItemConverter, Vec<OptionProblem>> {
    let Some(kind) = kind_of(&def.class.text) else {
        let names: Vec<&str> = CLASSES.iter().map(|(name, _)| *name).collect();
        let message = format!("`{}` is no converter", def.class.text);
        let problem = OptionProblem::new(def.class.at, message);
        return Err(vec![problem.with_help(advice(&def.class.text, &names))]);
    };
    let mut options = Options::new(
        def,
        match kind {
            ConverterKind::DateRoller => DateRoller::OPTIONS,
            ConverterKind::DateFormatter => DateFormatter::OPTIONS,
        },
    );
    let item = options.required("item");
    let converter: Option<Box<dyn Converter>> = match kind {
        ConverterKind::DateRoller => {
            DateRoller::read(&mut options, setup).map(|it| Box::new(it) as Box<dyn Converter>)
        }
        ConverterKind::DateFormatter => {
            DateFormatter::read(&mut options, setup).map(|it| Box::new(it) as Box<dyn Converter>)
        }
    };
    match (item, converter) {
        (Some(item), Some(converter)) if options.problems.is_empty() => {
            Ok(ItemConverter { item: item.text.clone(), converter })
        }
        _ => Err(options.problems),
    }
}

/// Converts every row: each converter its own item, in the order given.
///
/// After an error the data is partly converted and must not be used.
pub fn apply(converters: &[ItemConverter], data: &mut Data) -> Result<(), ConvertError> {
    let Data { name, rows, .. } = data;
    for row in rows {
        for ItemConverter { item, converter } in converters {
            let axis =
                row.axes.iter_mut().find(|axis| *axis.item_name == **item).ok_or_else(|| {
                    ConvertError::NoAxis { data: name.clone(), item: item.clone() }
                })?;
            let value =
                axis.value.as_mut().ok_or_else(|| ConvertError::NoValue { item: item.clone() })?;
            *value = converter.convert(value).map_err(|error| ConvertError::Item {
                item: item.clone(),
                error: Box::new(error),
            })?;
        }
    }
    Ok(())
}
