//! The result of parsing: rows of axes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The rows that one task extracted from one page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Label `locator:task:dataDef`.
    pub name: String,
    /// Name of the data definition.
    pub data_def: String,
    /// The rows, in the order of expansion.
    pub rows: Vec<Row>,
    /// Further facts about the data, by name.
    pub tags: Vec<(String, String)>,
    /// Whether the rows belong to a record. Then encoders write the named columns only.
    pub named: bool,
}

/// One output line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the locator: the first column.
    pub name: Arc<str>,
    /// Group of the locator: the second column.
    pub group: Arc<str>,
    /// Item, dims, fact; or the columns of a record.
    pub axes: Vec<Axis>,
}

impl Row {
    /// Whether its columns belong to a record.
    pub fn is_named(&self) -> bool {
        self.axes.first().is_some_and(|axis| axis.kind == AxisKind::Field)
    }
}

/// Which part of a row an axis is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AxisKind {
    /// The first axis.
    Item,
    /// One of the middle axes.
    Dim,
    /// The last axis.
    Fact,
    /// A named column of a record.
    Field,
}

impl AxisKind {
    /// Its name in variables and scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Item => "item",
            Self::Dim => "dim",
            Self::Fact => "fact",
            Self::Field => "field",
        }
    }
}

/// The type of a column's cells, for formats that have types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellType {
    /// As text.
    Text,
    /// As a number.
    Number,
    /// As true or false.
    Boolean,
}

/// One column of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Item, dim, fact or field.
    pub kind: AxisKind,
    /// Name of the item that defines the axis, or of the column.
    pub item_name: Arc<str>,
    /// The value; `None` if nothing was found.
    pub value: Option<String>,
    /// The item's `match`.
    pub match_text: Option<Arc<str>>,
    /// Index of this row on the axis.
    pub index: Option<u32>,
    /// The item's `order`.
    pub order: Option<u32>,
}
