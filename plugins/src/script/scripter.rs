//! The script step: passes data through the functions of a chain.

use std::sync::Arc;

use rquickjs::{Context, Ctx, Function, Persistent, Value};

use super::chain::{ScriptChain, ScriptLink};
use super::configs;
use super::engine::{CallError, Limits, OWN_SOURCE, ScriptEngine};
use super::error::ScriptError;
use super::facts::RunFacts;
use super::item::sloppy;
use super::log::ScriptLog;
use super::model::{self, ScriptResult};
use crate::data::Data;

/// Runs a chain of scripts on one thread.
///
/// The first [`Scripter::run`] evaluates the files. Globals live from call to call. After a call that
/// exceeded a limit, the next call starts with fresh globals.
pub struct Scripter {
    chain: ScriptChain,
    run: Arc<RunFacts>,
    limits: Limits,
    log: ScriptLog,
    engine_state: Option<ChainEngine>,
}

/// A started engine. The fields drop in this order: saved functions, contexts, then the runtime.
struct ChainEngine {
    pack: Persistent<Function<'static>>,
    unpack: Persistent<Function<'static>>,
    links: Vec<StartedPlugin>,
    engine: ScriptEngine,
}

/// One plugin with its own global object, so that two plugins may both define `execute`.
struct StartedPlugin {
    entry: Persistent<Function<'static>>,
    context: Context,
}

impl Scripter {
    /// Prepares to run a chain. The engine starts with the first run.
    pub fn new(chain: &ScriptChain, run: &Arc<RunFacts>, limits: Limits) -> Self {
        Self {
            chain: chain.clone(),
            run: Arc::clone(run),
            limits,
            log: ScriptLog::default(),
            engine_state: None,
        }
    }

    /// Passes the data to the first script and each result to the next script. Returns the data of the
    /// last one.
    pub fn run(&mut self, data: Data) -> Result<Data, ScriptError> {
        let engine_state = match self.engine_state.take() {
            Some(engine_state) => engine_state,
            None => self.start()?,
        };
        let result = engine_state.run(&self.chain.links, data);
        if !engine_state.engine.is_spoiled() {
            self.engine_state = Some(engine_state);
        }
        result
    }

    /// Returns the lines that scripts have logged since the last call.
    pub fn take_log(&mut self) -> Vec<String> {
        self.log.take()
    }

    fn start(&self) -> Result<ChainEngine, ScriptError> {
        let engine = ScriptEngine::new(self.limits)?;
        let mut contexts = Vec::new();
        for link in self.chain.links.iter() {
            let context = engine.context()?;
            engine.call(&context, link.name(), |ctx| {
                configs::install(ctx, &self.run)?;
                self.log.install(ctx).map_err(CallError::from)
            })?;
            contexts.push(context);
        }
        // Data objects belong to the first context. Later contexts only pass them on.
        let Some(first) = contexts.first() else {
            return Err(ScriptError::Engine {
                script: "script".to_owned(),
                message: "the chain has no scripts".to_owned(),
            });
        };
        let (pack, unpack) = engine.call(first, OWN_SOURCE, |ctx| {
            let (pack, unpack) = model::load(ctx, &self.run)?;
            Ok((Persistent::save(ctx, pack), Persistent::save(ctx, unpack)))
        })?;
        engine.seal();
        let mut links = Vec::new();
        for (link, context) in self.chain.links.iter().zip(contexts) {
            let entry = start_link(&engine, &context, link)?;
            links.push(StartedPlugin { entry, context });
        }
        Ok(ChainEngine { pack, unpack, links, engine })
    }
}

/// Evaluates the files of a plugin and finds its entry function.
fn start_link(
    engine: &ScriptEngine,
    context: &Context,
    link: &ScriptLink,
) -> Result<Persistent<Function<'static>>, ScriptError> {
    for file in &link.files {
        engine.call(context, &file.name, |ctx| {
            let _: Value<'_> = ctx.eval_with_options(file.source.as_str(), sloppy(&file.name))?;
            Ok(())
        })?;
    }
    engine.call(context, link.name(), |ctx| {
        let entry = &link.entry_point;
        let own = |source: String| ctx.eval_with_options(source, sloppy(OWN_SOURCE));
        // Evaluate the name, because `const execute = ...` is not a property of the global object.
        let kind: Value<'_> = own(format!("typeof {entry}"))?;
        if kind.get::<String>()? != "function" {
            return Err(CallError::Ours(ScriptError::NoEntryPoint {
                script: link.name().to_owned(),
                entry_point: entry.clone(),
            }));
        }
        let call = own(format!("(function (input) {{ return {entry}(input); }})"))?;
        Ok(Persistent::save(ctx, call.get::<Function<'_>>()?))
    })
}

impl ChainEngine {
    fn run(&self, chain: &[ScriptLink], data: Data) -> Result<Data, ScriptError> {
        let (Some(first), Some(last)) = (self.links.first(), chain.last()) else {
            return Ok(data);
        };
        let mut value = self.engine.call(&first.context, last.name(), |ctx| {
            let pack = self.pack.clone().restore(ctx)?;
            Ok(Persistent::save(ctx, model::pack(ctx, &pack, &data)?))
        })?;
        for (started, link) in self.links.iter().zip(chain) {
            value = self
                .engine
                .call(&started.context, link.name(), |ctx| call_entry(ctx, started, link, value))?;
        }
        self.engine.call(&first.context, last.name(), |ctx| {
            let unpack = self.unpack.clone().restore(ctx)?;
            match model::unpack(&unpack, value.restore(ctx)?)? {
                ScriptResult::Data(data) => Ok(data),
                ScriptResult::Other(got) => Err(CallError::Ours(ScriptError::NotData {
                    script: last.name().to_owned(),
                    got,
                })),
            }
        })
    }
}

fn call_entry(
    ctx: &Ctx<'_>,
    started: &StartedPlugin,
    link: &ScriptLink,
    input: Persistent<Value<'static>>,
) -> Result<Persistent<Value<'static>>, CallError> {
    let entry = started.entry.clone().restore(ctx)?;
    let output: Value<'_> = entry.call((input.restore(ctx)?,))?;
    if output.is_null() || output.is_undefined() {
        return Err(CallError::Ours(ScriptError::Nothing {
            script: link.name().to_owned(),
            entry_point: link.entry_point.clone(),
        }));
    }
    Ok(Persistent::save(ctx, output))
}

#[cfg(test)]
mod tests;
