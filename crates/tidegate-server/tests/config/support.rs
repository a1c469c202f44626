use tidegate_server::config::{Config, ConfigError, ConfigErrors, Effective, Loader, init_file};

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

/// The documentation of the table of settings, as the initial file has it.
#[derive(Debug, Default)]
pub struct Documentation {
    /// The sections in their order, each as often as it begins.
    pub sections: Vec<String>,
    /// The lists in their order, with the first line of their documentation.
    pub lists: Vec<(String, String)>,
    /// Every setting, and every setting of an entry of a list.
    pub settings: Vec<Documented>,
}

/// The documentation of one setting.
#[derive(Debug)]
pub struct Documented {
    /// The key, such as `admission.high_limit` or `client[].token`.
    pub key: String,
    pub doc: String,
    pub allowed: String,
    /// Every environment variable that sets it.
    pub env_names: Vec<String>,
}

impl Documentation {
    /// Reads the initial file: blocks between empty lines, one for a section, a setting or a list.
    pub fn read() -> Self {
        let mut documentation = Self::default();
        for block in init_file().split("\n\n") {
            let lines: Vec<_> = block.trim().lines().collect();
            let list = lines.iter().find_map(|line| line.strip_prefix("#[[")?.strip_suffix("]]"));
            match (lines.as_slice(), list) {
                ([section], _) if section.starts_with('[') => {
                    documentation.sections.push(section.trim_matches(['[', ']']).to_owned());
                }
                (lines, Some(list)) => documentation.read_list(list, lines),
                ([doc, allowed, names, value], _) if allowed.starts_with("# Allowed: ") => {
                    let section = documentation.sections.last();
                    let prefix = section.map(|section| format!("{section}.")).unwrap_or_default();
                    let (key, _) = value.trim_start_matches('#').split_once(" = ").unwrap();
                    let names = names.strip_prefix("# Environment: ").unwrap();
                    let names = names.split(';').next().unwrap().split(", ").map(str::to_owned);
                    documentation.settings.push(Documented {
                        key: format!("{prefix}{key}"),
                        doc: doc.trim_start_matches('#').trim().to_owned(),
                        allowed: allowed["# Allowed: ".len()..].trim_end_matches('.').to_owned(),
                        env_names: names.collect(),
                    });
                }
                _ => {}
            }
        }
        documentation
    }

    fn read_list(&mut self, list: &str, lines: &[&str]) {
        let (doc, _) = lines[0].split_once(" At most ").unwrap();
        self.lists.push((list.to_owned(), doc.trim_start_matches('#').trim().to_owned()));
        for line in lines[1..].iter().filter_map(|line| line.strip_prefix("# ")) {
            let (key, rest) = line.split_once(": ").unwrap();
            let (doc, allowed) = rest.split_once(" Allowed: ").unwrap();
            let allowed = allowed.split(" Default ").next().unwrap_or_default();
            self.settings.push(Documented {
                key: format!("{list}[].{key}"),
                doc: doc.to_owned(),
                allowed: allowed.trim_end_matches('.').to_owned(),
                env_names: Vec::new(),
            });
        }
    }
}
