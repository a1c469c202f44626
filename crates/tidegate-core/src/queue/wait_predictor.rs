use crate::admission::MessagePriority;
use crate::flow::Rate;
use std::time::Duration;

/// Observations closer together than this are merged: a rate over less would be noise.
const PERIOD_S: f64 = 0.05;

/// Part of a pool that a lower band is taken to get at least, so that an estimate stays finite while higher bands
/// use everything.
const SHARE_MIN: f64 = 0.01;

/// Time constant of the mean service time, in services: about as many as it takes to halve the error of a first
/// guess.
const MEMORY_SERVICES: f64 = 32.0;

/// Predicts how long a request would wait for a pool whose slots are all in use.
///
/// With `n` requests in flight that take `s` seconds each, `n / s` slots become free in a second. Higher bands
/// take what they have been served lately; the rest is for this band.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitPredictor {
    at_s: Option<f64>,
    ended: u64,
    service_us: u64,
    service_s: Option<f64>,
    began: u64,
    first_byte_us: u64,
    first_byte_s: Option<f64>,
    served: [Rate; 3],
}

/// The longest wait that is worth it.
///
/// A queue longer than a service only adds latency under lasting overload; one that is shorter than a few refuses
/// bursts that would have been served. A queue that does not empty tells them apart. Clients of a stream wait for
/// its first byte and not for its end, so that times to the first byte take the place of services.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitTarget {
    /// Services of a slot that a request of a burst may wait for, where a response begins at its end; times to
    /// the first byte where it begins earlier.
    pub services: f64,
    /// The same in a queue that reached this and has not emptied for long, as it does after a burst.
    pub services_standing: f64,
    /// Part of a service that a request may wait for however early responses begin, so that slots which become
    /// free together find requests that wait.
    pub service_part: f64,
    /// The least target, for fast services: bursts last longer than they do.
    pub min: Duration,
    /// The greatest target, also while the service time is unknown.
    pub max: Duration,
}

// === impl WaitPredictor ===

impl WaitPredictor {
    /// Records the totals of a pool at `now`: requests that ended, the sum of their times in flight in
    /// microseconds, and the requests sent by priority: High, Normal, Low.
    pub fn observe(&mut self, now: Duration, ended: u64, service_us: u64, sent: [u64; 3]) {
        let now_s = now.as_secs_f64();
        let elapsed_s = self.at_s.map_or(f64::INFINITY, |at_s| now_s - at_s);
        if elapsed_s < PERIOD_S {
            return;
        }
        let first = self.at_s.is_none();
        for (rate, total) in self.served.iter_mut().zip(sent) {
            rate.observe(elapsed_s, total, first);
        }
        let count = ended.saturating_sub(self.ended);
        follow(&mut self.service_s, count, service_us.saturating_sub(self.service_us));
        (self.at_s, self.ended, self.service_us) = (Some(now_s), ended, service_us);
    }

    /// Records the totals of responses whose body began, and of their times to the first byte in microseconds.
    pub fn observe_first_bytes(&mut self, began: u64, first_byte_us: u64) {
        let count = began.saturating_sub(self.began);
        follow(&mut self.first_byte_s, count, first_byte_us.saturating_sub(self.first_byte_us));
        (self.began, self.first_byte_us) = (began, first_byte_us);
    }

    /// Returns the mean time that a request is in flight, once one has ended.
    #[must_use]
    pub fn service(&self) -> Option<Duration> {
        self.service_s.map(Duration::from_secs_f64)
    }

    /// Returns the mean time to the first byte of a response, once one has begun.
    #[must_use]
    pub fn first_byte(&self) -> Option<Duration> {
        self.first_byte_s.map(Duration::from_secs_f64)
    }

    /// Returns the expected wait of a request with so many ahead of it, in higher bands and in its own, while all
    /// slots are in use. `None` while the service time is unknown.
    #[must_use]
    pub fn wait(
        &self,
        priority: MessagePriority,
        (higher, own): (usize, usize),
        in_flight: u64,
    ) -> Option<Duration> {
        let freed_per_s = in_flight.max(1) as f64 / self.service_s?.max(1e-6);
        let bands = usize::from(priority as u8).saturating_sub(1);
        let taken_per_s: f64 = self.served[..bands].iter().map(Rate::per_s).sum();
        let left_per_s = (freed_per_s - taken_per_s).max(freed_per_s * SHARE_MIN);
        // The request itself needs the next slot after those ahead of it.
        let wait_s = higher as f64 / freed_per_s + (own + 1) as f64 / left_per_s;
        Some(Duration::from_secs_f64(wait_s.min(1e9)))
    }
}

/// Moves a mean towards that of `count` new values with this sum in microseconds.
fn follow(mean_s: &mut Option<f64>, count: u64, sum_us: u64) {
    if count > 0 {
        let seen_s = sum_us as f64 / 1e6 / count as f64;
        let weight = (count as f64 / MEMORY_SERVICES).min(1.0);
        let old_s = mean_s.unwrap_or(seen_s);
        *mean_s = Some(old_s + weight * (seen_s - old_s));
    }
}

// === impl WaitTarget ===

impl WaitTarget {
    /// Returns the target of a burst for this service time and this time to the first byte of a response, as far
    /// as they are known.
    #[must_use]
    pub fn of(&self, service: Option<Duration>, first_byte: Option<Duration>) -> Duration {
        self.of_services(self.services, service, first_byte)
    }

    /// Returns the target of a queue that first refused a request for its wait `standing` ago and was not empty
    /// since: half as many services each time that this doubles beyond the target of a burst.
    #[must_use]
    pub fn of_standing(
        &self,
        standing: Duration,
        service: Option<Duration>,
        first_byte: Option<Duration>,
    ) -> Duration {
        let burst = self.of(service, first_byte);
        let bursts = standing.as_secs_f64() / burst.as_secs_f64().max(1e-6);
        let services = (self.services / bursts.max(1.0)).max(self.services_standing);
        self.of_services(services, service, first_byte).min(burst)
    }

    fn of_services(
        &self,
        services: f64,
        service: Option<Duration>,
        first_byte: Option<Duration>,
    ) -> Duration {
        let Some(first_byte) = first_byte.or(service) else { return self.max };
        let service_s = service.unwrap_or(first_byte).as_secs_f64();
        let first_byte_s = first_byte.as_secs_f64().min(service_s);
        let target_s = (first_byte_s * services).max(service_s * self.service_part);
        Duration::from_secs_f64(target_s.min(self.max.as_secs_f64())).max(self.min).min(self.max)
    }
}

impl Default for WaitTarget {
    /// Four services or times to the first byte for a burst and one in a standing queue, at least a
    /// quarter of a service and 100 ms, at most 5 s.
    fn default() -> Self {
        // Four: Poisson arrivals at 95 % of a few slots rarely queue longer. One: as many wait as there are slots,
        // so that none is empty; more only adds to the latency. 100 ms: two rounds of the limit,
        // which can grow before calm traffic is refused. 5 s: a client that waits has usually given up by then. A
        // quarter: a batch that ends together finds a quarter of its slots' requests waiting.
        let (min, max) = (Duration::from_millis(100), Duration::from_secs(5));
        Self { services: 4.0, services_standing: 1.0, service_part: 0.25, min, max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessagePriority::{High, Low, Normal};

    /// A pool of 8 slots of 50 ms that has sent these a second for 20 s.
    fn pool(high: u64, normal: u64, low: u64) -> WaitPredictor {
        let mut estimate = WaitPredictor::default();
        for tick in 0..=200_u64 {
            let now = Duration::from_millis(100 * tick);
            let sent = [high, normal, low].map(|rate| rate * tick / 10);
            let ended = sent.iter().sum();
            estimate.observe(now, ended, ended * 50_000, sent);
        }
        estimate
    }

    fn wait_ms(estimate: &WaitPredictor, priority: MessagePriority, ahead: (usize, usize)) -> u128 {
        estimate.wait(priority, ahead, 8).expect("known").as_millis()
    }

    #[test]
    fn the_wait_is_the_work_ahead_over_what_higher_bands_leave() {
        let estimate = pool(80, 80, 0);
        assert_eq!(estimate.service(), Some(Duration::from_millis(50)));
        assert_eq!(wait_ms(&estimate, High, (0, 15)), 100, "160 slots a second, all for High");
        let normal = wait_ms(&estimate, Normal, (0, 7));
        assert!((95..=105).contains(&normal), "80 a second are left: {normal}");
        let low = wait_ms(&estimate, Low, (16, 0));
        assert!(low >= 600, "nothing is left for Low: {low}");
    }

    #[test]
    fn without_a_service_time_nothing_is_predicted_and_the_target_is_the_longest() {
        let estimate = WaitPredictor::default();
        assert_eq!(estimate.wait(High, (0, 100), 8), None);
        let target = WaitTarget::default();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(target.of(estimate.service(), None), target.max);
        assert_eq!(target.of(ms(50), None), Duration::from_millis(200));
        assert_eq!(target.of(ms(1), None), target.min);
        assert_eq!(target.of(ms(30_000), None), target.max);
    }

    #[test]
    fn the_target_of_streams_follows_their_first_bytes() {
        let mut estimate = pool(160, 0, 0);
        estimate.observe_first_bytes(100, 100 * 30_000);
        assert_eq!(estimate.first_byte(), Some(Duration::from_millis(30)));
        let ms = |ms| Some(Duration::from_millis(ms));
        let target = WaitTarget::default();
        assert_eq!(target.of(ms(1_000), ms(100)), Duration::from_millis(400));
        assert_eq!(target.of(ms(1_600), ms(30)), Duration::from_millis(400), "a quarter");
        assert_eq!(target.of(ms(50), ms(50)), Duration::from_millis(200), "as a whole");
        assert_eq!(target.of(ms(60_000), ms(30)), target.max);
    }

    #[test]
    fn the_service_time_follows_a_change_within_some_services() {
        let mut estimate = pool(160, 0, 0);
        let (mut ended, mut service_us) = (3_200, 3_200 * 50_000);
        for tick in 1..=20_u64 {
            ended += 3;
            service_us += 3 * 250_000;
            let now = Duration::from_millis(20_000 + 100 * tick);
            estimate.observe(now, ended, service_us, [ended, 0, 0]);
        }
        let service = estimate.service().expect("known");
        assert!(service > Duration::from_millis(210), "{service:?}");
    }
}
