//! Converts data to JavaScript and back, as one flat array of cells. `model.js` makes the objects.

use std::collections::HashMap;
use std::sync::Arc;

use rquickjs::{Array, Ctx, Error, FromJs, Function, IntoJs, Object, Value};

use super::configs::run_date;
use super::engine::OWN_SOURCE;
use super::facts::RunFacts;
use super::item::sloppy;
use super::values::{date_from_millis, date_object};
use crate::data::{Axis, AxisKind, Data, Row};

const SOURCE: &str = include_str!("model.js");

/// The value that a script returned.
pub(super) enum ScriptResult {
    /// The data.
    Data(Data),
    /// A description of any other value.
    Other(String),
}

/// Loads the model into a context. Returns its functions to pack and unpack data.
pub(super) fn load<'js>(
    ctx: &Ctx<'js>,
    run: &Arc<RunFacts>,
) -> rquickjs::Result<(Function<'js>, Function<'js>)> {
    let date_text = Arc::clone(&run.date_text);
    let text_of_millis = Function::new(ctx.clone(), move |millis: f64| {
        date_from_millis(millis).map(|date| date_text(&date))
    })?;
    let facts = Arc::clone(run);
    let make_run_date = Function::new(ctx.clone(), move |ctx: Ctx<'js>| {
        date_object(&ctx, &run_date(&facts), &facts.date_text)
    })?;
    let make: Function<'js> = ctx.eval_with_options(SOURCE, sloppy(OWN_SOURCE))?;
    let model: Object<'js> = make.call((text_of_millis, make_run_date))?;
    Ok((model.get("pack")?, model.get("unpack")?))
}

/// Turns data into the object that scripts use.
pub(super) fn pack<'js>(
    ctx: &Ctx<'js>,
    pack: &Function<'js>,
    data: &Data,
) -> rquickjs::Result<Value<'js>> {
    let mut tags = CellWriter::new(ctx)?;
    for (key, value) in &data.tags {
        tags.push(key.as_str())?;
        tags.push(value.as_str())?;
    }
    let mut cells = CellWriter::new(ctx)?;
    for row in &data.rows {
        cells.push_name(&row.name)?;
        cells.push_name(&row.group)?;
        cells.push(row.axes.len() as u32)?;
        for axis in &row.axes {
            cells.push(axis.kind.as_str())?;
            cells.push_name(&axis.item_name)?;
            cells.push_or_null(axis.value.as_deref())?;
            cells.push_or_null(axis.match_text.as_deref())?;
            cells.push_or_null(axis.index)?;
            cells.push_or_null(axis.order)?;
        }
    }
    pack.call((data.name.as_str(), data.data_def.as_str(), tags.array, cells.array))
}

/// Fills an array. Names repeat in every row, so each becomes a JavaScript string once.
struct CellWriter<'js> {
    ctx: Ctx<'js>,
    array: Array<'js>,
    length: usize,
    names: HashMap<*const u8, Value<'js>>,
}

impl<'js> CellWriter<'js> {
    fn new(ctx: &Ctx<'js>) -> rquickjs::Result<Self> {
        Ok(Self {
            ctx: ctx.clone(),
            array: Array::new(ctx.clone())?,
            length: 0,
            names: HashMap::new(),
        })
    }

    fn push(&mut self, cell: impl IntoJs<'js>) -> rquickjs::Result<()> {
        self.array.set(self.length, cell)?;
        self.length += 1;
        Ok(())
    }

    fn push_or_null(&mut self, cell: Option<impl IntoJs<'js>>) -> rquickjs::Result<()> {
        match cell {
            Some(cell) => self.push(cell),
            None => self.push(Value::new_null(self.ctx.clone())),
        }
    }

    fn push_name(&mut self, name: &Arc<str>) -> rquickjs::Result<()> {
        let value = if let Some(value) = self.names.get(&name.as_ptr()) {
            value.clone()
        } else {
            let value = (&**name).into_js(&self.ctx)?;
            self.names.insert(name.as_ptr(), value.clone());
            value
        };
        self.push(value)
    }
}

/// Reads the value that the last script returned.
pub(super) fn unpack<'js>(
    unpack: &Function<'js>,
    value: Value<'js>,
) -> rquickjs::Result<ScriptResult> {
    let parts: Value<'js> = unpack.call((value,))?;
    let Some(parts) = parts.as_array() else {
        return Ok(ScriptResult::Other(parts.get()?));
    };
    let tags: Vec<String> = parts.get(2)?;
    let mut cells = CellReader { cells: parts.get(3)?, at: 0, names: HashMap::new() };
    let mut rows = Vec::new();
    while cells.at < cells.cells.len() {
        rows.push(cells.row()?);
    }
    Ok(ScriptResult::Data(Data {
        name: parts.get(0)?,
        data_def: parts.get(1)?,
        named: rows.first().is_some_and(Row::is_named),
        rows,
        tags: tags.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect(),
    }))
}

/// Reads the cells of the rows in order. Equal names share one text, as in parsed data.
struct CellReader<'js> {
    cells: Array<'js>,
    at: usize,
    names: HashMap<String, Arc<str>>,
}

impl<'js> CellReader<'js> {
    fn row(&mut self) -> rquickjs::Result<Row> {
        let name = self.name()?;
        let group = self.name()?;
        let count: u32 = self.next()?;
        let axes = (0..count).map(|_| self.axis()).collect::<Result<_, Error>>()?;
        Ok(Row { name, group, axes })
    }

    fn axis(&mut self) -> rquickjs::Result<Axis> {
        let kind = match self.next::<String>()?.as_str() {
            "item" => AxisKind::Item,
            "dim" => AxisKind::Dim,
            "field" => AxisKind::Field,
            _ => AxisKind::Fact,
        };
        Ok(Axis {
            kind,
            item_name: self.name()?,
            value: self.next()?,
            match_text: self.next::<Option<String>>()?.map(|text| self.share(text)),
            index: self.next()?,
            order: self.next()?,
        })
    }

    fn name(&mut self) -> rquickjs::Result<Arc<str>> {
        let name = self.next()?;
        Ok(self.share(name))
    }

    fn share(&mut self, text: String) -> Arc<str> {
        if let Some(shared) = self.names.get(&text) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = Arc::from(text.as_str());
        self.names.insert(text, Arc::clone(&shared));
        shared
    }

    fn next<V: FromJs<'js>>(&mut self) -> rquickjs::Result<V> {
        let cell = self.cells.get(self.at)?;
        self.at += 1;
        Ok(cell)
    }
}
