use crate::config::Origin;
use crate::config::errors::{ConfigError, ErrorList, quoted};
use crate::config::renamed::{renamed_key, renamed_keys};
use crate::config::schema::{AnySetting, env_name};
use crate::config::table::Table;
use crate::config::value::Raw;
use std::collections::BTreeMap;
use tidegate::suggestion::nearest;

/// Prefix of every variable of Tidegate; an unknown one is an error.
const PREFIX: &str = "TIDEGATE_";

/// Variables of commands and workers, which a service may inherit.
const OF_COMMANDS: [&str; 5] = [
    "TIDEGATE_TOKEN",
    "TIDEGATE_CA",
    "TIDEGATE_CERT",
    "TIDEGATE_CERT_KEY",
    "TIDEGATE_WORKER_TOKEN",
];

/// Applies the environment to the table, and reports unknown names with the prefix of Tidegate.
pub fn read(env: &BTreeMap<String, String>, table: &mut Table, errors: &mut ErrorList) {
    check_names(env, table, errors);
    for setting in table.settings_mut() {
        read_setting(setting, env, errors);
    }
    for list in table.lists_mut() {
        let name = env_name(list.field().key);
        if let (Some(text), Some(_)) = (env.get(&name), list.field().flag) {
            list.clear();
            list.add_short(text, &Origin::Env(name), errors);
        }
    }
}

/// Applies every variable of a setting; the values must be equal.
fn read_setting(
    setting: &mut dyn AnySetting,
    env: &BTreeMap<String, String>,
    errors: &mut ErrorList,
) {
    let mut accepted = Vec::new();
    let names: Vec<_> = setting.state().env_names().filter(|name| env.contains_key(name)).collect();
    for name in names.into_iter().rev() {
        let text = &env[&name];
        if setting.set(Raw::Untyped(text), Origin::Env(name.clone()), errors) {
            accepted.push((name, text, setting.shown()));
        }
    }
    let Some((first, first_text, value)) = accepted.pop() else { return };
    for (name, text, _) in accepted.iter().rev().filter(|(_, _, other)| *other != value) {
        let given = format!("{}, but {first} has {}", quoted(text), quoted(first_text));
        let allowed = format!("one value: unset {name} or {first}");
        let key = &setting.state().key;
        errors.push(ConfigError::new(key, &Origin::Env(name.clone()), given, allowed));
    }
}

fn check_names(env: &BTreeMap<String, String>, table: &Table, errors: &mut ErrorList) {
    let known = table.env_names();
    let clients = table.client.entries.iter().filter_map(|client| client.token_env.get());
    let keys = table.upstream.entries.iter().filter_map(|upstream| upstream.api_key_env.get());
    let operators = table.operator.entries.iter().filter_map(|entry| entry.token_env.get());
    let executors = table.executor.entries.iter().filter_map(|entry| entry.token_env.get());
    let secrets: Vec<_> = clients.chain(operators).chain(keys).chain(executors).collect();
    let unknown = env.iter().filter(|(name, value)| {
        name.starts_with(PREFIX)
            // Variables of test programs.
            && !name.starts_with("TIDEGATE_TEST_")
            && !OF_COMMANDS.contains(&name.as_str())
            && !is_service_link(name, value)
            && !known.contains(*name)
            && !secrets.contains(name)
    });
    for (name, _) in unknown {
        let origin = Origin::Env(name.clone());
        let renamed = renamed_keys().find(|old| env_name(old) == *name);
        if let Some(error) = renamed.and_then(|old| renamed_key(old, &origin)) {
            errors.push(error);
            continue;
        }
        let near = nearest(name, known.iter().map(String::as_str));
        let allowed = "the variables that `tidegate config init -` prints";
        let error = ConfigError::new(name, &origin, "an unknown variable", allowed);
        errors.push(error.suggest(near));
    }
}

/// Recognises a variable that a container platform sets for a service whose name starts with `tidegate`: every
/// process there gets `TIDEGATE_SERVICE_HOST`, `TIDEGATE_PORT_8000_TCP_ADDR` and the like.
fn is_service_link(name: &str, value: &str) -> bool {
    let numbered = |(_, rest): (&str, &str)| rest.starts_with(|c: char| c.is_ascii_digit());
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.split_once("_PORT_").is_some_and(numbered)
        || (name.ends_with("_PORT") && value.contains("://"))
}
