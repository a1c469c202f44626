use super::schema::{AnyList, AnySetting, State, env_name};
use super::table::Table;
use std::fmt::Write;
use tidegate::admission::Role;

const INTRODUCTION: &str = "\
# The configuration of Tidegate. A line that starts with \"#key =\" shows the default: remove the \"#\" to
# change it. The environment overrides this file, and flags override both. After a change:
#
#     tidegate config check    reports every error
#     tidegate config show     shows every effective value and its origin
";

/// A configuration file with every setting explained, in which all defaults are commented out.
#[must_use]
pub fn init_file() -> String {
    let table = Table::new();
    let mut text = String::from(INTRODUCTION);
    let mut section = None;
    for setting in table.settings() {
        if setting.state().section() != section {
            section = setting.state().section();
            let _ = write!(text, "\n[{}]\n", section.unwrap_or_default());
        }
        write_setting(&mut text, setting);
    }
    for list in table.lists() {
        write_list(&mut text, list);
    }
    text
}

fn write_setting(text: &mut String, setting: &dyn AnySetting) {
    let field = setting.state();
    let names: Vec<_> = field.env_names().collect();
    let flags = [field.names.flag, field.names.off_flag].into_iter().flatten();
    let flag: String = flags.map(|flag| format!("; flag: --{flag}")).collect();
    let default = setting.shown().map(|value| value.to_string());
    let default = default.or(field.example_toml()).unwrap_or_default();
    let note = match setting.preset(Role::Gate) {
        Some(_) => format!(" By role: {}.", setting.default_note().unwrap_or_default()),
        None if setting.shown().is_none() => " Not set by default.".to_owned(),
        None => String::new(),
    };
    let _ = writeln!(text, "\n# {}{note}", field.doc);
    let _ = writeln!(text, "# Allowed: {}.", field.limits.allowed);
    let _ = writeln!(text, "# Environment: {}{flag}", names.join(", "));
    let _ = writeln!(text, "#{} = {default}", field.name);
}

fn write_list(text: &mut String, list: &dyn AnyList) {
    let (field, sample) = (list.field(), list.sample());
    let _ = write!(text, "\n# {} At most {}.", field.doc, field.max);
    if let Some(flag) = field.flag {
        let name = env_name(field.key);
        let _ = write!(text, " Environment, with commas: {name}; flag: --{flag}");
    }
    let _ = writeln!(text, "\n#");
    for setting in sample.settings() {
        let State { name, doc, limits, .. } = setting.state();
        let _ = write!(text, "# {name}: {doc} Allowed: {}.", limits.allowed);
        let default = setting.default_note().filter(|default| !matches!(&**default, "" | "[]"));
        let default = default.map(|default| format!(" Default {default}."));
        let _ = writeln!(text, "{}", default.unwrap_or_default());
    }
    let _ = writeln!(text, "#[[{}]]", field.key);
    for setting in sample.settings() {
        if let Some(example) = setting.state().example_toml() {
            let _ = writeln!(text, "#{} = {example}", setting.state().name);
        }
    }
}
