//! Flags without effect are refused with a message that names their purpose.

use super::{sim, text};

#[test]
fn what_would_change_nothing_is_refused() {
    let cases: [(&[&str], &[&str]); 13] = [
        (
            &["low_flood", "--executors", "3"],
            &["--executors", "--compare placement=", "[executors]"],
        ),
        (&["low_flood", "--load", "0.5"], &["--load"]),
        (&["--compare", "law=cubic", "--tasks", "200"], &["--tasks"]),
        (&["--compare", "placement=pull", "low_flood"], &["low_flood has no executors"]),
        (
            &["--compare", "placement=pull", "executors_3x3", "--tasks", "900"],
            &["--tasks", "[executors]"],
        ),
        (&["--compare", "placement=pull", "--short"], &["--short", "generates its own tasks"]),
        (&["--compare", "law=cubic", "--until", "4"], &["--until", "name a pipeline scenario"]),
        (&["--compare", "law=cubic", "low_flood"], &["low_flood has no pipeline"]),
        (&["--compare", "pick=random", "sawtooth"], &["sawtooth has no gateway"]),
        (&["--replay", "nowhere", "--rate", "2"], &["--rate", "recorded"]),
        (&["sawtooth", "--rate", "2"], &["--rate", "rates of a gateway's classes", "sawtooth"]),
        (&["executors_3x3", "--upstreams", "2"], &["--upstreams", "executors_3x3"]),
        (&["--list", "--short"], &["--list"]),
    ];
    for (args, says) in cases {
        let output = sim(args);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        for part in says {
            assert!(told.contains(part), "{args:?}: {part:?} is not in {told}");
        }
    }
}

#[test]
fn laws_stand_side_by_side_in_a_scenario_of_a_pipeline() {
    let run = || sim(&["--compare", "law=seed,cubic", "blocked_store", "--short"]);
    let output = run();
    let table = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: Vec<_> = table.lines().collect();
    assert_eq!(rows.len(), 2 + 2, "{table}");
    assert!(rows[2].starts_with("| seed ") && rows[3].starts_with("| cubic "), "{table}");
    assert_ne!(rows[2].replace("seed ", "cubic"), rows[3], "each has its own law");
    assert_eq!(output.stdout, run().stdout);
}

#[test]
fn placements_stand_side_by_side_in_a_scenario_of_executors() {
    let args = ["--compare", "placement=queue,seed", "executors_3x3", "--short"];
    let output = sim(&args);
    let table = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: Vec<_> = table.lines().collect();
    assert_eq!(rows.len(), 2 + 2, "{table}");
    assert!(rows[2].starts_with("| queue ") && rows[3].starts_with("| seed "), "{table}");
    let started = |row: &str| row.split('|').nth(2).unwrap().trim().parse::<f64>().unwrap();
    assert!(started(rows[2]) > 95.0 && started(rows[3]) < 50.0, "{table}");
    assert_eq!(output.stdout, sim(&args).stdout);
}
