//! CPU threads behind a bounded queue, for work that would block async tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::threads::ignore::ignore_closed;
use crate::threads::queue::{Sender, queue};

type Work<W> = Box<dyn FnOnce(&mut W) + Send>;

/// A fixed number of threads. Each has its own worker, with caches and script engines.
#[derive(Debug)]
pub(crate) struct Pool<W> {
    work: Sender<Work<W>>,
}

/// Why a job of the pool gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PoolError {
    /// The job panicked. Its thread continues with a new worker.
    #[error("internal error while working on the page: {0}")]
    Panicked(String),
    /// The pool has ended.
    #[error("worker threads have ended")]
    Closed,
}

impl<W: 'static> Pool<W> {
    /// Starts `threads` threads. At most `waiting` jobs wait for them.
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
                        // The panic may have left the worker in an invalid state.
                        own = worker();
                    }
                }
            })?;
        }
        Ok(Self { work })
    }

    /// Runs `job` on a thread and waits for its result. The caller limits the number of jobs, so that the
    /// queue never blocks an async thread. The job is sent before the future is polled, because a future
    /// that contained it would be large and expensive to move.
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
                // The caller may have stopped waiting.
                Ok(value) => ignore_closed(answer.send(Ok(value))),
                Err(panic) => {
                    ignore_closed(
                        answer.send(Err(PoolError::Panicked(panic_message(panic.as_ref())))),
                    );
                    std::panic::resume_unwind(panic);
                }
            }
        });
        // If the threads have ended, the job is dropped with its sender, and the caller gets `Closed`.
        ignore_closed(self.work.send(work));
        async { result.await.unwrap_or(Err(PoolError::Closed)) }
    }
}

/// Sends replies from inside a task of the runtime, so that one wake-up of the runtime serves all of the
/// tasks that wait.
pub(crate) fn answer_in_one_task(
    runtime: Option<&Handle>,
    answers: impl FnOnce() + Send + 'static,
) {
    match runtime {
        Some(runtime) => drop(runtime.spawn(async { answers() })),
        None => answers(),
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_fails_only_its_own_job() {
        let pool = Pool::start(1, 4, || 0_u32).unwrap();
        assert_eq!(pool.run(|count| *count + 1).await, Ok(1));
        let bad = pool.run(|_| -> u32 { panic!("odd page") }).await;
        assert_eq!(bad, Err(PoolError::Panicked("odd page".to_owned())));
        assert_eq!(pool.run(|count| *count + 2).await, Ok(2));
    }
}
