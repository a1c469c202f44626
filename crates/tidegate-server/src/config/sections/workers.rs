use super::tls::TlsFiles;
use super::tokens::{Identity, IdentitySettings, Taken, Variables};
use crate::config::errors::ErrorList;
use crate::config::policies::TlsMode;
use crate::config::schema::record;
use crate::config::value::shape::{ADDRESS, CERTIFICATE, NAME, VARIABLE};
use crate::config::value::{CertificateName, TokenDigest};
use std::net::SocketAddr;
use std::path::PathBuf;

record! {
    /// Port for workers, which dial their manager.
    #[derive(Clone, Debug, PartialEq)]
    pub struct WorkersConfig from WorkersSettings {
        /// Port for workers, which dial this manager; on in `tidegate manager`.
        enabled: bool = switch().or(false).flag("workers").off_flag("no-workers") => enabled;
        /// Address that workers dial; any but loopback needs TLS and a `[[worker]]`.
        address: SocketAddr = text(ADDRESS).or(loopback(8002)).flag("workers-listen") => address;
        /// Updates of progress that may wait for the manager; their share in use sets the backpressure level.
        updates_max: u64 = whole(64, 1_048_576, "updates").or(16_384) => updates_max;
        /// Admit workers by the certificates of the cluster's nodes; on after `tidegate cluster init`.
        node_certificates: bool = switch().or(false) => node_certificates;
        /// TLS of the port: on where a certificate is configured (auto), or plain text (off).
        tls: TlsMode = word().or(TlsMode::Auto);
        /// PEM certificate chain of the port, instead of `tls.cert`.
        tls_cert: Option<PathBuf> = path().unset().example("/path/to/cert.pem");
        /// PEM private key of `tls_cert`.
        tls_key: Option<PathBuf> = path().unset().example("/path/to/key.pem");
        /// PEM authorities of workers' certificates, instead of `tls.client_ca`.
        tls_client_ca: Option<PathBuf> = path().unset().example("/path/to/workers.pem");
    }
    derived |_settings| {
        /// TLS files of the port, its own or those of `[tls]`. Default none: plain text.
        tls: Option<TlsFiles> = None;
        /// Tokens and certificates of workers. Default none: workers need neither.
        identities: Vec<Identity> = Vec::new();
    }
}

record! { WorkerSettings {
    /// Unique name of the token or certificate, also among clients and operators. A worker has a name of its own.
    name: String = text(NAME).required().example("gpu-workers");
    /// The token itself; the file must not be readable by everyone then.
    token: Option<TokenDigest> = token().unset();
    /// SHA-256 of the token, which keeps it out of this file.
    token_sha256: Option<TokenDigest> = token_sha256().unset();
    /// Environment variable with the token, which keeps it out of this file.
    token_env: Option<String> = text(VARIABLE).unset().example("WORKERS_TOKEN");
    /// A name in the client certificate, at a port with client_ca.
    certificate: Option<CertificateName> = text(CERTIFICATE).unset();
}}

/// The tokens and certificates of the list, which neither a client nor an operator has.
pub fn worker_identities(
    list: &[WorkerSettings],
    variables: Variables<'_>,
    taken: &mut Taken,
    errors: &mut ErrorList,
) -> Vec<Identity> {
    let mut identities = Vec::new();
    for entry in list {
        let settings = IdentitySettings {
            token: &entry.token,
            sha256: &entry.token_sha256,
            variable: &entry.token_env,
            certificate: &entry.certificate,
        };
        let (name, identity) = (entry.name.required(errors), settings.resolve(variables, errors));
        let (Some(name), Some(identity)) = (name, identity) else { continue };
        taken.note((&entry.name, &name), &settings, &identity, errors);
        identities.push(identity);
    }
    identities
}
