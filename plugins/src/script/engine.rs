//! One JavaScript runtime with its limits.
//!
//! Every entry into JavaScript goes through [`Engine::call`], which arms the clock, catches panics
//! and turns thrown values into a [`ScriptError`]. An engine that exceeded a limit is spoiled. Its
//! owner must drop it and build another.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rquickjs::{Context, Ctx, Error, Exception, Function, Runtime};

use super::error::ScriptError;
use super::values::text_of;

/// Name of our own JavaScript in stack traces.
pub(super) const OWN_SOURCE: &str = "<spoonbill>";

/// Longest message or log line that is kept, in bytes.
const MESSAGE_MAX: usize = 1000;

/// Below 1 MiB the engine cannot build its own objects, and 0 would mean no limit.
const MEMORY_MIN: usize = 1 << 20;

/// Bounds of the stack limit in bytes. Worker threads have 2 MiB, and 0 would mean no limit.
const STACK_MIN: usize = 64 << 10;
const STACK_MAX: usize = 1 << 20;

/// Most pending promise jobs that are run to their end when an engine is dropped.
const JOBS_DROPPED_MAX: usize = 10_000;

/// The limits of one call of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time for one call; setting `script.time.max`.
    pub time: Duration,
    /// Bytes the engine may allocate; setting `script.memory.max`. At least 1 MiB.
    pub memory: usize,
    /// Bytes of stack; between 64 KiB and 1 MiB.
    pub stack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(2), memory: 32 << 20, stack: 512 << 10 }
    }
}

/// Why a call failed: thrown in JavaScript, or reported by our own code.
pub(super) enum CallError {
    Js(Error),
    Ours(ScriptError),
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Js(error)
    }
}

impl From<ScriptError> for CallError {
    fn from(error: ScriptError) -> Self {
        Self::Ours(error)
    }
}

/// The clock of the running call, shared with the interrupt handler.
#[derive(Default)]
struct CallClock {
    deadline: Cell<Option<Instant>>,
    fired: Cell<bool>,
}

impl CallClock {
    fn is_over(&self) -> bool {
        let over = self.deadline.get().is_some_and(|at| Instant::now() >= at);
        if over {
            self.fired.set(true);
        }
        over
    }
}

/// A runtime with its limits. Contexts and kept values must be dropped before it.
pub(super) struct ScriptEngine {
    /// Never runs a script. `rquickjs` keeps the first context with a Rust function alive. That must
    /// be this one, because its objects would otherwise look like leaked ones.
    host: Context,
    host_objects: i64,
    runtime: Runtime,
    limits: Limits,
    watch: Rc<CallClock>,
    spoiled: Cell<bool>,
}

impl ScriptEngine {
    /// Starts a runtime. The memory limit begins with [`Engine::seal`].
    pub(super) fn new(limits: Limits) -> Result<Self, ScriptError> {
        let limits = Limits {
            time: limits.time,
            memory: limits.memory.max(MEMORY_MIN),
            stack: limits.stack.clamp(STACK_MIN, STACK_MAX),
        };
        let runtime = Runtime::new().map_err(|error| engine_failed(&error))?;
        runtime.set_max_stack_size(limits.stack);
        let host = Context::base(&runtime).map_err(|error| engine_failed(&error))?;
        host.with(|ctx| Function::new(ctx, || {}).map(drop))
            .map_err(|error| engine_failed(&error))?;
        let host_objects = runtime.memory_usage().obj_count;
        let watch = Rc::new(CallClock::default());
        let clock = Rc::clone(&watch);
        runtime.set_interrupt_handler(Some(Box::new(move || clock.is_over())));
        Ok(Self { host, host_objects, runtime, limits, watch, spoiled: Cell::new(false) })
    }

    /// A fresh global object.
    pub(super) fn context(&self) -> Result<Context, ScriptError> {
        Context::full(&self.runtime).map_err(|error| engine_failed(&error))
    }

    /// Turns the memory limit on. Call it after set-up, because QuickJS aborts the process if its own
    /// set-up runs out of memory.
    pub(super) fn seal(&self) {
        self.runtime.set_memory_limit(self.limits.memory);
    }

    /// Whether a call exceeded a limit. Then the engine must be replaced.
    pub(super) fn is_spoiled(&self) -> bool {
        self.spoiled.get()
    }

    /// Calls `work` in JavaScript under the limits. `script` is the name in errors.
    pub(super) fn call<T>(
        &self,
        context: &Context,
        script: &str,
        work: impl for<'js> FnOnce(&Ctx<'js>) -> Result<T, CallError>,
    ) -> Result<T, ScriptError> {
        self.watch.fired.set(false);
        self.watch.deadline.set(Instant::now().checked_add(self.limits.time));
        let entered = catch_unwind(AssertUnwindSafe(|| {
            context.with(|ctx| {
                let result = work(&ctx).map_err(|fault| match fault {
                    CallError::Ours(error) => error,
                    CallError::Js(error) => self.explain(&ctx, script, &error),
                });
                // Pending promises belong to this call, so they run under its limits.
                while !self.watch.is_over() && ctx.execute_pending_job() {}
                // `explain` may have thrown again; the next call must not see that error.
                drop(ctx.catch());
                result
            })
        }));
        self.watch.deadline.set(None);
        let result = match entered {
            Ok(_) if self.watch.fired.get() => {
                Err(ScriptError::TimeLimit { script: script.to_owned(), limit: self.limits.time })
            }
            Ok(result) => result,
            Err(_) => Err(ScriptError::Engine {
                script: script.to_owned(),
                message: "the call panicked".to_owned(),
            }),
        };
        if let Err(
            ScriptError::TimeLimit { .. }
            | ScriptError::MemoryLimit { .. }
            | ScriptError::StackLimit { .. }
            | ScriptError::Engine { .. },
        ) = &result
        {
            self.spoiled.set(true);
        }
        result
    }

    fn explain(&self, ctx: &Ctx<'_>, script: &str, error: &Error) -> ScriptError {
        if !ctx.has_exception() {
            return match error {
                Error::Allocation => self.out_of_memory(script),
                Error::FromJs { .. } | Error::Utf8(_) | Error::InvalidString(_) => {
                    ScriptError::Thrown {
                        script: script.to_owned(),
                        at: None,
                        message: shorten(&error.to_string()),
                    }
                }
                _ => ScriptError::Engine { script: script.to_owned(), message: error.to_string() },
            };
        }
        let thrown = ctx.catch();
        // QuickJS throws null if there is no memory for the error object.
        if thrown.is_null() {
            return self.out_of_memory(script);
        }
        let Some(exception) = thrown.as_object().cloned().and_then(Exception::from_object) else {
            let message = text_of(ctx, &thrown).unwrap_or_else(|_| "a value without text".into());
            return ScriptError::Thrown {
                script: script.to_owned(),
                at: None,
                message: shorten(&message),
            };
        };
        let name: String = exception.as_object().get("name").unwrap_or_default();
        let message = exception.message().unwrap_or_default();
        let (place, at) = first_place(&exception.stack().unwrap_or_default())
            .map_or((script.to_owned(), None), |(place, at)| (place, Some(at)));
        // There may be memory for the error object but not for its message.
        if name == "InternalError" && (message.is_empty() || message.starts_with("out of memory")) {
            return self.out_of_memory(script);
        }
        if name == "RangeError" && message == "Maximum call stack size exceeded" {
            return ScriptError::StackLimit { script: place, at, limit: self.limits.stack };
        }
        ScriptError::Thrown { script: place, at, message: shorten(&format!("{name}: {message}")) }
    }

    /// Counts the objects that remain after all contexts are dropped. The engine is unusable then.
    fn objects_left(&self) -> i64 {
        // Pending promises hold objects. With an expired clock and no stack their jobs fail at once.
        self.watch.deadline.set(Some(Instant::now()));
        self.runtime.set_max_stack_size(1);
        for _ in 0..JOBS_DROPPED_MAX {
            if let Ok(false) = self.runtime.execute_pending_job() {
                break;
            }
            // An error of a job would keep its context alive.
            self.host.with(|ctx| drop(ctx.catch()));
        }
        self.host.with(|ctx| drop(ctx.catch()));
        self.runtime.run_gc();
        self.runtime.memory_usage().obj_count - self.host_objects
    }

    fn out_of_memory(&self, script: &str) -> ScriptError {
        ScriptError::MemoryLimit { script: script.to_owned(), limit: self.limits.memory }
    }
}

impl Drop for ScriptEngine {
    /// Frees the runtime if that is safe, and leaks it if not.
    ///
    /// QuickJS may leak objects if an allocation fails, even if the script caught the error. Freeing a
    /// runtime that still has objects aborts the process.
    fn drop(&mut self) {
        if self.objects_left() > 0 {
            std::mem::forget(self.runtime.clone());
        }
    }
}

/// Cuts a text at `MESSAGE_MAX` bytes.
pub(super) fn shorten(text: &str) -> String {
    if text.len() <= MESSAGE_MAX {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MESSAGE_MAX)])
}

fn engine_failed(error: &Error) -> ScriptError {
    ScriptError::Engine { script: "script".to_owned(), message: error.to_string() }
}

/// File, line and column of the first stack frame in a script of the user.
fn first_place(stack: &str) -> Option<(String, (u32, u32))> {
    stack.lines().find_map(|frame| {
        let frame = frame.trim().strip_prefix("at ")?;
        let place = match frame.strip_suffix(')') {
            Some(inside) => inside.rsplit_once(" (").map_or(inside, |(_, place)| place),
            None => frame,
        };
        let (rest, column) = place.rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        let at = (line.parse().ok()?, column.parse().ok()?);
        (file != OWN_SOURCE).then(|| (file.to_owned(), at))
    })
}

#[cfg(test)]
mod tests;
