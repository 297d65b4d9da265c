//! Converts values between Rust and JavaScript: texts, dates and getters.

use jiff::{Timestamp, Zoned};
use rquickjs::function::{Constructor, This};
use rquickjs::object::{Accessor, Property};
use rquickjs::{Coerced, Ctx, Error, Function, IntoJs, Object, Value};

use super::facts::DateText;

/// The text of a value, as JavaScript converts it.
pub(super) fn text_of<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<String> {
    let text: Coerced<rquickjs::String<'js>> = value.get()?;
    match text.0.to_string() {
        // The text holds half a surrogate pair, which a Rust string cannot.
        Err(Error::Utf8(_)) => {
            let mend: Function<'js> =
                ctx.eval("(function (text) { return text.toWellFormed() })")?;
            mend.call((text.0,))
        }
        text => text,
    }
}

/// A JavaScript `Date` whose text has the date pattern of the run.
pub(super) fn date_object<'js>(
    ctx: &Ctx<'js>,
    date: &Zoned,
    date_text: &DateText,
) -> rquickjs::Result<Object<'js>> {
    let class: Constructor<'js> = ctx.globals().get("Date")?;
    let object: Object<'js> = class.construct((date.timestamp().as_millisecond() as f64,))?;
    let date_text = DateText::clone(date_text);
    let to_string = Function::new(ctx.clone(), move |this: This<Object<'js>>| {
        let millis: f64 = this.0.get::<_, Function<'js>>("getTime")?.call((this,))?;
        let text = date_from_millis(millis).map(|date| date_text(&date));
        Ok::<_, Error>(text.unwrap_or_else(|| "Invalid Date".to_owned()))
    })?;
    object.prop("toString", Property::from(to_string).writable().configurable())?;
    Ok(object)
}

/// The text of a `Date`. `None` for any other value.
pub(super) fn text_of_date<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
    date_text: &DateText,
) -> rquickjs::Result<Option<String>> {
    let Some(object) = value.as_object() else {
        return Ok(None);
    };
    let class: Value<'js> = ctx.globals().get("Date")?;
    if !class.is_function() || !object.is_instance_of(&class) {
        return Ok(None);
    }
    let millis: f64 = object.get::<_, Function<'js>>("getTime")?.call((This(object.clone()),))?;
    Ok(date_from_millis(millis).map(|date| date_text(&date)))
}

/// The date-time in the zone of the system. `None` for an invalid date.
pub(super) fn date_from_millis(millis: f64) -> Option<Zoned> {
    if !millis.is_finite() {
        return None;
    }
    let moment = Timestamp::from_millisecond(millis as i64).ok()?;
    Some(moment.to_zoned(crate::dates::system_zone()))
}

/// Adds a getter in both forms that Nashorn gives to Java objects: `getName()` and `name`.
pub(super) fn getter<'js, V, F>(
    object: &Object<'js>,
    method: &str,
    value: F,
) -> rquickjs::Result<()>
where
    V: IntoJs<'js> + 'js,
    F: Fn(Ctx<'js>) -> rquickjs::Result<V> + Clone + 'js,
{
    let property =
        method.strip_prefix("get").or_else(|| method.strip_prefix("is")).unwrap_or(method);
    let mut letters = property.chars();
    let property: String =
        letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect();
    object.prop(property, Accessor::new_get(value.clone()).configurable())?;
    object.set(method, Function::new(object.ctx().clone(), value)?)
}

/// Adds a global that is created at its first use, because most scripts use one or none.
pub(super) fn lazy_global<'js, F>(
    ctx: &Ctx<'js>,
    name: &'static str,
    make: F,
) -> rquickjs::Result<()>
where
    F: Fn(&Ctx<'js>) -> rquickjs::Result<Object<'js>> + 'js,
{
    let get = move |ctx: Ctx<'js>| {
        let object = make(&ctx)?;
        let plain = Property::from(object.clone()).writable().configurable().enumerable();
        ctx.globals().prop(name, plain)?;
        Ok::<_, Error>(object)
    };
    let set = move |ctx: Ctx<'js>, value: Value<'js>| {
        let plain = Property::from(value).writable().configurable().enumerable();
        ctx.globals().prop(name, plain)
    };
    ctx.globals().prop(name, Accessor::new(get, set).configurable().enumerable())
}
