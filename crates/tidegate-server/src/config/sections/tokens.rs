use crate::config::errors::{ErrorList, quoted};
use crate::config::schema::{AnySetting, Setting};
use crate::config::value::shape::{Shape, TOKEN};
use crate::config::value::{Raw, TokenDigest};
use std::collections::{BTreeMap, BTreeSet};

/// The environment of the process, and the variables that set the configuration, which can't hold a secret.
#[derive(Clone, Copy)]
pub struct Variables<'a> {
    pub env: &'a BTreeMap<String, String>,
    pub reserved: &'a BTreeSet<String>,
}

/// The settings of an entry that give its token: one of the three.
pub struct TokenSettings<'a> {
    pub token: &'a Setting<Option<TokenDigest>>,
    pub sha256: &'a Setting<Option<TokenDigest>>,
    pub variable: &'a Setting<Option<String>>,
}

/// The entries that have a token or a name, to find those that have the same one.
#[derive(Default)]
pub struct Taken {
    tokens: BTreeMap<TokenDigest, String>,
    names: BTreeMap<String, String>,
}

// === impl Variables ===

impl Variables<'_> {
    /// The secret of the variable that a setting names, if it has the shape; else an error.
    pub fn secret(
        &self,
        setting: &Setting<Option<String>>,
        shape: Shape,
        errors: &mut ErrorList,
    ) -> Option<String> {
        let variable = setting.get()?;
        let problem = match self.env.get(&variable) {
            _ if self.reserved.contains(&variable) => "which sets the configuration".to_owned(),
            None => "which is not set".to_owned(),
            Some(secret) if (shape.check)(secret.trim()) => return Some(secret.trim().to_owned()),
            Some(secret) => format!("which has {}", Raw::Untyped(secret).concealed()),
        };
        let given = format!("{}, {problem}", quoted(&variable));
        let allowed = format!("a variable that has {}", shape.allowed);
        errors.push(setting.error(given, allowed));
        None
    }
}

// === impl TokenSettings ===

impl TokenSettings<'_> {
    /// The digest of the entry's token.
    pub fn resolve(&self, variables: Variables<'_>, errors: &mut ErrorList) -> Option<TokenDigest> {
        let settings: [&dyn AnySetting; 3] = [self.token, self.sha256, self.variable];
        if settings.iter().any(|setting| !setting.state().is_sound) {
            return None;
        }
        let given = settings.iter().map(|setting| setting.state()).filter(|state| state.is_given);
        let given: Vec<&str> = given.map(|state| state.name).collect();
        if given.len() != 1 {
            let given = if given.is_empty() { "nothing".to_owned() } else { given.join(" and ") };
            let allowed = format!("one of token ({}), token_sha256 and token_env", TOKEN.allowed);
            errors.push(self.token.error(given, allowed));
            return None;
        }
        let mut of_variable = || variables.secret(self.variable, TOKEN, errors);
        let direct = self.token.get().or(self.sha256.get());
        direct.or_else(|| of_variable().map(|token| TokenDigest::of(token.as_bytes())))
    }
}

// === impl Taken ===

impl Taken {
    /// Notes name and token of an entry, with an error for each that an earlier entry has.
    pub fn note(
        &mut self,
        (name_setting, name): (&Setting<String>, &str),
        (token_setting, token): (&Setting<Option<TokenDigest>>, TokenDigest),
        errors: &mut ErrorList,
    ) {
        let entry = name_setting.state.key.trim_end_matches(".name").to_owned();
        if let Some(first) = self.names.insert(name.to_owned(), entry.clone()) {
            let allowed = format!("a name of its own: {first} has this one");
            errors.push(name_setting.error(quoted(name), allowed));
        }
        if let Some(first) = self.tokens.insert(token, entry) {
            let allowed = format!("a token of its own: {first} has this one");
            errors.push(token_setting.error("a token", allowed));
        }
    }
}
