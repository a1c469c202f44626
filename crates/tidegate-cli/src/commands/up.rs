use super::banner::Banner;
use super::until_signal::{UntilSignal, failed, not_started};
use crate::failure::Failure;
use crate::flags::UpFlags;
use crate::{logging, sources};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tidegate::task::TaskLimits;
use tidegate_server::config::Config;
use tidegate_server::control::TaskTerms;
use tidegate_server::gateway::{Beside, Drained, Gateway};
use tidegate_server::ingest::Ingest;
use tidegate_server::manager::TaskNode;

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
    // Before anything starts, so that no signal from then on is lost.
    let until_signal = UntilSignal::listen()?;
    raise_descriptor_limit(config.listen.connections_max + config.ingest.connections_max);
    let ingest = match config.ingest.enabled {
        true => Some(Ingest::start(&config.ingest).map_err(|error| not_started(&error))?),
        false => None,
    };
    let tasks = start_tasks(&config)?;
    let beside = Beside {
        ingest: ingest.as_ref().map(|ingest| Arc::clone(ingest.view())),
        tasks: tasks.as_ref().map(|tasks| tasks.desk().clone()),
        task_meters: tasks.as_ref().map(|tasks| Arc::clone(tasks.meters())),
        task_terms: task_terms(&config),
    };
    let gateway = Gateway::start_beside(config, beside).map_err(failed)?;
    let capacity = tasks.as_ref().and_then(TaskNode::capacity);
    // Whoever closed our output did not ask us to stop.
    let _ = writeln!(io::stdout(), "{}", Banner::of(&gateway, capacity.as_ref()));
    Ok(until_signal.then(grace, move || shutdown(gateway, ingest, tasks, grace)))
}

fn start_tasks(config: &Config) -> Result<Option<TaskNode>, Failure> {
    if !config.tasks.enabled {
        return Ok(None);
    }
    let port = config.listen.admin_address.port();
    let node = TaskNode::start(&config.tasks, port, config.listen.shutdown_grace);
    node.map(Some).map_err(failed)
}

fn task_terms(config: &Config) -> TaskTerms {
    let limits =
        TaskLimits { code_bytes_max: config.tasks.code_bytes_max, ..TaskLimits::default() };
    let timeout_ms = u64::try_from(config.tasks.timeout.as_millis()).unwrap_or(u64::MAX);
    TaskTerms { limits, timeout_ms }
}

/// All at once: each has all of the grace time.
fn shutdown(
    gateway: Gateway,
    ingest: Option<Ingest>,
    tasks: Option<TaskNode>,
    grace: Duration,
) -> ExitCode {
    let flushing = thread::spawn(move || ingest.map(|ingest| ingest.shutdown(grace)));
    let finishing = thread::spawn(move || tasks.map(TaskNode::shutdown));
    report(gateway.shutdown());
    let finished = finishing.join().is_ok();
    match flushing.join() {
        Ok(flushed) if finished => flushed.map_or(ExitCode::SUCCESS, super::ingest::report),
        Ok(_) | Err(_) => ExitCode::FAILURE,
    }
}

/// A proxied connection takes a descriptor on either side; the usual soft limit of 1,024 would end the gateway
/// long before its own limits do, and the store with it. Says so when the system allows less than is configured.
pub fn raise_descriptor_limit(connections_max: usize) {
    // The store alone may hold 256 files.
    const OWN: u64 = 512;
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

fn report(drained: Drained) {
    match drained {
        Drained { cut: 0 } => tracing::info!("drained: everything under way was finished"),
        Drained { cut } => tracing::warn!(cut, "the grace time is over: connections were cut"),
    }
}
