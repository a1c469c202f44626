use super::until_signal::{UntilSignal, not_started};
use super::up::raise_descriptor_limit;
use crate::failure::Failure;
use crate::flags::UpFlags;
use crate::{logging, sources};
use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;
use tidegate_server::config::IngestConfig;
use tidegate_server::ingest::{Flushed, IngestNode, IngestView};

/// `tidegate ingest`: takes usage records in and stays until a signal ends it.
pub fn run(flags: &UpFlags) -> Result<ExitCode, Failure> {
    let config = sources::load(flags.file.path.as_deref(), &flags.settings)?.loaded.config;
    logging::start(&config.log)?;
    let grace = config.listen.shutdown_grace;
    let until_signal = UntilSignal::listen()?;
    raise_descriptor_limit(config.ingest.connections_max);
    let node = IngestNode::start(&config).map_err(|error| not_started(&error))?;
    let admin = node.admin_address();
    // Whoever closed our output did not ask us to stop.
    let _ = writeln!(
        io::stdout(),
        "tidegate {} takes usage records in\n\n{}  operators  http://{admin}  (/health/live /health/ready \
         /metrics /v1/stats /v1/usage)\n\n{}\nCtrl-C stores what is under way and stops; a second one stops at \
         once.",
        env!("CARGO_PKG_VERSION"),
        Ports { view: node.view(), config: &config.ingest },
        Tries { view: node.view(), admin: &admin.to_string() },
    );
    Ok(until_signal.then(grace, move || report(node.shutdown(grace))))
}

/// Says how a drain went.
pub fn report(flushed: Flushed) -> ExitCode {
    match flushed {
        Flushed::All => {
            tracing::info!("flushed: all records that came are stored");
            ExitCode::SUCCESS
        }
        Flushed::Cut => {
            tracing::error!(
                "not all that came is stored: frames will be sent again by their senders, lines are lost"
            );
            ExitCode::FAILURE
        }
    }
}

/// Where records come in and where they go.
pub struct Ports<'a> {
    pub view: &'a IngestView,
    pub config: &'a IngestConfig,
}

/// What to try.
pub struct Tries<'a> {
    pub view: &'a IngestView,
    pub admin: &'a str,
}

// === impl Ports ===

impl fmt::Display for Ports<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  frames     {}", self.view.frames_address())?;
        writeln!(f, "  lines      {}  (Influx line protocol)", self.view.lines_address())?;
        writeln!(f, "  store      {}", self.config.store_shown())?;
        match &self.config.tariffs {
            Some(path) => writeln!(f, "  tariffs    {}", path.display()),
            None => writeln!(f, "  tariffs    none: nothing has a price (--tariffs FILE)"),
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
