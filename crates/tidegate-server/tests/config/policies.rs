//! Policies: each has a word of its own in every layer, and `config show` gives the word back.

use crate::support::{Documentation, env};
use std::collections::BTreeSet;
use tidegate_server::config::{Loader, Origin};

/// Settings of sections whose value is a policy.
const POLICIES: usize = 23;

/// Policies of list entries, each with an entry that is complete but for its policy.
const ENTRIES: [(&str, &str); 5] = [
    ("upstream[].limit_preset", "[[upstream]]\nurl = \"http://a\""),
    ("client[].max_priority", "[[client]]\nname = \"b\"\ntoken = \"0123456789abcdeg\""),
    ("route[].priority", "[[route]]\nmethod = \"POST\""),
    ("model[].preset", "[[model]]\nname = \"m\""),
    ("runtime[].network", "[[runtime]]\nname = \"node\"\ncommand = \"node\""),
];

/// A client, without which requests without a token can't be refused.
const CLIENT: &str = "[[client]]\nname = \"a\"\ntoken = \"0123456789abcdef\"\n";

/// The words of a policy; none if other values are allowed too.
fn words(allowed: &str) -> Vec<String> {
    let words = allowed.split(';').next().unwrap_or_default().replace(" or ", ", ");
    let unquoted = |word: &str| Some(word.strip_prefix('"')?.strip_suffix('"')?.to_owned());
    words.split(", ").map(unquoted).collect::<Option<_>>().unwrap_or_default()
}

/// The value that `config show` prints for the last setting with this key, as a word.
fn shown(loader: &Loader, key: &str) -> (String, Origin) {
    let loaded = loader.load().unwrap_or_else(|errors| panic!("{errors}"));
    let setting = loaded.origins.iter().rev().find(|setting| setting.key == key).unwrap();
    (setting.value.as_ref().unwrap().as_str().unwrap().to_owned(), setting.origin.clone())
}

#[test]
fn every_word_means_one_policy_and_back() {
    let mut policies = 0;
    for setting in Documentation::read().settings {
        let words = words(&setting.allowed);
        let unique: BTreeSet<_> = words.iter().collect();
        assert_eq!(unique.len(), words.len(), "{}: {words:?}", setting.key);
        if words.is_empty() || setting.key.contains("[]") {
            continue;
        }
        policies += 1;
        assert!(words.len() > 1, "{} has no choice", setting.key);
        let key = &setting.key;
        for word in &words {
            let base = || Loader::new().file("f", CLIENT);
            for loader in [
                Loader::new().file("f", format!("{key} = \"{word}\"\n{CLIENT}")),
                base().env(env(&[(&setting.env_names[0], word)])),
                base().flag("--set", key, word),
            ] {
                let (found, origin) = shown(&loader, key);
                assert!(found == *word && origin.is_explicit(), "{key}: {word} became {found}");
            }
        }
        let unknown = Loader::new().file("f", CLIENT).flag("--set", key, "no such word").load();
        assert_eq!(unknown.unwrap_err()[0].allowed, setting.allowed, "{key}");
    }
    assert_eq!(policies, POLICIES, "a setting with words is missing here, or is new");
}

#[test]
fn words_of_list_entries_mean_one_policy_and_back() {
    let documentation = Documentation::read();
    let policies = documentation.settings.iter().filter(|setting| setting.key.contains("[]"));
    let policies: Vec<_> = policies.filter(|setting| !words(&setting.allowed).is_empty()).collect();
    assert_eq!(policies.len(), ENTRIES.len(), "{policies:?}");
    for (key, entry) in ENTRIES {
        let setting = policies.iter().find(|setting| setting.key == key).unwrap();
        let (_, name) = key.split_once('.').unwrap();
        let first = key.replace("[]", "[1]");
        for word in words(&setting.allowed) {
            let loader = Loader::new().file("f", format!("{entry}\n{name} = \"{word}\""));
            assert_eq!(shown(&loader, &first).0, word, "{key}");
        }
        let unknown = Loader::new().file("f", format!("{entry}\n{name} = \"no such word\""));
        assert_eq!(unknown.load().unwrap_err()[0].allowed, setting.allowed, "{key}");
    }
}
