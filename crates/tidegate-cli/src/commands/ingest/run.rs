use super::flags::IngestFlags;
use crate::banner::{EarlierStore, Ports, State, Tries};
use crate::failure::Failure;
use crate::shutdown::{self, UntilSignal};
use crate::{config_loader, descriptor_limit, logging};
use std::io::{self, Write as _};
use std::process::ExitCode;
use tidegate_server::file_mode;
use tidegate_server::ingest::IngestNode;

/// Runs `tidegate ingest` until a signal ends it.
pub fn run(flags: &IngestFlags) -> Result<ExitCode, Failure> {
    let config = config_loader::load(flags.file.path.as_deref(), &flags.settings)?.loaded.config;
    logging::start(&config.log)?;
    let grace = config.listen.shutdown_grace;
    file_mode::close_new_files();
    let until_signal = UntilSignal::listen()?;
    descriptor_limit::raise(config.ingest.connections_max);
    let earlier = EarlierStore::find(&config, true, false);
    EarlierStore::warn(&earlier);
    let node = IngestNode::start(&config)?;
    let admin = node.admin_address();
    let scheme = if config.listen.admin_tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{admin}");
    // A closed standard output is no reason to stop.
    let _ = writeln!(
        io::stdout(),
        "tidegate {} ingests usage records\n\n{}{}  operators  {url}  (/health/live /health/ready \
         /metrics /v1/stats /v1/usage)\n\n{}\nCtrl-C drains and stops; a second Ctrl-C stops at \
         once.",
        env!("CARGO_PKG_VERSION"),
        Ports { view: node.view(), config: &config.ingest },
        State { config: &config, earlier: &earlier },
        Tries { view: node.view(), config: &config, admin: &url },
    );
    let pulse = node.pulse();
    Ok(until_signal.then(
        grace,
        move || pulse.silence(),
        move || shutdown::flushed(node.shutdown(grace)),
    ))
}
