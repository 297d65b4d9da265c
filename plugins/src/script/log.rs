//! Lines that scripts log, kept until the caller takes them.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::function::Rest;
use rquickjs::{Coerced, Ctx, Function};

use super::engine::shorten;

/// Most lines that are kept. Further lines are dropped, so a log in a loop cannot fill the memory.
const LINES_MAX: usize = 200;

/// Logged lines that the caller has not taken yet.
#[derive(Clone, Default)]
pub(super) struct ScriptLog(Rc<RefCell<Vec<String>>>);

impl ScriptLog {
    /// Adds the globals `log(...)` and, as in Nashorn, `print(...)`.
    pub(super) fn install(&self, ctx: &Ctx<'_>) -> rquickjs::Result<()> {
        let log = self.clone();
        let write = Function::new(ctx.clone(), move |words: Rest<Coerced<String>>| {
            log.push(&words.0);
        })?;
        ctx.globals().set("print", write.clone())?;
        ctx.globals().set("log", write)
    }

    /// Returns all lines and empties the log.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.borrow_mut())
    }

    fn push(&self, words: &[Coerced<String>]) {
        let mut lines = self.0.borrow_mut();
        if lines.len() < LINES_MAX {
            let words: Vec<&str> = words.iter().map(|word| word.0.as_str()).collect();
            lines.push(shorten(&words.join(" ")));
        }
    }
}
