//! Progress merges without losing a count, whatever the order, and stays within its bounds.

use proptest::prelude::*;
use std::collections::BTreeMap;
use tidegate_core::progress::{
    COUNTERS_MAX, GAUGES_MAX, HISTOGRAMS_MAX, Histogram, LINE_BYTES_MAX, MESSAGE_BYTES_MAX,
    NAME_BYTES_MAX, Progress, ProgressLines, parse_line,
};

/// A report whose names are among `names` different ones.
fn report(names: usize) -> impl Strategy<Value = Progress> {
    let name = (0..names).prop_map(|n| Box::from(format!("n{n}")));
    let counters = prop::collection::btree_map(name.clone(), any::<u64>(), 0..8);
    // Eighths: a parser of JSON may round others by one bit.
    let value = any::<i32>().prop_map(|eighths| f64::from(eighths) / 8.0);
    let gauges = prop::collection::btree_map(name, value, 0..8);
    let name = (0..names).prop_map(|n| Box::from(format!("h{}", n % HISTOGRAMS_MAX)));
    let histogram = prop::array::uniform4(any::<u64>()).prop_map(|counts| {
        Histogram::new(vec![0.5, 1.0, 25.0], counts.to_vec()).expect("it is one")
    });
    let histograms = prop::collection::btree_map(name, histogram, 0..4);
    let message = prop::option::of("[a-z ]{0,20}".prop_map(Box::from));
    let parts = (counters, gauges, histograms, message, any::<Option<u64>>(), any::<Option<u64>>());
    parts.prop_map(|(counters, gauges, histograms, message, done, total)| Progress {
        counters,
        gauges,
        histograms,
        message,
        done,
        total,
    })
}

fn merged<'a>(reports: impl IntoIterator<Item = &'a Progress>) -> Progress {
    let mut all = Progress::default();
    for report in reports {
        assert_eq!(all.merge(report), 0, "every name fits");
    }
    all
}

proptest! {
    #[test]
    fn a_merge_loses_no_count(
        reports in prop::collection::vec(report(COUNTERS_MAX.min(GAUGES_MAX)), 0..30),
        order in any::<prop::sample::Index>(),
        repeated in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let mut highest = BTreeMap::<Box<str>, u64>::new();
        for (name, value) in reports.iter().flat_map(|report| &report.counters) {
            let known = highest.entry(name.clone()).or_default();
            *known = (*known).max(*value);
        }
        let all = merged(&reports);
        prop_assert_eq!(&all.counters, &highest);
        for (name, known) in &all.histograms {
            let given = reports.iter().filter_map(|report| report.histograms.get(name));
            let given: Vec<_> = given.map(Histogram::counts).collect();
            for (bucket, count) in known.counts().iter().enumerate() {
                prop_assert_eq!(Some(*count), given.iter().map(|counts| counts[bucket]).max());
            }
        }
        // In another order, and some of them twice.
        let mut other = reports.clone();
        if !other.is_empty() {
            other.rotate_left(order.index(reports.len()));
            other.reverse();
            other.extend(repeated.iter().map(|at| reports[at.index(reports.len())].clone()));
        }
        prop_assert_eq!(&merged(&other).counters, &highest);
        prop_assert_eq!(&merged(&other).histograms, &all.histograms);
        // In two halves, each merged elsewhere first.
        let (left, right) = reports.split_at(reports.len() / 2);
        let halves = merged([&merged(right), &merged(left)]);
        prop_assert_eq!((&halves.counters, &halves.histograms), (&highest, &all.histograms));
    }

    #[test]
    fn a_repeated_merge_changes_nothing(before in report(20), newer in report(20)) {
        let once = merged([&before, &newer]);
        prop_assert_eq!(merged([&before, &newer, &newer]), once.clone());
        prop_assert_eq!(merged([&once, &once]), once);
    }

    #[test]
    fn names_beyond_the_limit_are_refused_and_counted(
        reports in prop::collection::vec(report(1_000), 0..60),
    ) {
        let mut all = Progress::default();
        for report in &reports {
            let fresh = |known: bool| usize::from(!known);
            let unknown: usize =
                report.counters.keys().map(|name| fresh(all.counters.contains_key(name))).sum();
            let before = all.clone();
            let refused = all.merge(report);
            prop_assert!(refused <= report.counters.len() + report.gauges.len());
            prop_assert!(all.counters.len() <= COUNTERS_MAX && all.gauges.len() <= GAUGES_MAX);
            if before.counters.len() + unknown <= COUNTERS_MAX && report.gauges.is_empty() {
                prop_assert_eq!(refused, 0);
            }
            for (name, value) in &before.counters {
                prop_assert!(all.counters[name] >= *value, "a known counter stays");
            }
        }
    }

    #[test]
    fn a_report_comes_back_from_its_line(report in report(20)) {
        let line = serde_json::to_vec(&report).unwrap();
        prop_assert_eq!(parse_line(&line).unwrap(), report);
    }

    #[test]
    fn garbage_is_refused_or_within_the_bounds(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
    ) {
        let mut lines = ProgressLines::default();
        let mut check = |line: Result<&[u8], _>| {
            let Ok(line) = line else { return };
            assert!(line.len() <= LINE_BYTES_MAX && !line.contains(&b'\n'));
            let Ok(progress) = parse_line(line) else { return };
            assert!(progress.message.is_none_or(|message| message.len() <= MESSAGE_BYTES_MAX));
            assert!(progress.counters.keys().all(|name| name.len() <= NAME_BYTES_MAX));
        };
        for piece in &pieces {
            lines.push(piece, &mut check);
        }
        lines.finish(&mut check);
    }
}
