use super::{IngestSettings, ListenSettings, WorkersSettings};
use crate::config::policies::TlsMode;
use crate::config::schema::{Setting, record};
use std::net::SocketAddr;
use std::path::PathBuf;

record! { TlsSettings {
    /// PEM certificate chain of every port without one of its own; needs `key`.
    cert: Option<PathBuf> = path().unset().example("/path/to/cert.pem");
    /// PEM private key of `cert`; must not be readable by every user.
    key: Option<PathBuf> = path().unset().example("/path/to/key.pem");
    /// PEM authorities of client certificates: every port with TLS then requires one.
    client_ca: Option<PathBuf> = path().unset().example("/path/to/clients.pem");
}}

/// The PEM files of a TLS server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, the server's own certificate first.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The authorities of client certificates; with them a client without a certificate is refused.
    pub client_ca: Option<PathBuf>,
}

/// The settings of one port that decide about its TLS.
pub struct PortSettings<'a> {
    pub address: &'a Setting<SocketAddr>,
    pub mode: &'a Setting<TlsMode>,
    pub cert: &'a Setting<Option<PathBuf>>,
    pub key: &'a Setting<Option<PathBuf>>,
    pub client_ca: &'a Setting<Option<PathBuf>>,
}

// === impl PortSettings ===

impl PortSettings<'_> {
    /// Returns true if peers of the port have to show a certificate.
    pub fn asks_for_certificates(&self, shared: &TlsSettings) -> bool {
        let authorities = [self.client_ca, &shared.client_ca];
        let is_off = self.mode.state.is_sound && self.mode.get() == TlsMode::Off;
        !is_off && authorities.iter().any(|authorities| !authorities.state.is_missing())
    }

    /// The files of the port: its own, else the shared ones; none if TLS is off or no certificate is configured.
    pub fn files(&self, shared: &TlsSettings) -> Option<TlsFiles> {
        if self.mode.get() == TlsMode::Off {
            return None;
        }
        let own = self.cert.get().zip(self.key.get());
        let (cert, key) = own.or_else(|| shared.cert.get().zip(shared.key.get()))?;
        let client_ca = self.client_ca.get().or_else(|| shared.client_ca.get());
        Some(TlsFiles { cert, key, client_ca })
    }
}

impl ListenSettings {
    pub fn data_port(&self) -> PortSettings<'_> {
        PortSettings {
            address: &self.address,
            mode: &self.tls,
            cert: &self.tls_cert,
            key: &self.tls_key,
            client_ca: &self.tls_client_ca,
        }
    }

    pub fn admin_port(&self) -> PortSettings<'_> {
        PortSettings {
            address: &self.admin_address,
            mode: &self.admin_tls,
            cert: &self.admin_tls_cert,
            key: &self.admin_tls_key,
            client_ca: &self.admin_tls_client_ca,
        }
    }
}

impl WorkersSettings {
    pub fn port(&self) -> PortSettings<'_> {
        PortSettings {
            address: &self.address,
            mode: &self.tls,
            cert: &self.tls_cert,
            key: &self.tls_key,
            client_ca: &self.tls_client_ca,
        }
    }
}

impl IngestSettings {
    pub fn frames_port(&self) -> PortSettings<'_> {
        PortSettings {
            address: &self.frames_address,
            mode: &self.frames_tls,
            cert: &self.frames_tls_cert,
            key: &self.frames_tls_key,
            client_ca: &self.frames_tls_client_ca,
        }
    }

    pub fn lines_port(&self) -> PortSettings<'_> {
        PortSettings {
            address: &self.lines_address,
            mode: &self.lines_tls,
            cert: &self.lines_tls_cert,
            key: &self.lines_tls_key,
            client_ca: &self.lines_tls_client_ca,
        }
    }
}
