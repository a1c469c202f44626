//! Speed and accuracy of the load generator, against any server that responds on `/`:
//!
//! `cargo run --release -p tidegate-testkit --example generator_speed -- http://127.0.0.1:8080 --rate 10000`
//!
//! With `--rate` requests are evenly spaced. Without it each connection sends its next request after the last
//! response, which shows the capacity of one core. `bench/generator.py` compares it with other tools.

use hdrhistogram::Histogram;
use std::time::Duration;
use tidegate_testkit::generator::{
    Answer, Driver, GeneratorConfig, Protocol, ScheduleStats, ScheduledRequest, Template, run,
};

/// Driver that sends for a fixed time and measures latency from the due time.
struct Speed {
    rate: Option<f64>,
    at_once: usize,
    until: Duration,
    number: u64,
    ok: u64,
    failed: u64,
    latency_us: Histogram<u64>,
}

struct Options {
    config: GeneratorConfig,
    rate: Option<f64>,
    seconds: f64,
}

// === impl Speed ===

impl Driver for Speed {
    fn next(&mut self) -> Option<ScheduledRequest> {
        let due = match self.rate {
            Some(rate) => Duration::from_secs_f64(self.number as f64 / rate),
            None if self.number >= self.at_once as u64 => return None,
            None => Duration::ZERO,
        };
        self.number += 1;
        (due < self.until).then(|| ScheduledRequest::new(due, 0, self.number))
    }

    fn ended(
        &mut self,
        mut scheduled: ScheduledRequest,
        answer: &Answer<'_>,
    ) -> Option<ScheduledRequest> {
        let latency = answer.at - scheduled.due;
        self.latency_us.saturating_record(latency.as_micros() as u64);
        match answer.result {
            Ok(head) if head.status.is_success() => self.ok += 1,
            _ => self.failed += 1,
        }
        scheduled.due = answer.at;
        (self.rate.is_none() && scheduled.due < self.until).then_some(scheduled)
    }
}

impl Speed {
    fn print(&self, schedule: &ScheduleStats) {
        let ms = |quantile| self.latency_us.value_at_quantile(quantile) as f64 / 1e3;
        let figures = serde_json::json!({
            "requests": self.ok,
            "failed": self.failed,
            "seconds": self.until.as_secs_f64(),
            "p50_ms": ms(0.5),
            "p90_ms": ms(0.9),
            "p99_ms": ms(0.99),
            "error_p50_ms": schedule.error_p50_ms,
            "error_p99_ms": schedule.error_p99_ms,
            "error_max_ms": schedule.error_max_ms,
            "own_error_p99_ms": schedule.own_error_p99_ms,
            "late": schedule.late,
            "no_connection": schedule.no_connection,
            "unsent": schedule.unsent,
            "not_connected": schedule.not_connected,
            "connections": schedule.connections_max,
        });
        println!("RESULT {figures}");
    }
}

fn options() -> Result<Options, Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let target = args.next().ok_or("expected http://host:port")?;
    let mut config = GeneratorConfig::new(target.parse()?);
    config.connections_max = 64;
    let mut options = Options { config, rate: None, seconds: 3.0 };
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "--rate" => options.rate = Some(value()?.parse()?),
            "--seconds" => options.seconds = value()?.parse()?,
            "--connections" => options.config.connections_max = value()?.parse()?,
            "--streams" => options.config.streams_max = value()?.parse()?,
            "--busy-wait-us" => options.config.busy_wait = Duration::from_micros(value()?.parse()?),
            "--http2" => options.config.protocol = Protocol::Http2,
            _ => return Err(format!("unknown: {flag}").into()),
        }
    }
    Ok(options)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Options { config, rate, seconds } = options()?;
    let streams = if config.protocol == Protocol::Http2 { config.streams_max } else { 1 };
    let speed = Speed {
        rate,
        at_once: config.connections_max * streams,
        until: Duration::from_secs_f64(seconds),
        number: 0,
        ok: 0,
        failed: 0,
        latency_us: Histogram::new_with_bounds(1, 3_600_000_000, 3)?,
    };
    let (speed, schedule) = run(config, vec![Template::get("/")], speed)?;
    speed.print(&schedule);
    Ok(())
}
