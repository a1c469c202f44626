//! The tables of settings in `docs/operating.md` have every key of their section, with its default.

use crate::support::effective;
use std::collections::BTreeSet;
use tidegate_server::config::{Effective, Loader};

const OPERATING: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operating.md"));

/// Sections with a table.
const SECTIONS: [&str; 4] = ["admission", "routing", "queue", "tasks"];

const ROLES: [&str; 3] = ["gate", "manager", "worker"];

/// The keys and the default of each row of a section's table.
fn rows(section: &str) -> Vec<(Vec<&'static str>, &'static str)> {
    let head = format!("| `[{section}]` | default | description |");
    let lines = OPERATING.lines().skip_while(|line| *line != head).skip(2);
    let cells = lines.map_while(|line| line.strip_prefix("| ")?.split_once(" | "));
    let row = |(keys, rest): (&'static str, &'static str)| {
        let keys = keys.split('`').skip(1).step_by(2).collect();
        (keys, rest.split(" | ").next().unwrap_or_default())
    };
    cells.map(row).collect()
}

/// The default as a table writes it: without quotes, and large powers of two as MiB.
fn written(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(bytes) if *bytes >= 1 << 20 && bytes % (1 << 20) == 0 => {
            format!("{} MiB", bytes >> 20)
        }
        other => other.to_string(),
    }
}

/// The settings of a node with this role.
fn preset(role: &str) -> Vec<Effective> {
    Loader::new().flag("--role", "role", role).load().unwrap().origins
}

#[test]
fn the_tables_have_every_setting_of_their_section() {
    for section in SECTIONS {
        let documented: Vec<_> = rows(section).into_iter().flat_map(|(keys, _)| keys).collect();
        let unique: BTreeSet<_> = documented.iter().map(|key| format!("{section}.{key}")).collect();
        assert_eq!(documented.len(), unique.len(), "{documented:?}");
        let keys = effective().into_iter().map(|setting| setting.key);
        let keys = keys.filter(|key| key.starts_with(&format!("{section}."))).collect();
        assert_eq!(unique, keys);
    }
}

#[test]
fn the_tables_have_the_default_of_every_setting() {
    for (section, role) in
        SECTIONS.into_iter().flat_map(|section| ROLES.map(|role| (section, role)))
    {
        let settings = preset(role);
        for (keys, default) in rows(section) {
            let default = default.replace(['`', ','], "");
            for key in keys {
                let key = format!("{section}.{key}");
                let setting = settings.iter().find(|setting| setting.key == key).unwrap();
                let Some(value) = setting.value.as_ref().map(written) else { continue };
                let by_role = setting.origin.to_string().starts_with("preset");
                let expected = if by_role { format!("{value} {role}") } else { value };
                assert!(default.contains(&expected), "{key} is {expected}, not {default}");
            }
        }
    }
}
