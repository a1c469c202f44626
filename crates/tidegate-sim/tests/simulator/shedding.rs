//! Admission as the load rises: which priorities are refused, and how many.

use tidegate_core::admission::MessagePriority::Critical;
use tidegate_sim::gateway::{AdmissionSummary, simulate_with_admission};
use tidegate_sim::report::Findings;
use tidegate_sim::scenario::{Scenario, What};

const LOADS: [f64; 9] = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0];

const PRIORITIES: [&str; 4] = ["critical", "high", "normal", "low"];

/// Requests of each priority a second, most urgent first, that take a second each on average. Only the limits
/// bind: the upstream has more slots than they let in.
fn run(per_s: [f64; 4], sharing: &str, duration_s: u32) -> (Findings, AdmissionSummary) {
    let mut text = format!(
        r#"
        about = "Admission limits alone."
        duration_s = {duration_s}
        settle_s = 5
        upstreams = {{ count = 1, slots = 1000, queue = 1 }}
        [gateway]
        limits = {{ global = 1000, high = 500, normal = 300, low = 200 }}
        sharing = "{sharing}"
        "#
    );
    for (priority, per_s) in PRIORITIES.into_iter().zip(per_s).filter(|(_, per_s)| *per_s > 0.0) {
        text += &format!(
            r#"
            [[class]]
            name = "{priority}"
            priority = "{priority}"
            per_s = {per_s}
            service = {{ kind = "exponential", ms = 1000 }}
            "#
        );
    }
    let scenario = Scenario::read("limits", &text).unwrap_or_else(|error| panic!("{error}"));
    simulate_with_admission(&scenario, 1, None).unwrap_or_else(|violation| panic!("{violation}"))
}

/// The same load of each priority, and some Critical.
fn even_load(load: f64, sharing: &str) -> Findings {
    let each = 150.0 * load;
    run([20.0, each, each, each], sharing, 35).0
}

fn refused_share(findings: &Findings, priority: &str) -> f64 {
    let of = format!("priority:{priority}");
    findings.value(What::RefusedShare, &of, None).expect("some were offered")
}

#[test]
fn low_is_refused_before_normal_before_high_and_critical_never() {
    for sharing in ["strict", "borrow"] {
        let mut sheds_from = [f64::INFINITY; 4];
        for load in LOADS.into_iter().rev() {
            let findings = even_load(load, sharing);
            let refused = PRIORITIES.map(|priority| refused_share(&findings, priority));
            let [critical, high, normal, low] = refused;
            assert_eq!(critical, 0.0, "{sharing} {load}");
            assert!(low >= normal && normal >= high, "{sharing} {load}: {low} {normal} {high}");
            for (from, refused) in sheds_from.iter_mut().zip(refused) {
                if refused > 0.01 {
                    *from = load;
                }
            }
        }
        let [_, high, normal, low] = sheds_from;
        assert!(low < normal && normal < high, "{sharing}: from {low}, {normal} and {high} on");
    }
}

/// In the origin's own code 1,000 Critical in flight keep everything else out.
#[test]
fn a_thousand_critical_a_second_do_not_block_the_rest() {
    // 700 others in flight on average, of the 900 that the reserve leaves.
    let (findings, admission) = run([1000.0, 400.0, 240.0, 60.0], "strict", 65);
    assert!(admission.of(Critical).in_flight_max >= 1000);
    let of = |what, priority: &str| findings.value(what, &format!("priority:{priority}"), None);
    assert_eq!(of(What::GoodputOfOffered, "critical"), Some(1.0));
    // By Little's law 1,000 a second for a second each are 1,000 in flight.
    let took_ms = of(What::LatencyMeanMs, "critical").expect("they are answered");
    assert!((took_ms - 1000.0).abs() < 50.0, "{took_ms}");
    for priority in ["high", "normal", "low"] {
        let share = 1.0 - refused_share(&findings, priority);
        assert!(share > 0.999, "{priority}: {share}");
    }
}

/// With Poisson arrivals and `c` slots, Erlang's formula B gives the share that is refused.
#[test]
fn the_share_of_low_that_is_refused_is_erlang_s() {
    for per_s in [180.0, 225.0, 600.0] {
        let (findings, _) = run([0.0, 0.0, 0.0, per_s], "strict", 1005);
        let expected = erlang_b(200, per_s);
        // Refusals come in bunches about as long as a request takes, one second here: of a thousand seconds
        // a thousand are independent, whatever the arrivals. Five standard errors of those.
        let tolerance = 5.0 * (expected * (1.0 - expected) / 1000.0).sqrt();
        let share = refused_share(&findings, "low");
        assert!((share - expected).abs() < tolerance, "{per_s}: {share}, not {expected}");
    }
}

/// By the usual recursion over the number of slots.
fn erlang_b(slots: u32, load: f64) -> f64 {
    (1..=slots).fold(1.0, |blocked, n| load * blocked / (f64::from(n) + load * blocked))
}
