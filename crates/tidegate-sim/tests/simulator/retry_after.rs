//! Retry advice: clients that return when they were told to find the chance that the advice promised.

use std::time::Duration;
use tidegate_core::admission::MessagePriority::Low;
use tidegate_sim::gateway::{PriorityAdmission, simulate_with_admission};
use tidegate_sim::report::Findings;
use tidegate_sim::scenario::{Scenario, What};

/// Slots of Low, and the mean time of a request.
const SLOTS: u32 = 20;
const SERVICE_S: f64 = 0.1;

/// 20 slots / 100 ms.
const CAPACITY_PER_S: f64 = 200.0;
const OVERLOAD: f64 = 3.0;

/// The requests a second that the upstream has slots for, which is never the bottleneck: 1,000 / 100 ms.
const UPSTREAM_PER_S: f64 = 10_000.0;

/// The most returns that a scenario allows, and more than any client here needs.
const NEVER_GIVES_UP: u32 = 100;

/// The shortest and the longest advice, by the default bounds.
const ADVICE_MIN: Duration = Duration::from_millis(10);
const ADVICE_MAX: Duration = Duration::from_secs(30);

/// 20 + 3·√20 turns in 100 ms.
const TURNS_PER_S: f64 = 334.0;

/// Low alone, in phases of so many seconds at these multiples of its capacity, with at most so many returns.
fn run(phases: &[(u32, f64)], returns_max: u32) -> (Findings, PriorityAdmission) {
    run_with_seed(1, phases, returns_max)
}

fn run_with_seed(
    seed: u64,
    phases: &[(u32, f64)],
    returns_max: u32,
) -> (Findings, PriorityAdmission) {
    let duration_s: u32 = phases.iter().map(|(seconds, _)| seconds).sum();
    let mut text = format!(
        r#"
        about = "A limit of 20, and clients that come back as told."
        duration_s = {duration_s}
        settle_s = 0
        upstreams = {{ count = 1, slots = 1000, queue = 1 }}
        [gateway]
        limits = {{ global = 1000, high = 500, normal = 300, low = {SLOTS} }}
        [[class]]
        name = "low"
        priority = "low"
        per_s = {CAPACITY_PER_S}
        service = {{ kind = "exponential", ms = 100 }}
        "#
    );
    if returns_max > 0 {
        text += &format!("retry = {{ times = {returns_max}, wait = \"told\" }}\n");
    }
    for (index, (seconds, load)) in phases.iter().enumerate() {
        let part = f64::from(*seconds) / 10.0;
        text += &format!("[[phase]]\nname = \"{index}\"\npart = {part}\nload = {load}\n");
    }
    let scenario = Scenario::read("advice", &text).unwrap_or_else(|error| panic!("{error}"));
    let run = simulate_with_admission(&scenario, seed, None);
    let (findings, admission) = run.unwrap_or_else(|violation| panic!("{violation}"));
    (findings, admission.of(Low).clone())
}

fn value(findings: &Findings, what: What) -> f64 {
    findings.value(what, "all", None).unwrap_or_else(|| panic!("{what} is measured"))
}

/// Asserts that clients were admitted at their first return with this chance, within five standard errors.
fn assert_share(low: &PriorityAdmission, expected: f64) {
    let tolerance = 5.0 * (expected * (1.0 - expected) / low.returned as f64).sqrt();
    let share = low.first_return_share();
    assert!((share - expected).abs() < tolerance, "{share}, not {expected} ± {tolerance}");
}

/// The chance of each attempt at a steady load of `x` capacities when everyone comes back once: attempts are
/// A = x + x(1 − p) capacities, of which one gets in, so p·A = 1, or x·p² − 2x·p + 1 = 0.
fn chance_with_one_return(x: f64) -> f64 {
    1.0 - (1.0 - 1.0 / x).sqrt()
}

/// The same chance without the assumption that a slot is taken as soon as it is free. By Erlang's formula B the
/// share of refused attempts is 1 − p = B(A), with A = x·(2 − p) capacities of attempts: found by iteration.
fn erlang_chance_with_one_return(x: f64) -> f64 {
    let attempts = |p: f64| x * CAPACITY_PER_S * (2.0 - p) * SERVICE_S;
    (0..100).fold(chance_with_one_return(x), |p, _| 1.0 - erlang_b(SLOTS, attempts(p)))
}

/// By the usual recursion over the number of slots.
fn erlang_b(slots: u32, load: f64) -> f64 {
    (1..=slots).fold(1.0, |blocked, n| load * blocked / (f64::from(n) + load * blocked))
}

/// Nobody gives up, so after ten seconds 4,000 clients wait: those of each second that did not fit.
#[test]
fn the_advice_is_the_time_that_the_turns_of_all_who_wait_take() {
    let (_, low) = run(&[(10, OVERLOAD)], NEVER_GIVES_UP);
    let waiting = 10.0 * (OVERLOAD - 1.0) * CAPACITY_PER_S;
    let expected_ms = 1000.0 * waiting / TURNS_PER_S;
    let next_ms = low.advice_at_end.as_millis() as f64;
    // 4,000 of 6,000 arrivals, 1/√6,000 = 1.3 %; the mean of some 400 services, 5 %; twice both.
    assert!((next_ms / expected_ms - 1.0).abs() < 0.13, "{next_ms}, not {expected_ms}");
}

/// More clients are refused each second than there are turns, and nobody can know that they give up: they are told
/// the second half of the longest wait.
#[test]
fn in_a_lasting_overload_the_advice_is_the_longest() {
    let (_, low) = run(&[(200, OVERLOAD)], 1);
    let p50 = low.advised_wait(50).expect("many were refused");
    assert!(ADVICE_MAX / 2 <= p50 && p50 <= ADVICE_MAX, "{p50:?}");
    assert!(low.advised_wait(100).is_some_and(|longest| longest <= ADVICE_MAX));
}

#[test]
fn clients_wait_as_long_as_they_are_told() {
    let (findings, _) = run(&[(2000, OVERLOAD)], 1);
    let p = chance_with_one_return(OVERLOAD);
    // Of the good answers (1 − p)/(2 − p) waited for the advice first: 3/4 of the longest on average.
    let advice_ms = 0.75 * ADVICE_MAX.as_millis() as f64;
    let expected_ms = 1000.0 * SERVICE_S + (1.0 - p) / (2.0 - p) * advice_ms;
    let mean_ms = value(&findings, What::LatencyMeanMs);
    assert!((mean_ms / expected_ms - 1.0).abs() < 0.1, "{mean_ms}, not {expected_ms}");
}

/// As long that the first half minute, in which nobody has returned yet, does not count.
#[test]
fn clients_that_return_as_told_have_the_chance_of_new_ones() {
    let (_, low) = run(&[(800, OVERLOAD)], 1);
    // Spread out, those who return see the same system as new ones do, and have the same chance.
    assert_share(&low, chance_with_one_return(OVERLOAD));
}

/// For 2,000 s the tolerance is 1.1 % of the chance. That is less than the 1.2 % which the slots cost that
/// wait for their next attempt, so this holds for the chance by Erlang alone.
#[test]
fn the_chance_of_a_return_is_erlang_s() {
    let (_, low) = run(&[(2000, OVERLOAD)], 1);
    assert_share(&low, erlang_chance_with_one_return(OVERLOAD));
}

/// No client ever gives up, so the crowd that waits grows by a = (x − 1)·r a second. Its returns do not exceed
/// the turns until the turns of all who wait are beyond the longest wait; from then on each returns after 3/4 of
/// that on average. Refused are all attempts but r a second.
#[test]
fn a_crowd_that_never_gives_up_is_kept_from_storming() {
    let duration_s = 120;
    let (findings, low) = run(&[(duration_s, OVERLOAD)], NEVER_GIVES_UP);
    assert_eq!(low.gave_up, 0);
    let (r, a) = (CAPACITY_PER_S, (OVERLOAD - 1.0) * CAPACITY_PER_S);
    let returns_per_s = |t: f64| (a * t / (0.75 * ADVICE_MAX.as_secs_f64())).max(TURNS_PER_S);
    let refused_per_s = |t: f64| OVERLOAD * r + returns_per_s(t) - r;
    let ticks = 0..duration_s * 10;
    let most: f64 = ticks.map(|tick| refused_per_s(f64::from(tick) / 10.0 + 0.05) / 10.0).sum();
    let refused = low.refused_attempts() as f64;
    assert!(refused <= most, "{refused} refusals, more than {most}");
    // And nothing of the capacity is lost to the waiting: what was done is all but what the first moments miss.
    let good_per_s = value(&findings, What::GoodputOfCapacity) * UPSTREAM_PER_S;
    assert!(good_per_s > 0.98 * CAPACITY_PER_S, "{good_per_s}");
}

#[test]
fn advice_falls_to_the_minimum_when_the_load_falls_below_capacity() {
    // 14,000 clients have turns within 30 s, which fill the capacity for that long. After a service without a
    // refusal nobody counts as waiting, and a turn is 3 ms away, below the minimum.
    let (_, low) = run(&[(60, OVERLOAD), (40, 0.5)], 1);
    assert_eq!(low.advice_at_end, ADVICE_MIN);
}

#[test]
fn a_crowd_is_worked_off_once_the_load_allows_it() {
    // 10 s leave 4,000 waiting; half of the capacity is theirs, which takes 40 s.
    let (findings, low) = run(&[(10, OVERLOAD), (80, 0.5)], NEVER_GIVES_UP);
    assert_eq!((low.waiting_at_end, low.gave_up), (0, 0));
    assert_eq!(low.advice_at_end, ADVICE_MIN);
    assert_eq!(value(&findings, What::RefusedShare), 0.0);
}

#[test]
fn idleness_is_not_taken_for_slowness() {
    let longest = |seed, idle_s| {
        let (_, low) = run_with_seed(seed, &[(10, 0.5), (idle_s, 0.0), (1, OVERLOAD)], 0);
        low.advised_wait(100).expect("a second of overload refuses")
    };
    // About 400 refused in that second, at 334 turns a second, with jitter of a quarter: 1.5 s. The mean time of
    // the 200 requests a second before the pause, which the snapshots do not know exactly, adds up to a half. A
    // pause taken for slowness would make it 30 s, the longest wait that is ever advised.
    let longest_by_seed: Vec<_> = (1..=20).map(|seed| longest(seed, 600)).collect();
    let at_most = Duration::from_millis(2_250);
    assert!(longest_by_seed.iter().all(|wait| *wait <= at_most), "{longest_by_seed:?}");
    // The length of the pause changes nothing, to the millisecond.
    for (seed, wait) in (1..).zip(longest_by_seed) {
        assert_eq!(longest(seed, 60), wait, "seed {seed}");
    }
}
