//! Variables `%{...}` in queries and scripts: their syntax and the axes they name.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::data_defs::{DataDef, Item};
use crate::findings::Findings;
use crate::text::{Span, Text};
use crate::yaml::shorten;

/// What a variable may say of an axis.
const PROPERTIES: [&str; 7] =
    ["index", "match", "value", "order", "itemName", "axisName", "nameString"];

/// The kinds of axes.
const AXES: [&str; 3] = ["item", "dim", "fact"];

/// Checks every text of a data definition in which variables are replaced.
pub(super) fn check(def: &DataDef, findings: &mut Findings<'_>) {
    let axes = Axes::new(def);
    let texts = std::iter::once(&def.query.block).chain(&def.query.selector);
    for text in texts {
        check_text(&axes, text, None, findings);
    }
    for (axis, items) in [(0, &def.items), (1, &def.dims), (2, &def.facts)] {
        for (position, item) in items.iter().enumerate() {
            let here = Here { axis, position, name: item.name.as_str() };
            for text in item.selector.iter().chain(&item.script) {
                check_text(&axes, text, Some(here), findings);
            }
        }
    }
}

/// The names of a data definition's axes and where in their list they stand.
struct Axes<'d> {
    def_name: &'d str,
    names: [HashMap<&'d str, usize>; 3],
}

impl<'d> Axes<'d> {
    fn new(def: &'d DataDef) -> Self {
        let index = |items: &'d [Item]| {
            let names = items.iter().map(|item| item.name.as_str());
            names.enumerate().map(|(at, name)| (name, at)).collect()
        };
        Self {
            def_name: def.name.as_str(),
            names: [index(&def.items), index(&def.dims), index(&def.facts)],
        }
    }
}

/// The axis whose text is looked at; none for the query, which every axis shares.
#[derive(Clone, Copy)]
struct Here<'d> {
    axis: usize,
    position: usize,
    name: &'d str,
}

/// A variable and the text it stands in.
#[derive(Clone, Copy)]
struct Variable<'d> {
    text: &'d Text,
    /// What stands between the braces.
    name: &'d str,
}

fn check_text(axes: &Axes<'_>, text: &Text, here: Option<Here<'_>>, findings: &mut Findings<'_>) {
    let mut rest = text.text.as_str();
    while let Some((_, after)) = rest.split_once("%{") {
        let Some((name, after)) = after.split_once('}') else {
            let at = locate(text, rest.trim_end(), findings);
            findings.error(
                at,
                "the variable has no closing `}`",
                "write `%{index}` or `%{dim.year.index}`",
            );
            return;
        };
        check_variable(axes, Variable { text, name }, here, findings);
        rest = after;
    }
}

impl Variable<'_> {
    fn at(self, findings: &Findings<'_>) -> Span {
        locate(self.text, &format!("%{{{}}}", self.name), findings)
    }
}

/// A part of a text, where it can be found on the line the text starts on.
fn locate(text: &Text, part: &str, findings: &Findings<'_>) -> Span {
    if findings.crowded() || text.at.line == 0 {
        return text.at;
    }
    let skipped = text.at.column.saturating_sub(1) as usize;
    let line = findings.sources.line(text.at.file, text.at.line);
    let column = line.and_then(|line| {
        let (start, _) = line.char_indices().nth(skipped)?;
        let before = line.get(start..)?.split_once(part)?.0;
        Some(skipped + before.chars().count() + 1)
    });
    column.map_or(text.at, |column| Span {
        column: column as u32,
        width: part.chars().count() as u32,
        ..text.at
    })
}

fn check_variable(
    axes: &Axes<'_>,
    variable: Variable<'_>,
    here: Option<Here<'_>>,
    findings: &mut Findings<'_>,
) {
    let name = variable.name;
    if name.contains(":-") {
        findings.error(
            variable.at(findings),
            format!("`%{{{}}}` has a default, which variables cannot have", shorten(name)),
            "remove the `:-` and what follows",
        );
        return;
    }
    let parts: Vec<&str> = name.splitn(5, '.').collect();
    match parts[..] {
        [property] => check_property(variable, property, findings),
        [axis, property] => {
            check_property(variable, property, findings);
            if let Some(axis) = check_axis(axes, variable, axis, findings) {
                check_order(variable, (axis, None), property, here, findings);
            }
        }
        [axis, item, property] => {
            check_property(variable, property, findings);
            let axis = check_axis(axes, variable, axis, findings);
            let found = axis.and_then(|axis| check_item(axes, variable, axis, item, findings));
            if let Some((axis, position)) = found {
                check_order(variable, (axis, Some(position)), property, here, findings);
                check_own_item(axes, variable, axis, item, here, findings);
            }
        }
        _ => findings.error(
            variable.at(findings),
            format!("the variable `%{{{}}}` has more than three parts", shorten(name)),
            "write `%{axis.name.property}`; an item name with a dot cannot be used in it",
        ),
    }
}

fn check_property(variable: Variable<'_>, property: &str, findings: &mut Findings<'_>) {
    if PROPERTIES.contains(&property) {
        return;
    }
    let help = if AXES.contains(&property) {
        format!("write what you want of the {property}, such as `%{{{property}.index}}`")
    } else {
        findings.did_you_mean(
            property,
            PROPERTIES,
            "a variable ends in `index`, `match`, `value`, `order`, `itemName` or `axisName`",
        )
    };
    findings.error(
        variable.at(findings),
        format!("the variable `%{{{}}}` names no property", shorten(variable.name)),
        help,
    );
}

/// The axis of a variable, if the data definition has it.
fn check_axis(
    axes: &Axes<'_>,
    variable: Variable<'_>,
    name: &str,
    findings: &mut Findings<'_>,
) -> Option<usize> {
    let Some(axis) = AXES.iter().position(|known| *known == name) else {
        let help = findings.did_you_mean(name, AXES, "an axis is `item`, `dim` or `fact`");
        findings.error(
            variable.at(findings),
            format!("there is no axis `{}`", shorten(name)),
            help,
        );
        return None;
    };
    if !axes.names[axis].is_empty() {
        return Some(axis);
    }
    // Missing items and facts are reported as such; dims may be left out.
    if name == "dim" {
        findings.error(
            variable.at(findings),
            format!("the dataDef `{}` has no `dims`", axes.def_name),
            "add `dims`, or use `item`",
        );
    }
    None
}

/// The axis and position of the item a variable names.
fn check_item(
    axes: &Axes<'_>,
    variable: Variable<'_>,
    axis: usize,
    name: &str,
    findings: &mut Findings<'_>,
) -> Option<(usize, usize)> {
    if let Some(position) = axes.names[axis].get(name) {
        return Some((axis, *position));
    }
    let axis_name = AXES[axis];
    let elsewhere = AXES.iter().zip(&axes.names).find(|(_, names)| names.contains_key(name));
    let mut known = Vec::new();
    if !findings.crowded() {
        known.extend(axes.names[axis].keys().copied());
        known.sort_unstable();
    }
    let help = match elsewhere {
        Some((other, _)) => format!("`{name}` is of the axis `{other}`: write `{other}.{name}`"),
        None => findings.did_you_mean(
            name,
            known,
            format!("the middle of the variable must be a name below `{axis_name}s`"),
        ),
    };
    findings.error(
        variable.at(findings),
        format!("the axis `{axis_name}` has no item `{}`", shorten(name)),
        help,
    );
    None
}

/// Axes are evaluated from left to right: the value of a later one is not there yet.
fn check_order(
    variable: Variable<'_>,
    (axis, position): (usize, Option<usize>),
    property: &str,
    here: Option<Here<'_>>,
    findings: &mut Findings<'_>,
) {
    let Some(here) = here.filter(|_| property == "value") else {
        return;
    };
    let later = match axis.cmp(&here.axis) {
        Ordering::Less => false,
        Ordering::Greater => true,
        // Within dims, the order of the list; an item or a fact can only mean itself.
        Ordering::Equal => AXES[axis] != "dim" || position.unwrap_or(0) >= here.position,
    };
    if later {
        findings.warn(
            variable.at(findings),
            format!(
                "the value of `{}` is not known yet when `{}` is looked up",
                AXES[axis], here.name
            ),
            "axes are looked up in the order item, dims, fact; use an earlier one",
        );
    }
}

/// A row has one item only, so naming another one finds nothing.
fn check_own_item(
    axes: &Axes<'_>,
    variable: Variable<'_>,
    axis: usize,
    name: &str,
    here: Option<Here<'_>>,
    findings: &mut Findings<'_>,
) {
    let own = here.is_some_and(|here| here.axis == axis && here.name == name);
    if AXES[axis] == "item" && axes.names[axis].len() > 1 && !own {
        findings.warn(
            variable.at(findings),
            format!("a row has one item, which is not always `{}`", shorten(name)),
            "leave the name out, such as `%{item.index}`, to mean the item of the row",
        );
    }
}
