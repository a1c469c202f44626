//! Rates and latencies of a gateway drill, for the progress bar.

use crate::commands::drill::progress::{Bar, ProgressDisplay};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_sim::scenario::PhaseSpan;

const SECOND: Duration = Duration::from_secs(1);
/// Delay after which a request counts as late.
const LATE: Duration = Duration::from_millis(1);
/// Resolution of latencies: 2^4 steps for each power of two.
const PARTS: u32 = 4;

/// Figures of the last second.
#[derive(Clone, Debug, Default)]
struct Snapshot {
    now: Duration,
    in_flight: usize,
    good_per_s: f64,
    refused_per_s: f64,
    failed_per_s: f64,
    p99_ms: Option<f64>,
    late: u64,
}

/// Counts by the second, shared with the progress display.
#[derive(Debug, Default)]
pub struct LiveStats {
    shared: Arc<Mutex<Snapshot>>,
    since: Duration,
    good: u64,
    refused: u64,
    failed: u64,
    late: u64,
    times: Times,
}

/// Histogram of the latencies of one second.
#[derive(Debug, Default)]
struct Times {
    counts: Vec<u32>,
    count: u32,
}

// === impl LiveStats ===

impl LiveStats {
    pub fn sent(&mut self, due: Duration, sent: Duration) {
        self.late += u64::from(sent.saturating_sub(due) > LATE);
    }

    pub fn good(&mut self, took: Duration) {
        self.good += 1;
        self.times.add(took);
    }

    pub fn refused(&mut self) {
        self.refused += 1;
    }

    pub fn failed(&mut self) {
        self.failed += 1;
    }

    pub fn tick(&mut self, now: Duration, in_flight: usize) {
        // The display holds the lock: it gets the next update, 100 ms later.
        let Ok(mut snapshot) = self.shared.try_lock() else { return };
        (snapshot.now, snapshot.in_flight, snapshot.late) = (now, in_flight, self.late);
        let passed = now.saturating_sub(self.since);
        if passed >= SECOND {
            let per_s = |count: &mut u64| std::mem::take(count) as f64 / passed.as_secs_f64();
            snapshot.good_per_s = per_s(&mut self.good);
            snapshot.refused_per_s = per_s(&mut self.refused);
            snapshot.failed_per_s = per_s(&mut self.failed);
            snapshot.p99_ms = self.times.p99_ms();
            self.times.clear();
            self.since = now;
        }
    }

    /// Draws these figures in the bar until the display is dropped.
    pub fn display(&self, bar: Bar, spans: Vec<PhaseSpan>) -> std::io::Result<ProgressDisplay> {
        let shared = Arc::clone(&self.shared);
        ProgressDisplay::start(bar, move || {
            let snapshot = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
            (snapshot.now, snapshot.text(&spans))
        })
    }
}

// === impl Snapshot ===

impl Snapshot {
    fn text(&self, spans: &[PhaseSpan]) -> String {
        let now_s = self.now.as_secs_f64();
        let phase = spans.iter().find(|span| now_s < span.until_s);
        let phase = phase.map_or("waiting for the last responses", |span| &*span.name);
        let mut text =
            format!("{phase}  {:.0} good/s  {:.0} refused/s", self.good_per_s, self.refused_per_s);
        if self.failed_per_s > 0.0 {
            text += &format!("  {:.0} failed/s", self.failed_per_s);
        }
        if let Some(p99_ms) = self.p99_ms {
            text += &format!("  p99 {p99_ms:.0} ms");
        }
        // Before the part that a narrow terminal cuts off: late sends put all other figures in doubt.
        if self.late > 0 {
            text += &format!("  {} late", self.late);
        }
        text + &format!("  {} in flight", self.in_flight)
    }
}

// === impl Times ===

impl Times {
    fn add(&mut self, time: Duration) {
        let us = u32::try_from(time.as_micros()).unwrap_or(u32::MAX).max(1 << PARTS);
        // The exponent and the next four bits.
        let power = us.ilog2();
        let at = ((power << PARTS) | ((us >> (power - PARTS)) & ((1 << PARTS) - 1))) as usize;
        if self.counts.is_empty() {
            self.counts = vec![0; 32 << PARTS];
        }
        self.counts[at] += 1;
        self.count += 1;
    }

    fn p99_ms(&self) -> Option<f64> {
        let mut beyond = self.count.checked_sub(1)? / 100;
        let found = self.counts.iter().enumerate().rev().find(|(_, count)| {
            let is_reached = **count > beyond;
            beyond = beyond.saturating_sub(**count);
            is_reached
        });
        let (power, part) = found.map(|(at, _)| (at >> PARTS, at & ((1 << PARTS) - 1)))?;
        let us = (1.0 + part as f64 / f64::from(1_u32 << PARTS)) * (1_u64 << power) as f64;
        Some(us / 1e3)
    }

    fn clear(&mut self) {
        self.counts.fill(0);
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_of_a_hundred_is_known_to_a_sixteenth() {
        let mut times = Times::default();
        assert_eq!(times.p99_ms(), None);
        for ms in 1..=1000 {
            times.add(Duration::from_millis(ms));
        }
        let p99_ms = times.p99_ms().unwrap();
        assert!((990.0 / 1.0625..=990.0).contains(&p99_ms), "{p99_ms}");
        times.clear();
        times.add(Duration::from_micros(1));
        assert_eq!(times.p99_ms(), Some(0.016));
        times.add(Duration::from_secs(100_000));
        assert!(times.p99_ms().unwrap() > 4e6);
    }

    #[test]
    fn rates_are_those_of_the_last_whole_second() {
        let mut live_stats = LiveStats::default();
        for ms in 0..500 {
            live_stats.good(Duration::from_millis(ms));
            live_stats.sent(Duration::ZERO, Duration::from_millis(ms));
        }
        live_stats.refused();
        live_stats.tick(Duration::from_millis(999), 7);
        assert_eq!(live_stats.shared.lock().unwrap().good_per_s, 0.0);
        live_stats.tick(Duration::from_secs(2), 7);
        let text = live_stats.shared.lock().unwrap().text(&[]);
        assert!(
            text.starts_with("waiting for the last responses  250 good/s  0 refused/s  p99 4"),
            "{text}"
        );
        assert!(text.ends_with("ms  498 late  7 in flight"), "{text}");
    }
}
