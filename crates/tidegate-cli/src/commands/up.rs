use crate::failure::Failure;
use crate::flags::UpFlags;
use crate::{logging, sources};
use std::process::ExitCode;
use tidegate_server::config::Config;

/// `tidegate up`: starts the gateway and stays until it ends.
pub fn run(flags: &UpFlags) -> Result<ExitCode, Failure> {
    let sourced = sources::load(flags.file.path.as_deref(), &flags.settings)?;
    let config = sourced.loaded.config;
    logging::start(&config.log)?;
    match &sourced.file {
        Some(path) => tracing::info!(file = %path.display(), "configured"),
        None => tracing::info!("configured without a file"),
    }
    Ok(start(config))
}

/// Runs the gateway until a signal ends it.
fn start(config: Config) -> ExitCode {
    tracing::error!(address = %config.listen.address, "this build has no gateway");
    ExitCode::FAILURE
}
