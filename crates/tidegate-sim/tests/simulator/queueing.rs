//! Known queueing theory: a simulator that misses it can't be believed in anything else.

use tidegate_sim::scenario::{Scenario, What};
use tidegate_sim::simulate;

/// No concurrency limit.
const OFF: &str = "\"off\"";

/// The share of arrivals that find all of `servers` busy, offered `load` erlangs, without a queue.
fn erlang_b(servers: u32, load: f64) -> f64 {
    (1..=servers).fold(1.0, |lost, n| load * lost / (f64::from(n) + load * lost))
}

/// The share of arrivals that have to wait where they may.
fn erlang_c(servers: u32, load: f64) -> f64 {
    let (lost, used) = (erlang_b(servers, load), load / f64::from(servers));
    lost / (1.0 - used * (1.0 - lost))
}

/// One upstream behind a gateway, which sends it at most `outstanding` requests at once; High leaves nothing of a
/// limit to anybody.
fn scenario(limit: u32, outstanding: &str, slots: u32, per_s: f64, service: &str) -> Scenario {
    let text = format!(
        r#"
        about = "One upstream."
        duration_s = 1000
        settle_s = 5
        gateway = {{ limits = {{ global = {limit}, high = 0, normal = 0, low = 0 }}, limit = {outstanding} }}
        upstreams = {{ count = 1, slots = {slots}, queue = 10000 }}
        [[class]]
        name = "all of it"
        priority = "high"
        per_s = {per_s}
        service = {service}
        "#
    );
    Scenario::read("theory", &text).expect("it is valid")
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= expected * 0.03, "{what}: {found} is not {expected}");
}

#[test]
fn the_loss_at_a_limit_is_erlang_s() {
    // The formula does not depend on how service times are spread, only on their mean.
    let (exponential, fixed) =
        (r#"{ kind = "exponential", ms = 100 }"#, r#"{ kind = "fixed", ms = 100 }"#);
    for (load, service) in [(16.0, exponential), (20.0, fixed), (40.0, exponential)] {
        let findings = simulate(&scenario(20, OFF, 20, load * 10.0, service), 1, None)
            .expect("no invariant breaks");
        let lost = findings.value(What::RefusedShare, "all", None).unwrap_or(0.0);
        assert_near(lost, erlang_b(20, load), &format!("{load} erlangs, {service}"));
    }
}

/// The same in the upstream's own queue, and in the queue of the gateway for an upstream at its limit. There the
/// load is lower: at 0.9 one in a hundred would wait longer than the four services that are worth it.
#[test]
fn the_wait_for_a_slot_is_erlang_s() {
    let (slots, mean_s) = (10, 0.1);
    for (outstanding, used) in [(OFF, 0.7), (OFF, 0.9), ("10", 0.7), ("10", 0.8)] {
        let per_s = f64::from(slots) / mean_s * used;
        let service = r#"{ kind = "exponential", ms = 100 }"#;
        let findings = simulate(&scenario(10_000, outstanding, slots, per_s, service), 2, None)
            .expect("no invariant breaks");
        let wait_s = erlang_c(slots, per_s * mean_s) / (f64::from(slots) / mean_s - per_s);
        let latency_ms = findings.value(What::LatencyMeanMs, "all", None).unwrap_or(0.0);
        assert_near(latency_ms, (mean_s + wait_s) * 1e3, &format!("{used}, limit {outstanding}"));
    }
}
