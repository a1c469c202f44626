//! How a drill of a gateway goes at present.

use crate::commands::drill::bar::Bar;
use crate::commands::drill::screen::Screen;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_sim::scenario::PhaseSpan;

const SECOND: Duration = Duration::from_secs(1);
/// What is sent later than this is late.
const LATE: Duration = Duration::from_millis(1);
/// Parts of a power of two that are told apart: to a sixteenth.
const PARTS: u32 = 4;

/// How it goes at present.
#[derive(Clone, Debug, Default)]
struct Glance {
    now: Duration,
    in_flight: usize,
    good_per_s: f64,
    refused_per_s: f64,
    failed_per_s: f64,
    p99_ms: Option<f64>,
    late: u64,
}

/// Counts for the eye, by the second.
#[derive(Debug, Default)]
pub struct Live {
    shared: Arc<Mutex<Glance>>,
    since: Duration,
    good: u64,
    refused: u64,
    failed: u64,
    late: u64,
    times: Times,
}

/// Times of a second, by their size.
#[derive(Debug, Default)]
struct Times {
    counts: Vec<u32>,
    count: u32,
}

// === impl Live ===

impl Live {
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
        // Whoever draws at this moment draws the next one's a tenth of a second later.
        let Ok(mut glance) = self.shared.try_lock() else { return };
        (glance.now, glance.in_flight, glance.late) = (now, in_flight, self.late);
        let passed = now.saturating_sub(self.since);
        if passed >= SECOND {
            let per_s = |count: &mut u64| std::mem::take(count) as f64 / passed.as_secs_f64();
            glance.good_per_s = per_s(&mut self.good);
            glance.refused_per_s = per_s(&mut self.refused);
            glance.failed_per_s = per_s(&mut self.failed);
            glance.p99_ms = self.times.p99_ms();
            self.times.clear();
            self.since = now;
        }
    }

    /// Shows it in this bar.
    pub fn screen(&self, bar: Bar, spans: Vec<PhaseSpan>) -> std::io::Result<Screen> {
        let shared = Arc::clone(&self.shared);
        Screen::start(bar, move || {
            let glance = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
            (glance.now, glance.text(&spans))
        })
    }
}

// === impl Glance ===

impl Glance {
    fn text(&self, spans: &[PhaseSpan]) -> String {
        let now_s = self.now.as_secs_f64();
        let phase = spans.iter().find(|span| now_s < span.until_s);
        let phase = phase.map_or("the last answers", |span| &*span.name);
        let mut text =
            format!("{phase}  {:.0} good/s  {:.0} refused/s", self.good_per_s, self.refused_per_s);
        if self.failed_per_s > 0.0 {
            text += &format!("  {:.0} failed/s", self.failed_per_s);
        }
        if let Some(p99_ms) = self.p99_ms {
            text += &format!("  p99 {p99_ms:.0} ms");
        }
        // Before what may be cut off where a terminal is narrow: it is a doubt of all the rest.
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
        // The power of two that it reaches, and its next four bits.
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
            let is_it = **count > beyond;
            beyond = beyond.saturating_sub(**count);
            is_it
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
    fn a_second_is_told_when_it_is_over() {
        let mut live = Live::default();
        for ms in 0..500 {
            live.good(Duration::from_millis(ms));
            live.sent(Duration::ZERO, Duration::from_millis(ms));
        }
        live.refused();
        live.tick(Duration::from_millis(999), 7);
        assert_eq!(live.shared.lock().unwrap().good_per_s, 0.0);
        live.tick(Duration::from_secs(2), 7);
        let text = live.shared.lock().unwrap().text(&[]);
        assert!(text.starts_with("the last answers  250 good/s  0 refused/s  p99 4"), "{text}");
        assert!(text.ends_with("ms  498 late  7 in flight"), "{text}");
    }
}
