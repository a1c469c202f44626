use super::Origin;
use super::clients;
use super::field::{Field, List, env_name};
use super::items::{Item, Items};
use super::mistakes::{Ledger, Mistake, nearest, quoted};
use super::schema::{self, LISTS, SETTINGS};
use super::settings::Said;
use super::value::Raw;
use std::collections::BTreeMap;

/// Every name of ours starts so; one that nobody knows is a mistake.
const PREFIX: &str = "TIDEGATE_";

/// Variables of test programs, which mean nothing here.
const TEST_PREFIX: &str = "TIDEGATE_TEST_";

/// Reads the environment: settings, lists that have a short form, and names that look like ours.
pub(super) fn read(
    env: &BTreeMap<String, String>,
    said: &mut Said,
    items: &mut Items,
    ledger: &mut Ledger,
) {
    check_names(env, items, ledger);
    for field in SETTINGS {
        read_setting(field, env, said, ledger);
    }
    for list in LISTS {
        let name = env_name(list.key);
        if let (Some(text), Some(_)) = (env.get(&name), list.short) {
            let texts = [(text.as_str(), Origin::Env(name))];
            items.replace(list, short_items(list, texts, ledger));
        }
    }
}

/// Every name the setting has is checked; they must not disagree.
fn read_setting(
    field: &'static Field,
    env: &BTreeMap<String, String>,
    said: &mut Said,
    ledger: &mut Ledger,
) {
    let given: Vec<_> =
        field.env_names().filter_map(|name| env.get(&name).map(|text| (name, text))).collect();
    let raw = |text: &String| Raw::Untyped(text.clone());
    for (name, text) in given.iter().rev() {
        said.say(field, raw(text), Origin::Env(name.clone()));
    }
    let mut fit = given.iter().filter_map(|(name, text)| {
        field.kind.parse(&raw(text)).ok().map(|value| (name, text, value))
    });
    let Some((first, first_text, first_value)) = fit.next() else { return };
    for (name, text, _) in fit.filter(|(_, _, value)| *value != first_value) {
        let given = format!("{}, but {first} has {}", quoted(text), quoted(first_text));
        let allowed = format!("one value: unset {name} or {first}");
        ledger.add(Mistake::new(field.key, &Origin::Env(name.clone()), given, allowed));
    }
}

fn check_names(env: &BTreeMap<String, String>, items: &Items, ledger: &mut Ledger) {
    let known = known_names();
    let unknown = env.iter().filter(|(name, value)| {
        name.starts_with(PREFIX)
            && !name.starts_with(TEST_PREFIX)
            && *name != schema::CONFIG_VARIABLE
            && !is_service_link(name, value)
            && !known.contains(name)
            && !clients::token_variables(items).any(|variable| variable == name.as_str())
    });
    for (name, _) in unknown {
        let near = nearest(name, known.iter().map(String::as_str));
        let allowed = "the variables that `tidegate config init -` prints";
        let mistake =
            Mistake::new(name, &Origin::Env(name.clone()), "an unknown variable", allowed);
        ledger.add(mistake.suggest(near));
    }
}

/// Whether a container platform set it for a service whose name starts with `tidegate`: there, every process
/// gets `TIDEGATE_SERVICE_HOST`, `TIDEGATE_PORT_8000_TCP_ADDR` and their like without asking.
fn is_service_link(name: &str, value: &str) -> bool {
    let numbered = |(_, rest): (&str, &str)| rest.starts_with(|c: char| c.is_ascii_digit());
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.split_once("_PORT_").is_some_and(numbered)
        || (name.ends_with("_PORT") && value.contains("://"))
}

fn known_names() -> Vec<String> {
    let lists = LISTS.iter().filter(|list| list.short.is_some());
    let lists = lists.map(|list| env_name(list.key));
    SETTINGS.iter().flat_map(Field::env_names).chain(lists).collect()
}

/// Entries of a list from texts that each have some, with commas between.
pub(super) fn short_items<'a>(
    list: &'static List,
    texts: impl IntoIterator<Item = (&'a str, Origin)>,
    ledger: &mut Ledger,
) -> Vec<Item> {
    let mut items = Vec::new();
    let Some(field) = list.short.and_then(|short| list.field(short)) else { return items };
    for (text, origin) in texts {
        for part in text.split(',') {
            let mut item = Item::new(list, items.len() + 1, origin.clone());
            item.set(field, &Raw::Untyped(part.to_owned()), origin.clone(), ledger);
            items.push(item);
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_container_platform_are_not_ours() {
        for (name, value) in [
            ("TIDEGATE_SERVICE_HOST", "10.0.0.1"),
            ("TIDEGATE_SERVICE_PORT_HTTP", "8000"),
            ("TIDEGATE_PORT", "tcp://10.0.0.1:8000"),
            ("TIDEGATE_PORT_8000_TCP_ADDR", "10.0.0.1"),
            ("TIDEGATE_ADMIN_PORT_8001_TCP", "tcp://10.0.0.1:8001"),
        ] {
            assert!(is_service_link(name, value), "{name}");
        }
        assert!(!is_service_link("TIDEGATE_LISTEN_PORT", "8000"), "somebody's guess at a setting");
        let ours = known_names();
        assert!(!ours.iter().any(|name| is_service_link(name, "http://a:1")));
    }
}
