//! English names of months, days, eras and halves of the day.

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

/// Sunday first, as Java's calendar counts.
pub(super) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

pub(super) const HALVES: [&str; 2] = ["AM", "PM"];

/// Before and after the year 1, each from the shortest to the longest.
pub(super) const ERAS: [[&str; 3]; 2] = [["B", "BC", "Before Christ"], ["A", "AD", "Anno Domini"]];

/// Letters of the short form of a month or a day.
pub(super) const SHORT: usize = 3;

/// Cuts `name` off the front of `text`, whatever the case of either.
pub(super) fn strip_name<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let head = text.get(..name.len())?;
    head.eq_ignore_ascii_case(name).then(|| &text[name.len()..])
}

/// Cuts off the first of `names` in its full or its short form; gives its index and the rest.
pub(super) fn strip_long_or_short<'t>(text: &'t str, names: &[&str]) -> Option<(usize, &'t str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        // `Sept` is not Java's, but it is what many pages print.
        let sept = (*name == "September").then_some("Sept");
        [Some(*name), sept, Some(&name[..SHORT])]
            .into_iter()
            .flatten()
            .find_map(|form| strip_name(text, form))
            .map(|rest| (index, rest))
    })
}
