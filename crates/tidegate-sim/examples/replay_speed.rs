//! Speed of reading and of replaying a recording.
//!
//! `cargo run -p tidegate-sim --release --example replay_speed`

// How fast it is in real time is all that this asks of a clock; no decision sees it.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::fmt::Write as _;
use std::time::Instant;
use tidegate_sim::replay::{Recording, RecordingError, compare};

const REQUESTS: u64 = 1_000_000;

/// A million requests, 20,000 a second, of which about half were refused.
fn recorded() -> String {
    let mut text = String::from(
        r#"{"format":"tidegate-decisions","version":1,"limits":{"global":1000,"high":500,"normal":300,"low":200,"critical_reserve":100},"sharing":"strict"}"#,
    );
    let mut rng = 1_u64;
    for number in 0..REQUESTS {
        rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let priority = ["high", "normal", "low"][(rng >> 33) as usize % 3];
        let at_us = number * 50;
        let _ = match (rng >> 40).is_multiple_of(2) {
            true => write!(
                text,
                "\n{{\"at_us\":{at_us},\"priority\":\"{priority}\",\"client\":\"somebody\",\
                 \"decision\":\"admitted\",\"took_us\":{}}}",
                10_000 + (rng >> 44)
            ),
            false => write!(
                text,
                "\n{{\"at_us\":{at_us},\"priority\":\"{priority}\",\"decision\":\"priority_limit\"}}"
            ),
        };
    }
    text
}

fn main() -> Result<(), RecordingError> {
    let text = recorded();
    let start = Instant::now();
    let recording = Recording::read(&text)?;
    let read_s = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let settings = ["limits.low=100".parse().expect("it is a setting")];
    let comparison = compare(&recording, &settings, 1);
    let replayed_s = start.elapsed().as_secs_f64();
    print!("{comparison}");
    // As it was, with the same limits, and with others: each request is decided by the tracker twice.
    println!(
        "read {:.2} million requests a second; replayed {:.2} million decisions a second; both: {:.2}",
        REQUESTS as f64 / read_s / 1e6,
        2.0 * REQUESTS as f64 / replayed_s / 1e6,
        2.0 * REQUESTS as f64 / (read_s + replayed_s) / 1e6,
    );
    Ok(())
}
