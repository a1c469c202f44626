//! Clients and upstreams do in virtual time what they do in a drill.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use tidegate_sim::report::{Cell, Findings};
use tidegate_sim::scenario::{Scenario, What};
use tidegate_sim::simulate;

fn run(text: &str) -> Findings {
    let scenario = Scenario::read("one", text).unwrap_or_else(|error| panic!("{error}"));
    simulate(&scenario, 1, None).unwrap_or_else(|violation| panic!("{violation}"))
}

fn good(findings: &Findings, phase: Option<&str>) -> f64 {
    findings.value(What::GoodputOfOffered, "all", phase).unwrap()
}

/// Ten times what one upstream can do for five seconds, and clients who come back for a long time.
#[test]
fn nobody_comes_back_when_the_load_is_over() {
    let findings = run(r#"
        about = "who is refused late would come back after the end"
        duration_s = 5
        arrivals = "even"
        gateway = { limits = { global = 2, high = 0, normal = 0, low = 0 } }
        upstreams = { count = 1, slots = 1, queue = 1 }
        [[class]]
        name = "a"
        per_s = 100
        service = { kind = "fixed", ms = 100 }
        retry = { times = 5, wait = "backoff", base_ms = 4000 }
    "#);
    // 50 can be done in that time, and 2 are under way at its end.
    assert!(good(&findings, None) * 500.0 <= 52.5, "{}", good(&findings, None) * 500.0);
}

/// Requests that began before the network cut are executed, and their responses are lost.
#[test]
fn no_answer_of_an_upstream_arrives_while_it_is_cut_off() {
    let findings = run(r#"
        about = "work of a second, and a cut before the first is done"
        duration_s = 10
        arrivals = "even"
        upstreams = { count = 1, slots = 40, queue = 4 }
        phase = [{ name = "before" }, { name = "cut", part = 8 }, { name = "after" }]
        fault = [{ kind = "cut", from_s = 0.9, until_s = 8.9 }]
        [[class]]
        name = "a"
        per_s = 20
        service = { kind = "fixed", ms = 950 }
        deadline_ms = 1500
    "#);
    assert_eq!(good(&findings, Some("before")), 0.0);
    assert_eq!(good(&findings, Some("after")), 1.0);
}

#[test]
fn an_upstream_that_is_full_is_called_as_in_a_drill() {
    let findings = run(r#"
        about = "more than one place has room for"
        duration_s = 2
        upstreams = { count = 1, slots = 1, queue = 0 }
        class = [{ name = "a", share = 4, service = { kind = "fixed", ms = 50 } }]
    "#);
    let mut cells = findings.tables.iter().flat_map(|table| table.rows.iter().flatten());
    assert!(cells.any(|cell| *cell == Cell::Text("upstream_overloaded".to_owned())));
}

/// The longer of two faults goes on when the shorter one is over.
#[test]
fn faults_of_one_kind_may_overlap() {
    let goodput = |faults: &str| {
        let findings = run(&format!(
            r#"
            about = "an upstream that is dead twice at once"
            duration_s = 10
            upstreams = {{ count = 1, slots = 8, queue = 8 }}
            phase = [{{ name = "first" }}, {{ name = "second" }}]
            class = [{{ name = "a", share = 0.5, service = {{ kind = "fixed", ms = 50 }} }}]
            fault = [{faults}]
            "#
        ));
        good(&findings, Some("second"))
    };
    let long = "{ kind = \"dead\", from_s = 1, until_s = 9.9 }";
    let short = "{ kind = \"dead\", from_s = 2, until_s = 4 }";
    assert_eq!(goodput(&format!("{long}, {short}")), goodput(long));
    assert_eq!(goodput(&format!("{short}, {long}")), goodput(long));
    assert!(goodput(short) > 0.99);
}

/// The control plane shares the gateway's processor: a flood whose refusals were dear would stand in its way.
#[test]
fn control_requests_wait_for_the_gateways_own_processor() {
    let ratio = |request_us: u32, refusal_us: u32| {
        let shipped = include_str!("../../../../scenarios/low_flood.toml");
        let costs = "request_us = 32\nrefusal_us = 13";
        assert!(shipped.contains(costs), "the scenario says what they cost");
        let costs_here = format!("request_us = {request_us}\nrefusal_us = {refusal_us}");
        let text = shipped.replace(costs, &costs_here);
        let scenario = Scenario::read("low_flood", &text).unwrap().lasting(12.0);
        let findings = simulate(&scenario, 1, None).unwrap();
        let p99 = |phase| findings.value(What::LatencyP99Ms, "priority:critical", Some(phase));
        p99("flood").unwrap() / p99("calm").unwrap()
    };
    assert_eq!(ratio(0, 0), 1.0, "nothing stands in the way of what costs nothing");
    let as_measured = ratio(32, 13);
    assert!(as_measured > 1.0 && as_measured < 1.5, "{as_measured}");
    // 4,000 refusals a second of 300 µs are more than there is time for.
    assert!(ratio(32, 300) > 1.5, "{}", ratio(32, 300));
}
