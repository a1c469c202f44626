use super::client::{ClientIdentity, ClientTls, EITHER, upstream_connector};
use super::error::{TlsSetupError, TlsSetupErrors};
use super::port::{PortFiles, TlsPort};
use crate::config::{Config, ExecutorEntry, Scheme, TasksConfig};

/// TLS to executors elsewhere, if one of them has it.
///
/// # Errors
///
/// Everything that is wrong with its files.
pub fn tasks_tls(config: &TasksConfig) -> Result<Option<ClientTls>, TlsSetupErrors> {
    let is_https = |executor: &ExecutorEntry| executor.url.starts_with("https://");
    if !config.enabled || !config.executors.iter().any(is_https) {
        return Ok(None);
    }
    let identity = config.tls_cert.clone().zip(config.tls_key.clone());
    let identity = identity.map(|(cert, key)| ClientIdentity { cert, key });
    ClientTls::new(config.tls_ca.as_deref(), identity.as_ref(), "tasks.tls_ca").map(Some)
}

/// Reads and checks every TLS file of a node, without serving anything.
///
/// # Errors
///
/// Everything that is wrong with them.
pub fn check_tls_files(config: &Config) -> Result<(), TlsSetupErrors> {
    let (listen, ingest) = (&config.listen, &config.ingest);
    let port = |name, files| PortFiles { name, files, protocols: &[] };
    let ingested = |files| if ingest.enabled { files } else { None };
    let ports = [
        port("data", listen.tls.as_ref()),
        port("admin", listen.admin_tls.as_ref()),
        port("frames", ingested(ingest.frames_tls.as_ref())),
        port("lines", ingested(ingest.lines_tls.as_ref())),
        port("workers", config.workers.tls.as_ref().filter(|_| config.workers.enabled)),
    ];
    let any_https = config.upstreams.iter().any(|target| target.scheme == Scheme::Https);
    let bundle = config.proxy.tls_ca.as_deref();
    let upstreams = any_https.then(|| upstream_connector(bundle, &EITHER).err()).flatten();
    let upstreams = upstreams.map(|error: TlsSetupError| ("upstreams", error));
    let executors =
        tasks_tls(&config.tasks).err().into_iter().flat_map(TlsSetupErrors::into_errors);
    let errors = ports.into_iter().flat_map(TlsPort::errors).chain(upstreams).chain(executors);
    TlsSetupErrors::check(errors)
}
