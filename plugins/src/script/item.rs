//! Scripts of items: one expression, one value.

use std::rc::Rc;

use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Object, TypedArray, Value};

use super::configs;
use super::engine::{CallError, Limits, ScriptEngine};
use super::error::ScriptError;
use super::facts::ScriptFacts;
use super::log::ScriptLog;
use super::values::{date_object, getter, lazy_global, text_of, text_of_date};

/// Name of an item's script in errors.
pub(super) const ITEM_SCRIPT: &str = "script";

/// Runs the scripts of one page. Globals live until this value is dropped, so they never reach another page.
///
/// The engine starts with the first [`ItemScripts::eval`], so a page without scripts costs nothing.
pub struct ItemScripts {
    facts: Rc<ScriptFacts>,
    limits: Limits,
    log: ScriptLog,
    engine_state: Option<ItemEngine>,
}

/// A started engine. The fields drop in this order, because no context may outlive its runtime.
struct ItemEngine {
    context: Context,
    engine: ScriptEngine,
}

impl ItemScripts {
    /// Prepares for the scripts of a page without starting an engine.
    pub fn new(facts: &ScriptFacts, limits: Limits) -> Self {
        Self {
            facts: Rc::new(facts.clone()),
            limits,
            log: ScriptLog::default(),
            engine_state: None,
        }
    }

    /// Evaluates an expression and returns its text. Null and undefined give `None`; a date is written
    /// by the setting `dateTimePattern`.
    pub fn eval(&mut self, expression: &str) -> Result<Option<String>, ScriptError> {
        self.run(expression, None)
    }

    /// Sets the global `value` to a text, then works like [`ItemScripts::eval`].
    pub fn eval_value(
        &mut self,
        expression: &str,
        value: &str,
    ) -> Result<Option<String>, ScriptError> {
        self.run(expression, Some(value))
    }

    fn run(
        &mut self,
        expression: &str,
        value: Option<&str>,
    ) -> Result<Option<String>, ScriptError> {
        let engine_state = match self.engine_state.take() {
            Some(engine_state) => engine_state,
            None => self.start()?,
        };
        let facts = &self.facts;
        let result = engine_state.engine.call(&engine_state.context, ITEM_SCRIPT, |ctx| {
            if let Some(value) = value {
                ctx.globals().set("value", value)?;
            }
            let value: Value<'_> = ctx.eval_with_options(expression, sloppy(ITEM_SCRIPT))?;
            if value.is_null() || value.is_undefined() {
                return Ok(None);
            }
            let text = match text_of_date(ctx, &value, &facts.run.date_text)? {
                Some(text) => text,
                None => text_of(ctx, &value)?,
            };
            Ok(Some(text))
        });
        if !engine_state.engine.is_spoiled() {
            self.engine_state = Some(engine_state);
        }
        result
    }

    /// Returns the lines that scripts have logged since the last call.
    pub fn take_log(&mut self) -> Vec<String> {
        self.log.take()
    }

    fn start(&self) -> Result<ItemEngine, ScriptError> {
        let engine = ScriptEngine::new(self.limits)?;
        let context = engine.context()?;
        engine.call(&context, ITEM_SCRIPT, |ctx| {
            configs::install(ctx, &self.facts.run)?;
            self.log.install(ctx)?;
            let facts = Rc::clone(&self.facts);
            lazy_global(ctx, "document", move |ctx| document(ctx, &facts)).map_err(CallError::from)
        })?;
        engine.seal();
        Ok(ItemEngine { context, engine })
    }
}

/// Options for the code of users. Not strict, so assigning to an undeclared name creates a global.
pub(super) fn sloppy(file: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(file.replace('\0', ""));
    options
}

fn document<'js>(ctx: &Ctx<'js>, facts: &Rc<ScriptFacts>) -> rquickjs::Result<Object<'js>> {
    type Pick = fn(&ScriptFacts) -> &str;
    let document = Object::new(ctx.clone())?;
    let texts: [(&str, Pick); 4] = [
        ("getName", |facts| &facts.name),
        ("getGroup", |facts| &facts.group),
        ("getUrl", |facts| &facts.url),
        ("getLocatorId", |facts| &facts.locator_id),
    ];
    for (method, pick) in texts {
        let facts = Rc::clone(facts);
        getter(&document, method, move |_| Ok(pick(&facts).to_owned()))?;
    }
    let page = Rc::clone(facts);
    getter(&document, "getFromDate", move |ctx| {
        date_object(&ctx, &page.from_date, &page.run.date_text)
    })?;
    let page = Rc::clone(facts);
    getter(&document, "getDocumentObject", move |ctx| TypedArray::<u8>::new_copy(ctx, &page.body))?;
    getter(&document, "getId", |ctx| Ok(Value::new_null(ctx)))?;
    Ok(document)
}

#[cfg(test)]
mod tests;
