use crate::support::{effective, names};
use std::collections::BTreeSet;
use tidegate_server::config::{config_flags, init_file};

#[test]
fn environment_names_are_unique() {
    let (all, mut unique) = (names(), BTreeSet::from(["TIDEGATE_CONFIG".to_owned()]));
    assert!(all.iter().all(|name| unique.insert(name.clone())), "{all:?}");
}

#[test]
fn durations_have_their_unit_in_the_key() {
    for setting in effective() {
        let is_ms = setting.unit == Some("ms");
        assert_eq!(is_ms, setting.key.ends_with("_ms"), "{}", setting.key);
    }
}

#[test]
fn the_initial_file_documents_every_key_and_flag() {
    let file = init_file();
    for name in names() {
        assert!(file.contains(&name), "{name}");
    }
    for flag in config_flags() {
        assert!(file.contains(&format!("flag: --{}", flag.name)), "{}", flag.name);
    }
    assert!(file.lines().all(|line| line.chars().count() < 200), "lines that people can read");
}

#[test]
fn flags_have_range_and_default_of_their_key() {
    let flags = config_flags();
    let help = |name: &str| flags.iter().find(|flag| flag.name == name).unwrap().help.clone();
    assert!(help("listen").ends_with("[default: 127.0.0.1:8000]"), "{}", help("listen"));
    let limit = help("high-limit");
    assert!(limit.contains("[a whole number, 0 … 65535 messages]"), "{limit}");
    assert!(limit.ends_with("[default: gate 1000, manager 2500, worker 250]"), "{limit}");
    assert!(!help("dry-run").contains('['), "{}", help("dry-run"));
}
