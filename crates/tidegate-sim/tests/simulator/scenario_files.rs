//! Scenario files: valid ones, and the errors of invalid ones.

use std::time::Duration;
use tidegate_sim::arrivals::Arrivals;
use tidegate_sim::measure::{Attempt, Ended, How, Recorder};
use tidegate_sim::report::judge;
use tidegate_sim::scenario::{Mode, Scenario, What};

const TEXT: &str = r#"
about = "Two classes, one of which is flooded."
duration_s = 10
settle_s = 1
upstreams = { count = 2, slots = 4, queue = 4 }

[[phase]]
name = "calm"

[[phase]]
name = "flood"
load = 2

[[class]]
name = "people"
priority = "high"
share = 0.25
loads = { flood = 1 }
service = { kind = "fixed", ms = 100 }

[[class]]
name = "batch"
priority = "low"
share = 0.75
service = { kind = "exponential", ms = 100 }

[[expect]]
what = "goodput_of_offered"
of = "people"
phase = "flood"
min = 0.99
"#;

fn scenario() -> Scenario {
    Scenario::read("two", TEXT).expect("it is valid")
}

#[test]
fn a_class_keeps_its_own_load_in_a_phase() {
    let scenario = scenario();
    assert_eq!(scenario.capacity_per_s(), Some(80.0));
    let mut counts = [[0_u32; 2]; 2];
    // Many seeds: one run of ten seconds has too few arrivals to tell 20 a second from 30.
    for seed in 0..200 {
        for arrival in Arrivals::new(&scenario, seed) {
            let phase = usize::from(arrival.at >= Duration::from_secs(5));
            counts[usize::from(arrival.class)][phase] += 1;
        }
    }
    let per_s = counts.map(|phases| phases.map(|count| f64::from(count) / 200.0 / 5.0));
    let expected = [[20.0, 20.0], [60.0, 120.0]];
    for (found, expected) in per_s.iter().flatten().zip(expected.iter().flatten()) {
        assert!((found / expected - 1.0).abs() < 0.03, "{per_s:?}");
    }
}

#[test]
fn arrivals_come_in_order_and_the_same_for_the_same_seed() {
    let scenario = scenario();
    let times: Vec<_> = Arrivals::new(&scenario, 7).collect();
    assert!(times.is_sorted_by_key(|arrival| arrival.at));
    assert_eq!(times, Arrivals::new(&scenario, 7).collect::<Vec<_>>());
    assert_ne!(times, Arrivals::new(&scenario, 8).collect::<Vec<_>>());
}

#[test]
fn unknown_keys_are_refused_wherever_they_stand() {
    for (known, unknown) in [
        ("about =", "abuot ="),
        ("slots = 4", "slot = 4"),
        ("load = 2", "laod = 2"),
        ("kind = \"fixed\", ms", "kind = \"fixed\", milliseconds"),
        ("min = 0.99", "minimum = 0.99"),
        ("loads = { flood = 1 }", "loadings = { flood = 1 }"),
    ] {
        let error = Scenario::read("two", &TEXT.replacen(known, unknown, 1)).unwrap_err();
        assert!(error.to_string().contains("unknown field"), "{unknown}: {error}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let text = TEXT
        .replace("of = \"people\"", "of = \"nobody\"")
        .replace("share = 0.25", "share = -1")
        .replace("flood = 1", "storm = 1")
        .replace("what = \"goodput_of_offered\"", "what = \"wait_mean_ms\"");
    let error = Scenario::read("two", &text).unwrap_err().to_string();
    for said in [
        "nobody is called \"nobody\"",
        "class.people.share: is -1",
        "no phase \"storm\"",
        "wait_mean_ms is no figure",
    ] {
        assert!(error.contains(said), "{said}: {error}");
    }
}

#[test]
fn a_short_form_is_the_same_in_less_time() {
    let text = format!(
        "{TEXT}\n[[fault]]\nkind = \"dead\"\nat = [1]\nfrom_s = 5\nuntil_s = 6\n[short]\nduration_s = 5\n"
    );
    let short = Scenario::read("two", &text).unwrap().shortened();
    assert_eq!((short.duration_s, short.settle_s), (5.0, 0.0));
    assert_eq!((short.faults[0].from_s, short.faults[0].until_s), (2.5, 3.0));
    assert_eq!(short.phase_spans()[1].from_s, 2.5);
}

/// The same load by fewer requests: a test's machine has others to serve.
#[test]
fn a_short_form_may_be_slower_and_asks_for_as_much() {
    let retry = "retry = { times = 2, wait = \"backoff\", base_ms = 50 }";
    let text = format!(
        "{}\n[[class]]\nname = \"control\"\npriority = \"critical\"\nper_s = 20\n\
         service = {{ kind = \"fixed\", ms = 1 }}\n[short]\nduration_s = 5\nslower = 4\n",
        TEXT.replacen("share =", &format!("deadline_ms = 900\n{retry}\nshare ="), 1)
    );
    let whole = Scenario::read("two", &text).unwrap();
    let short = whole.shortened();
    let (of, slowed) = (&whole.classes[0], &short.classes[0]);
    assert_eq!(slowed.service.mean_s(), of.service.mean_s() * 4.0);
    assert_eq!(slowed.share, of.share);
    assert_eq!(slowed.deadline_ms, Some(3600.0));
    assert_eq!(slowed.retry.unwrap().base_ms, 200.0);
    let (capacity, less) = (whole.capacity_per_s().unwrap(), short.capacity_per_s().unwrap());
    assert!((less * 4.0 - capacity).abs() < 1e-6 * capacity, "{less} of {capacity}");
    assert_eq!(short.classes.last(), whole.classes.last(), "the gateway itself is no slower");
    let by_the_second = text.replacen("share = 0.75", "per_s = 8", 1);
    let slowed = Scenario::read("two", &by_the_second).unwrap().shortened();
    assert_eq!(slowed.classes[1].per_s, Some(2.0));
    let waits = format!("{text}[gateway]\nwait_max_ms = 700\n");
    let slowed = Scenario::read("two", &waits).unwrap().shortened();
    assert_eq!(slowed.gateway().wait_max_ms, Some(2_800.0));
}

#[test]
fn what_can_not_be_slower_is_told() {
    let told = |from: &str, to: &str| {
        let text = format!("{TEXT}\n[short]\nduration_s = 5\nslower = 4\n").replacen(from, to, 1);
        Scenario::read("two", &text).unwrap_err().to_string()
    };
    assert!(told("slower = 4", "slower = 0.5").contains("short.slower: is 0.5"));
    let error = told("kind = \"fixed\", ms = 100", "kind = \"fixed\", ms = 20000");
    assert!(
        error.contains("short.slower: makes class.people.service too much: it is 80000"),
        "{error}"
    );
    let error = told("what = \"goodput_of_offered\"", "what = \"latency_p99_ms\"");
    assert!(error.contains("in milliseconds: say against what"), "{error}");
    let pipeline = "about = \"p\"\nduration_s = 10\n[pipeline]\nstore_per_s = 100\nshare = 1\n\
                    [short]\nduration_s = 5\nslower = 2\n";
    let error = Scenario::read("p", pipeline).unwrap_err().to_string();
    assert!(error.contains("short.slower: slows what upstreams do"), "{error}");
}

#[test]
fn what_is_judged_is_what_was_due_after_things_settled() {
    let scenario = scenario();
    let mut recorder = Recorder::new(&scenario);
    let ms = Duration::from_millis;
    // In the second that is not judged, and in the flood of which all but one come in time.
    let mut request = |due: Duration, how: How| {
        recorder.due(due, 0);
        let refused = how == How::Refused;
        let attempt = if refused { Attempt::Refused("global_limit") } else { Attempt::LetIn };
        recorder.attempt(due, 0, attempt);
        recorder.ended(&Ended { due, at: due + ms(100), class: 0, upstream: Some(1), how });
    };
    request(ms(500), How::Refused);
    for number in 0..100 {
        request(ms(7_000 + number), if number == 50 { How::Refused } else { How::Good });
    }
    let findings = recorder.conclude();
    assert_eq!(findings.value(What::GoodputOfOffered, "people", Some("flood")), Some(0.99));
    assert_eq!(findings.value(What::GoodputOfOffered, "people", None), Some(0.99));
    assert_eq!(findings.value(What::RefusedShare, "priority:high", None), Some(0.01));
    let p99 = findings.value(What::LatencyP99Ms, "people", Some("flood")).unwrap();
    assert!((p99 - 100.0).abs() < 0.1, "{p99}");
    let checks = judge(&scenario.expectations, &findings, Mode::Sim);
    assert!(checks[0].holds, "{}", checks[0]);
}

#[test]
fn a_phase_of_which_nothing_is_judged_can_not_be_expected_of() {
    let long = Scenario::read("two", &TEXT.replace("settle_s = 1", "settle_s = 5")).unwrap_err();
    let says = "settle_s: is 5, and \"flood\" lasts no longer: nothing of what is expected there is judged";
    assert_eq!(long.to_string(), says);
    let short = format!("{TEXT}\n[short]\nduration_s = 2\nsettle_s = 1\n");
    let error = Scenario::read("two", &short).unwrap_err().to_string();
    assert!(error.starts_with("short.settle_s: is 1, and \"flood\""), "{error}");
    // Where nothing is expected of it, it may be as short as it likes: nothing is said of it then.
    let short_calm = TEXT.replace("name = \"calm\"", "name = \"calm\"\npart = 0.01");
    let scenario = Scenario::read("two", &short_calm).unwrap();
    let findings = tidegate_sim::simulate(&scenario, 1, None).unwrap();
    assert_eq!(findings.value(What::GoodputOfCapacity, "all", Some("calm")), None);
    assert!(findings.figures.iter().all(|figure| figure.value.is_finite()));
    let cells = findings.tables.iter().flat_map(|table| table.rows.iter().flatten());
    assert!(cells.into_iter().all(|cell| cell.to_string() != "NaN"));
}

#[test]
fn what_latencies_are_kept_for_is_bounded() {
    let phases = |from: u32, until: u32| {
        (from..until).map(|n| format!("\n[[phase]]\nname = \"p{n}\"\n")).collect::<String>()
    };
    let classes = |count: u32| {
        let class = "\nper_s = 1\nservice = { kind = \"fixed\", ms = 1 }\n";
        (0..count).map(|n| format!("\n[[class]]\nname = \"c{n}\"{class}")).collect::<String>()
    };
    let text = TEXT.replace("settle_s = 1", "settle_s = 0");
    let too_many = format!("{text}{}{}", phases(0, 30), classes(8));
    let error = Scenario::read("two", &too_many).unwrap_err().to_string();
    assert_eq!(error, "phase: phases times classes are 320, allowed are 256");
    assert!(Scenario::read("two", &format!("{text}{}{}", phases(0, 23), classes(8))).is_ok());
}

#[test]
fn the_example_of_the_document_can_be_run() {
    let document = include_str!("../../../../docs/drills.md");
    let (_, rest) = document.split_once("```toml\n").expect("it has an example");
    let (example, _) = rest.split_once("```").expect("which ends");
    let scenario = Scenario::read("example", example).unwrap_or_else(|error| panic!("{error}"));
    assert!(tidegate_sim::simulate(&scenario, 1, None).is_ok());
}
