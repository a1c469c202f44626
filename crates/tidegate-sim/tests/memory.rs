//! Bounded memory of the recorder, whatever the load. Alone in its process: it measures the whole process.

#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::time::Duration;
use tidegate_sim::measure::{Attempt, Ended, How, Recorder};
use tidegate_sim::scenario::Scenario;

/// The promised bound.
const BYTES_MAX: u64 = 256 << 20;

const CLASSES: u16 = 32;
const PHASES: u16 = 8;
const DURATION_S: u64 = 600;

/// As many classes, phases and stretches of time as there may be, and upstreams that are healthy and not.
fn largest() -> Scenario {
    let mut text = format!(
        "about = \"all there may be\"\nduration_s = {DURATION_S}\n\
         upstreams = {{ count = 2, slots = 4, queue = 4 }}\n\
         fault = [{{ kind = \"slow\", factor = 2, at = [0], from_s = 1, until_s = 2 }}]\n"
    );
    for class in 0..CLASSES {
        let _ = writeln!(
            text,
            "[[class]]\nname = \"c{class}\"\nper_s = 1\nservice = {{ kind = \"fixed\", ms = 1 }}"
        );
    }
    for phase in 0..PHASES {
        let _ = writeln!(text, "[[phase]]\nname = \"p{phase}\"");
    }
    Scenario::read("largest", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process has a status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("with its size");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("in kB");
    kib << 10
}

#[test]
fn what_is_measured_is_bounded_by_the_scenario() {
    let scenario = largest();
    let reasons: Vec<_> = (0..40).map(|number| format!("reason_{number}")).collect();
    let before = resident_bytes();
    let mut recorder = Recorder::new(&scenario);
    for tenth in 0..DURATION_S * 10 {
        let due = Duration::from_millis(tenth * 100);
        for class in 0..CLASSES {
            for reason in &reasons {
                recorder.attempt(due, class, Attempt::Refused(reason));
            }
            // From a microsecond to half an hour.
            let at = due + Duration::from_micros(1 << ((tenth + u64::from(class)) % 31));
            for upstream in [Some(0), Some(1)] {
                recorder.due(due, class);
                recorder.ended(&Ended { due, at, class, upstream, how: How::Good });
            }
        }
    }
    let used = resident_bytes().saturating_sub(before);
    assert!(used <= BYTES_MAX, "{} MiB", used >> 20);
    // It was really filled: all of its stretches have what they need.
    assert!(used >= 100 << 20, "only {} MiB", used >> 20);
    drop(recorder);
}
