use crate::admission::MessagePriority;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

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
}

/// The share of each threshold that a priority may use; High and Critical may use all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// The share of Normal while High asks ([`LastHighRequest`]), 0.0 … 1.0. The reserve is rounded down: of few
    /// slots Normal may use all.
    pub normal: f64,
    /// The share of Low, 0.0 … 1.0. The share is rounded down: of two slots Low leaves one.
    pub low: f64,
}

/// The time of the last request of High.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastHighRequest {
    last: Option<Duration>,
}

/// The time after a request of High for which Normal leaves room. Longer than the gap between two requests of
/// High, and short enough that the fleet is soon used in full after High has left.
const HIGH_LATELY: Duration = Duration::from_secs(1);

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

    /// Returns these thresholds times a share; the rest is headroom for higher priorities.
    #[must_use]
    pub fn at_share(self, share: f64) -> Self {
        // A share of one slot is one, or an idle upstream would refuse for ever.
        let of = |whole: u64| ((whole as f64 * share) as u64).max(whole.min(1));
        Self {
            active_decode_blocks: self.active_decode_blocks.map(|ratio| ratio * share),
            active_prefill_tokens: self.active_prefill_tokens.map(of),
            active_requests: self.active_requests.map(of),
        }
    }

    /// Returns the thresholds for a request of this priority. A lower priority has lower thresholds than a higher
    /// one, so that it is refused first when upstreams fill up.
    #[must_use]
    pub fn for_priority(self, priority: MessagePriority, shares: Shares) -> Self {
        match priority {
            MessagePriority::Critical | MessagePriority::High => self,
            MessagePriority::Normal => {
                let of = |whole: u64| whole - (whole as f64 * (1.0 - shares.normal)) as u64;
                Self {
                    active_decode_blocks: self.active_decode_blocks.map(|r| r * shares.normal),
                    active_prefill_tokens: self.active_prefill_tokens.map(of),
                    active_requests: self.active_requests.map(of),
                }
            }
            MessagePriority::Low => self.at_share(shares.low),
        }
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

// === impl Shares ===

impl Shares {
    /// No headroom for any priority.
    pub const ALL: Self = Self { normal: 1.0, low: 1.0 };
}

impl Default for Shares {
    fn default() -> Self {
        Self { normal: 0.95, low: 0.9 }
    }
}

// === impl LastHighRequest ===

impl LastHighRequest {
    /// Notes a request, and returns the priority by whose share of the thresholds it is judged.
    ///
    /// Normal leaves room to High only while High asks: otherwise Normal uses it too.
    pub fn judge(&mut self, priority: MessagePriority, now: Duration) -> MessagePriority {
        if priority <= MessagePriority::High {
            self.last = Some(self.last.map_or(now, |last| last.max(now)));
        }
        match (priority, self.last) {
            (MessagePriority::Normal, None) => MessagePriority::High,
            (MessagePriority::Normal, Some(last)) if now > last + HIGH_LATELY => {
                MessagePriority::High
            }
            _ => priority,
        }
    }

    /// Returns the time in microseconds plus one, or 0 for never, to be stored in an atomic.
    #[must_use]
    pub fn into_word(self) -> u64 {
        let us = |last: Duration| u64::try_from(last.as_micros()).unwrap_or(u64::MAX - 1);
        self.last.map_or(0, |last| us(last) + 1)
    }

    /// Restores the time from [`into_word`](Self::into_word).
    #[must_use]
    pub fn from_word(word: u64) -> Self {
        Self { last: word.checked_sub(1).map(Duration::from_micros) }
    }
}

// === impl Threshold ===

impl Threshold {
    /// Every threshold.
    pub const ALL: [Self; 3] =
        [Self::ActiveDecodeBlocks, Self::ActivePrefillTokens, Self::ActiveRequests];

    /// Returns the name used in labels, logs and responses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ActiveDecodeBlocks => "active_decode_blocks",
            Self::ActivePrefillTokens => "active_prefill_tokens",
            Self::ActiveRequests => "active_requests",
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

    #[test]
    fn each_priority_leaves_room_to_those_above_it() {
        use MessagePriority::{High, Low, Normal};
        let all = BusyThresholds {
            active_decode_blocks: Some(0.8),
            active_prefill_tokens: Some(10_000),
            active_requests: Some(40),
        };
        let of = |priority| all.for_priority(priority, Shares::default());
        assert_eq!(of(High), all);
        assert_eq!((of(Normal).active_requests, of(Low).active_requests), (Some(38), Some(36)));
        assert_eq!(of(Normal).active_prefill_tokens, Some(9_500));
        let ratio = of(Normal).active_decode_blocks.unwrap_or_default();
        assert!((ratio - 0.76).abs() < 1e-9, "{ratio}");
        assert_eq!(BusyThresholds::OFF.for_priority(Low, Shares::default()), BusyThresholds::OFF);
    }

    #[test]
    fn of_few_places_normal_may_use_all_and_low_leaves_one() {
        use MessagePriority::{Low, Normal};
        let few = |places| BusyThresholds { active_requests: Some(places), ..BusyThresholds::OFF };
        for (places, normal, low) in [(1, 1, 1), (2, 2, 1), (19, 19, 17), (20, 19, 18)] {
            let of = |p| few(places).for_priority(p, Shares::default()).active_requests;
            assert_eq!((of(Normal), of(Low)), (Some(normal), Some(low)), "of {places}");
        }
    }

    #[test]
    fn normal_leaves_room_only_while_high_asks() {
        use MessagePriority::{High, Low, Normal};
        let at = Duration::from_millis;
        let mut asked = LastHighRequest::default();
        assert_eq!(asked.judge(Normal, at(0)), High, "nobody would use the room");
        assert_eq!(asked.judge(Low, at(0)), Low, "Low always leaves some");
        assert_eq!(asked.judge(High, at(500)), High);
        assert_eq!(asked.judge(Normal, at(1_500)), Normal);
        assert_eq!(LastHighRequest::from_word(asked.into_word()), asked);
        assert_eq!(asked.judge(Normal, at(1_501)), High);
        assert_eq!(LastHighRequest::from_word(0), LastHighRequest::default());
    }
}
