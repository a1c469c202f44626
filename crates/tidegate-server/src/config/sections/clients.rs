use super::tokens::{Taken, TokenSettings, Variables};
use crate::config::errors::ErrorList;
use crate::config::schema::record;
use crate::config::value::TokenDigest;
use crate::config::value::shape::{NAME, TENANTS, VARIABLE};
use std::fmt;
use tidegate::admission::MessagePriority;

record! {
    /// A client that is known by a token.
    #[derive(Clone, PartialEq)]
    pub struct Client from ClientSettings {
        /// Unique name of the client in logs and metrics.
        name: String = text(NAME).required().example("batch") => name;
        /// The token itself; the file must not be readable by everyone then.
        token: Option<TokenDigest> = token().unset();
        /// SHA-256 of the token, which keeps it out of this file.
        token_sha256: Option<TokenDigest> = token_sha256().unset();
        /// Environment variable with the token, which keeps it out of this file.
        token_env: Option<String> = text(VARIABLE).unset().example("BATCH_TOKEN");
        /// The highest priority that the client may claim.
        max_priority: MessagePriority = word().or(MessagePriority::High).example("low")
            => max_priority;
        /// The part of each admission limit that its requests may hold together, at least one slot.
        share: Option<f64> = ratio().unset().example("0.5") => share;
        /// Its part of busy upstreams in relation to other clients of the same priority.
        weight: u32 = whole(1, 1_000, "parts").or(1) => weight;
        /// Tenants whose usage the client may read. Default the tenant with the client's name.
        tenants: Option<Vec<String>> = texts(TENANTS).unset();
    }
    derived |settings| {
        /// Tenants whose usage the client may read, at least one.
        tenants: Vec<String> = settings.tenants.get().unwrap_or(vec![settings.name.get()]);
        /// Digest of its token, unique; the token has 16 … 512 visible ASCII characters.
        token: TokenDigest = TokenDigest::default();
    }
}

/// Omits the token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("name", &self.name)
            .field("max_priority", &self.max_priority)
            .field("share", &self.share)
            .finish_non_exhaustive()
    }
}

/// The clients of the list, with unique names and tokens. A reserved variable can't have a token.
pub fn clients(
    list: &[ClientSettings],
    variables: Variables<'_>,
    taken: &mut Taken,
    errors: &mut ErrorList,
) -> Vec<Client> {
    let mut clients: Vec<Client> = Vec::new();
    for entry in list {
        let name = entry.name.required(errors);
        let token = entry.token_settings().resolve(variables, errors);
        let (Some(name), Some(token)) = (name, token) else { continue };
        taken.note((&entry.name, &name), (&entry.token, token), errors);
        clients.push(Client { token, ..entry.config() });
    }
    clients
}

impl ClientSettings {
    fn token_settings(&self) -> TokenSettings<'_> {
        let (token, sha256) = (&self.token, &self.token_sha256);
        TokenSettings { token, sha256, variable: &self.token_env }
    }
}
