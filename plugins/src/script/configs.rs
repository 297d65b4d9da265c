//! The object `configs` of scripts.

use std::sync::Arc;

use jiff::Zoned;
use jiff::civil::{DateTime, date};
use rquickjs::function::Opt;
use rquickjs::{Ctx, Error, Exception, Function, Object, Value};

use super::facts::RunFacts;
use super::values::{date_object, getter, lazy_global};

/// Puts `configs` into the global object.
pub(super) fn install(ctx: &Ctx<'_>, run: &Arc<RunFacts>) -> rquickjs::Result<()> {
    let run = Arc::clone(run);
    lazy_global(ctx, "configs", move |ctx| make(ctx, &run))
}

fn make<'js>(ctx: &Ctx<'js>, run: &Arc<RunFacts>) -> rquickjs::Result<Object<'js>> {
    let configs = Object::new(ctx.clone())?;
    install_dates(&configs, run)?;
    install_lookups(&configs, run)?;
    let facts = Arc::clone(run);
    getter(&configs, "isCluster", move |_| Ok(facts.is_cluster))?;
    let facts = Arc::clone(run);
    getter(&configs, "getStage", move |_| Ok(facts.stage.clone()))?;
    let facts = Arc::clone(run);
    getter(&configs, "getUserAgent", move |_| Ok(facts.user_agent.clone()))?;
    let facts = Arc::clone(run);
    getter(&configs, "getWebClientTimeout", move |_| Ok(facts.timeout.as_millis() as f64))?;
    Ok(configs)
}

fn install_dates<'js>(configs: &Object<'js>, run: &Arc<RunFacts>) -> rquickjs::Result<()> {
    type Pick = fn(&RunFacts) -> Zoned;
    let dates: [(&str, Pick); 3] = [
        ("getRunDate", run_date),
        ("getRunDateTime", |run| run.run_date_time.clone()),
        ("getHighDate", high_date),
    ];
    for (method, pick) in dates {
        let facts = Arc::clone(run);
        getter(configs, method, move |ctx: Ctx<'js>| {
            date_object(&ctx, &pick(&facts), &facts.date_text)
        })?;
    }
    let texts: [(&str, Pick); 2] =
        [("getRunDateText", run_date), ("getRunDateTimeText", |run| run.run_date_time.clone())];
    for (method, pick) in texts {
        let facts = Arc::clone(run);
        getter(configs, method, move |_| Ok((facts.date_text)(&pick(&facts))))?;
    }
    Ok(())
}

/// The date of the run, at the start of the day.
pub(super) fn run_date(run: &RunFacts) -> Zoned {
    run.run_date_time.start_of_day().unwrap_or_else(|_| run.run_date_time.clone())
}

fn high_date(run: &RunFacts) -> Zoned {
    let text = (run.config)("highDate");
    let high: DateTime = text
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or_else(|| date(2037, 12, 31).at(23, 59, 59, 999_000_000));
    high.to_zoned(crate::dates::system_zone()).unwrap_or_else(|_| run.run_date_time.clone())
}

fn install_lookups(configs: &Object<'_>, run: &Arc<RunFacts>) -> rquickjs::Result<()> {
    add_lookup(configs, run, "getConfig", |ctx, text| {
        rquickjs::String::from_str(ctx.clone(), text).ok().map(rquickjs::String::into_value)
    })?;
    add_lookup(configs, run, "getInt", |ctx, text| {
        let number: i32 = text.trim().parse().ok()?;
        Some(Value::new_int(ctx.clone(), number))
    })?;
    add_lookup(configs, run, "getBoolean", |ctx, text| {
        let flag = text.trim().to_ascii_lowercase().parse().ok()?;
        Some(Value::new_bool(ctx.clone(), flag))
    })
}

/// Adds `method(key[, default])`. The default replaces a setting that is missing or unreadable.
fn add_lookup<'js>(
    configs: &Object<'js>,
    run: &Arc<RunFacts>,
    method: &'static str,
    read: fn(&Ctx<'js>, &str) -> Option<Value<'js>>,
) -> rquickjs::Result<()> {
    let run = Arc::clone(run);
    let lookup = Function::new(
        configs.ctx().clone(),
        move |ctx: Ctx<'js>, key: String, default: Opt<Value<'js>>| {
            let text = find(&run, &key);
            let value = text.as_deref().and_then(|text| read(&ctx, text));
            match (value.or(default.0), text) {
                (Some(value), _) => Ok::<_, Error>(value),
                (None, None) => Err(Exception::throw_message(&ctx, &format!("no setting `{key}`"))),
                (None, Some(text)) => Err(Exception::throw_message(
                    &ctx,
                    &format!("setting `{key}` is `{text}`, which {method} cannot read"),
                )),
            }
        },
    )?;
    configs.set(method, lookup)
}

fn find(run: &RunFacts, key: &str) -> Option<String> {
    (run.config)(key).or_else(|| {
        let short = key.strip_prefix("scoopi.").or_else(|| key.strip_prefix("spoonbill."))?;
        (run.config)(short)
    })
}
