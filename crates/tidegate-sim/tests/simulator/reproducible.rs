//! Independent streams of random numbers, and fixed times that are fixed. `gateway.rs` compares whole reports.

use tidegate_sim::report::Findings;
use tidegate_sim::scenario::{Scenario, What};
use tidegate_sim::simulate;

/// Three priorities in four phases, with clients that come back.
fn run(low_per_s: f64) -> Findings {
    let mut text = r#"
        about = "Three priorities."
        duration_s = 20
        upstreams = { count = 2, slots = 100, queue = 50 }
        phase = [{ name = "calm", load = 0.5 }, { name = "flood", load = 4 }, { name = "none", load = 0 }, { name = "end" }]
        gateway = { sharing = "borrow", limits = { global = 200, high = 100, normal = 60, low = 40 } }
        "#
    .to_owned();
    for (priority, per_s) in [("high", 500.0), ("normal", 300.0), ("low", low_per_s)] {
        text += &format!(
            r#"
            [[class]]
            name = "{priority}"
            priority = "{priority}"
            per_s = {per_s}
            service = {{ kind = "exponential", ms = 200 }}
            retry = {{ times = 3, wait = "told" }}
            "#
        );
    }
    let scenario = Scenario::read("three", &text).unwrap_or_else(|error| panic!("{error}"));
    simulate(&scenario, 7, None).unwrap_or_else(|violation| panic!("{violation}"))
}

/// The requests of a class that were offered, by slice of time.
fn offered(findings: &Findings, class: &str) -> Vec<String> {
    let rows = findings.tables.iter().flat_map(|table| &table.rows);
    let of_class = rows.filter(|row| row.get(1).is_some_and(|cell| cell.to_string() == class));
    of_class.filter(|row| row.len() > 5).map(|row| row[2].to_string()).collect()
}

#[test]
fn more_requests_of_one_class_do_not_shift_the_arrivals_of_another() {
    let (base, more_low) = (run(200.0), run(250.0));
    for class in ["high", "normal", "low"] {
        let (base, more_low) = (offered(&base, class), offered(&more_low, class));
        assert_eq!(base.len(), 3, "{class} comes in three of four phases");
        assert_eq!(base == more_low, class != "low", "{class}: {base:?} {more_low:?}");
    }
}

#[test]
fn fixed_times_are_fixed() {
    let text = r#"
        about = "100 a second of 10 ms each."
        duration_s = 10
        upstreams = { count = 1, slots = 100, queue = 1 }
        class = [{ name = "a", per_s = 100, service = { kind = "fixed", ms = 10 } }]
    "#;
    let scenario = Scenario::read("fixed", text).unwrap_or_else(|error| panic!("{error}"));
    let findings = simulate(&scenario, 1, None).unwrap_or_else(|violation| panic!("{violation}"));
    let value = |what| findings.value(what, "all", None).unwrap_or(0.0);
    assert_eq!(value(What::GoodputOfOffered), 1.0);
    for what in [What::LatencyMeanMs, What::LatencyP50Ms, What::LatencyP99Ms] {
        assert!((value(what) - 10.0).abs() < 0.1, "{what}: {}", value(what));
    }
}
