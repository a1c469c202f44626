use tidegate_sim::scenario::Scenario;

/// Reads a scenario. What is read is the same after it was written, and its short form is a scenario too.
pub fn run(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let scenario = match Scenario::read("fuzzed", &text) {
        Ok(scenario) => scenario,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let written = toml::to_string(&scenario).expect("a scenario can be written");
    assert_eq!(Scenario::read("fuzzed", &written).as_ref(), Ok(&scenario), "{written}");
    assert!(scenario.world().is_some(), "it has a target");
    let spans = scenario.phase_spans();
    assert!(spans.iter().all(|span| span.from_s <= span.until_s), "{spans:?}");
    assert_eq!(spans.last().map(|span| span.until_s), Some(scenario.duration_s));
    let judged_s = scenario.judged_s(None);
    assert!((0.0..=scenario.duration_s * 1.000_001).contains(&judged_s), "{judged_s}");
    // Of a scenario without load it is 0.
    assert!(scenario.capacity_per_s().is_none_or(|per_s| per_s >= 0.0 && per_s.is_finite()));
    let short = scenario.shortened();
    assert_eq!(short.phase_spans().len(), spans.len());
    true
}
