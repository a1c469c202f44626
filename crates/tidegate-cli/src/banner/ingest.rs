use std::fmt;
use tidegate_server::config::{Config, IngestConfig, TlsFiles, masked};
use tidegate_server::ingest::IngestView;

/// Banner lines of ingestion: ports, store, tariffs.
pub struct Ports<'a> {
    pub view: &'a IngestView,
    pub config: &'a IngestConfig,
}

/// Banner lines with examples.
pub struct Tries<'a> {
    pub view: &'a IngestView,
    pub config: &'a Config,
    /// URL of the admin port.
    pub admin: &'a str,
}

// === impl Ports ===

impl fmt::Display for Ports<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = |files: &Option<TlsFiles>| if files.is_some() { ", TLS" } else { "" };
        let (frames, lines) = (tls(&self.config.frames_tls), tls(&self.config.lines_tls));
        writeln!(f, "  frames     {}{frames}", self.view.frames_address())?;
        let address = self.view.lines_address();
        writeln!(f, "  lines      {address}  (Influx line protocol{lines})")?;
        writeln!(f, "  store      {}", masked(&self.config.store))?;
        match &self.config.tariffs {
            Some(path) => writeln!(f, "  tariffs    {}", path.display()),
            None => writeln!(f, "  tariffs    none: usage is not priced (--tariffs FILE)"),
        }
    }
}

// === impl Tries ===

impl fmt::Display for Tries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frames = self.view.frames_address();
        let frames_tls = tls_flags(self.config.ingest.frames_tls.as_ref());
        let admin_tls = tls_flags(self.config.listen.admin_tls.as_ref());
        let line = "tokens,tenant=acme output=1234i";
        writeln!(f, "Try:")?;
        writeln!(f, "  echo '{line}' | tidegate send --to {frames}{frames_tls} -")?;
        writeln!(f, "  tidegate usage --admin {}{admin_tls}", self.admin)
    }
}

/// Flags of a command for a port with TLS.
fn tls_flags(files: Option<&TlsFiles>) -> &'static str {
    match files {
        None => "",
        Some(TlsFiles { client_ca: None, .. }) => " --ca ca.pem",
        Some(_) => " --ca ca.pem --cert me.pem --cert-key me.key",
    }
}
