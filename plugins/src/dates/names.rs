//! English names of months, days, eras, and of the halves of a day.

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Starts with Sunday, as Java's calendar counts.
pub(super) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

pub(super) const HALVES: [&str; 2] = ["AM", "PM"];

/// The eras before and after the year 1. Each has a narrow, a short and a long form.
pub(super) const ERAS: [[&str; 3]; 2] = [["B", "BC", "Before Christ"], ["A", "AD", "Anno Domini"]];

/// Characters of the short name of a month or a day.
pub(super) const SHORT: usize = 3;

/// Removes `name` from the start of `text`, in any case.
pub(super) fn strip_name<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let head = text.get(..name.len())?;
    head.eq_ignore_ascii_case(name).then(|| &text[name.len()..])
}

/// Removes the first of `names` that `text` starts with, in its long or short form. Returns its
/// index and the rest.
pub(super) fn strip_long_or_short<'t>(text: &'t str, names: &[&str]) -> Option<(usize, &'t str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        // Java does not know `Sept`, but many pages print it.
        let sept = (*name == "September").then_some("Sept");
        [Some(*name), sept, Some(&name[..SHORT])]
            .into_iter()
            .flatten()
            .find_map(|form| strip_name(text, form))
            .map(|rest| (index, rest))
    })
}
