//! Whether those who come back when they were told to are told the truth.

use std::time::Duration;
use tidegate_core::admission::MessagePriority::Low;
use tidegate_core::admission::PriorityLimits;
use tidegate_sim::admission::{AdmissionScenario, Phase, PriorityReport, ServiceTime, run};

/// Places of Low over their mean time: 20 / 100 ms.
const CAPACITY_PER_S: f64 = 200.0;
const OVERLOAD: f64 = 3.0;

/// Low alone, at these multiples of what it has capacity for.
fn loads(phases: &[(u64, f64)], returns_max: u32) -> AdmissionScenario {
    let phases = phases.iter();
    AdmissionScenario {
        limits: PriorityLimits { low: 20, ..PriorityLimits::default() },
        service: ServiceTime::Exponential(Duration::from_millis(100)),
        phases: phases
            .map(|&(seconds, load)| Phase { duration: Duration::from_secs(seconds), load })
            .collect(),
        returns_max,
        ..AdmissionScenario::steady([0.0, 0.0, 0.0, CAPACITY_PER_S], Duration::ZERO)
    }
}

fn low(scenario: &AdmissionScenario) -> PriorityReport {
    run(scenario).of(Low).clone()
}

/// Five standard errors of a share `p` among `n`.
fn tolerance(p: f64, n: u64) -> f64 {
    5.0 * (p * (1.0 - p) / n as f64).sqrt()
}

/// The chance of each attempt at a steady load of `x` capacities when everyone comes back once: attempts are
/// A = x + x(1 − p) capacities, of which one gets in, so p·A = 1, or x·p² − 2x·p + 1 = 0.
fn chance_with_one_return(x: f64) -> f64 {
    1.0 - (1.0 - 1.0 / x).sqrt()
}

#[test]
fn the_advice_is_how_long_the_refused_work_of_a_second_takes() {
    let report = low(&loads(&[(200, OVERLOAD)], 1));
    // Refused a second over done a second: (A − 1) / 1 = 1/p − 1.
    let expected_ms = 1000.0 * (1.0 / chance_with_one_return(OVERLOAD) - 1.0);
    let p50_ms = report.advised_wait.expect("many were refused").p50_ms as f64;
    // The advisor remembers two seconds of 200 completions each: 400 give 1/√400, 5 %; twice that.
    assert!((p50_ms / expected_ms - 1.0).abs() < 0.1, "{p50_ms}, not {expected_ms}");
}

#[test]
fn who_comes_back_as_told_fares_no_worse_than_who_is_new() {
    let report = low(&loads(&[(200, OVERLOAD)], 1));
    // Spread out, those who return see the same system as new ones do, and have the same chance.
    let expected = chance_with_one_return(OVERLOAD);
    let share = report.first_return_share();
    let tolerance = tolerance(expected, report.returned);
    assert!((share - expected).abs() < tolerance, "{share}, not {expected} ± {tolerance}");
}

/// Why advice is spread: when it falls, those who were told more and those who were told less later come back
/// at the same time.
#[test]
fn the_same_advice_for_all_brings_them_back_in_herds() {
    let spread = loads(&[(200, OVERLOAD)], 1);
    let same = AdmissionScenario { spread: false, ..spread.clone() };
    let (spread, same) = (low(&spread), low(&same));
    let tolerance = tolerance(spread.first_return_share(), spread.returned);
    assert!(same.first_return_share() < spread.first_return_share() - tolerance);
}

/// Nobody ever gives up, so the crowd that waits grows by a = (x − 1)·r a second. Told W = s/r by s refusals a
/// second, N waiting clients make N/W returns a second: s = a + N·r/s, with N = a·t. So the attempts grow with
/// the root of the crowd, not with the crowd.
#[test]
fn a_crowd_that_never_gives_up_is_kept_from_storming() {
    let duration_s = 120;
    let report = low(&loads(&[(duration_s, OVERLOAD)], u32::MAX));
    let (r, a) = (CAPACITY_PER_S, (OVERLOAD - 1.0) * CAPACITY_PER_S);
    let refused_per_s = |t: f64| a / 2.0 + (a * a / 4.0 + a * r * t).sqrt();
    let most: f64 =
        (0..duration_s * 10).map(|tick| refused_per_s(tick as f64 / 10.0 + 0.05) / 10.0).sum();
    let refused = report.refused_total() as f64;
    assert!(refused <= most, "{refused} refusals, more than {most}");
    // And nothing of the capacity is lost to the waiting: what was done is all but what the first moments miss.
    assert!(report.goodput_per_s > 0.98 * CAPACITY_PER_S, "{}", report.goodput_per_s);
}

#[test]
fn when_the_load_falls_below_capacity_the_advice_falls_to_the_minimum() {
    // The last who were refused are back after 1.5 × 4.4 s; 890 refusals a second are then forgotten to less
    // than one within 2 s · ln 890 = 14 s; 100 completions a second make a wait of 10 ms, below the minimum.
    let report = low(&loads(&[(60, OVERLOAD), (30, 0.5)], 1));
    assert_eq!(report.advice_at_end_ms, 50);
}

#[test]
fn a_crowd_is_worked_off_once_the_load_allows_it() {
    // 10 s leave 4,000 waiting; half of the capacity is theirs, which takes 40 s, and 14 s more to forget.
    let report = low(&loads(&[(10, OVERLOAD), (80, 0.5)], u32::MAX));
    assert_eq!(report.waiting_at_end, 0);
    assert_eq!(report.advice_at_end_ms, 50);
}

#[test]
fn idleness_is_not_taken_for_slowness() {
    let report = low(&loads(&[(10, 0.5), (600, 0.0), (1, OVERLOAD)], 0));
    // At most 400 refused in that second over the 100 a second last seen to come free, and half as much again
    // by the spread.
    let max_ms = report.advised_wait.expect("a second of overload refuses").max_ms;
    assert!(max_ms <= 6000, "{max_ms}");
}
