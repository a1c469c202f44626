use super::zone::Span;

pub(super) const SECOND_NS: i64 = 1_000_000_000;

/// A stretch of time in which something does not change, in nanoseconds. The last nanosecond of time is the end
/// of no stretch: one that reaches it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) from_ns: i64,
    pub(super) until_ns: i64,
}

// === impl Segment ===

impl Segment {
    pub(super) const ALWAYS: Self = Self { from_ns: i64::MIN, until_ns: i64::MAX };
    pub(super) const NEVER: Self = Self { from_ns: 0, until_ns: 0 };

    pub(super) fn of_seconds(from_s: i64, until_s: i64) -> Self {
        Self { from_ns: nanoseconds(from_s), until_ns: nanoseconds(until_s) }
    }

    pub(super) fn is_empty(self) -> bool {
        self.from_ns >= self.until_ns
    }

    #[inline]
    pub(super) fn contains(self, at_ns: i64) -> bool {
        self.from_ns <= at_ns && (at_ns < self.until_ns || self.until_ns == i64::MAX)
    }

    /// The part that is in the other as well.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            from_ns: self.from_ns.max(other.from_ns),
            until_ns: self.until_ns.min(other.until_ns),
        }
    }

    /// The part around a time that the other, which does not have that time, leaves.
    pub(super) fn without(self, other: Self, at_ns: i64) -> Self {
        if other.from_ns > at_ns {
            self.and(Self { until_ns: other.from_ns, ..Self::ALWAYS })
        } else {
            self.and(Self { from_ns: other.until_ns, ..Self::ALWAYS })
        }
    }
}

impl From<Span> for Segment {
    fn from(span: Span) -> Self {
        Self::of_seconds(span.from_s, span.until_s)
    }
}

pub(super) fn nanoseconds(seconds: i64) -> i64 {
    seconds.saturating_mul(SECOND_NS)
}

pub(super) fn seconds(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(SECOND_NS)
}
