//! Checks the syntax of scripts without running them.

use rquickjs::Value;

use super::engine::{Limits, ScriptEngine};
use super::error::ScriptError;
use super::item::{ITEM_SCRIPT, sloppy};

/// Checks that the script of an item is valid JavaScript. It does not run the script.
///
/// ```
/// use spoonbill_plugins::script::{ScriptError, check_expression};
///
/// assert!(check_expression("document.getFromDate()").is_ok());
/// let Err(ScriptError::Syntax { line, .. }) = check_expression("1 +\n)") else { panic!() };
/// assert_eq!(line, 2);
/// ```
pub fn check_expression(source: &str) -> Result<(), ScriptError> {
    check_source(ITEM_SCRIPT, source)
}

/// Checks the text of a script file. It does not run the script.
pub(super) fn check_source(name: &str, source: &str) -> Result<(), ScriptError> {
    let engine = ScriptEngine::new(Limits::default())?;
    let context = engine.context()?;
    engine.seal();
    // The engine parses the whole script before it runs the first line. That line throws, so the
    // rest is parsed but never run.
    let guarded = format!("throw 0;\n{source}");
    let mut options = sloppy(name);
    options.strict = is_strict(source);
    let outcome = engine.call(&context, name, |ctx| {
        match ctx.eval_with_options::<Value<'_>, _>(guarded, options) {
            Err(rquickjs::Error::Exception) => {
                let thrown = ctx.catch();
                if thrown.as_int() == Some(0) {
                    return Ok(());
                }
                Err(ctx.throw(thrown).into())
            }
            Err(error) => Err(error.into()),
            Ok(_) => Ok(()),
        }
    });
    match outcome {
        Err(ScriptError::Thrown { script, at, message }) => {
            let (line, column) = at.unwrap_or((2, 1));
            Err(ScriptError::Syntax {
                script,
                line: line.saturating_sub(1).max(1),
                column,
                message,
            })
        }
        other => other,
    }
}

/// Whether a script begins with `use strict`. The guard line hides that from the engine.
fn is_strict(source: &str) -> bool {
    let start = source.trim_start();
    start.starts_with("'use strict'") || start.starts_with("\"use strict\"")
}

#[cfg(test)]
mod tests {
    use super::super::ScriptError;
    use super::check_expression;

    fn place(source: &str) -> (u32, u32) {
        match check_expression(source) {
            Err(ScriptError::Syntax { line, column, .. }) => (line, column),
            other => panic!("{source}: {other:?}"),
        }
    }

    #[test]
    fn valid_expressions_pass_and_do_not_run() {
        for source in [
            "document.getFromDate()",
            "missing.thing()",
            "for (;;) {}",
            "throw 1",
            "x = 010; with (x) y",
            "function f() {} f()",
            "'%{item.value}'.trim()",
            "",
            "// only a comment",
        ] {
            assert_eq!(check_expression(source), Ok(()), "{source}");
        }
    }

    #[test]
    fn errors_have_line_and_column() {
        assert_eq!(place("1 +"), (1, 4));
        assert_eq!(place("a b"), (1, 3));
        assert_eq!(place("a;\n  b c"), (2, 5));
        assert_eq!(place("'open"), (1, 1));
        assert_eq!(place("/(/"), (1, 1));
        assert_eq!(place("} evil(); {").0, 1);
        assert_eq!(place("return 1").0, 1);
        assert_eq!(place("import x from 'x'").0, 1);
        assert!(check_expression("a\0b").is_err());
    }
}
