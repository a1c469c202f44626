use super::tokens::{Taken, TokenSettings, Variables};
use crate::config::errors::ErrorList;
use crate::config::schema::record;
use crate::config::value::TokenDigest;
use crate::config::value::shape::{NAME, VARIABLE};

record! {
    /// An operator that is known by a token.
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
    }
    derived |_settings| {
        /// Digest of its token, unique; the token has 16 … 512 visible ASCII characters.
        token: TokenDigest = TokenDigest::default();
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
        let settings = TokenSettings {
            token: &entry.token,
            sha256: &entry.token_sha256,
            variable: &entry.token_env,
        };
        let (name, token) = (entry.name.required(errors), settings.resolve(variables, errors));
        let (Some(name), Some(token)) = (name, token) else { continue };
        taken.note((&entry.name, &name), (&entry.token, token), errors);
        operators.push(Operator { token, ..entry.config() });
    }
    operators
}
