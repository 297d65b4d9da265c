//! Variables `%{...}` in queries and scripts: their syntax and the axes they name.

use crate::data_defs::{DataDef, Item};
use crate::findings::Findings;
use crate::text::{Span, Text};
use crate::yaml::shorten;

/// What a variable may say of an axis.
const PROPERTIES: [&str; 7] = [
    "index",
    "match",
    "value",
    "order",
    "itemName",
    "axisName",
    "nameString",
];

/// The kinds of axes.
const AXES: [&str; 3] = ["item", "dim", "fact"];

/// Checks every text of a data definition in which variables are replaced.
pub(super) fn check(def: &DataDef, findings: &mut Findings<'_>) {
    let texts = std::iter::once(&def.query.block).chain(&def.query.selector);
    for text in texts {
        check_text(def, text, None, findings);
    }
    let lists = [
        ("item", &def.items),
        ("dim", &def.dims),
        ("fact", &def.facts),
    ];
    for (axis, items) in lists {
        for (position, item) in items.iter().enumerate() {
            let here = Here {
                axis,
                position,
                item,
            };
            for text in item.selector.iter().chain(&item.script) {
                check_text(def, text, Some(here), findings);
            }
        }
    }
}

/// The axis whose text is looked at; `None` for the query, which every axis shares.
#[derive(Clone, Copy)]
struct Here<'d> {
    axis: &'static str,
    position: usize,
    item: &'d Item,
}

fn check_text(def: &DataDef, text: &Text, here: Option<Here<'_>>, findings: &mut Findings<'_>) {
    let mut rest = text.text.as_str();
    while let Some((_, after)) = rest.split_once("%{") {
        let Some((name, after)) = after.split_once('}') else {
            let at = locate(text, "%{", findings);
            findings.error(
                at,
                "the variable has no closing `}`",
                "write `%{index}` or `%{dim.year.index}`",
            );
            return;
        };
        let at = locate(text, &format!("%{{{name}}}"), findings);
        check_variable(def, name, at, here, findings);
        rest = after;
    }
}

/// The variable itself, where it can be found on the line the text starts on.
fn locate(text: &Text, variable: &str, findings: &Findings<'_>) -> Span {
    let skipped = text.at.column.saturating_sub(1) as usize;
    let line = findings.sources.line(text.at.file, text.at.line);
    let line = line.filter(|line| text.at.line > 0 && line.len() < 4_096);
    let column = line.and_then(|line| {
        let (start, _) = line.char_indices().nth(skipped)?;
        let before = line.get(start..)?.split_once(variable)?.0;
        Some(skipped + before.chars().count() + 1)
    });
    column.map_or(text.at, |column| Span {
        column: column as u32,
        width: variable.chars().count() as u32,
        ..text.at
    })
}

fn check_variable(
    def: &DataDef,
    name: &str,
    at: Span,
    here: Option<Here<'_>>,
    findings: &mut Findings<'_>,
) {
    if name.contains(":-") {
        findings.error(
            at,
            format!(
                "`%{{{}}}` has a default, which variables cannot have",
                shorten(name)
            ),
            "remove the `:-` and what follows",
        );
        return;
    }
    let parts: Vec<&str> = name.splitn(5, '.').collect();
    match parts[..] {
        [property] => check_property(name, property, at, findings),
        [axis, property] => {
            check_property(name, property, at, findings);
            if check_axis(def, axis, at, findings) {
                check_order(axis, None, property, at, here, findings);
            }
        }
        [axis, item, property] => {
            check_property(name, property, at, findings);
            if check_axis(def, axis, at, findings) && check_item(def, axis, item, at, findings) {
                let position = items(def, axis)
                    .iter()
                    .position(|known| known.name.text == item);
                check_order(axis, position, property, at, here, findings);
                check_own_item(def, axis, item, at, here, findings);
            }
        }
        _ => findings.error(
            at,
            format!(
                "the variable `%{{{}}}` has more than three parts",
                shorten(name)
            ),
            "write `%{axis.name.property}`; an item name with a dot cannot be used in it",
        ),
    }
}

fn check_property(name: &str, property: &str, at: Span, findings: &mut Findings<'_>) {
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
        at,
        format!("the variable `%{{{}}}` names no property", shorten(name)),
        help,
    );
}

fn items<'d>(def: &'d DataDef, axis: &str) -> &'d [Item] {
    match axis {
        "item" => &def.items,
        "dim" => &def.dims,
        "fact" => &def.facts,
        _ => &[],
    }
}

fn check_axis(def: &DataDef, axis: &str, at: Span, findings: &mut Findings<'_>) -> bool {
    if !AXES.contains(&axis) {
        let help = findings.did_you_mean(axis, AXES, "an axis is `item`, `dim` or `fact`");
        findings.error(at, format!("there is no axis `{}`", shorten(axis)), help);
        return false;
    }
    if items(def, axis).is_empty() {
        if axis == "dim" {
            findings.error(
                at,
                format!("the dataDef `{}` has no `dims`", def.name.text),
                "add `dims`, or use `item`",
            );
        }
        return false;
    }
    true
}

fn check_item(
    def: &DataDef,
    axis: &str,
    name: &str,
    at: Span,
    findings: &mut Findings<'_>,
) -> bool {
    let known = items(def, axis);
    if known.iter().any(|item| item.name.text == name) {
        return true;
    }
    let elsewhere = AXES
        .into_iter()
        .find(|other| items(def, other).iter().any(|item| item.name.text == name));
    let help = match elsewhere {
        Some(other) => format!("`{name}` is of the axis `{other}`: write `{other}.{name}`"),
        None => findings.did_you_mean(
            name,
            known.iter().map(|item| item.name.as_str()),
            format!("the middle of a variable is a name below `{axis}s`"),
        ),
    };
    findings.error(
        at,
        format!("the axis `{axis}` has no item `{}`", shorten(name)),
        help,
    );
    false
}

/// Axes are evaluated from left to right: the value of a later one is not there yet.
fn check_order(
    axis: &str,
    position: Option<usize>,
    property: &str,
    at: Span,
    here: Option<Here<'_>>,
    findings: &mut Findings<'_>,
) {
    let Some(here) = here else {
        return;
    };
    let rank = |axis: &str| AXES.iter().position(|known| *known == axis);
    let later = match rank(axis).cmp(&rank(here.axis)) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        // Within dims, the order of the list; an item or a fact can only mean itself.
        std::cmp::Ordering::Equal => axis != "dim" || position.unwrap_or(0) >= here.position,
    };
    if property == "value" && later {
        findings.warn(
            at,
            format!(
                "the value of `{axis}` is not known yet when `{}` is looked up",
                here.item.name.text
            ),
            "axes are looked up in the order item, dims, fact; use an earlier one",
        );
    }
}

/// A row has one item only, so naming another one finds nothing.
fn check_own_item(
    def: &DataDef,
    axis: &str,
    name: &str,
    at: Span,
    here: Option<Here<'_>>,
    findings: &mut Findings<'_>,
) {
    let own = here.is_some_and(|here| here.axis == "item" && here.item.name.text == name);
    if axis == "item" && def.items.len() > 1 && !own {
        findings.warn(
            at,
            format!(
                "a row has one item, which is not always `{}`",
                shorten(name)
            ),
            "leave the name out, such as `%{item.index}`, to mean the item of the row",
        );
    }
}
