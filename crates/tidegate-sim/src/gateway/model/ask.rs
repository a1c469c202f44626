use tidegate_core::admission::MessagePriority;
use tidegate_core::routing::{Charge, TriedUpstreams};

/// The requirements of one request on its upstream.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub priority: MessagePriority,
    pub charge: Charge,
    pub tried: TriedUpstreams<u16>,
}

// === impl Ask ===

impl Ask {
    pub fn has_tried(&self, upstream: usize) -> bool {
        self.tried.ids().iter().any(|tried| usize::from(*tried) == upstream)
    }
}
