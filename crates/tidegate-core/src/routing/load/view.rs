use super::charge::Charge;
use super::report::KvUsage;
use super::sums::Sums;
use crate::routing::thresholds::{BusyThresholds, Threshold};

/// The load of a rank at one moment, in the terms of the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankView {
    /// The KV cache, with requests sent since the report.
    pub kv: KvUsage,
    /// Tokens being prefilled, with requests sent since the report.
    pub prefill_tokens: u64,
    /// Requests at the rank, with those sent since the report.
    pub requests: u64,
    pub(super) unreported: Sums,
}

// === impl RankView ===

impl RankView {
    /// Returns the first threshold that is strictly exceeded. `None`: the rank is not busy.
    #[must_use]
    pub fn exceeded(&self, thresholds: &BusyThresholds) -> Option<Threshold> {
        self.over(thresholds, 0, 0, 0)
    }

    /// Returns the first threshold that prevents this request. `None`: it can be sent.
    ///
    /// While all load is reported, only a threshold that is already exceeded prevents it, as the rule says. Once
    /// there are requests that no report includes, this request counts too: of many at once, exactly those get
    /// through for which there is room, and one that is larger than all room still gets through alone. The number
    /// of requests is no estimate, so there the request always counts.
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
