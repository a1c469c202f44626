use super::RetryBoard;
use crate::config::AdmissionConfig;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate::admission::RetryAdvisor;
use tidegate::{InFlightTracker, MessagePriority, OwnedPermit, PriorityLoadStats, Reason, Refusal};

/// One client's share of the gateway's limits, and the requests that use it.
#[derive(Debug)]
pub struct ClientShare {
    client: String,
    tracker: Arc<InFlightTracker>,
    board: RetryBoard,
    advisor: Mutex<RetryAdvisor>,
}

// === impl ClientShare ===

impl ClientShare {
    /// A share of the gateway's limits, 0 … 1, all of it free.
    #[must_use]
    pub fn new(client: &str, share: f64, admission: &AdmissionConfig) -> Self {
        let tracker = InFlightTracker::new(admission.limits.part(share), admission.sharing);
        Self {
            client: client.to_owned(),
            tracker: Arc::new(tracker),
            board: RetryBoard::new(admission.retry),
            advisor: Mutex::new(RetryAdvisor::new()),
        }
    }

    /// The client's name.
    #[must_use]
    pub fn client(&self) -> &str {
        &self.client
    }

    /// Takes a slot of the share.
    ///
    /// # Errors
    ///
    /// When the client's requests use the whole share.
    pub fn try_acquire(&self, priority: MessagePriority) -> Result<OwnedPermit, Refusal> {
        self.tracker.try_acquire_owned(priority)
    }

    /// Takes a slot beyond the share, for a dry run.
    pub fn admit_beyond(&self, priority: MessagePriority) -> Option<OwnedPermit> {
        self.tracker.admit_beyond_limits(priority)
    }

    /// The limit that refused.
    #[must_use]
    pub fn limit(&self, refusal: Refusal) -> u16 {
        let limits = self.tracker.limits();
        match refusal.reason {
            Reason::GlobalLimit => limits.global_limit,
            Reason::PriorityLimit => limits.of(refusal.priority),
        }
    }

    /// Retry advice for one refused request, from how fast the client's own slots come free.
    #[must_use]
    pub fn advice_for_one(&self, refusal: Refusal) -> Duration {
        self.board.advice_for_one(refusal)
    }

    /// Measures how fast slots come free, at `now` since any fixed start.
    pub fn observe(&self, now: Duration) {
        // Nothing that holds it panics; if it did, its rates would still be rates.
        let mut advisor = self.advisor.lock().unwrap_or_else(PoisonError::into_inner);
        advisor.observe(now, &self.tracker.stats());
        self.board.publish(&advisor);
    }

    /// In-flight and refused requests of the client.
    #[must_use]
    pub fn stats(&self) -> PriorityLoadStats {
        self.tracker.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::sync::atomic::{AtomicI64, Ordering};

    fn share(part: f64) -> ClientShare {
        let limits =
            "[admission]\nglobal_limit = 20\nhigh_limit = 0\nnormal_limit = 10\nlow_limit = 6\n";
        ClientShare::new("a", part, &Config::from_toml(limits).unwrap().admission)
    }

    #[test]
    fn it_is_exact_whoever_asks_at_once() {
        let share = share(0.25);
        // Five of 20, three of Normal's ten, two of Low's six.
        let limits = [(MessagePriority::Normal, 3), (MessagePriority::Low, 2)];
        let (all, held) = (AtomicI64::new(0), [AtomicI64::new(0), AtomicI64::new(0)]);
        let most = |count: &AtomicI64, limit: i64| {
            let now = count.fetch_add(1, Ordering::SeqCst) + 1;
            assert!(now <= limit, "{now} of {limit}");
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (share, all, held) = (&share, &all, &held);
                scope.spawn(move || {
                    for round in 0..5_000 {
                        let lane = (thread + round) % 2;
                        let (priority, limit) = limits[lane];
                        let Ok(permit) = share.try_acquire(priority) else { continue };
                        most(all, 5);
                        most(&held[lane], limit);
                        std::thread::yield_now();
                        held[lane].fetch_sub(1, Ordering::SeqCst);
                        all.fetch_sub(1, Ordering::SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        assert_eq!(share.stats().total_in_flight, 0);
        let held: Vec<_> =
            std::iter::from_fn(|| share.try_acquire(MessagePriority::High).ok()).collect();
        assert_eq!(held.len(), 5, "and all of it can be had");
    }

    #[test]
    fn advice_follows_how_fast_its_own_slots_come_free() {
        let share = share(0.5);
        let held: Vec<_> =
            (0..4).filter_map(|_| share.try_acquire(MessagePriority::Normal).ok()).collect();
        for tick in 0..300 {
            // One ends every 100 ms, and one is refused.
            share.try_acquire(MessagePriority::Normal).unwrap().success();
            let last = share.try_acquire(MessagePriority::Normal).unwrap();
            assert!(share.try_acquire(MessagePriority::Normal).is_err());
            drop(last);
            share.observe(Duration::from_millis(tick * 100));
        }
        let refusal = Refusal { priority: MessagePriority::Normal, reason: Reason::PriorityLimit };
        assert_eq!(share.limit(refusal), 5);
        // Four are in flight and twenty end a second: 200 ms each. 5 + 3·√5 turns in that time, with jitter of a
        // quarter.
        let turns = share.advice_for_one(refusal).as_secs_f64() * (5.0 + 3.0 * 5_f64.sqrt()) / 0.2;
        assert!((0.7..=1.3).contains(&turns), "{turns}");
        drop(held);
    }
}
