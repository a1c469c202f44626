use std::fmt;
use tidegate_server::config::{IngestConfig, TlsFiles, masked};
use tidegate_server::ingest::IngestView;

/// Banner lines of ingestion: ports, store, tariffs.
pub struct Ports<'a> {
    pub view: &'a IngestView,
    pub config: &'a IngestConfig,
}

/// Banner lines with examples.
pub struct Tries<'a> {
    pub view: &'a IngestView,
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
        let lines = self.view.lines_address();
        let (host, port) = (lines.ip(), lines.port());
        writeln!(f, "Try:")?;
        writeln!(f, "  echo 'tokens,tenant=acme output=1234i' | nc -N {host} {port}")?;
        writeln!(f, "  tidegate send --to {} FILE", self.view.frames_address())?;
        writeln!(f, "  tidegate usage --admin {}", self.admin)
    }
}
