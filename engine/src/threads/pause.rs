//! Waiting for a duration. Waiting for a fact is better where there is one: these are the only two
//! ways in which the engine waits for time to pass.

use std::time::Duration;

/// Waits for `duration`, because no event announces what the caller waits for.
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Waits for `fact`, but not longer than `limit`; the caller goes on either way.
pub(crate) async fn wait_at_most(limit: Duration, fact: impl Future) {
    drop(tokio::time::timeout(limit, fact).await);
}
