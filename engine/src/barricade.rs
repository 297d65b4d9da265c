//! Crossing a barricade: one elected node works, the others wait for its result.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::error::RunError;
use crate::ledger::{Command, Epoch, Reply, SessionId};
use crate::store::Store;

/// Pause of a waiting node between two looks when nothing wakes it before.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Runs `work` on exactly one node and gives every node its result. In solo the barricade opens
/// at once.
pub(crate) async fn cross<F, W>(
    store: &Arc<dyn Store>,
    session: SessionId,
    name: &str,
    work: W,
) -> Result<(), RunError>
where
    W: FnOnce(Epoch) -> F,
    F: Future<Output = Result<(), RunError>>,
{
    let mut standing = store.standing();
    let epoch = loop {
        let claim = Command::Claim { session, name: name.to_owned() };
        match store.submit(claim).await? {
            Reply::Cross(epoch) => break epoch,
            Reply::Crossed(result) => return result.map_err(RunError::Elsewhere),
            Reply::Wait => {
                // Woken by any commit, or by patience: either way the ledger is asked again.
                drop(tokio::time::timeout(LOOK_AGAIN, standing.changed()).await);
            }
            other => return Err(RunError::unexpected("claim", &other)),
        }
    };
    let result = work(epoch).await;
    let told = result.as_ref().copied().map_err(ToString::to_string);
    let release = Command::Release { session, name: name.to_owned(), epoch, result: told };
    store.submit(release).await?;
    result
}
