//! The only two functions that wait for time to pass. Code that can wait for an event does that instead.

use std::time::Duration;

/// Waits for `duration`. Use it only where no event announces the change.
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Waits for `event`, but not longer than `limit`. The caller continues in both cases.
pub(crate) async fn wait_at_most(limit: Duration, event: impl Future) {
    drop(tokio::time::timeout(limit, event).await);
}
