//! Converters replace the text of one axis. A converter fails if a text does not fit its pattern. The step
//! then fails the page's data, so no row is converted in part. A new kind is one file and one row of
//! [`KINDS`].

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
    /// Converts its value.
    pub converter: Box<dyn Converter>,
}

/// Why a conversion failed.
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
    /// The rolled date lies after the last year that can be written.
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
    /// A row has the axis, but without a value.
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
        /// The error of the converter.
        error: Box<ConvertError>,
    },
}

type ReadConverter = fn(&mut Options, &DateSetup) -> Option<Box<dyn Converter>>;

/// A kind of converter: its names in definitions, its properties, and its reader.
struct ConverterKind {
    names: &'static [&'static str],
    options: &'static [&'static str],
    read: ReadConverter,
}

const KINDS: [ConverterKind; 2] = [
    ConverterKind {
        names: &["org.codetab.scoopi.plugin.converter.DateRoller", "date_roller"],
        options: DateRoller::OPTIONS,
        read: |options, setup| Some(Box::new(DateRoller::read(options, setup)?)),
    },
    ConverterKind {
        // Scoopi spells its class with one `t`.
        names: &["org.codetab.scoopi.plugin.converter.DateFormater", "date_formatter"],
        options: DateFormatter::OPTIONS,
        read: |options, setup| Some(Box::new(DateFormatter::read(options, setup)?)),
    },
];

fn kind(class: &str) -> Option<&'static ConverterKind> {
    KINDS.iter().find(|kind| kind.names.contains(&class))
}

/// Whether a class string or alias names a converter.
pub fn is_converter(class: &str) -> bool {
    kind(class).is_some()
}

/// The converter of a plugin definition, or all problems with it.
pub fn from_def(def: &PluginDef, setup: &DateSetup) -> Result<ItemConverter, Vec<OptionProblem>> {
    let class = def.class.text.as_str();
    let Some(kind) = kind(class) else {
        let known: Vec<&str> = KINDS.iter().flat_map(|kind| kind.names).copied().collect();
        let problem = OptionProblem::new(def.class.at, format!("there is no converter `{class}`"));
        return Err(vec![problem.with_help(advice(class, &known))]);
    };
    let mut options = Options::new(def, kind.options);
    let item = options.required("item");
    let converter = (kind.read)(&mut options, setup);
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
