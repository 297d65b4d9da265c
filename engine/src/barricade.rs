//! Crossing a barricade: one elected node works, the others wait for its result.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::error::RunError;
use crate::ledger::{Command, Epoch, Reply, SessionId};
use crate::store::Store;
use crate::tenancy::Tenancy;

/// Pause of a waiting node between two looks when nothing wakes it before.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What wakes a waiting node is mostly the work itself, and a moment later it is done.
const MOMENT: Duration = Duration::from_millis(5);

/// Runs `work` on exactly one node and gives every node its result. In solo the barricade opens
/// at once. A node that loses its session on the way begins again with its next one.
pub(crate) async fn cross(
    store: &Arc<dyn Store>,
    tenancy: &mut Tenancy,
    name: &str,
    mut work: impl AsyncFnMut(SessionId, Epoch) -> Result<(), RunError>,
) -> Result<(), RunError> {
    let mut standing = store.standing();
    let mut session = tenancy.lease().await?.session;
    loop {
        let claim = Command::Claim { session, name: name.to_owned() };
        match store.submit(claim).await? {
            Reply::Cross(epoch) => {
                let result = work(session, epoch).await;
                let told = match &result {
                    Ok(()) => Ok(()),
                    Err(RunError::Stale) => {
                        session = tenancy.replace(session).await?.session;
                        continue;
                    }
                    Err(error) => Err(error.words()),
                };
                let name = name.to_owned();
                store.submit(Command::Release { session, name, epoch, result: told }).await?;
                return result;
            }
            Reply::Crossed(result) => return result.map_err(RunError::Elsewhere),
            Reply::Wait => {
                // Woken by any commit, or by patience: either way the ledger is asked again.
                drop(tokio::time::timeout(LOOK_AGAIN, standing.changed()).await);
                sleep_until(Instant::now() + MOMENT).await;
            }
            Reply::Stale => session = tenancy.replace(session).await?.session,
            other => return Err(RunError::unexpected("claim", &other)),
        }
    }
}
