use tidegate_server::config::{Config, Mistake, Mistakes};

pub fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub fn mistakes(toml: &str) -> Mistakes {
    Config::from_toml(toml).unwrap_err()
}

pub fn about<'m>(mistakes: &'m Mistakes, field: &str) -> &'m Mistake {
    let mut found = mistakes.iter().filter(|mistake| mistake.field == field);
    let first = found.next().unwrap_or_else(|| panic!("nothing about {field} in {mistakes}"));
    assert!(found.next().is_none(), "twice about {field} in {mistakes}");
    first
}

pub fn only(toml: &str) -> Mistake {
    let mistakes = mistakes(toml);
    assert_eq!(mistakes.len(), 1, "{mistakes}");
    mistakes.iter().next().unwrap().clone()
}
