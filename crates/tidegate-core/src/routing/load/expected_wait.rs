use std::cmp::Ordering;

/// Facts about the wait of one more request at an upstream, to compare two upstreams by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedWait {
    /// Requests there, those of other senders included as far as they are reported.
    pub requests: u64,
    /// Requests that it works on at once, if it is configured or the upstream reports it.
    pub capacity: Option<u32>,
    /// The time to the first byte of a response, in microseconds; `None` without responses.
    pub latency_us: Option<u64>,
    /// True if the upstream reports requests that wait in its own queue.
    pub has_queue: bool,
}

// === impl ExpectedWait ===

impl ExpectedWait {
    /// Compares two upstreams: less is better.
    ///
    /// One with a queue of its own comes after one without. Otherwise requests times latency decide, each over
    /// the capacity. Latencies and capacities count only if both are known: an upstream without responses is not
    /// a fast one.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let (latency, other_latency) = match (self.latency_us, other.latency_us) {
            (Some(own), Some(others)) => (own, others),
            _ => (1, 1),
        };
        let (capacity, other_capacity) = match (self.capacity, other.capacity) {
            (Some(own), Some(others)) => (own.max(1), others.max(1)),
            _ => (1, 1),
        };
        let part = |requests: u64, latency_us: u64, capacity_of_other: u32| {
            let wait = u128::from(requests.saturating_add(1)) * u128::from(latency_us);
            wait.saturating_mul(u128::from(capacity_of_other))
        };
        let own = part(self.requests, latency, other_capacity);
        let others = part(other.requests, other_latency, capacity);
        self.has_queue.cmp(&other.has_queue).then(own.cmp(&others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(requests: u64, latency_us: Option<u64>) -> ExpectedWait {
        ExpectedWait { requests, latency_us, ..ExpectedWait::default() }
    }

    #[test]
    fn requests_times_latency_decide() {
        let (slow, fast) = (wait(0, Some(900)), wait(5, Some(100)));
        assert_eq!(fast.compare(&slow), Ordering::Less);
        assert_eq!(wait(9, Some(100)).compare(&slow), Ordering::Greater);
    }

    #[test]
    fn an_upstream_without_responses_is_compared_by_its_requests() {
        let (unknown, known) = (wait(8, None), wait(3, Some(1_000_000)));
        assert_eq!(known.compare(&unknown), Ordering::Less, "others fill the one that is unknown");
        assert_eq!(wait(2, None).compare(&known), Ordering::Less);
    }

    #[test]
    fn a_queue_at_the_server_comes_last_and_headroom_counts_where_both_have_it() {
        let queued = ExpectedWait { has_queue: true, ..wait(0, Some(1)) };
        assert_eq!(wait(50, Some(1_000)).compare(&queued), Ordering::Less);
        let of = |requests, capacity| ExpectedWait { capacity, ..wait(requests, Some(100)) };
        assert_eq!(of(40, Some(80)).compare(&of(6, Some(8))), Ordering::Less);
        assert_eq!(of(40, Some(80)).compare(&of(6, None)), Ordering::Greater);
    }
}
