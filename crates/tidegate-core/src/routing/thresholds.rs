use serde::Serialize;
use std::fmt;

/// The thresholds beyond which an upstream counts as busy. An unset threshold is not checked; an upstream is
/// busy when any is exceeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BusyThresholds {
    /// Share of the KV cache's blocks in use, 0.0 … 1.0.
    #[serde(rename = "active_decode_blocks_threshold")]
    pub active_decode_blocks: Option<f64>,
    /// Tokens being prefilled.
    #[serde(rename = "active_prefill_tokens_threshold")]
    pub active_prefill_tokens: Option<u64>,
    /// Requests at the upstream, executing and queued. For servers that report nothing finer.
    #[serde(rename = "active_requests_threshold", skip_serializing_if = "Option::is_none")]
    pub active_requests: Option<u64>,
}

/// One of the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Threshold {
    /// Share of the KV cache.
    ActiveDecodeBlocks,
    /// Tokens being prefilled.
    ActivePrefillTokens,
    /// Requests at the upstream.
    ActiveRequests,
    /// The concurrency limit, configured or found.
    ConcurrencyLimit,
}

/// Presets of thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BusyPreset {
    /// Refuses early, so that queues stay short and tail latency low.
    Latency,
    /// Lets upstreams fill up, at the price of varying latency.
    Throughput,
    /// Never refuses because upstreams are busy.
    #[default]
    Off,
}

/// A threshold outside of its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThresholdOutOfRange {
    /// The threshold.
    pub threshold: Threshold,
    /// The given value.
    pub given: f64,
}

// === impl BusyThresholds ===

impl BusyThresholds {
    /// No thresholds.
    pub const OFF: Self =
        Self { active_decode_blocks: None, active_prefill_tokens: None, active_requests: None };

    /// Returns `true` if no threshold is set.
    #[must_use]
    pub fn are_off(&self) -> bool {
        *self == Self::OFF
    }

    /// Returns these thresholds, and those of `other` where one is unset.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            active_decode_blocks: self.active_decode_blocks.or(other.active_decode_blocks),
            active_prefill_tokens: self.active_prefill_tokens.or(other.active_prefill_tokens),
            active_requests: self.active_requests.or(other.active_requests),
        }
    }

    /// Checks that every threshold is in its range.
    ///
    /// # Errors
    ///
    /// The first threshold that is out of range.
    pub fn check(&self) -> Result<(), ThresholdOutOfRange> {
        match self.active_decode_blocks {
            Some(ratio) if !(0.0..=1.0).contains(&ratio) => {
                Err(ThresholdOutOfRange { threshold: Threshold::ActiveDecodeBlocks, given: ratio })
            }
            _ => Ok(()),
        }
    }
}

// === impl Threshold ===

impl Threshold {
    /// Every threshold.
    pub const ALL: [Self; 4] = [
        Self::ActiveDecodeBlocks,
        Self::ActivePrefillTokens,
        Self::ActiveRequests,
        Self::ConcurrencyLimit,
    ];

    /// Returns the name used in labels, logs and responses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ActiveDecodeBlocks => "active_decode_blocks",
            Self::ActivePrefillTokens => "active_prefill_tokens",
            Self::ActiveRequests => "active_requests",
            Self::ConcurrencyLimit => "concurrency_limit",
        }
    }

    /// Returns the index of this threshold in an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl BusyPreset ===

impl BusyPreset {
    /// Returns the thresholds of the preset.
    #[must_use]
    pub fn thresholds(self) -> BusyThresholds {
        let both = |ratio, tokens| BusyThresholds {
            active_decode_blocks: Some(ratio),
            active_prefill_tokens: Some(tokens),
            active_requests: None,
        };
        match self {
            Self::Latency => both(0.70, 5_000),
            Self::Throughput => both(0.95, 20_000),
            Self::Off => BusyThresholds::OFF,
        }
    }
}

// === impl ThresholdOutOfRange ===

impl fmt::Display for ThresholdOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_threshold is {}, and must be 0.0 … 1.0", self.threshold, self.given)
    }
}

impl std::error::Error for ThresholdOutOfRange {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_those_of_the_document() {
        let latency = BusyPreset::Latency.thresholds();
        assert_eq!(latency.active_decode_blocks, Some(0.70));
        assert_eq!(latency.active_prefill_tokens, Some(5_000));
        let throughput = BusyPreset::Throughput.thresholds();
        assert_eq!(throughput.active_decode_blocks, Some(0.95));
        assert_eq!(throughput.active_prefill_tokens, Some(20_000));
        assert!(BusyPreset::Off.thresholds().are_off());
    }

    #[test]
    fn a_ratio_beyond_one_or_not_a_number_is_out_of_range() {
        let of =
            |ratio| BusyThresholds { active_decode_blocks: Some(ratio), ..BusyThresholds::OFF };
        for ratio in [0.0, 0.85, 1.0] {
            assert_eq!(of(ratio).check(), Ok(()));
        }
        for ratio in [-0.1, 1.01, f64::NAN, f64::INFINITY] {
            let error = of(ratio).check().unwrap_err();
            assert!(error.to_string().starts_with("active_decode_blocks_threshold is"), "{error}");
        }
    }
}
