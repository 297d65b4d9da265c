//! Checks the variables `%{...}` in queries and scripts: their syntax and their axes.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::data_defs::{DataDef, Item};
use crate::findings::Findings;
use crate::text::{Span, Text};
use crate::yaml::shorten;

/// Properties of an axis that a variable can name.
const PROPERTIES: [&str; 7] =
    ["index", "match", "value", "order", "itemName", "axisName", "nameString"];

/// The axes in the order of evaluation.
const AXES: [&str; 3] = ["item", "dim", "fact"];

/// Checks every text of a data definition that may contain variables.
pub(super) fn check(def: &DataDef, findings: &mut Findings<'_>) {
    let axes = Axes::new(def);
    let (block, selector) = axes.users_of_query();
    check_text(&axes, &def.query.block, TextUse { here: None, users: &block }, findings);
    if let Some(text) = &def.query.selector {
        check_text(&axes, text, TextUse { here: None, users: &selector }, findings);
    }
    for (axis, items) in axes.items.into_iter().enumerate() {
        for (position, item) in items.iter().enumerate() {
            let here = Some(CurrentEntry { axis, position, name: item.name.as_str() });
            let own = [(axis, position)];
            let users = if is_constant(item) { &[][..] } else { &own[..] };
            if let Some(text) = &item.selector {
                // The engine uses the selector of the query for facts.
                let users = if AXES[axis] == "fact" { &[][..] } else { users };
                check_text(&axes, text, TextUse { here, users }, findings);
            }
            if let Some(text) = &item.script {
                check_text(&axes, text, TextUse { here, users }, findings);
            }
        }
    }
}

/// Whether the value is constant, without a query.
fn is_constant(item: &Item) -> bool {
    item.value.is_some() || item.match_text.is_some()
}

/// An entry of an axis: the index of the axis and the position in it.
type AxisEntry = (usize, usize);

/// The axes of a data definition: their entries, and the position of each name.
struct Axes<'d> {
    def: &'d DataDef,
    items: [&'d [Item]; 3],
    names: [HashMap<&'d str, usize>; 3],
}

impl<'d> Axes<'d> {
    fn new(def: &'d DataDef) -> Self {
        let index = |items: &'d [Item]| {
            let names = items.iter().map(|item| item.name.as_str());
            names.enumerate().map(|(at, name)| (name, at)).collect()
        };
        let items = [&def.items[..], &def.dims, &def.facts];
        Self { def, items, names: items.map(index) }
    }

    /// The entries that use the block of the query, and those that use its selector.
    fn users_of_query(&self) -> (Vec<AxisEntry>, Vec<AxisEntry>) {
        let (mut block, mut selector) = (Vec::new(), Vec::new());
        for (axis, items) in self.items.into_iter().enumerate() {
            for (position, item) in items.iter().enumerate().filter(|(_, item)| !is_constant(item))
            {
                let is_fact = AXES[axis] == "fact";
                let by = if is_fact { &self.def.query.selector } else { &item.selector };
                if by.is_some() {
                    block.push((axis, position));
                    selector.extend(is_fact.then_some((axis, position)));
                }
            }
        }
        (block, selector)
    }
}

/// A text with variables: its owner, and the entries that use it.
#[derive(Clone, Copy)]
struct TextUse<'d> {
    /// The entry that owns the text; `None` for the query, which all axes share.
    here: Option<CurrentEntry<'d>>,
    users: &'d [AxisEntry],
}

/// The entry that owns the checked text.
#[derive(Clone, Copy)]
struct CurrentEntry<'d> {
    axis: usize,
    position: usize,
    name: &'d str,
}

/// A variable and the text that contains it.
#[derive(Clone, Copy)]
struct VariableRef<'d> {
    text: &'d Text,
    /// The text between the braces.
    name: &'d str,
}

fn check_text(axes: &Axes<'_>, text: &Text, site: TextUse<'_>, findings: &mut Findings<'_>) {
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
        check_variable(axes, VariableRef { text, name }, site, findings);
        rest = after;
    }
}

impl VariableRef<'_> {
    fn at(self, findings: &Findings<'_>) -> Span {
        locate(self.text, &format!("%{{{}}}", self.name), findings)
    }
}

/// The position of a part of a text, if it is on the first line of the text.
fn locate(text: &Text, part: &str, findings: &Findings<'_>) -> Span {
    if findings.is_full() || text.at.line == 0 {
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
    variable: VariableRef<'_>,
    site: TextUse<'_>,
    findings: &mut Findings<'_>,
) {
    let name = variable.name;
    if name.contains(":-") {
        findings.error(
            variable.at(findings),
            format!(
                "`%{{{}}}` has a default, but only `${{...}}` variables can have one",
                shorten(name)
            ),
            "remove `:-` and the text after it",
        );
        return;
    }
    let parts: Vec<&str> = name.splitn(5, '.').collect();
    match parts[..] {
        [property] => check_property(variable, property, findings),
        [axis, property] => {
            check_property(variable, property, findings);
            if let Some(axis) = check_axis(axes, variable, axis, findings) {
                check_order(axes, variable, (axis, None), property, site, findings);
            }
        }
        [axis, item, property] => {
            check_property(variable, property, findings);
            let axis = check_axis(axes, variable, axis, findings);
            let found = axis.and_then(|axis| check_item(axes, variable, axis, item, findings));
            if let Some((axis, position)) = found {
                if is_missed(axes, (axis, position), site) {
                    report_missed(variable, axis, item, property, findings);
                } else {
                    check_order(axes, variable, (axis, Some(position)), property, site, findings);
                }
            }
        }
        _ => findings.error(
            variable.at(findings),
            format!("the variable `%{{{}}}` has more than three parts", shorten(name)),
            "write `%{axis.name.property}`; rename the item if its name has a dot",
        ),
    }
}

fn check_property(variable: VariableRef<'_>, property: &str, findings: &mut Findings<'_>) {
    if PROPERTIES.contains(&property) {
        return;
    }
    let help = if AXES.contains(&property) {
        format!("add a property, such as `%{{{property}.index}}`")
    } else {
        findings.did_you_mean(
            property,
            PROPERTIES,
            "end it with `index`, `match`, `value`, `order`, `itemName` or `axisName`",
        )
    };
    findings.error(
        variable.at(findings),
        format!("the variable `%{{{}}}` does not end with a property", shorten(variable.name)),
        help,
    );
}

/// The axis that a variable names, if the data definition has it.
fn check_axis(
    axes: &Axes<'_>,
    variable: VariableRef<'_>,
    name: &str,
    findings: &mut Findings<'_>,
) -> Option<usize> {
    let Some(axis) = AXES.iter().position(|known| *known == name) else {
        let help = findings.did_you_mean(name, AXES, "the axes are `item`, `dim` and `fact`");
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
    // Missing items and facts are reported elsewhere; dims are optional.
    if name == "dim" {
        findings.error(
            variable.at(findings),
            format!("the dataDef `{}` has no `dims`", axes.def.name.text),
            "add `dims`, or use `item`",
        );
    }
    None
}

/// The axis and position of the item that a variable names.
fn check_item(
    axes: &Axes<'_>,
    variable: VariableRef<'_>,
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
    if !findings.is_full() {
        known.extend(axes.names[axis].keys().copied());
        known.sort_unstable();
    }
    let help = match elsewhere {
        Some((other, _)) => {
            format!("`{name}` belongs to the axis `{other}`: write `{other}.{name}`")
        }
        None => findings.did_you_mean(
            name,
            known,
            format!("the middle part must be a name from `{axis_name}s`"),
        ),
    };
    findings.error(
        variable.at(findings),
        format!("the axis `{axis_name}` has no item `{}`", shorten(name)),
        help,
    );
    None
}

/// Warns of a value that is not known yet. Axes are evaluated from left to right, so the value of a
/// later axis is known only if it is constant.
fn check_order(
    axes: &Axes<'_>,
    variable: VariableRef<'_>,
    (axis, position): (usize, Option<usize>),
    property: &str,
    site: TextUse<'_>,
    findings: &mut Findings<'_>,
) {
    let Some(here) = site.here.filter(|_| property == "value") else {
        return;
    };
    let later = match axis.cmp(&here.axis) {
        Ordering::Less => false,
        Ordering::Greater => true,
        // Dims are evaluated in the order of the list; an item or a fact can refer only to itself.
        Ordering::Equal => AXES[axis] != "dim" || position.unwrap_or(0) >= here.position,
    };
    if later && !is_known(axes, axis, position, here) {
        findings.warn(
            variable.at(findings),
            format!(
                "the value of `{}` is not known yet when `{}` is evaluated",
                AXES[axis], here.name
            ),
            "axes are evaluated in the order item, dims, fact; use an earlier one",
        );
    }
}

/// Whether every entry that a variable may refer to is constant.
fn is_known(axes: &Axes<'_>, axis: usize, position: Option<usize>, here: CurrentEntry<'_>) -> bool {
    let items = axes.items[axis];
    let meant = match position {
        Some(position) => items.get(position..=position),
        None if AXES[axis] == "dim" => items.get(..1),
        None if axis == here.axis => items.get(here.position..=here.position),
        // A row has one of these entries, so all of them must be constant.
        None => Some(items),
    };
    meant.is_some_and(|items| items.iter().all(is_constant))
}

/// Whether the text is also used for rows without the entry: a row has all dims, but only one item
/// and one fact.
fn is_missed(axes: &Axes<'_>, entry: AxisEntry, site: TextUse<'_>) -> bool {
    let (axis, _) = entry;
    AXES[axis] != "dim"
        && axes.items[axis].len() > 1
        && site.users.iter().any(|user| *user != entry)
}

fn report_missed(
    variable: VariableRef<'_>,
    axis: usize,
    name: &str,
    property: &str,
    findings: &mut Findings<'_>,
) {
    let axis = AXES[axis];
    let property = if PROPERTIES.contains(&property) { property } else { "index" };
    findings.error(
        variable.at(findings),
        format!("a row has only one {axis}, and it may not be `{}`", shorten(name)),
        format!("remove the name: `%{{{axis}.{property}}}` is the {axis} of the row"),
    );
}
