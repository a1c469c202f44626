use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write as _};
use std::time::{Duration, Instant};
use tidegate::client::ClientStats;
use tidegate::signal::BackpressureLevel;

/// Interval of progress lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Weight of a new sample in the rate; with ten samples per second the rate follows within a second.
const RATE_WEIGHT: f64 = 0.1;

/// Progress of a transfer: a bar on a terminal, else a line every 10 s.
pub struct Progress {
    view: View,
    started: Instant,
    bytes_total: Option<u64>,
    rate: Rate,
    server: String,
}

enum View {
    Bar(ProgressBar),
    Lines { last: Instant },
    Nothing,
}

/// Acknowledged records per second.
#[derive(Default)]
struct Rate {
    last: Option<(Instant, u64)>,
    per_s: f64,
}

// === impl Progress ===

impl Progress {
    pub fn new(quiet: bool, bytes_total: Option<u64>, server: &str) -> Self {
        let started = Instant::now();
        let view = match quiet {
            true => View::Nothing,
            false if io::stderr().is_terminal() => View::Bar(bar(bytes_total)),
            false => View::Lines { last: started },
        };
        let (rate, server) = (Rate::default(), server.to_owned());
        Self { view, started, bytes_total, rate, server }
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Updates the display; to be called ten times a second.
    pub fn show(&mut self, bytes: u64, stats: &ClientStats) {
        self.rate.observe(Instant::now(), stats.records_acked + stats.records_known);
        let text = self.text(stats);
        match &mut self.view {
            View::Bar(bar) => {
                bar.set_position(bytes);
                bar.set_message(text);
                bar.tick();
            }
            View::Lines { last } if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                let of = self.bytes_total.map(|total| format!(" of {}", HumanBytes(total)));
                let read = format!("{}{} read", HumanBytes(bytes), of.unwrap_or_default());
                self.say(&format!("{read}, {text}"));
            }
            View::Lines { .. } | View::Nothing => {}
        }
    }

    /// Prints a line above the bar.
    pub fn say(&self, line: &str) {
        let print = || {
            // A closed standard error is no reason to stop.
            let _ = writeln!(io::stderr(), "tidegate: {line}");
        };
        match &self.view {
            View::Bar(bar) => bar.suspend(print),
            View::Lines { .. } | View::Nothing => print(),
        }
    }

    pub fn finish(&self) {
        if let View::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
    }

    fn text(&self, stats: &ClientStats) -> String {
        let acked = HumanCount(stats.records_acked + stats.records_known);
        let mut text = format!("{} records/s, {acked} acked", HumanCount(self.rate.per_s as u64));
        let level = stats.signal.level;
        if !stats.connected {
            let server = &self.server;
            match &stats.last_trouble {
                Some(trouble) => text += &format!(", waiting for {server}: {trouble}"),
                None => text += &format!(", connecting to {server}"),
            }
        } else if level > BackpressureLevel::None {
            text += &format!(", throttled by the server ({level})");
        }
        text
    }
}

fn bar(bytes_total: Option<u64>) -> ProgressBar {
    let template = match bytes_total {
        Some(_) => "{bar:24} {bytes}/{total_bytes} {wide_msg}",
        None => "{spinner} {bytes} {wide_msg}",
    };
    // Drawn on request, at most ten times a second.
    let bar = ProgressBar::with_draw_target(bytes_total, ProgressDrawTarget::stderr_with_hz(10));
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

// === impl Rate ===

impl Rate {
    fn observe(&mut self, now: Instant, total: u64) {
        if let Some((at, before)) = self.last {
            let seconds = now.duration_since(at).as_secs_f64().max(1e-3);
            let per_s = total.saturating_sub(before) as f64 / seconds;
            self.per_s += RATE_WEIGHT * (per_s - self.per_s);
        }
        self.last = Some((now, total));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::signal::BackpressureSignal;

    #[test]
    fn the_text_names_the_cause_of_a_wait() {
        let progress = Progress::new(true, None, "db:7070");
        let mut stats = ClientStats { records_acked: 1_234_567, ..ClientStats::default() };
        assert!(progress.text(&stats).ends_with("1,234,567 acked, connecting to db:7070"));
        stats.connected = true;
        assert!(progress.text(&stats).ends_with("1,234,567 acked"));
        let level = BackpressureLevel::Batch;
        stats.signal = BackpressureSignal { level, ..BackpressureSignal::CLEAR };
        assert!(progress.text(&stats).ends_with("throttled by the server (BATCH)"));
    }

    #[test]
    fn the_rate_follows_what_is_acknowledged() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        for tenth in 0..100_u32 {
            rate.observe(start + Duration::from_millis(100) * tenth, u64::from(tenth) * 500);
        }
        assert!((4_990.0..=5_000.0).contains(&rate.per_s), "{}", rate.per_s);
    }
}
