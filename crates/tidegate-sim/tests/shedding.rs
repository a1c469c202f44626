//! Who is refused as the load rises.

use std::time::Duration;
use tidegate_core::admission::MessagePriority::{self, Critical, High, Low, Normal};
use tidegate_core::admission::Sharing;
use tidegate_sim::admission::{AdmissionScenario, PriorityReport, run};

const LOADS: [f64; 9] = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0];

/// As much of each priority, and some Critical. Each message takes a second on average.
fn even_load(load: f64, sharing: Sharing) -> AdmissionScenario {
    let each = 150.0 * load;
    AdmissionScenario {
        sharing,
        ..AdmissionScenario::steady([20.0, each, each, each], Duration::from_secs(30))
    }
}

fn refused_share(report: &PriorityReport) -> f64 {
    1.0 - report.at_once_share()
}

/// The least load at which more than one in a hundred is refused.
fn sheds_from(priority: MessagePriority, sharing: Sharing) -> f64 {
    let sheds = |&load: &f64| refused_share(run(&even_load(load, sharing)).of(priority)) > 0.01;
    LOADS.into_iter().find(sheds).unwrap_or(f64::INFINITY)
}

#[test]
fn low_is_refused_before_normal_before_high_as_load_rises() {
    for sharing in [Sharing::Strict, Sharing::Borrow] {
        let [low, normal, high] = [Low, Normal, High].map(|priority| sheds_from(priority, sharing));
        assert!(low < normal && normal < high, "{sharing:?}: {low} {normal} {high}");
    }
}

#[test]
fn at_every_load_low_fares_worst_and_critical_is_never_refused() {
    for sharing in [Sharing::Strict, Sharing::Borrow] {
        for load in LOADS {
            let report = run(&even_load(load, sharing));
            let [critical, high, normal, low] =
                MessagePriority::ALL.map(|priority| refused_share(report.of(priority)));
            assert_eq!(critical, 0.0, "{sharing:?} {load}");
            assert!(low >= normal && normal >= high, "{sharing:?} {load}: {low} {normal} {high}");
        }
    }
}

/// In the origin's own code 1,000 Critical in flight keep everything else out.
#[test]
fn a_thousand_critical_a_second_do_not_block_the_rest() {
    // 700 others in flight on average, of the 900 that the reserve leaves.
    let arrivals = [1000.0, 400.0, 240.0, 60.0];
    let report = run(&AdmissionScenario::steady(arrivals, Duration::from_secs(60)));
    assert!(report.of(Critical).in_flight_max >= 1000);
    for priority in [High, Normal, Low] {
        let share = report.of(priority).at_once_share();
        assert!(share > 0.999, "{priority}: {share}");
    }
}

/// The simulator against a result that is a century old: with Poisson arrivals and `c` places, Erlang's formula
/// B gives the share that is refused.
#[test]
fn the_share_of_low_that_is_refused_is_erlang_s() {
    for arrivals_per_s in [180.0, 225.0, 600.0] {
        let scenario =
            AdmissionScenario::steady([0.0, 0.0, 0.0, arrivals_per_s], Duration::from_secs(1000));
        let report = run(&scenario);
        let low = report.of(Low);
        let expected = erlang_b(200, arrivals_per_s);
        // Refusals come in bunches about as long as a message takes, one second here: of a thousand seconds
        // a thousand are independent, whatever the arrivals. Five standard errors of those.
        let tolerance = 5.0 * (expected * (1.0 - expected) / 1000.0).sqrt();
        let share = refused_share(low);
        assert!((share - expected).abs() < tolerance, "{arrivals_per_s}: {share}, not {expected}");
    }
}

/// By the usual recursion over the number of places.
fn erlang_b(places: u32, load: f64) -> f64 {
    (1..=places).fold(1.0, |blocked, n| load * blocked / (f64::from(n) + load * blocked))
}
