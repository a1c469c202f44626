use rust_decimal::Decimal;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tidegate::sequence::SeqWindow;
use tidegate::store::{
    AnyStore, Appended, PricedBatch, Records, Store, StoreError, Unstored, UsagePage, UsageQuery,
};
use tidegate::window::Stage;
use tidegate_sim::scenario::Scenario;
use tokio::time::{Instant, sleep};

/// Idle time that the store may catch up on.
const CATCH_UP: Duration = Duration::from_millis(50);

/// Interval between two checks for faults.
const CHECK_EVERY: Duration = Duration::from_millis(5);

/// Store that is slowed to the rate and the faults of a scenario.
pub struct PacedStore {
    store: Arc<AnyStore>,
    pace: Arc<Pace>,
}

/// Rate of a store over time.
pub struct Pace {
    scenario: Scenario,
    start: OnceLock<Instant>,
    /// Begin of the idle time.
    free_since: Mutex<Instant>,
}

// === impl Pace ===

impl Pace {
    pub fn new(scenario: &Scenario) -> Self {
        let free_since = Mutex::new(Instant::now());
        Self { scenario: scenario.clone(), start: OnceLock::new(), free_since }
    }

    /// Starts the scenario's time.
    pub fn begin(&self, start: Instant) {
        // A second call changes nothing.
        let _ = self.start.set(start);
    }

    /// Records per second at this time.
    fn per_s(&self, now: Instant) -> f64 {
        let store_per_s = self.scenario.capacity_per_s().unwrap_or(f64::INFINITY);
        let since = self.start.get().map(|start| now.saturating_duration_since(*start));
        let slowness = since
            .map_or(Some(1.0), |since| self.scenario.slowness(Stage::Store, since.as_secs_f64()));
        slowness.map_or(0.0, |slowness| store_per_s / slowness)
    }

    /// Waits as long as this many records take.
    async fn work(&self, records: u64) {
        let mut left = records as f64;
        let mut since = self.free_since(Instant::now());
        loop {
            let now = Instant::now();
            let per_s = self.per_s(now);
            left -= per_s * now.saturating_duration_since(since).as_secs_f64();
            since = now;
            if left <= 0.0 {
                let early = Duration::try_from_secs_f64(-left / per_s).unwrap_or_default();
                let mut free = self.free_since.lock().unwrap_or_else(PoisonError::into_inner);
                *free = now - early.min(CATCH_UP);
                return;
            }
            let rest = Duration::try_from_secs_f64(left / per_s).unwrap_or(CHECK_EVERY);
            sleep(rest.min(CHECK_EVERY)).await;
        }
    }

    fn free_since(&self, now: Instant) -> Instant {
        let free = *self.free_since.lock().unwrap_or_else(PoisonError::into_inner);
        free.max(now - CATCH_UP)
    }
}

// === impl PacedStore ===

impl PacedStore {
    pub fn new(store: Arc<AnyStore>, pace: Arc<Pace>) -> Self {
        Self { store, pace }
    }
}

impl Store for PacedStore {
    async fn append(&self, batches: Vec<PricedBatch>) -> Result<Vec<Appended>, Unstored> {
        let records = batches.iter().map(|batch| batch.records.len() as u64).sum();
        self.pace.work(records).await;
        self.store.append(batches).await
    }

    async fn retain(&self, before_ns: i64) -> Result<u64, StoreError> {
        self.store.retain(before_ns).await
    }

    fn scan(&self, from_ns: i64, until_ns: i64) -> Records {
        self.store.scan(from_ns, until_ns)
    }

    async fn seen(&self, sender: &str) -> Result<SeqWindow, StoreError> {
        self.store.seen(sender).await
    }

    async fn owner(&self, sender: &str) -> Result<Option<Arc<str>>, StoreError> {
        self.store.owner(sender).await
    }

    async fn used(
        &self,
        tenant: &str,
        meter: &str,
        from_ns: i64,
        until_ns: i64,
    ) -> Result<Decimal, StoreError> {
        self.store.used(tenant, meter, from_ns, until_ns).await
    }

    async fn usage_page(&self, query: &UsageQuery) -> Result<UsagePage, StoreError> {
        self.store.usage_page(query).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Pace {
        let text = r#"
            about = "A store that is blocked for a second and then slow for one."
            duration_s = 10
            pipeline = { store_per_s = 1000 }
            fault = [
                { kind = "blocked", stage = "store", from_s = 2, until_s = 3 },
                { kind = "slow", stage = "store", factor = 4, from_s = 3, until_s = 4 },
            ]
        "#;
        Pace::new(&Scenario::read("paced", text).unwrap_or_else(|error| panic!("{error}")))
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_has_the_rate_and_faults_of_the_scenario() {
        let pace = pace();
        let start = Instant::now();
        pace.begin(start);
        let near = |expected_ms: u64| {
            let took_ms = start.elapsed().as_millis() as u64;
            assert!(took_ms.abs_diff(expected_ms) <= 10, "{took_ms} ms, not {expected_ms}");
        };
        pace.work(1_000).await;
        near(1_000);
        // One second as usual, one blocked, 250 in the slow one, and the last 250 as usual again.
        pace.work(1_500).await;
        near(4_250);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_time_is_caught_up_on_only_a_little() {
        let pace = pace();
        let start = Instant::now();
        sleep(Duration::from_secs(1)).await;
        pace.work(1_000).await;
        let took_ms = start.elapsed().as_millis() as u64;
        assert!((1_940..=1_970).contains(&took_ms), "{took_ms}");
    }
}
