use super::tokens::{IdentitySettings, Taken, Variables};
use crate::config::errors::ErrorList;
use crate::config::schema::record;
use crate::config::value::shape::{CERTIFICATE, NAME, TENANTS, VARIABLE};
use crate::config::value::{CertificateName, TokenDigest};
use std::fmt;
use tidegate::admission::MessagePriority;

record! {
    /// A client that is known by a token, a client certificate, or either.
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
        /// A name in its client certificate, at ports with client_ca.
        certificate: Option<CertificateName> = text(CERTIFICATE).unset() => certificate;
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
        token: Option<TokenDigest> = None;
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

/// The clients of the list, with unique names, tokens and certificates. A reserved variable can't have a token.
pub fn clients(
    list: &[ClientSettings],
    variables: Variables<'_>,
    taken: &mut Taken,
    errors: &mut ErrorList,
) -> Vec<Client> {
    let mut clients: Vec<Client> = Vec::new();
    for entry in list {
        let name = entry.name.required(errors);
        let identity = entry.identity().resolve(variables, errors);
        let (Some(name), Some(identity)) = (name, identity) else { continue };
        taken.note((&entry.name, &name), &entry.identity(), &identity, errors);
        clients.push(Client { token: identity.token, ..entry.config() });
    }
    clients
}

impl ClientSettings {
    pub fn identity(&self) -> IdentitySettings<'_> {
        IdentitySettings {
            token: &self.token,
            sha256: &self.token_sha256,
            variable: &self.token_env,
            certificate: &self.certificate,
        }
    }
}
