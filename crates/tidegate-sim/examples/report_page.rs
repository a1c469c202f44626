//! A report of made-up findings: the page in HTML, or with `--text` what a terminal shows.
//!
//! `cargo run -p tidegate-sim --example report_page > report.html`

use tidegate_sim::report::{
    Cell, Chart, Findings, Line, Report, ScheduleReport, Table, html, text,
};
use tidegate_sim::scenario::{Mode, Scenario, ScenarioError, What};

const SCENARIO: &str = r#"
    about = "Batch work floods the gateway while one upstream of eight is slow and half of the capacity goes and comes back: what people wait for must not feel it"
    duration_s = 140
    settle_s = 2
    upstreams = { count = 8, slots = 16, queue = 16 }
    class = [
      { name = "chat", share = 0.5, priority = "high", service = { kind = "exponential", ms = 200 } },
      { name = "search <beta> & more", share = 0.3, service = { kind = "exponential", ms = 200 } },
      { name = "batch", share = 0.2, priority = "low", service = { kind = "exponential", ms = 200 } },
    ]
    phase = [
      { name = "calm", load = 0.5 }, { name = "busy", load = 0.9 }, { name = "full", load = 1 },
      { name = "flood", load = 2 }, { name = "flood, ten times what there is room for", load = 10 },
      { name = "ebb", load = 1 }, { name = "calm again", load = 0.5 },
    ]
    fault = [
      { kind = "slow", factor = 8, at = [3], from_s = 30, until_s = 75 },
      { kind = "capacity", share = 0.5, from_s = 62, until_s = 100 },
      { kind = "dead", at = [5], from_s = 110, until_s = 112 },
    ]
    expect = [
      { what = "goodput_of_capacity", phase = "flood", min = 0.95, why = "What is done must not fall when more is asked" },
      { what = "latency_p99_ms", of = "chat", phase = "flood", against = "calm", max = 1.5, why = "People wait for it" },
      { what = "refused_share", of = "batch", phase = "calm", max = 0, why = "There is room for everybody" },
      { what = "failed_share", max = 0 },
      { what = "recovery_s", max = 5, why = "What was a storm must not remain one" },
      { what = "inversions", max = 0.01, why = "Nobody is let in while a higher priority is refused by the same limit" },
    ]
"#;

/// Returns the load and the capacity at a moment.
fn tide(at_s: f64) -> (f64, f64) {
    let load = [0.5, 0.9, 1.0, 2.0, 10.0, 1.0, 0.5][(at_s / 20.0).min(6.0) as usize];
    let capacity = match at_s {
        at_s if (62.0..100.0).contains(&at_s) => 0.5,
        at_s if (110.0..112.0).contains(&at_s) => 0.875,
        _ => 1.0,
    };
    (load, capacity)
}

/// A little up and down that is the same each time.
fn noise(step: u32, of: u32) -> f64 {
    let hash = (step * 8 + of).wrapping_mul(2_654_435_761).rotate_right(13).wrapping_mul(40_503);
    f64::from(hash >> 16) / 65_536.0 - 0.5
}

fn line(name: &str, of: u32, value: impl Fn(f64) -> Option<f64>) -> Line {
    let points = (0..700).map(|step| {
        let at_s = f64::from(step) / 5.0;
        (at_s, value(at_s).map(|value| value * (1.0 + 0.08 * noise(step, of))))
    });
    Line { name: name.to_owned(), points: points.collect() }
}

fn charts() -> Vec<Chart> {
    let goodput = |share: f64| {
        move |at_s| {
            let (load, capacity) = tide(at_s);
            Some(640.0 * share * load.min(capacity))
        }
    };
    let refused = |share: f64| {
        move |at_s| {
            let (load, capacity) = tide(at_s);
            Some((640.0 * share * (load - capacity)).max(0.0))
        }
    };
    let latency = |times: f64| {
        move |at_s| {
            let (load, capacity) = tide(at_s);
            let is_shut_out = times > 10.0 && load / capacity >= 4.0;
            (!is_shut_out).then(|| 240.0 + 60.0 * times * (load / capacity - 0.5).max(0.0))
        }
    };
    let chart = |title: &str, unit: &str, lines| Chart {
        title: title.to_owned(),
        unit: unit.to_owned(),
        lines,
    };
    vec![
        chart(
            "Offered, and good answers",
            "requests/s",
            vec![
                line("offered", 0, |at_s| Some(640.0 * tide(at_s).0)),
                line("good", 1, goodput(1.0)),
                line("chat", 2, goodput(0.5)),
                line("search <beta> & more", 3, goodput(0.3)),
                line("batch", 4, goodput(0.2)),
            ],
        ),
        chart(
            "Refused attempts",
            "requests/s",
            vec![
                line("chat", 2, refused(0.05)),
                line("search <beta> & more", 3, refused(0.3)),
                line("batch", 4, refused(0.65)),
            ],
        ),
        chart(
            "99th percentile of the time from when a request was due",
            "ms",
            vec![
                line("chat", 2, latency(0.5)),
                line("search <beta> & more", 3, latency(8.0)),
                line("batch", 4, latency(200.0)),
            ],
        ),
    ]
}

fn requests(scenario: &Scenario) -> Table {
    let columns = [
        "phase", "of", "offered", "good", "refused", "failed", "good/s", "p50 ms", "p99 ms",
        "max ms",
    ];
    let mut rows = Vec::new();
    for span in scenario.phase_spans() {
        for (name, share) in
            [("all", 1.0), ("chat", 0.5), ("search <beta> & more", 0.3), ("batch", 0.2)]
        {
            let (load, capacity) = tide(span.from_s + 10.0);
            let offered = 640.0 * 18.0 * share * load;
            let good = offered * (capacity / load).min(1.0);
            let is_none = name == "batch" && load > 5.0;
            rows.push(vec![
                Cell::Text(span.name.clone()),
                Cell::Text(name.to_owned()),
                Cell::Count(offered as u64),
                Cell::Count(good as u64),
                Cell::Count((offered - good) as u64),
                Cell::Count(0),
                Cell::number(Some(good / 18.0), 1),
                Cell::number((!is_none).then_some(139.4), 1),
                Cell::number((!is_none).then_some(930.0 * share), 1),
                Cell::number((!is_none).then_some(1834.2), 1),
            ]);
        }
    }
    let title = "Requests that were due in the time that is judged".to_owned();
    Table { title, columns: columns.map(str::to_owned).to_vec(), rows }
}

fn refusals() -> Table {
    let row = |of: &str, reason: &str, count| {
        vec![Cell::Text(of.to_owned()), Cell::Text(reason.to_owned()), Cell::Count(count)]
    };
    Table {
        title: "Refusals, each attempt".to_owned(),
        columns: ["of", "reason", "attempts"].map(str::to_owned).to_vec(),
        rows: vec![
            row("chat", "global_limit", 312),
            row("batch", "priority_limit", 80_123),
            row("batch", "all_busy", 9_310),
        ],
    }
}

fn main() -> Result<(), ScenarioError> {
    let scenario = Scenario::read("flood_and_faults", SCENARIO)?;
    let mut findings = Findings {
        tables: vec![requests(&scenario), refusals()],
        charts: charts(),
        notes: vec![
            "Good is a success within the deadline of 2 s, counted from when the request was due."
                .to_owned(),
            "The first 2 s of each phase are not judged.".to_owned(),
        ],
        ..Findings::default()
    };
    findings.figure(What::GoodputOfCapacity, "all", Some("flood"), 0.949_7);
    findings.figure(What::LatencyP99Ms, "chat", Some("flood"), 291.0);
    findings.figure(What::LatencyP99Ms, "chat", Some("calm"), 240.0);
    findings.figure(What::RefusedShare, "batch", Some("calm"), 0.0);
    findings.figure(What::FailedShare, "all", None, 0.0);
    findings.figure(What::RecoveryS, "all", None, 1.8);
    let mut report = Report::new(&scenario, Mode::Drill, 42, findings);
    report.target = Some("http://127.0.0.1:8080".to_owned());
    report.command = Some("tidegate drill mine.toml --target http://127.0.0.1:8080".to_owned());
    report.schedule = Some(ScheduleReport {
        due: 142_080,
        unsent: 12,
        not_connected: 7,
        late: 804,
        no_connection: 31,
        out_of_sockets: 0,
        error_p50_ms: 0.041,
        error_p99_ms: 1.31,
        error_max_ms: 18.4,
        own_error_p99_ms: 1.2,
        connections_max: 1_024,
    });
    match std::env::args().nth(1).as_deref() {
        Some("--text") => print!("{}", text::render(&report)),
        _ => print!("{}", html::page(&report)),
    }
    Ok(())
}
