//! Failures that are ignored on purpose. Each function names the reason.

/// Ignores that a channel is closed, because its receiver has ended and needs nothing more.
pub(crate) fn ignore_closed<T, E>(sent: Result<T, E>) {
    drop(sent);
}

/// Ignores that a file or folder could not be removed, because a leftover is harmless.
pub(crate) fn ignore_leftover(removed: std::io::Result<()>) {
    if let Err(error) = removed
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::debug!(%error, "a file could not be removed");
    }
}
