use super::until_signal::UntilSignal;
use super::up::raise_descriptor_limit;
use crate::failure::Failure;
use crate::logging;
use crate::worker_flags::WorkerFlags;
use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;
use tidegate_server::config::{LogConfig, LogFormat};
use tidegate_server::worker::{
    CONNECTIONS_MAX, CapacityReport, Drained, SandboxLayer, Worker, WorkerError, WorkerMistake,
    mistakes,
};

/// What `tidegate worker` prints once it listens: where, how many slots, what runs in them and what guards them.
struct Banner {
    url: String,
    capacity: CapacityReport,
}

/// What stands between executions and the machine, a layer a line.
pub struct Sandbox<'a>(pub &'a [SandboxLayer]);

/// `tidegate worker`: offers slots for executions and stays until a signal ends it.
pub fn run(flags: &WorkerFlags) -> Result<ExitCode, Failure> {
    let config = flags.config();
    refuse(&mistakes(flags.listen, &config))?;
    logging::start(&LogConfig { level: flags.log_level.clone(), format: LogFormat::Text })?;
    let runner = flags.runner()?;
    // Before it listens, so that no signal from then on is lost.
    let until_signal = UntilSignal::listen()?;
    raise_descriptor_limit(CONNECTIONS_MAX as usize);
    let worker = Worker::start(flags.listen, config, runner).map_err(|error| match error {
        WorkerError::Mistake(mistake) => Failure::Usage(format!("--{mistake}")),
        WorkerError::Bind { .. } | WorkerError::System(_) => Failure::Runtime(error.to_string()),
    })?;
    let url = format!("http://{}", worker.address());
    let banner = Banner { url, capacity: worker.executor().capacity() };
    // Whoever closed our output did not ask us to stop.
    let _ = writeln!(io::stdout(), "{banner}");
    let grace = flags.grace();
    Ok(until_signal.then(grace, move || report(worker.shutdown(grace))))
}

fn refuse(mistakes: &[WorkerMistake]) -> Result<(), Failure> {
    let text: Vec<_> = mistakes.iter().map(|mistake| format!("\n  --{mistake}")).collect();
    match text.len() {
        0 => Ok(()),
        1 => Err(Failure::Usage(format!("1 mistake in the flags:{}", text.concat()))),
        many => Err(Failure::Usage(format!("{many} mistakes in the flags:{}", text.concat()))),
    }
}

/// Says how the last executions ended.
fn report(drained: Drained) -> ExitCode {
    match drained {
        Drained { stopped: 0, .. } => {
            tracing::info!("drained: every execution ran to its end");
            ExitCode::SUCCESS
        }
        Drained { stopped, left: 0 } => {
            tracing::warn!(
                stopped,
                "executions were still running after the grace, and were stopped"
            );
            ExitCode::FAILURE
        }
        Drained { stopped, left } => {
            tracing::error!(stopped, left, "executions did not stop when they were told to");
            ExitCode::FAILURE
        }
    }
}

// === impl Sandbox ===

impl fmt::Display for Sandbox<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "  sandbox    none: nothing is run on this machine");
        }
        for (nth, layer) in self.0.iter().enumerate() {
            let title = if nth == 0 { "sandbox" } else { "" };
            let state = if layer.active { "in force" } else { "NOT in force" };
            writeln!(f, "  {title:<9}  {} {state}: {}", layer.layer, layer.detail)?;
        }
        Ok(())
    }
}

// === impl Banner ===

impl fmt::Display for Banner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, capacity } = self;
        let slots = match capacity.max_concurrent {
            1 => "1 execution at once".to_owned(),
            many => format!("{many} executions at once"),
        };
        let runtimes = match capacity.runtimes.is_empty() {
            true => "anything".to_owned(),
            false => capacity.runtimes.join(", "),
        };
        writeln!(f, "tidegate {} executes as {}", env!("CARGO_PKG_VERSION"), capacity.executor_id)?;
        writeln!(f)?;
        writeln!(f, "  clients    {url}  (/capacity /execute /reserve /executions/{{id}})")?;
        writeln!(f, "  operators  {url}  (/health/live /health/ready /metrics)")?;
        writeln!(f, "  slots      {slots}")?;
        writeln!(f, "  runs       {runtimes}, by {}", capacity.kind)?;
        write!(f, "{}", Sandbox(&capacity.sandbox))?;
        writeln!(f)?;
        writeln!(f, "Try:")?;
        writeln!(f, "  curl -s {url}/capacity")?;
        writeln!(
            f,
            "  curl -s {url}/execute -d '{{\"eval_id\": \"one\", \"code\": \"print hello\"}}'"
        )?;
        writeln!(f, "  curl -s '{url}/executions/one?wait_ms=1000'")?;
        writeln!(f)?;
        write!(f, "Ctrl-C finishes what runs and stops; a second one stops at once.")
    }
}
