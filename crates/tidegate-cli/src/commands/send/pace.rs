use std::num::NonZeroU32;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Length of a burst: short enough for a steady rate, long enough to avoid a wake-up per record.
const BURST: Duration = Duration::from_millis(20);

/// Rate limiter of records.
pub struct Pace {
    per_s: NonZeroU32,
    started: Instant,
    sent: u64,
}

// === impl Pace ===

impl Pace {
    pub fn new(per_s: NonZeroU32) -> Self {
        Self { per_s, started: Instant::now(), sent: 0 }
    }

    /// Waits until records may be sent; returns how many of `wanted`.
    pub async fn next(&mut self, wanted: usize) -> usize {
        let per_s = f64::from(self.per_s.get());
        let due = Duration::from_secs_f64(self.sent as f64 / per_s);
        sleep_until(self.started + due).await;
        let burst = (per_s * BURST.as_secs_f64()).ceil() as usize;
        let count = wanted.min(burst.max(1));
        self.sent += count as u64;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().build().unwrap();
        runtime.block_on(async {
            let mut pace = Pace::new(NonZeroU32::new(10_000).unwrap());
            let (began, mut left) = (Instant::now(), 2_000);
            while left > 0 {
                let count = pace.next(left).await;
                assert!(count <= 200);
                left -= count;
            }
            // The last burst goes out when all before it were due: never earlier than 0.18 s.
            assert!(began.elapsed() >= Duration::from_millis(180), "{:?}", began.elapsed());
        });
    }
}
