use super::upstream_id::UpstreamId;
use tidegate_core::admission::MessagePriority;
use tidegate_core::queue::FlowId;
use tidegate_core::routing::{Charge, TriedUpstreams};

/// The requirements of one request on its upstream.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The model that the request names. `None`: any upstream will do.
    pub model: Option<&'a str>,
    /// The priority. While a request waits, none of a lower priority is sent to its upstreams.
    pub priority: MessagePriority,
    /// The client or tenant, if it shares its upstreams fairly with others of the same priority.
    pub flow: FlowId,
    /// The weight of the flow: one of weight 2 gets twice as much as one of weight 1.
    pub weight: u32,
    /// The expected cost.
    pub charge: Charge,
    /// The upstream that the request names, for [`Pick::Direct`](super::Pick::Direct).
    pub direct: Option<&'a str>,
    /// Upstreams that were tried and are excluded.
    pub not: &'a [UpstreamId],
    /// True if the caller ignores a refusal, which then is not counted.
    pub dry_run: bool,
}

/// An [`Ask`] of a request that waits.
#[derive(Debug)]
pub(super) struct OwnedAsk {
    model: Option<Box<str>>,
    priority: MessagePriority,
    charge: Charge,
    direct: Option<Box<str>>,
    not: TriedUpstreams<UpstreamId>,
}

// === impl Ask ===

impl Ask<'_> {
    pub(super) fn into_owned(self) -> OwnedAsk {
        let mut not = TriedUpstreams::default();
        self.not.iter().for_each(|id| not.insert(*id));
        OwnedAsk {
            model: self.model.map(Into::into),
            priority: self.priority,
            charge: self.charge,
            direct: self.direct.map(Into::into),
            not,
        }
    }
}

impl Default for Ask<'_> {
    fn default() -> Self {
        Self {
            model: None,
            priority: MessagePriority::Normal,
            flow: FlowId::default(),
            weight: 1,
            charge: Charge::LEAST,
            direct: None,
            not: &[],
            dry_run: false,
        }
    }
}

// === impl OwnedAsk ===

impl OwnedAsk {
    pub fn ask(&self) -> Ask<'_> {
        Ask {
            model: self.model.as_deref(),
            priority: self.priority,
            charge: self.charge,
            direct: self.direct.as_deref(),
            not: self.not.ids(),
            // Whether it is refused is decided, and counted, when it stops waiting.
            dry_run: true,
            ..Ask::default()
        }
    }
}
