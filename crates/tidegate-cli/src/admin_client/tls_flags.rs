use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;
use tidegate_server::http::{ClientIdentity, ClientTls};

/// TLS of a command that connects to a node.
#[derive(Clone, Debug, Default, Args)]
pub struct TlsFlags {
    /// PEM bundle of the authorities that the node's certificate must come from [default: the system's]
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CA")]
    pub ca: Option<PathBuf>,
    /// PEM certificate chain to show to a node that asks for one
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CERT", requires = "cert_key")]
    pub cert: Option<PathBuf>,
    /// PEM private key of --cert
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CERT_KEY", requires = "cert")]
    pub cert_key: Option<PathBuf>,
}

// === impl TlsFlags ===

impl TlsFlags {
    /// The files of the environment, for a command without these flags.
    pub fn of_environment() -> Self {
        let file = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
        Self {
            ca: file("TIDEGATE_CA"),
            cert: file("TIDEGATE_CERT"),
            cert_key: file("TIDEGATE_CERT_KEY"),
        }
    }

    /// True if an address without a scheme means TLS.
    pub fn is_given(&self) -> bool {
        self.ca.is_some() || self.cert.is_some()
    }

    /// TLS with these files.
    ///
    /// # Errors
    ///
    /// When a file can't be used.
    pub fn client(&self) -> Result<ClientTls, Failure> {
        let identity = self.cert.clone().zip(self.cert_key.clone());
        let identity = identity.map(|(cert, key)| ClientIdentity { cert, key });
        let tls = ClientTls::new(self.ca.as_deref(), identity.as_ref(), "--ca");
        tls.map_err(|errors| Failure::Usage(errors.to_string()))
    }
}
