use super::zone::Span;

pub(in crate::tariff) const SECOND_NS: i64 = 1_000_000_000;

/// Time segment in nanoseconds within which something does not change. A segment that ends with the last
/// nanosecond is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tariff) struct Segment {
    pub(in crate::tariff) from_ns: i64,
    pub(in crate::tariff) until_ns: i64,
}

// === impl Segment ===

impl Segment {
    pub(in crate::tariff) const ALWAYS: Self = Self { from_ns: i64::MIN, until_ns: i64::MAX };
    pub(in crate::tariff) const NEVER: Self = Self { from_ns: 0, until_ns: 0 };

    pub(in crate::tariff) fn of_seconds(from_s: i64, until_s: i64) -> Self {
        Self { from_ns: nanoseconds(from_s), until_ns: nanoseconds(until_s) }
    }

    pub(in crate::tariff) fn is_empty(self) -> bool {
        self.from_ns >= self.until_ns
    }

    #[inline]
    pub(in crate::tariff) fn contains(self, at_ns: i64) -> bool {
        self.from_ns <= at_ns && (at_ns < self.until_ns || self.until_ns == i64::MAX)
    }

    /// Intersection with another segment.
    pub(in crate::tariff) fn and(self, other: Self) -> Self {
        Self {
            from_ns: self.from_ns.max(other.from_ns),
            until_ns: self.until_ns.min(other.until_ns),
        }
    }

    /// Part around a time outside of another segment, which does not contain that time.
    pub(in crate::tariff) fn without(self, other: Self, at_ns: i64) -> Self {
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

pub(in crate::tariff) fn nanoseconds(seconds: i64) -> i64 {
    seconds.saturating_mul(SECOND_NS)
}

pub(in crate::tariff) fn seconds(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(SECOND_NS)
}
