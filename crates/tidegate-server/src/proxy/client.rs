use super::forwarded::ForwardedCache;
use crate::gateway::{Activity, ThreadContext};
use std::net::SocketAddr;
use std::sync::Arc;

/// What is known of a client for as long as its connection lasts.
pub struct ClientContext {
    /// The thread that serves it.
    pub thread: Arc<ThreadContext>,
    /// Where it connected from.
    pub peer: SocketAddr,
    /// Whether it came by TLS.
    pub secure: bool,
    /// What the connection is doing, for the one who closes quiet connections.
    pub activity: Arc<Activity>,
    pub(super) forwarded: ForwardedCache,
}

// === impl ClientContext ===

impl ClientContext {
    /// The context of a connection that was just accepted.
    #[must_use]
    pub fn new(
        thread: Arc<ThreadContext>,
        peer: SocketAddr,
        secure: bool,
        activity: Arc<Activity>,
    ) -> Self {
        let forwarded = ForwardedCache::new(peer.ip(), secure);
        Self { thread, peer, secure, activity, forwarded }
    }
}
