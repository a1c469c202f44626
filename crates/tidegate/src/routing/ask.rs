use super::upstream::UpstreamId;
use tidegate_core::admission::MessagePriority;
use tidegate_core::routing::Charge;

/// The requirements of one request on its upstream.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The model that the request names. `None`: any upstream will do.
    pub model: Option<&'a str>,
    /// The priority. Low leaves some room for the others, and Normal for High while High asks.
    pub priority: MessagePriority,
    /// The expected cost.
    pub charge: Charge,
    /// The upstream that the request names, for [`Pick::Direct`](super::Pick::Direct).
    pub direct: Option<&'a str>,
    /// Upstreams that were tried and are excluded.
    pub not: &'a [UpstreamId],
    /// True if the caller ignores a refusal, which then is not counted.
    pub dry_run: bool,
}

// === impl Ask ===

impl Default for Ask<'_> {
    fn default() -> Self {
        Self {
            model: None,
            priority: MessagePriority::Normal,
            charge: Charge::LEAST,
            direct: None,
            not: &[],
            dry_run: false,
        }
    }
}
