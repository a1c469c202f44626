use super::flags::WorkerFlags;
use super::report::{refuse, report};
use super::{access, executor, session};
use crate::banner::{Sandbox, curl_flags};
use crate::failure::Failure;
use crate::shutdown::UntilSignal;
use crate::{descriptor_limit, logging};
use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;
use tidegate_server::config::{LogConfig, LogFormat};
use tidegate_server::tasks::execution::CapacityReport;
use tidegate_server::tasks::executor::{
    CONNECTIONS_MAX, Worker, WorkerError, worker_config_errors,
};

/// Start banner of `tidegate worker`: addresses, slots, runtimes, sandbox and examples.
struct Banner {
    url: String,
    /// Flags that curl needs for this port.
    flags: String,
    capacity: CapacityReport,
}

/// Runs `tidegate worker` until a signal ends it.
pub fn run(flags: &WorkerFlags) -> Result<ExitCode, Failure> {
    if let Some(manager) = &flags.manager {
        return session::run(flags, manager);
    }
    if let Some(cluster) = session::cluster(flags)? {
        return session::run_in(flags, cluster);
    }
    let config = executor::config(flags);
    let access = access::access(&flags.access)?;
    refuse(&worker_config_errors(flags.listen(), &access, &config))?;
    logging::start(&LogConfig { level: flags.log_level.clone(), format: LogFormat::Text })?;
    // First, so that no signal is lost and none ends the search for runtimes.
    let until_signal = UntilSignal::listen()?;
    let runner = executor::runner(flags)?;
    descriptor_limit::raise(CONNECTIONS_MAX as usize);
    let asks_certificate = access.tls.as_ref().is_some_and(|files| files.client_ca.is_some());
    let token = access.token.is_some().then_some(access::TOKEN_VARIABLE);
    let curl = curl_flags(access.tls.is_some(), asks_certificate, token);
    let scheme = if access.tls.is_some() { "https" } else { "http" };
    let worker = Worker::start_with(flags.listen(), access, config, runner);
    let worker = worker.map_err(|error| match error {
        WorkerError::ConfigError(error) => Failure::Usage(format!("--{error}")),
        WorkerError::Tls(errors) => Failure::Usage(errors.to_string()),
        WorkerError::Bind { .. } | WorkerError::System(_) => Failure::Runtime(error.to_string()),
    })?;
    let url = format!("{scheme}://{}", worker.address());
    let banner = Banner { url, flags: curl, capacity: worker.executor().capacity() };
    // A closed standard output is no reason to stop.
    let _ = writeln!(io::stdout(), "{banner}");
    let grace = Duration::from_millis(flags.grace_ms);
    let pulse = worker.pulse();
    Ok(until_signal.then(grace, move || pulse.silence(), move || report(worker.shutdown(grace))))
}

// === impl Banner ===

impl fmt::Display for Banner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, flags, capacity } = self;
        let runtimes = match capacity.runtimes.is_empty() {
            true => "any runtime".to_owned(),
            false => capacity.runtimes.join(", "),
        };
        writeln!(f, "tidegate {} is worker {}", env!("CARGO_PKG_VERSION"), capacity.executor_id)?;
        writeln!(f)?;
        writeln!(f, "  clients    {url}  (/capacity /execute /reserve /executions/{{id}})")?;
        writeln!(f, "  operators  {url}  (/health/live /health/ready /metrics)")?;
        writeln!(f, "  slots      {}", capacity.max_concurrent)?;
        writeln!(f, "  runs       {runtimes} (executor: {})", capacity.kind)?;
        write!(f, "{}", Sandbox(&capacity.sandbox))?;
        writeln!(f)?;
        let code = match (capacity.kind.as_str(), capacity.runtimes.first().map(String::as_str)) {
            ("mock", _) => "print 42",
            (_, Some("sh")) => "echo 42",
            _ => "print(6 * 7)",
        };
        writeln!(f, "Try:")?;
        let body = format!("{{\"eval_id\": \"one\", \"code\": \"{code}\"}}");
        writeln!(f, "  curl -s{flags} {url}/capacity")?;
        writeln!(f, "  curl -s{flags} {url}/execute -d '{body}'")?;
        writeln!(f, "  curl -s{flags} '{url}/executions/one?wait_ms=1000'")?;
        writeln!(f)?;
        write!(f, "Ctrl-C drains and stops; a second Ctrl-C stops at once.")
    }
}
