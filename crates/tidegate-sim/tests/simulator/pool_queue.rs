//! The queue of the pool in virtual time: at each step the simulator checks its order and its counts.

use tidegate_sim::report::Findings;
use tidegate_sim::scenario::{Scenario, UpstreamLimit, What};
use tidegate_sim::simulate;

fn run(text: &str, seed: u64) -> Findings {
    let scenario = Scenario::read("queue", text).unwrap_or_else(|error| panic!("{error}"));
    simulate(&scenario, seed, None).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"))
}

/// Requests that failed at an upstream wait for another one. When that upstream is back, its slots are for those
/// behind them in the same flow, not for a lower priority.
#[test]
fn a_request_that_can_not_use_a_slot_does_not_hide_the_one_behind_it() {
    let text = r#"
        about = "One of two upstreams is gone for a moment, again and again."
        duration_s = 20
        gateway = { limit = 4, queue = 64 }
        upstreams = { count = 2, slots = 4, queue = 0 }
        [[class]]
        name = "people"
        priority = "high"
        share = 1.5
        service = { kind = "exponential", ms = 400 }
        [[class]]
        name = "batch"
        priority = "low"
        share = 1.5
        service = { kind = "exponential", ms = 400 }
    "#;
    let fault = |second: u32| {
        let (from_s, until_s) = (f64::from(second) + 0.3, f64::from(second) + 0.8);
        format!("[[fault]]\nkind = \"dead\"\nat = [1]\nfrom_s = {from_s}\nuntil_s = {until_s}\n")
    };
    let faults: String = (1..19).map(fault).collect();
    for seed in 1..=20 {
        run(&format!("{text}{faults}"), seed);
    }
}

/// A large request at the head of the queue keeps what is free for itself. When its client leaves, those behind
/// it get that at once.
#[test]
fn a_request_that_leaves_lets_smaller_ones_behind_it_through() {
    let text = r#"
        about = "Requests of two sizes, and clients that give up."
        duration_s = 20
        upstreams = { count = 1, slots = 8, queue = 4, kv_blocks = 300 }
        gateway = { limit = 8, queue = 64, active_decode_blocks = 0.9 }
        phase = [{ name = "calm", load = 0.5 }, { name = "busy", load = 3 }]
        [[class]]
        name = "large"
        priority = "high"
        share = 0.5
        body_bytes = 60000
        deadline_ms = 60
        service = { kind = "kv", prompt_tokens = 3000, output_tokens = 50, prefill_tokens_per_s = 40000, decode_ms_per_token = 4, block_tokens = 16 }
        [[class]]
        name = "small"
        priority = "high"
        share = 0.5
        body_bytes = 1600
        service = { kind = "exponential", ms = 100 }
    "#;
    for seed in 1..=20 {
        run(text, seed);
    }
}

/// An upstream whose requests hold its share of the admission limits has no slot for more of them, whatever its
/// limit.
#[test]
fn an_upstream_takes_no_more_than_its_share_of_the_limits() {
    let text = |share: f64| {
        format!(
            r#"
            about = "Two upstreams with more slots than their share of the admission limits lets in."
            duration_s = 20
            upstreams = {{ count = 2, slots = 40, queue = 0 }}
            [gateway]
            limits = {{ global = 100, high = 40, normal = 40, low = 40 }}
            limit = 40
            queue = 100
            upstream_share = {share}
            [[class]]
            name = "people"
            priority = "high"
            share = 1
            service = {{ kind = "exponential", ms = 200 }}
            [[class]]
            name = "services"
            share = 1
            service = {{ kind = "exponential", ms = 200 }}
            [[class]]
            name = "batch"
            priority = "low"
            share = 1
            service = {{ kind = "exponential", ms = 200 }}
            [[fault]]
            kind = "dead"
            at = [0]
            from_s = 5
            until_s = 8
            "#
        )
    };
    let goodput = |share, seed| {
        let findings = run(&text(share), seed);
        findings.value(What::GoodputOfCapacity, "all", None).unwrap_or(0.0)
    };
    for seed in 1..=10 {
        let (all, tenth) = (goodput(1.0, seed), goodput(0.1, seed));
        // Each upstream may have ten of the hundred requests, a quarter of its slots.
        assert!(all > 0.8 && tenth < 0.26, "{all} {tenth}");
    }
}

/// At exactly its capacity, after calm, the upstream that collapses is used as well as with the number of its
/// slots. A single run is decided by its arrivals, so that the mean of twenty is judged.
#[test]
fn a_limit_that_is_found_serves_as_much_as_one_that_is_told_at_exactly_the_capacity() {
    let text = include_str!("../../../../scenarios/zero_config.toml");
    let told = text.replace("limit = \"auto\"", "limit = 8");
    assert_ne!(told, text);
    let goodput = |text: &str, seed| {
        let findings = run(text, seed);
        findings.value(What::GoodputOfCapacity, "all", Some("1x")).unwrap_or(0.0)
    };
    let (mut found_sum, mut told_sum) = (0.0, 0.0);
    for seed in 1..=20 {
        let (found, known) = (goodput(text, seed), goodput(&told, seed));
        assert!(found > 0.85 * known, "seed {seed}: {found} of {known}");
        (found_sum, told_sum) = (found_sum + found, told_sum + known);
    }
    assert!(found_sum > 0.985 * told_sum, "{found_sum} of {told_sum}");
}

#[test]
fn a_limit_is_a_number_or_off() {
    let text = |limit: &str| {
        format!(
            r#"
            about = "One upstream of four slots and no queue of its own."
            duration_s = 20
            gateway = {{ {limit} queue = 0 }}
            upstreams = {{ count = 1, slots = 4, queue = 0 }}
            class = [{{ name = "a", share = 2, service = {{ kind = "fixed", ms = 50 }} }}]
            "#
        )
    };
    let read = |limit: &str| Scenario::read("limit", &text(limit));
    let limit_of = |limit: &str| read(limit).expect("it is valid").gateway().limit;
    assert_eq!(limit_of(""), None);
    assert_eq!(limit_of("limit = \"off\","), Some(UpstreamLimit::Off));
    assert_eq!(limit_of("limit = 4,"), Some(UpstreamLimit::Fixed(4)));
    for (wrong, said) in [("limit = 0,", "gateway.limit"), ("limit = \"of\",", "off")] {
        let error = read(wrong).expect_err("it is wrong").to_string();
        assert!(error.contains(said), "{wrong}: {error}");
    }
    // Without a limit the upstream refuses; with one the gateway does, before it sends anything.
    for (limit, reason) in [("limit = \"off\",", "upstream_overloaded"), ("limit = 4,", "all_busy")]
    {
        let findings = run(&text(limit), 1);
        let cells = findings.tables.iter().flat_map(|table| table.rows.iter().flatten());
        let cells: Vec<_> = cells.map(ToString::to_string).collect();
        assert!(cells.contains(&reason.to_owned()), "{limit} {cells:?}");
        let goodput = findings.value(What::GoodputOfCapacity, "all", None).unwrap_or(0.0);
        assert!((0.6..=1.0).contains(&goodput), "{limit} {goodput}");
    }
}

/// Without a queue the refusals alone show that the limit binds. Otherwise it would rise as in calm, until the
/// upstream collapses.
#[test]
fn a_limit_without_a_queue_stays_at_the_capacity() {
    let text = r#"
        about = "Twenty slots that collapse beyond thirty requests, a limit that is found, and nobody may wait."
        duration_s = 60
        settle_s = 15
        gateway = { limit = "auto", queue = 0 }
        upstreams = { count = 1, slots = 20, queue = 4096, thrash_above = 30, reports = false }
        class = [{ name = "a", share = 1.2, service = { kind = "exponential", ms = 100 } }]
    "#;
    for seed in 1..=10 {
        let goodput = run(text, seed).value(What::GoodputOfCapacity, "all", None).unwrap_or(0.0);
        assert!(goodput >= 0.88, "seed {seed}: {goodput}");
    }
}
