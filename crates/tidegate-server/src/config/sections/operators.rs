use super::tokens::{IdentitySettings, Taken, Variables};
use crate::config::errors::ErrorList;
use crate::config::schema::record;
use crate::config::value::shape::{CERTIFICATE, NAME, VARIABLE};
use crate::config::value::{CertificateName, TokenDigest};

record! {
    /// An operator that is known by a token, a client certificate, or either.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Operator from OperatorSettings {
        /// Unique name of the operator, also among clients.
        name: String = text(NAME).required().example("ops") => name;
        /// The token itself; the file must not be readable by everyone then.
        token: Option<TokenDigest> = token().unset();
        /// SHA-256 of the token, which keeps it out of this file.
        token_sha256: Option<TokenDigest> = token_sha256().unset();
        /// Environment variable with the token, which keeps it out of this file.
        token_env: Option<String> = text(VARIABLE).unset().example("OPS_TOKEN");
        /// A name in its client certificate, at ports with client_ca.
        certificate: Option<CertificateName> = text(CERTIFICATE).unset() => certificate;
    }
    derived |_settings| {
        /// Digest of its token, unique; the token has 16 … 512 visible ASCII characters.
        token: Option<TokenDigest> = None;
    }
}

/// The operators of the list, with names and tokens that neither another operator nor a client has.
pub fn operators(
    list: &[OperatorSettings],
    variables: Variables<'_>,
    taken: &mut Taken,
    errors: &mut ErrorList,
) -> Vec<Operator> {
    let mut operators = Vec::new();
    for entry in list {
        let name = entry.name.required(errors);
        let identity = entry.identity().resolve(variables, errors);
        let (Some(name), Some(identity)) = (name, identity) else { continue };
        taken.note((&entry.name, &name), &entry.identity(), &identity, errors);
        operators.push(Operator { token: identity.token, ..entry.config() });
    }
    operators
}

impl OperatorSettings {
    pub fn identity(&self) -> IdentitySettings<'_> {
        IdentitySettings {
            token: &self.token,
            sha256: &self.token_sha256,
            variable: &self.token_env,
            certificate: &self.certificate,
        }
    }
}
