//! Crossing a barricade: one elected node works, the others wait for its result.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::error::RunError;
use crate::ledger::{Command, Epoch, Reply, SessionId, Standing};
use crate::store::{Answer, Question, Store};
use crate::tenancy::Tenancy;

/// Pause of a waiting node between two looks when nothing wakes it before.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Pause of a node that is told to wait though nobody is crossing: it has not heard of all that the
/// ledger knows, or those who have crossed are to give a sign of life first.
const MOMENT: Duration = Duration::from_millis(20);

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
    let mut has_waited = others_cross(&mut standing).await;
    loop {
        // Who has waited for another one's crossing need not cross to know what came of it.
        let question = Question::Crossed { session, name: name.to_owned() };
        if has_waited && let Answer::Crossed(Some(result)) = store.ask(question).await? {
            return result.map_err(RunError::Elsewhere);
        }
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
            Reply::Wait if standing.borrow().crossings == 0 => {
                sleep_until(Instant::now() + MOMENT).await;
            }
            Reply::Wait => has_waited = others_cross(&mut standing).await,
            Reply::Stale => session = tenancy.replace(session).await?.session,
            other => return Err(RunError::unexpected("claim", &other)),
        }
    }
}

/// Waits until nobody is crossing, as far as this node has heard, or for as long as it has patience:
/// either way the ledger is asked. Tells whether there was anybody.
async fn others_cross(standing: &mut watch::Receiver<Standing>) -> bool {
    let others = standing.borrow().crossings > 0;
    drop(timeout(LOOK_AGAIN, standing.wait_for(|now| now.crossings == 0)).await);
    others
}
