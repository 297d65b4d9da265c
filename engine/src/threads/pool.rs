//! CPU threads fed by a bounded channel: the only bridge between async code and threads.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::threads::ignore::ignore_closed;
use crate::threads::queue::{Sender, queue};

type Work<W> = Box<dyn FnOnce(&mut W) + Send>;

/// A fixed set of threads, each with a worker of its own (caches, script engines).
#[derive(Debug)]
pub(crate) struct Pool<W> {
    work: Sender<Work<W>>,
}

/// Why a piece of work gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PoolError {
    /// The work panicked; the thread goes on with a new worker.
    #[error("internal error while working on the page: {0}")]
    Panicked(String),
    /// The pool has ended.
    #[error("worker threads have ended")]
    Closed,
}

impl<W: 'static> Pool<W> {
    /// Starts `threads` threads; at most `waiting` pieces of work wait for them.
    pub(crate) fn start<F>(threads: usize, waiting: usize, worker: F) -> std::io::Result<Self>
    where
        F: Fn() -> W + Send + Clone + 'static,
    {
        let (work, inbox) = queue::<Work<W>>(waiting);
        for number in 0..threads.max(1) {
            let (inbox, worker) = (inbox.clone(), worker.clone());
            std::thread::Builder::new().name(format!("parse-{number}")).spawn(move || {
                let mut own = worker();
                while let Some(work) = inbox.recv() {
                    if catch_unwind(AssertUnwindSafe(|| work(&mut own))).is_err() {
                        // Whatever state it was in, nobody builds on it.
                        own = worker();
                    }
                }
            })?;
        }
        Ok(Self { work })
    }

    /// Runs `job` on a thread and waits for its answer. The caller bounds how many are under way,
    /// so that the channel never makes an async thread wait. The work is sent at once: a future
    /// that held it would be moved about with all of it.
    pub(crate) fn run<R, F>(
        &self,
        job: F,
    ) -> impl Future<Output = Result<R, PoolError>> + use<W, R, F>
    where
        R: Send + 'static,
        F: FnOnce(&mut W) -> R + Send + 'static,
    {
        let (answer, result) = oneshot::channel();
        let work: Work<W> = Box::new(move |worker| {
            let outcome = catch_unwind(AssertUnwindSafe(|| job(worker)));
            match outcome {
                // A caller that no longer waits needs no answer.
                Ok(value) => ignore_closed(answer.send(Ok(value))),
                Err(panic) => {
                    ignore_closed(answer.send(Err(PoolError::Panicked(words(panic.as_ref())))));
                    std::panic::resume_unwind(panic);
                }
            }
        });
        // Threads that are gone drop the work, and with it the sender of the answer.
        ignore_closed(self.work.send(work));
        async { result.await.unwrap_or(Err(PoolError::Closed)) }
    }
}

/// Gives answers to tasks of a runtime: there, so that one wake serves all of them and they go on
/// together.
pub(crate) fn answer_in_one_task(
    runtime: Option<&Handle>,
    answers: impl FnOnce() + Send + 'static,
) {
    match runtime {
        Some(runtime) => drop(runtime.spawn(async { answers() })),
        None => answers(),
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_fails_its_work_alone() {
        let pool = Pool::start(1, 4, || 0_u32).unwrap();
        assert_eq!(pool.run(|count| *count + 1).await, Ok(1));
        let bad = pool.run(|_| -> u32 { panic!("odd page") }).await;
        assert_eq!(bad, Err(PoolError::Panicked("odd page".to_owned())));
        assert_eq!(pool.run(|count| *count + 2).await, Ok(2));
    }
}
