use super::executor;
use super::flags::{Tls, WorkerFlags};
use super::report::{refuse, report};
use crate::banner::Sandbox;
use crate::failure::Failure;
use crate::logging;
use crate::shutdown::UntilSignal;
use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;
use tidegate_server::config::{LogConfig, LogFormat};
use tidegate_server::tasks::execution::CapacityReport;
use tidegate_server::tasks::worker::{
    ManagerTarget, SessionWorker, SessionWorkerError, WorkerLinkView, WorkerSettings,
};

/// Wait for the first connection before the banner.
const FIRST_LINK: Duration = Duration::from_secs(5);

/// Start banner of a worker that dials its manager.
struct Banner<'a> {
    manager: &'a ManagerTarget,
    link: WorkerLinkView,
    capacity: CapacityReport,
}

/// Runs a worker that dials its manager, until a signal ends it.
pub fn run(flags: &WorkerFlags, manager: &ManagerTarget) -> Result<ExitCode, Failure> {
    let executor = executor::config(flags);
    refuse(&executor.errors())?;
    logging::start(&LogConfig { level: flags.log_level.clone(), format: LogFormat::Text })?;
    // First, so that no signal is lost and none ends the search for runtimes.
    let until_signal = UntilSignal::listen()?;
    let manager = with_tls(flags, manager.clone())?;
    let token = flags.link.token.as_ref().map(|token| token.expose().to_owned());
    let token = token.filter(|token| !token.is_empty());
    let runner = executor::runner(flags)?;
    let settings = WorkerSettings { manager: manager.clone(), token, executor };
    let worker = SessionWorker::start(settings, runner).map_err(|error| match error {
        SessionWorkerError::Config(error) => Failure::Usage(format!("--{error}")),
        SessionWorkerError::System(_) => Failure::Runtime(error.to_string()),
    })?;
    let link = worker.wait_for_link(FIRST_LINK);
    if let (true, Some(error)) = (link.is_refused, &link.error) {
        return Err(Failure::Runtime(error.clone()));
    }
    let banner = Banner { manager: &manager, link, capacity: worker.executor().capacity() };
    // A closed standard output is no reason to stop.
    let _ = writeln!(io::stdout(), "{banner}");
    let grace = Duration::from_millis(flags.grace_ms);
    let pulse = worker.pulse();
    Ok(until_signal.then(grace, move || pulse.silence(), move || report(worker.shutdown(grace))))
}

/// TLS is the default beyond this machine, where a token must not be shown to the network.
fn with_tls(flags: &WorkerFlags, manager: ManagerTarget) -> Result<ManagerTarget, Failure> {
    let is_wanted = flags.link.tls.is_given() || !manager.is_loopback();
    match is_wanted && flags.access.tls != Tls::Off {
        true => Ok(manager.with_tls(Some(flags.link.tls.client()?))),
        false => Ok(manager),
    }
}

// === impl Banner ===

impl fmt::Display for Banner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { manager, link, capacity } = self;
        let runtimes = match capacity.runtimes.is_empty() {
            true => "any runtime".to_owned(),
            false => capacity.runtimes.join(", "),
        };
        writeln!(f, "tidegate {} is worker {}", env!("CARGO_PKG_VERSION"), capacity.executor_id)?;
        writeln!(f)?;
        match (&link.manager, &link.error) {
            (Some(name), _) => writeln!(f, "  manager    {manager}, connected to {name}")?,
            (None, Some(error)) => {
                writeln!(f, "  manager    {manager}, NOT connected: {error}; trying again")?
            }
            (None, None) => writeln!(f, "  manager    {manager}, connecting")?,
        }
        writeln!(f, "  slots      {}", capacity.max_concurrent)?;
        writeln!(f, "  runs       {runtimes} (executor: {})", capacity.kind)?;
        write!(f, "{}", Sandbox(&capacity.sandbox))?;
        writeln!(f)?;
        write!(f, "Ctrl-C drains and stops; a second Ctrl-C stops at once.")
    }
}
