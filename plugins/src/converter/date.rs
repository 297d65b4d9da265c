//! The two converters of dates.

use super::roll::{self, Roll};
use super::{ConvertError, Converter};
use crate::dates::{DateDialect, DatePattern, DateSetup, Moment};
use crate::options::{OptionProblem, Options};
use spoonbill_defs::Text;

/// Reads a date, moves some of its fields, and writes it in the zone of the setup.
///
/// `inPattern` may hold alternatives, separated by a vertical bar; the first that fits the whole
/// text is taken. Rolls apply in the order they are written.
#[derive(Debug, Clone)]
pub struct DateRoller {
    input: DatePatterns,
    output: DatePattern,
    rolls: Vec<Roll>,
}

/// Reads a date and writes it in the zone that the text names, or else in the zone of the setup.
#[derive(Debug, Clone)]
pub struct DateFormatter {
    input: DatePatterns,
    output: DatePattern,
}

impl DateRoller {
    /// Names of its properties.
    pub const OPTIONS: &'static [&'static str] = &["item", "inPattern", "outPattern", "roll"];

    pub(super) fn read(options: &mut Options, setup: &DateSetup) -> Option<Self> {
        let input = DatePatterns::read(options, DateDialect::Calendar, setup);
        let output = output(options, DateDialect::Calendar);
        let rolls = match options.required("roll").map(Roll::read_all) {
            Some(Ok(rolls)) => Some(rolls),
            Some(Err(problems)) => {
                options.problems.extend(problems);
                None
            }
            None => None,
        };
        Some(Self { input: input?, output: output?, rolls: rolls? })
    }
}

impl Converter for DateRoller {
    fn convert(&self, text: &str) -> Result<String, ConvertError> {
        let zone = &self.input.setup.zone;
        let date = self.input.parse(text)?.in_zone(zone);
        let rolled = roll::apply(&self.rolls, date.at)
            .ok_or_else(|| ConvertError::OutOfRange { value: text.to_owned() })?;
        // Keep an unchanged moment: local time is ambiguous in the hour that clocks repeat.
        let moment = if rolled == date.at {
            date
        } else {
            Moment::at_local_time(rolled, zone, DateDialect::Calendar)
        };
        Ok(self.output.print(&moment))
    }
}

impl DateFormatter {
    /// Names of its properties.
    pub const OPTIONS: &'static [&'static str] = &["item", "inPattern", "outPattern"];

    pub(super) fn read(options: &mut Options, setup: &DateSetup) -> Option<Self> {
        let input = DatePatterns::read(options, DateDialect::Time, setup);
        let output = output(options, DateDialect::Time);
        Some(Self { input: input?, output: output? })
    }
}

impl Converter for DateFormatter {
    fn convert(&self, text: &str) -> Result<String, ConvertError> {
        Ok(self.output.print(&self.input.parse(text)?))
    }
}

/// Alternative patterns. The first one that fits applies.
#[derive(Debug, Clone)]
struct DatePatterns {
    source: String,
    patterns: Vec<DatePattern>,
    setup: DateSetup,
}

impl DatePatterns {
    fn read(options: &mut Options, dialect: DateDialect, setup: &DateSetup) -> Option<Self> {
        let text = options.required("inPattern")?;
        let patterns: Vec<Option<DatePattern>> =
            text.text.split('|').map(|pattern| compile(options, text, dialect, pattern)).collect();
        Some(Self {
            source: text.text.clone(),
            patterns: patterns.into_iter().collect::<Option<_>>()?,
            setup: setup.clone(),
        })
    }

    fn parse(&self, text: &str) -> Result<Moment, ConvertError> {
        self.patterns.iter().find_map(|pattern| pattern.read(text, &self.setup)).ok_or_else(|| {
            ConvertError::NoFit { value: text.to_owned(), pattern: self.source.clone() }
        })
    }
}

fn output(options: &mut Options, dialect: DateDialect) -> Option<DatePattern> {
    let text = options.required("outPattern")?;
    compile(options, text, dialect, &text.text)
}

fn compile(
    options: &mut Options,
    text: &Text,
    dialect: DateDialect,
    pattern: &str,
) -> Option<DatePattern> {
    if pattern.is_empty() {
        options.problem(text, format!("`{}` has an empty alternative", text.text));
        return None;
    }
    match DatePattern::compile_as(dialect, pattern) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let problem = OptionProblem::new(text.at, format!("date pattern `{pattern}`: {error}"));
            options.problems.push(problem);
            None
        }
    }
}
