/// Raises the limit of file descriptors to two per connection, and warns if the system allows fewer.
///
/// The usual soft limit of 1,024 is far below the default limit of connections.
pub fn raise(connections_max: usize) {
    // The store alone may open 256 files.
    const OWN: u64 = 512;
    let wanted = connections_max as u64 * 2 + OWN;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(allowed) if allowed >= wanted => {}
        Ok(allowed) => {
            tracing::warn!(
                allowed,
                wanted,
                "too few file descriptors: raise `ulimit -n` or lower listen.connections_max"
            );
        }
        Err(error) => tracing::warn!(%error, "could not raise the limit of file descriptors"),
    }
}
