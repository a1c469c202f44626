use crate::support::{Documentation, effective, names};
use std::collections::BTreeSet;
use tidegate_server::config::{config_flags, init_file};

#[test]
fn the_documentation_has_every_setting() {
    let documentation = Documentation::read();
    let documented = documentation.settings.iter().map(|setting| setting.key.clone());
    let documented: Vec<_> = documented.filter(|key| !key.contains("[]")).collect();
    let keys: Vec<_> = effective().into_iter().map(|setting| setting.key).collect();
    assert_eq!(documented, keys);
}

#[test]
fn keys_are_unique() {
    let documentation = Documentation::read();
    let settings = documentation.settings.iter().map(|setting| &setting.key);
    let lists = documentation.lists.iter().map(|(list, _)| list);
    let mut unique = BTreeSet::new();
    for key in settings.chain(lists).chain(&documentation.sections) {
        assert!(unique.insert(key), "{key}");
    }
}

#[test]
fn a_section_stands_in_one_place() {
    let sections = Documentation::read().sections;
    let unique: BTreeSet<_> = sections.iter().cloned().collect();
    assert_eq!(sections.len(), unique.len(), "{sections:?}");
    let keys = effective().into_iter().map(|setting| setting.key);
    let used = keys.filter_map(|key| Some(key.split_once('.')?.0.to_owned())).collect();
    assert_eq!(unique, used);
}

#[test]
fn environment_names_are_unique() {
    let settings = Documentation::read().settings.into_iter();
    let lists = ["TIDEGATE_UPSTREAM", "TIDEGATE_EXECUTOR"].map(str::to_owned);
    let all: Vec<_> = settings.flat_map(|setting| setting.env_names).chain(lists).collect();
    let mut unique = BTreeSet::from(["TIDEGATE_CONFIG".to_owned()]);
    assert!(all.iter().all(|name| unique.insert(name.clone())), "{all:?}");
    assert!(names().iter().all(|name| unique.contains(name)), "{all:?}");
}

#[test]
fn every_setting_is_documented_in_one_line() {
    let documentation = Documentation::read();
    for setting in &documentation.settings {
        let doc = setting.doc.split(" By role: ").next().unwrap_or_default();
        let doc = doc.trim_end_matches("Not set by default.").trim();
        assert!(doc.len() > 1 && doc.ends_with('.'), "{}: {doc:?}", setting.key);
        assert!(!setting.allowed.is_empty(), "{}", setting.key);
        assert!(setting.key.len() + doc.len() < 120, "{}: {doc}", setting.key);
    }
    for (list, doc) in &documentation.lists {
        assert!(doc.len() > 1 && doc.ends_with('.'), "{list}: {doc:?}");
    }
}

#[test]
fn durations_have_their_unit_in_the_key() {
    for setting in effective() {
        let is_ms = setting.unit == Some("ms");
        assert_eq!(is_ms, setting.key.ends_with("_ms"), "{}", setting.key);
    }
    for setting in Documentation::read().settings {
        let is_ms = setting.allowed.ends_with(" ms");
        assert_eq!(is_ms, setting.key.ends_with("_ms"), "{}: {}", setting.key, setting.allowed);
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
