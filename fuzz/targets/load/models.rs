use serde_json::json;
use std::collections::BTreeSet;
use tidegate_server::gateway::load::parse_models;

/// Reads a list of models: bounded names, each once, and the same after they were listed again.
pub fn run(input: &[u8]) -> bool {
    let Ok(names) = parse_models(input) else { return false };
    assert!(names.len() <= 256);
    assert!(names.iter().all(|name| (1..=256).contains(&name.len())));
    assert!(!names.iter().any(|name| name.contains(char::is_control)));
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "each once");
    let listed: Vec<_> = names.iter().map(|name| json!({ "id": name })).collect();
    let again = json!({ "data": listed }).to_string();
    assert_eq!(parse_models(again.as_bytes()).ok(), Some(names));
    true
}
