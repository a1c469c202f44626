use super::banner::Banner;
use super::signals::Signals;
use crate::failure::Failure;
use crate::flags::UpFlags;
use crate::{logging, sources};
use std::io::{self, Write as _};
use std::process::ExitCode;
use tidegate_server::config::Config;
use tidegate_server::gateway::{Drained, Gateway};
use tokio::runtime::Builder;

/// `tidegate up`: starts the gateway and stays until a signal ends it.
pub fn run(flags: &UpFlags) -> Result<ExitCode, Failure> {
    let sourced = sources::load(flags.file.path.as_deref(), &flags.settings)?;
    let config = sourced.loaded.config;
    logging::start(&config.log)?;
    match &sourced.file {
        Some(path) => tracing::info!(file = %path.display(), "configured"),
        None => tracing::info!("configured without a file"),
    }
    serve(config)
}

fn serve(config: Config) -> Result<ExitCode, Failure> {
    let grace = config.listen.shutdown_grace;
    // Before the gateway starts, so that no signal from then on is lost.
    let runtime = Builder::new_current_thread().enable_all().build().map_err(runtime_failure)?;
    let mut signals = runtime.block_on(async { Signals::listen() }).map_err(runtime_failure)?;
    raise_descriptor_limit(config.listen.connections_max);
    let gateway = Gateway::start(config).map_err(runtime_failure)?;
    // Whoever closed our output did not ask us to stop.
    let _ = writeln!(io::stdout(), "{}", Banner::of(&gateway));
    runtime.block_on(async {
        signals.next().await;
        tracing::info!(grace_ms = grace.as_millis(), "draining: a second signal stops at once");
        let draining = tokio::task::spawn_blocking(|| gateway.shutdown());
        tokio::select! {
            drained = draining => Ok(report(drained.ok())),
            () = signals.next() => {
                tracing::warn!("stopped at once: what was under way is cut");
                // The draining thread would keep the process; there is nothing left to wait for.
                std::process::exit(1)
            }
        }
    })
}

/// A proxied connection takes a descriptor on either side; the usual soft limit of 1,024 would end the gateway
/// long before its own limits do. Says so when the system allows less than is configured.
fn raise_descriptor_limit(connections_max: usize) {
    const OWN: u64 = 256;
    let wanted = connections_max as u64 * 2 + OWN;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(allowed) if allowed >= wanted => {}
        Ok(allowed) => {
            tracing::warn!(
                allowed,
                wanted,
                "few file descriptors: raise `ulimit -n` or lower listen.connections_max"
            );
        }
        Err(error) => tracing::warn!(%error, "the limit of file descriptors could not be raised"),
    }
}

fn runtime_failure(error: impl std::error::Error) -> Failure {
    Failure::Runtime(error.to_string())
}

fn report(drained: Option<Drained>) -> ExitCode {
    match drained {
        Some(Drained { cut: 0 }) => tracing::info!("drained: everything under way was finished"),
        Some(Drained { cut }) => {
            tracing::warn!(cut, "the grace time is over: connections were cut")
        }
        None => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}
