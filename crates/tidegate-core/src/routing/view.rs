use super::sums::Sums;
use super::{BusyThresholds, Charge, KvUsage, Threshold};

/// What a rank has to do at a moment, in the terms of the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankView {
    /// The KV cache, with what was sent since.
    pub kv: KvUsage,
    /// Tokens being prefilled, with what was sent since.
    pub prefill_tokens: u64,
    /// Requests there, with what was sent since.
    pub requests: u64,
    pub(super) unreported: Sums,
}

// === impl RankView ===

impl RankView {
    /// The first threshold that is exceeded, strictly. `None`: the rank is not busy.
    #[must_use]
    pub fn exceeded(&self, thresholds: &BusyThresholds) -> Option<Threshold> {
        self.over(thresholds, 0, 0, 0)
    }

    /// The first threshold that stands in the way of this request. `None`: it can be sent.
    ///
    /// By a report alone the threshold must be exceeded, as the rule has it. As soon as something was sent that
    /// no report has yet, the request itself counts too: of many that come at once, exactly those are let
    /// through for which there is room, and one that is larger than all room still gets through alone. What one
    /// request adds to the number of requests is no guess, so there it always counts.
    #[must_use]
    pub fn stops(&self, charge: Charge, thresholds: &BusyThresholds) -> Option<Threshold> {
        let when_pending = |pending: u64, cost: u64| if pending > 0 { cost } else { 0 };
        let blocks = when_pending(self.unreported.blocks, charge.blocks);
        let tokens = when_pending(self.unreported.tokens, charge.prefill_tokens);
        self.over(thresholds, blocks, tokens, 1)
    }

    fn over(
        &self,
        thresholds: &BusyThresholds,
        blocks: u64,
        tokens: u64,
        requests: u64,
    ) -> Option<Threshold> {
        if let (Some(most), KvUsage::Blocks { active, total }) =
            (thresholds.active_decode_blocks, self.kv)
            && active.saturating_add(blocks) as f64 / total as f64 > most
        {
            return Some(Threshold::ActiveDecodeBlocks);
        }
        let beyond = |most: Option<u64>, load: u64, more: u64| {
            most.is_some_and(|most| load.saturating_add(more) > most)
        };
        if beyond(thresholds.active_prefill_tokens, self.prefill_tokens, tokens) {
            return Some(Threshold::ActivePrefillTokens);
        }
        if beyond(thresholds.active_requests, self.requests, requests) {
            return Some(Threshold::ActiveRequests);
        }
        None
    }
}
