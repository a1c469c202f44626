use super::{Judgement, LimitScenario, ServerChange, ServerModel, ServiceTime};
use ServerChange::{Network, Slots, Slowness, Start, Stop};
use tidegate_core::limit::LimitGoal;

/// Returns the built-in scenarios, in the order of the table.
#[must_use]
pub fn built_in() -> Vec<LimitScenario> {
    [hard_slots(), other_servers(), thrashing(), calm(), steps(), faults(), shared()].concat()
}

/// Returns the built-in scenario with this name.
#[must_use]
pub fn find(name: &str) -> Option<LimitScenario> {
    built_in().into_iter().find(|scenario| scenario.name == name)
}

/// 20 slots of 20 ms at twice their capacity.
fn base(name: &'static str, about: &'static str) -> LimitScenario {
    LimitScenario {
        name,
        about,
        server: slots(20),
        service: ServiceTime::Exponential(0.02),
        network_s: 0.0,
        rates: vec![(0.0, 2_000.0)],
        burst: 1,
        gateways: 1,
        gateways_known: false,
        goal: LimitGoal::Balanced,
        changes: Vec::new(),
        timeout_s: None,
        patience_s: None,
        deadline_s: 0.4,
        wait_max_s: 0.2,
        best: vec![(0.0, 20)],
        duration_s: 24.0,
        judged_from_s: 8.0,
        step_s: None,
        judgement: Judgement::Overload,
    }
}

const fn slots(slots: u32) -> ServerModel {
    ServerModel::Slots { slots, queue: None }
}

/// Slots of three sizes and three spreads, at twice their capacity.
fn hard_slots() -> Vec<LimitScenario> {
    let of = |name, count: u32, service: ServiceTime| LimitScenario {
        server: slots(count),
        service,
        rates: vec![(0.0, 2.0 * f64::from(count) / service.mean_s())],
        best: vec![(0.0, count)],
        deadline_s: 20.0 * service.mean_s(),
        wait_max_s: 10.0 * service.mean_s(),
        judgement: Judgement::HardSlots,
        ..base(name, "Slots at twice their capacity.")
    };
    let heavy = |mean_s| ServiceTime::LogNormal { mean_s, variation: 2.0 };
    let many = |scenario| LimitScenario { duration_s: 12.0, judged_from_s: 4.0, ..scenario };
    vec![
        of("hard_4", 4, ServiceTime::Exponential(0.02)),
        of("hard_20", 20, ServiceTime::Exponential(0.02)),
        many(of("hard_200", 200, ServiceTime::Exponential(0.05))),
        of("fixed_4", 4, ServiceTime::Fixed(0.02)),
        of("fixed_20", 20, ServiceTime::Fixed(0.02)),
        many(of("fixed_200", 200, ServiceTime::Fixed(0.05))),
        of("heavy_4", 4, heavy(0.02)),
        of("heavy_20", 20, heavy(0.02)),
        many(of("heavy_200", 200, heavy(0.05))),
        LimitScenario {
            duration_s: 600.0,
            judged_from_s: 200.0,
            judgement: Judgement::Overload,
            ..of("slow_4", 4, ServiceTime::Exponential(0.8))
        },
        LimitScenario {
            duration_s: 3.0,
            judged_from_s: 1.0,
            ..of("fast_40", 40, ServiceTime::Exponential(0.002))
        },
    ]
}

/// Servers without hard slots, and two that have more than slots.
fn other_servers() -> Vec<LimitScenario> {
    let batching = |name, goal, best, deadline_s| LimitScenario {
        server: ServerModel::Batching { fixed: 0.1, per_request: 0.002 },
        service: ServiceTime::LogNormal { mean_s: 1.0, variation: 0.7 },
        rates: vec![(0.0, 1_500.0)],
        goal,
        best: vec![(0.0, best)],
        deadline_s,
        wait_max_s: 0.8,
        duration_s: 60.0,
        judged_from_s: 20.0,
        judgement: Judgement::Goal,
        ..base(name, "Batching: latency and throughput grow with concurrency.")
    };
    let collapsing = |name, per_s| LimitScenario {
        server: ServerModel::Collapsing { knee: 50, steepness: 2.0 },
        service: ServiceTime::Exponential(0.05),
        rates: vec![(0.0, per_s)],
        best: vec![(0.0, 50)],
        deadline_s: 0.6,
        wait_max_s: 0.4,
        ..base(name, "Throughput falls to a third at twice the knee.")
    };
    vec![
        // e = a/(a + b·n): 0.3 at n = 117, 0.5 at 50, 0.15 at 283.
        batching("batching", LimitGoal::Balanced, 117, 2.5),
        batching("batching_latency", LimitGoal::Latency, 50, 2.5),
        batching("batching_throughput", LimitGoal::Throughput, 283, 4.5),
        LimitScenario {
            server: ServerModel::Batching { fixed: 2.0, per_request: 0.05 },
            service: ServiceTime::LogNormal { mean_s: 1.0, variation: 0.5 },
            rates: vec![(0.0, 28.0)],
            best: vec![(0.0, 93)],
            deadline_s: 40.0,
            wait_max_s: 16.0,
            duration_s: 600.0,
            judged_from_s: 200.0,
            judgement: Judgement::Goal,
            ..base("inference", "Responses of 2 s and more, 14 a second.")
        },
        collapsing("collapsing", 2_000.0),
        collapsing("collapsing_10x", 10_000.0),
        LimitScenario {
            server: slots(40),
            service: ServiceTime::Bimodal { fast_s: 0.001, slow_s: 2.0, slow_share: 0.01 },
            rates: vec![(0.0, 3_800.0)],
            best: vec![(0.0, 40)],
            deadline_s: 3.0,
            wait_max_s: 0.4,
            duration_s: 45.0,
            judged_from_s: 15.0,
            ..base("bimodal", "1 % of the requests take 2,000 times as long.")
        },
        LimitScenario {
            server: ServerModel::Slots { slots: 20, queue: Some(5) },
            rates: vec![(0.0, 3_000.0)],
            best: vec![(0.0, 22)],
            ..base("refusing", "The server refuses beyond 5 in its own queue.")
        },
    ]
}

/// A server that slows down with its backlog, after a calm. Clients wait as long as forty services, and what they
/// leave behind stays at the server.
fn thrashing() -> Vec<LimitScenario> {
    let of = |name, per_s| LimitScenario {
        server: ServerModel::Thrashing { slots: 8, above: 16 },
        service: ServiceTime::Fixed(0.05),
        rates: vec![(0.0, 80.0), (10.0, per_s)],
        patience_s: Some(2.0),
        best: vec![(0.0, 12)],
        deadline_s: 2.0,
        wait_max_s: 0.4,
        duration_s: 40.0,
        judged_from_s: 10.0,
        step_s: Some(10.0),
        ..base(name, "8 slots that thrash beyond 16. Clients leave after 2 s, their work stays.")
    };
    vec![of("thrashing_1x", 160.0), of("thrashing_2x", 320.0), of("thrashing_10x", 1_600.0)]
}

/// Loads below the capacity.
fn calm() -> Vec<LimitScenario> {
    let calm = |name, about, per_s| LimitScenario {
        rates: vec![(0.0, per_s)],
        best: vec![(0.0, 500)],
        judgement: Judgement::Calm,
        deadline_s: 1.5,
        wait_max_s: 1.0,
        ..base(name, about)
    };
    vec![
        calm("calm", "60 % of the capacity.", 600.0),
        LimitScenario {
            server: slots(100),
            burst: 60,
            ..calm("calm_bursts", "60 requests at once, 20 times a second.", 20.0)
        },
        LimitScenario {
            service: ServiceTime::Exponential(2.0),
            deadline_s: 30.0,
            wait_max_s: 16.0,
            duration_s: 300.0,
            judged_from_s: 100.0,
            ..calm("calm_slow", "3 requests of 2 s a second.", 3.0)
        },
        LimitScenario {
            server: slots(40),
            network_s: 0.005,
            changes: vec![(10.0, Network(0.055))],
            duration_s: 30.0,
            judged_from_s: 10.0,
            ..calm("calm_network", "50 ms more of network at 60 % of the capacity.", 1_200.0)
        },
    ]
}

/// 40 slots of 40 ms at twice their capacity.
fn forty(name: &'static str, about: &'static str) -> LimitScenario {
    LimitScenario {
        server: slots(40),
        service: ServiceTime::Exponential(0.04),
        best: vec![(0.0, 40)],
        deadline_s: 0.5,
        wait_max_s: 0.3,
        duration_s: 30.0,
        judged_from_s: 10.0,
        ..base(name, about)
    }
}

/// Steps of the capacity, of the network and of the load.
fn steps() -> Vec<LimitScenario> {
    let step_s = Some(10.0);
    vec![
        LimitScenario {
            changes: vec![(10.0, Slots(20))],
            best: vec![(0.0, 40), (10.0, 20)],
            step_s,
            ..forty("capacity_halves", "40 slots become 20.")
        },
        LimitScenario {
            rates: vec![(0.0, 3_000.0)],
            changes: vec![(10.0, Slots(80))],
            best: vec![(0.0, 40), (10.0, 80)],
            step_s,
            ..forty("capacity_doubles", "40 slots become 80.")
        },
        LimitScenario {
            service: ServiceTime::Exponential(0.02),
            network_s: 0.005,
            rates: vec![(0.0, 4_000.0)],
            changes: vec![(10.0, Network(0.055))],
            best: vec![(0.0, 50), (10.0, 150)],
            wait_max_s: 0.2,
            step_s,
            ..forty("network_step", "50 ms more of network: no overload.")
        },
        LimitScenario {
            rates: vec![(0.0, 600.0), (10.0, 5_000.0)],
            step_s,
            ..forty("surge", "From 60 % of the capacity to five times of it.")
        },
        LimitScenario {
            server: slots(50),
            service: ServiceTime::Exponential(0.05),
            rates: vec![(0.0, 10_000.0)],
            best: vec![(0.0, 50)],
            duration_s: 24.0,
            judged_from_s: 0.0,
            step_s: Some(0.0),
            ..forty("start_10x", "Ten times the capacity from the first second.")
        },
    ]
}

/// Servers that slow down, restart or fall silent.
fn faults() -> Vec<LimitScenario> {
    vec![
        LimitScenario {
            changes: vec![(10.0, Slowness(5.0)), (30.0, Slowness(1.0))],
            deadline_s: 1.5,
            duration_s: 50.0,
            step_s: Some(30.0),
            ..forty("brownout", "Five times as slow for 20 s.")
        },
        LimitScenario {
            changes: vec![
                (10.0, Stop),
                (10.0, Slowness(3.0)),
                (11.0, Start),
                (19.0, Slowness(1.0)),
            ],
            deadline_s: 1.0,
            timeout_s: Some(5.0),
            duration_s: 40.0,
            step_s: Some(11.0),
            ..forty("cold_restart", "Down for 1 s, then three times as slow for 8 s.")
        },
        LimitScenario {
            changes: vec![(8.0, Slowness(100.0)), (28.0, Slowness(1.0))],
            timeout_s: Some(0.3),
            duration_s: 48.0,
            judged_from_s: 28.0,
            step_s: Some(28.0),
            ..base("all_time_out", "All requests time out for 20 s.")
        },
    ]
}

/// Three gateways in front of one server.
fn shared() -> Vec<LimitScenario> {
    let three = |name, gateways_known| LimitScenario {
        server: slots(60),
        rates: vec![(0.0, 3_000.0)],
        best: vec![(0.0, 60)],
        gateways: 3,
        gateways_known,
        ..forty(name, "Three gateways in front of 60 slots.")
    };
    vec![three("three_gateways", false), three("three_gateways_known", true)]
}
