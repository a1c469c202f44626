use super::error::{TlsSetupError, TlsSetupErrors};
use super::file_state::FilesState;
use super::server::{self, Loaded};
use crate::config::TlsFiles;
use crate::http::Exposition;
use crate::http::wire::TLS_BUFFER_MAX;
use arc_swap::ArcSwap;
use jiff::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The longest handshake: two round trips and a signature, with time for a slow network.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// TLS of one port. Its certificate can be replaced while it serves: connections that are open go on with theirs.
#[derive(Debug)]
pub struct TlsPort {
    name: &'static str,
    files: TlsFiles,
    /// Before the files were read first: a change meanwhile must be noticed.
    files_at_load: FilesState,
    protocols: &'static [&'static [u8]],
    current: ArcSwap<Loaded>,
    handshakes_failed: AtomicU64,
    reloads: AtomicU64,
    reloads_failed: AtomicU64,
}

/// The files of a port, if it has TLS, with its name in logs and metrics and the protocols that it offers.
#[derive(Clone, Copy, Debug)]
pub struct PortFiles<'a> {
    pub name: &'static str,
    pub files: Option<&'a TlsFiles>,
    pub protocols: &'static [&'static [u8]],
}

// === impl TlsPort ===

impl TlsPort {
    /// TLS of these ports, none for a port without files.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the files of all ports.
    pub fn load<const N: usize>(
        ports: [PortFiles<'_>; N],
    ) -> Result<[Option<Arc<Self>>; N], TlsSetupErrors> {
        let mut errors = Vec::new();
        let loaded = ports.map(|port| {
            let loaded = Self::load_one(port);
            loaded
                .map_err(|wrong| errors.extend(wrong.into_iter().map(|it| (port.name, it))))
                .ok()?
        });
        TlsSetupErrors::check(errors).map(|()| loaded)
    }

    /// Everything that is wrong with the files of a port, with its name.
    pub(super) fn errors(
        port: PortFiles<'_>,
    ) -> impl Iterator<Item = (&'static str, TlsSetupError)> {
        let errors = Self::load_one(port).err().unwrap_or_default();
        errors.into_iter().map(move |error| (port.name, error))
    }

    fn load_one(port: PortFiles<'_>) -> Result<Option<Arc<Self>>, Vec<TlsSetupError>> {
        let Some(files) = port.files else { return Ok(None) };
        let files_at_load = FilesState::of(files);
        let loaded = server::load(files, port.protocols, Timestamp::now())?;
        Ok(Some(Arc::new(Self {
            name: port.name,
            files: files.clone(),
            files_at_load,
            protocols: port.protocols,
            current: ArcSwap::from_pointee(loaded),
            handshakes_failed: AtomicU64::new(0),
            reloads: AtomicU64::new(0),
            reloads_failed: AtomicU64::new(0),
        })))
    }

    pub(super) fn files(&self) -> &TlsFiles {
        &self.files
    }

    pub(super) fn files_at_load(&self) -> FilesState {
        self.files_at_load
    }

    /// The end of the validity of the certificate in force.
    pub fn not_after(&self) -> Timestamp {
        self.current.load().not_after
    }

    /// Performs the handshake of a connection within a time limit. A peer that fails it is logged and counted.
    pub async fn accept<S>(&self, io: S, limit: Duration) -> Option<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.current.load().config));
        match timeout(limit.min(HANDSHAKE_MAX), acceptor.accept(io)).await {
            Ok(Ok(mut stream)) => {
                stream.get_mut().1.set_buffer_limit(Some(TLS_BUFFER_MAX));
                return Some(stream);
            }
            Ok(Err(error)) => tracing::debug!(port = self.name, %error, "TLS handshake failed"),
            Err(_elapsed) => tracing::debug!(port = self.name, "TLS handshake timed out"),
        }
        self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Reads the files again. What is wrong with them is logged, and the certificate in force stays.
    pub(super) fn reload(&self, now: Timestamp) {
        match server::load(&self.files, self.protocols, now) {
            Ok(loaded) => {
                let expires = loaded.not_after;
                self.current.store(Arc::new(loaded));
                self.reloads.fetch_add(1, Ordering::Relaxed);
                tracing::info!(port = self.name, %expires, "certificate reloaded");
            }
            Err(errors) => {
                self.reloads_failed.fetch_add(1, Ordering::Relaxed);
                let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
                let error = errors.join("; ");
                tracing::error!(port = self.name, %error, "certificate not reloaded: the old one stays");
            }
        }
    }
}

/// Writes the series of these ports.
pub fn write_tls(out: &mut Exposition, ports: &[Arc<TlsPort>]) {
    if ports.is_empty() {
        return;
    }
    let name = "tidegate_tls_certificate_expiry_timestamp_seconds";
    let mut expiry = out.gauge(name, "Unix time at which the certificate of a port expires.");
    for port in ports {
        expiry.with(&[("port", port.name)], port.not_after().as_second());
    }
    let mut reloads =
        out.counter("tidegate_tls_reloads_total", "Reads of changed certificates, by outcome.");
    for port in ports {
        for (outcome, count) in [("ok", &port.reloads), ("failed", &port.reloads_failed)] {
            let labels = [("port", port.name), ("outcome", outcome)];
            reloads.with(&labels, count.load(Ordering::Relaxed));
        }
    }
    let mut failed = out.counter("tidegate_tls_handshakes_failed_total", "Failed TLS handshakes.");
    for port in ports {
        failed.with(&[("port", port.name)], port.handshakes_failed.load(Ordering::Relaxed));
    }
}
