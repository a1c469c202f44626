//! Retry advice: clients that return when they were told to find the chance that the advice promised.

use tidegate_sim::report::{Cell, Findings};
use tidegate_sim::scenario::{Scenario, What};
use tidegate_sim::simulate;

/// Slots of Low over their mean time: 20 / 100 ms.
const CAPACITY_PER_S: f64 = 200.0;
const OVERLOAD: f64 = 3.0;

/// Low alone, in phases of so many seconds at these multiples of its capacity, with `returns` after a refusal.
fn run(phases: &[(u32, f64)], returns: u32) -> Findings {
    let duration_s: u32 = phases.iter().map(|(seconds, _)| seconds).sum();
    let mut text = format!(
        r#"
        about = "A limit of 20, and clients that come back as told."
        duration_s = {duration_s}
        settle_s = 0
        upstreams = {{ count = 1, slots = 1000, queue = 1 }}
        [gateway]
        limits = {{ global = 1000, high = 500, normal = 300, low = 20 }}
        [[class]]
        name = "low"
        priority = "low"
        per_s = {CAPACITY_PER_S}
        service = {{ kind = "exponential", ms = 100 }}
        retry = {{ times = {returns}, wait = "told" }}
        "#
    );
    for (index, (seconds, load)) in phases.iter().enumerate() {
        let part = f64::from(*seconds) / 10.0;
        text += &format!("[[phase]]\nname = \"{index}\"\npart = {part}\nload = {load}\n");
    }
    let scenario = Scenario::read("advice", &text).unwrap_or_else(|error| panic!("{error}"));
    simulate(&scenario, 1, None).unwrap_or_else(|violation| panic!("{violation}"))
}

fn value(findings: &Findings, what: What) -> f64 {
    findings.value(what, "low", None).unwrap_or_else(|| panic!("{what} is measured"))
}

/// Refused attempts of all requests together.
fn refused_attempts(findings: &Findings) -> f64 {
    count(findings, "Refusals", "attempts")
}

/// The sum of a column of counts, over the rows of the class.
fn count(findings: &Findings, title: &str, column: &str) -> f64 {
    let table = findings.tables.iter().find(|table| table.title.starts_with(title));
    let table = table.unwrap_or_else(|| panic!("{title} is there"));
    let index = table.columns.iter().position(|name| name == column);
    let index = index.unwrap_or_else(|| panic!("{column} is there"));
    let of_class = |row: &&Vec<Cell>| row.contains(&Cell::Text("low".to_owned()));
    let count = |row: &Vec<Cell>| match row[index] {
        Cell::Count(count) => count,
        ref other => panic!("{other:?} is no count"),
    };
    table.rows.iter().filter(of_class).map(count).sum::<u64>() as f64
}

/// The chance of each attempt at a steady load of `x` capacities when everyone comes back once: attempts are
/// A = x + x(1 − p) capacities, of which one gets in, so p·A = 1, or x·p² − 2x·p + 1 = 0.
fn chance_with_one_return(x: f64) -> f64 {
    1.0 - (1.0 - 1.0 / x).sqrt()
}

#[test]
fn the_advice_is_the_time_that_the_refused_work_of_a_second_takes() {
    let findings = run(&[(200, OVERLOAD)], 1);
    let p = chance_with_one_return(OVERLOAD);
    // Refused a second over done a second: (A − 1) / 1 = 1/p − 1. Of the good answers (1 − p)/(2 − p) waited so.
    let advice_ms = 1000.0 * (1.0 / p - 1.0);
    let expected_ms = 100.0 + (1.0 - p) / (2.0 - p) * advice_ms;
    let mean_ms = value(&findings, What::LatencyMeanMs);
    // The advisor remembers two seconds of 200 completions each: 400 give 1/√400, 5 %; twice that.
    assert!((mean_ms / expected_ms - 1.0).abs() < 0.1, "{mean_ms}, not {expected_ms}");
}

#[test]
fn clients_that_return_as_told_have_the_chance_of_new_ones() {
    let duration_s = 2000;
    let findings = run(&[(duration_s, OVERLOAD)], 1);
    let refused_in_the_end = count(&findings, "Requests", "refused");
    // One refusal of each request that came back, and of each that was refused then another.
    let returned = refused_attempts(&findings) - refused_in_the_end;
    let share = 1.0 - refused_in_the_end / returned;
    let expected = chance_with_one_return(OVERLOAD);
    // Advice changes ten times a second and is told in whole milliseconds: that costs 2 % of the chance. Without a
    // spread it costs far more (`the_same_advice_for_all_brings_them_back_in_herds`).
    let tolerance = 0.034 * expected;
    assert!((share - expected).abs() < tolerance, "{share}, not {expected} ± {tolerance}");
}

/// No client ever gives up, so the crowd that waits grows by a = (x − 1)·r a second. Told W = s/r by s refusals a
/// second, N waiting clients make N/W returns a second: s = a + N·r/s, with N = a·t. So the attempts grow with
/// the root of the crowd, not with the crowd.
#[test]
fn a_crowd_that_never_gives_up_is_kept_from_storming() {
    let duration_s = 120;
    let findings = run(&[(duration_s, OVERLOAD)], 100);
    let (r, a) = (CAPACITY_PER_S, (OVERLOAD - 1.0) * CAPACITY_PER_S);
    let refused_per_s = |t: f64| a / 2.0 + (a * a / 4.0 + a * r * t).sqrt();
    let ticks = 0..duration_s * 10;
    let most: f64 = ticks.map(|tick| refused_per_s(f64::from(tick) / 10.0 + 0.05) / 10.0).sum();
    let refused = refused_attempts(&findings);
    assert!(refused <= most, "{refused} refusals, more than {most}");
    // And nothing of the capacity is lost to the waiting: what was done is all but what the first moments miss.
    let good_per_s = value(&findings, What::GoodputOfOffered) * OVERLOAD * CAPACITY_PER_S;
    assert!(good_per_s > 0.98 * CAPACITY_PER_S, "{good_per_s}");
}

#[test]
fn a_crowd_is_worked_off_once_the_load_allows_it() {
    // 10 s leave 4,000 waiting; half of the capacity is theirs, which takes 40 s, and 14 s more to forget.
    let findings = run(&[(10, OVERLOAD), (80, 0.5)], 100);
    assert_eq!(value(&findings, What::RefusedShare), 0.0);
}

#[test]
fn idleness_is_not_taken_for_slowness() {
    // The clients that the second of overload refuses return in the quiet time after it.
    let findings = run(&[(10, 0.5), (600, 0.0), (1, OVERLOAD), (19, 0.0)], 1);
    // At most 400 refused in that second, each twice, over the 100 a second last seen to come free, and half as
    // much again by the spread; a request itself takes 100 ms on average, and hardly ever ten times that. After
    // 600 s of silence taken for slowness nobody would return within 19 s.
    let of = |what| findings.value(what, "low", Some("2")).expect("some are answered");
    assert!(of(What::LatencyP99Ms) <= 13_000.0, "{}", of(What::LatencyP99Ms));
    assert!(of(What::RefusedShare) < 0.3, "{}", of(What::RefusedShare));
}
