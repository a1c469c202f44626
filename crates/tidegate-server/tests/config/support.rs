use tidegate_server::config::{Config, ConfigError, ConfigErrors, Effective, Loader};

pub fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub fn errors(toml: &str) -> ConfigErrors {
    Config::from_toml(toml).unwrap_err()
}

pub fn about<'m>(errors: &'m ConfigErrors, field: &str) -> &'m ConfigError {
    let mut found = errors.iter().filter(|error| error.field == field);
    let first = found.next().unwrap_or_else(|| panic!("nothing about {field} in {errors}"));
    assert!(found.next().is_none(), "twice about {field} in {errors}");
    first
}

pub fn only(toml: &str) -> ConfigError {
    let errors = errors(toml);
    assert_eq!(errors.len(), 1, "{errors}");
    errors.iter().next().unwrap().clone()
}

/// Every setting with its default.
pub fn effective() -> Vec<Effective> {
    Loader::new().load().unwrap().origins
}

/// The environment variable of every setting and of every list that has one.
pub fn names() -> Vec<String> {
    let lists = ["upstream".to_owned(), "executor".to_owned()];
    let keys = effective().into_iter().map(|setting| setting.key).chain(lists);
    keys.map(|key| format!("TIDEGATE_{}", key.to_uppercase().replace('.', "_"))).collect()
}
