use super::{LISTS, SETTINGS};
use crate::config::field::{Field, List, env_name};

/// Names the configuration file; read by the command line, not here.
pub(in crate::config) const CONFIG_VARIABLE: &str = "TIDEGATE_CONFIG";

/// The setting of that key.
pub(in crate::config) fn setting(key: &str) -> Option<&'static Field> {
    SETTINGS.iter().find(|field| field.key == key)
}

/// The list of that key.
pub(in crate::config) fn list(key: &str) -> Option<&'static List> {
    LISTS.iter().find(|list| list.key == key)
}

/// The sections of the file, in the order of the table.
pub(in crate::config) fn sections() -> Vec<&'static str> {
    let mut sections: Vec<_> = SETTINGS.iter().filter_map(Field::section).collect();
    sections.dedup();
    sections
}

/// Every key that a file may have outside of lists.
pub(in crate::config) fn known_keys() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|field| field.key).chain(LISTS.iter().map(|list| list.key))
}

/// Whether this environment name already means a setting or a list.
pub(in crate::config) fn env_name_is_setting(name: &str) -> bool {
    SETTINGS.iter().any(|field| field.env_names().any(|known| known == name))
        || LISTS.iter().any(|list| env_name(list.key) == name)
        || name == CONFIG_VARIABLE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::field::Fallback;
    use crate::config::value::Raw;
    use std::collections::BTreeSet;

    fn all_fields() -> impl Iterator<Item = &'static Field> {
        SETTINGS.iter().chain(LISTS.iter().flat_map(|list| list.fields))
    }

    #[test]
    fn every_field_is_documented_in_one_line() {
        for field in all_fields() {
            assert!(!field.doc.is_empty() && !field.doc.contains('\n'), "{}", field.key);
            assert!(!field.kind.allowed(field.unit).is_empty(), "{}", field.key);
            assert!(field.key.len() + field.doc.len() < 120, "{}", field.key);
        }
    }

    #[test]
    fn every_default_is_allowed() {
        for field in all_fields() {
            if let Fallback::Is(text) = field.fallback {
                let parsed = field.kind.parse(&Raw::Untyped(text.to_owned()));
                assert!(parsed.is_ok(), "{}: {parsed:?}", field.key);
            }
        }
    }

    #[test]
    fn keys_and_environment_names_are_unique() {
        let mut keys = BTreeSet::new();
        let mut names = BTreeSet::from(["TIDEGATE_CONFIG".to_owned(), env_name("upstream")]);
        for field in SETTINGS {
            assert!(keys.insert(field.key), "{}", field.key);
            for name in field.env_names() {
                assert!(names.insert(name.clone()), "{name}");
            }
        }
        assert!(LISTS.iter().all(|list| keys.insert(list.key)));
    }

    #[test]
    fn a_section_stands_in_one_place() {
        let sections = sections();
        assert_eq!(sections.len(), sections.iter().collect::<BTreeSet<_>>().len(), "{sections:?}");
    }

    #[test]
    fn whole_numbers_of_time_say_their_unit_in_the_key() {
        for field in all_fields() {
            assert_eq!(field.unit == Some("ms"), field.key.ends_with("_ms"), "{}", field.key);
        }
    }
}
