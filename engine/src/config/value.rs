//! Text to typed value: durations, sizes, booleans and the rest, with what to write instead.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::SpanRelativeTo;

use super::keys::{Bare, Kind};

/// A longer duration is a mistake, and adding it to a clock could overflow.
const DURATION_MAX: Duration = Duration::from_hours(36_500 * 24);

/// The checked value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Boolean(bool),
    Integer(u64),
    Duration(Duration),
    Size(u64),
    Path(PathBuf),
}

/// A setting with its value: as written, and checked.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) text: Option<String>,
    pub(super) value: Option<Value>,
    pub(super) source: Source,
}

/// The source of a setting's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A flag of the command line.
    Flag,
    /// `--set`.
    Set,
    /// The environment variable of this name.
    Env(String),
    /// The settings file, at this line.
    File(PathBuf, u32),
    /// The node that published its settings.
    Published,
    /// The default.
    Default,
}

/// A field type that a checked value can be read as.
pub(super) trait FromValue: Sized {
    /// The value as this type; `None` if it is of another kind.
    fn from_value(value: Option<&Value>) -> Option<Self>;
}

macro_rules! from_value {
    ($($type:ty: $pattern:pat => $read:expr;)*) => {$(
        impl FromValue for $type {
            fn from_value(value: Option<&Value>) -> Option<Self> {
                match value? {
                    $pattern => Some($read),
                    _ => None,
                }
            }
        }
    )*};
}

from_value! {
    String: Value::Text(text) => text.clone();
    bool: Value::Boolean(yes) => *yes;
    u64: Value::Integer(number) | Value::Size(number) => *number;
    u32: Value::Integer(number) => *number as u32;
    usize: Value::Integer(number) => *number as usize;
    Duration: Value::Duration(length) => *length;
    PathBuf: Value::Path(path) => path.clone();
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Option<&Value>) -> Option<Self> {
        match value {
            None => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// A setting as the type of its field. A value of another kind is a mistake in the table.
pub(super) fn read<T: FromValue>(settings: &BTreeMap<String, Setting>, name: &str) -> T {
    let value = settings.get(name).and_then(|setting| setting.value.as_ref());
    T::from_value(value).unwrap_or_else(|| panic!("setting `{name}` is {value:?}"))
}

/// Why a text is not a value of its kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// The expected form, such as "a duration of at least 1ms".
    pub(super) expected: String,
    /// A valid value.
    pub(super) example: String,
}

/// Reads a text as a kind. `unit` is the unit of a bare number if another setting names it.
pub(super) fn parse(kind: Kind, text: &str, unit: &str) -> Result<Value, Mismatch> {
    let word = text.trim();
    match kind {
        Kind::Text => Some(Value::Text(text.to_owned())),
        Kind::Choice(choices) => choices
            .iter()
            .find(|choice| choice.eq_ignore_ascii_case(word))
            .map(|choice| Value::Text((*choice).to_owned())),
        Kind::Boolean => boolean(word).map(Value::Boolean),
        Kind::Integer { min, max } => {
            digits(word).filter(|number| (min..=max).contains(number)).map(Value::Integer)
        }
        Kind::Duration { bare, min } => duration(word, unit_of(bare, unit))
            .filter(|length| (min..=DURATION_MAX).contains(length))
            .map(Value::Duration),
        Kind::Size { min } => size(word).filter(|bytes| *bytes >= min).map(Value::Size),
        Kind::Path => (!word.is_empty()).then(|| Value::Path(PathBuf::from(text))),
    }
    .ok_or_else(|| mismatch(kind, unit))
}

/// Describes a kind in a few words, for the reference.
pub(super) fn describe(kind: Kind) -> String {
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Choice(choices) => list(choices),
        Kind::Boolean => "boolean".to_owned(),
        Kind::Integer { min, max } => format!("integer, {min} to {max}"),
        Kind::Duration { bare, .. } => match bare {
            Bare::Refused => "duration".to_owned(),
            Bare::Millis => "duration, or milliseconds".to_owned(),
            Bare::Seconds => "duration, or seconds".to_owned(),
            Bare::NamedBy(key) => format!("duration, or a number of `{key}`"),
        },
        Kind::Size { .. } => "size".to_owned(),
        Kind::Path => "path".to_owned(),
    }
}

fn mismatch(kind: Kind, unit: &str) -> Mismatch {
    let (expected, example) = match kind {
        Kind::Text => ("text".to_owned(), "`some text`".to_owned()),
        Kind::Choice(choices) => (format!("one of {}", list(choices)), list(&choices[..1])),
        Kind::Boolean => ("true or false (also yes, no, on, off)".to_owned(), "`true`".to_owned()),
        Kind::Integer { min, max } => {
            (format!("a whole number from {min} to {max}"), format!("`{}`", 4.clamp(min, max)))
        }
        Kind::Duration { bare, min } => {
            let least = match min {
                Duration::ZERO => String::new(),
                min => format!(", at least {min:?}"),
            };
            let number = match unit_of(bare, unit) {
                Some(unit) => format!(", or a number of {}", unit.to_ascii_lowercase()),
                None => " with its unit".to_owned(),
            };
            (
                format!("a duration{number}{least}"),
                "`500ms`, `2s`, `1m30s`, `7d` or `PT30S`".to_owned(),
            )
        }
        Kind::Size { min: 0..=1 } => {
            ("a size in bytes".to_owned(), "`16MiB`, `1GB` or `4096`".to_owned())
        }
        Kind::Size { min } => {
            (format!("a size of at least {min} bytes"), "`16MiB` or `1GB`".to_owned())
        }
        Kind::Path => ("a path".to_owned(), "`some/dir`".to_owned()),
    };
    Mismatch { expected, example }
}

fn list(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn boolean(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// A number made of digits only: `parse` would also accept a sign.
fn digits(word: &str) -> Option<u64> {
    let plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| word.parse().ok()).flatten()
}

fn unit_of(bare: Bare, named: &str) -> Option<&str> {
    match bare {
        Bare::Refused => None,
        Bare::Millis => Some("MILLISECONDS"),
        Bare::Seconds => Some("SECONDS"),
        Bare::NamedBy(_) => Some(named),
    }
}

fn duration(word: &str, bare: Option<&str>) -> Option<Duration> {
    let bare_digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if bare_digits {
        let count = digits(word)?;
        // Zero needs no unit.
        return if count == 0 { Some(Duration::ZERO) } else { count_of(count, bare?) };
    }
    // A day has 24 hours here; months and years have no fixed length and are refused.
    let span: jiff::Span = word.parse().ok()?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(length).ok()
}

fn count_of(count: u64, unit: &str) -> Option<Duration> {
    let seconds = |each: u64| count.checked_mul(each).map(Duration::from_secs);
    match unit.to_ascii_uppercase().as_str() {
        "NANOSECONDS" => Some(Duration::from_nanos(count)),
        "MICROSECONDS" => Some(Duration::from_micros(count)),
        "MILLISECONDS" => Some(Duration::from_millis(count)),
        "MINUTES" => seconds(60),
        "HOURS" => seconds(3600),
        "DAYS" => seconds(86_400),
        _ => seconds(1),
    }
}

fn size(word: &str) -> Option<u64> {
    let end = word.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(word.len());
    let (number, unit) = word.split_at(end);
    let each: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1000_u64.pow(2),
        "gb" => 1000_u64.pow(3),
        "tb" => 1000_u64.pow(4),
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    digits(number)?.checked_mul(each)
}
