use crate::config::errors::{ErrorList, quoted};
use crate::config::schema::{AnySetting, Setting};
use crate::config::value::shape::{Shape, TOKEN};
use crate::config::value::{CertificateName, Raw, TokenDigest};
use std::collections::{BTreeMap, BTreeSet};

/// The environment of the process, and the variables that set the configuration, which can't hold a secret.
#[derive(Clone, Copy)]
pub struct Variables<'a> {
    pub env: &'a BTreeMap<String, String>,
    pub reserved: &'a BTreeSet<String>,
}

/// The settings by which the client or operator of an entry is known: one of three that give a token, a client
/// certificate, or both.
pub struct IdentitySettings<'a> {
    pub token: &'a Setting<Option<TokenDigest>>,
    pub sha256: &'a Setting<Option<TokenDigest>>,
    pub variable: &'a Setting<Option<String>>,
    pub certificate: &'a Setting<Option<CertificateName>>,
}

/// The token and the name in a client certificate by which a client, an operator or a worker is known, at
/// least one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Digest of the token.
    pub token: Option<TokenDigest>,
    /// Name in the certificate.
    pub certificate: Option<CertificateName>,
}

/// The entries that have a token, a certificate or a name, to find those that have the same one.
#[derive(Default)]
pub struct Taken {
    tokens: BTreeMap<TokenDigest, String>,
    certificates: BTreeMap<CertificateName, String>,
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

// === impl IdentitySettings ===

impl IdentitySettings<'_> {
    /// True if the entry gives a token, or tried to.
    pub fn has_token(&self) -> bool {
        self.of_token().iter().any(|setting| !setting.state().is_missing())
    }

    /// The token and certificate of the entry.
    pub fn resolve(&self, variables: Variables<'_>, errors: &mut ErrorList) -> Option<Identity> {
        let settings = self.of_token();
        let is_sound = |setting: &&dyn AnySetting| setting.state().is_sound;
        if !settings.iter().all(is_sound) || !self.certificate.state.is_sound {
            return None;
        }
        let certificate = self.certificate.get();
        let given = settings.iter().map(|setting| setting.state()).filter(|state| state.is_given);
        let given: Vec<&str> = given.map(|state| state.name).collect();
        let token = match given.len() {
            0 if certificate.is_some() => None,
            1 => Some(self.token(variables, errors)?),
            _ => {
                let none = given.is_empty();
                let given = if none { "nothing".to_owned() } else { given.join(" and ") };
                let beside = if none { "; or a certificate" } else { "" };
                let allowed =
                    format!("one of token ({}), token_sha256 and token_env{beside}", TOKEN.allowed);
                errors.push(self.token.error(given, allowed));
                return None;
            }
        };
        Some(Identity { token, certificate })
    }

    fn of_token(&self) -> [&dyn AnySetting; 3] {
        [self.token, self.sha256, self.variable]
    }

    /// The digest of the token that one of the settings gives.
    fn token(&self, variables: Variables<'_>, errors: &mut ErrorList) -> Option<TokenDigest> {
        let mut of_variable = || variables.secret(self.variable, TOKEN, errors);
        let direct = self.token.get().or(self.sha256.get());
        direct.or_else(|| of_variable().map(|token| TokenDigest::of(token.as_bytes())))
    }
}

// === impl Taken ===

impl Taken {
    /// Notes name, token and certificate of an entry, with an error for each that an earlier entry has.
    pub fn note(
        &mut self,
        (name_setting, name): (&Setting<String>, &str),
        settings: &IdentitySettings<'_>,
        identity: &Identity,
        errors: &mut ErrorList,
    ) {
        let entry = name_setting.state.key.trim_end_matches(".name").to_owned();
        if let Some(first) = self.names.insert(name.to_owned(), entry.clone()) {
            let allowed = format!("a name of its own: {first} has this one");
            errors.push(name_setting.error(quoted(name), allowed));
        }
        if let Some(certificate) = &identity.certificate
            && let Some(first) = self.certificates.insert(certificate.clone(), entry.clone())
        {
            let allowed = format!("a certificate of its own: {first} has this one");
            errors.push(settings.certificate.error(quoted(&certificate.to_string()), allowed));
        }
        if let Some(token) = identity.token
            && let Some(first) = self.tokens.insert(token, entry)
        {
            let allowed = format!("a token of its own: {first} has this one");
            errors.push(settings.token.error("a token", allowed));
        }
    }
}
