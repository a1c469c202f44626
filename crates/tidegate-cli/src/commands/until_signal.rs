use super::signals::Signals;
use crate::failure::Failure;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidegate_server::ingest::IngestError;
use tokio::runtime::{Builder, Runtime};

/// Signals so close to each other are one.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Signals that are caught from the start, so that none is lost while something starts.
pub struct UntilSignal {
    runtime: Runtime,
    signals: Signals,
}

// === impl UntilSignal ===

impl UntilSignal {
    pub fn listen() -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let signals = runtime.block_on(async { Signals::listen() }).map_err(failed)?;
        Ok(Self { runtime, signals })
    }

    /// Waits for a signal, then lets `drain` finish, unless another signal comes first.
    pub fn then(
        self,
        grace: Duration,
        drain: impl FnOnce() -> ExitCode + Send + 'static,
    ) -> ExitCode {
        let Self { runtime, mut signals } = self;
        runtime.block_on(async {
            signals.next().await;
            tracing::info!(grace_ms = grace.as_millis(), "draining: a second signal stops at once");
            let draining = tokio::task::spawn_blocking(drain);
            tokio::select! {
                drained = draining => drained.unwrap_or(ExitCode::FAILURE),
                () = second(&mut signals) => {
                    tracing::warn!("stopped at once: what was under way is cut");
                    // The draining thread would keep the process; there is nothing left to wait for.
                    std::process::exit(1)
                }
            }
        })
    }
}

/// Another signal than the first: whoever signals a process and its group sends two at once, and means one.
async fn second(signals: &mut Signals) {
    let first = Instant::now();
    loop {
        signals.next().await;
        if first.elapsed() > AT_ONCE {
            return;
        }
    }
}

/// A failure to start: what is wrong with the configuration is told as such.
pub fn not_started(error: &IngestError) -> Failure {
    match error {
        IngestError::Tariffs(_) | IngestError::Pipeline(_) => Failure::Usage(error.to_string()),
        _ => Failure::Runtime(error.to_string()),
    }
}

pub fn failed(error: impl std::error::Error) -> Failure {
    Failure::Runtime(error.to_string())
}
