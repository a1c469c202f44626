use super::signals::Signals;
use crate::failure::Failure;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// Signals within this time count as one.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// Signal listener that a serving command starts first, so that no signal is lost.
pub struct UntilSignal {
    runtime: Runtime,
    signals: Signals,
}

// === impl UntilSignal ===

impl UntilSignal {
    pub fn listen() -> Result<Self, Failure> {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(Failure::runtime)?;
        let signals = runtime.block_on(async { Signals::listen() }).map_err(Failure::runtime)?;
        Ok(Self { runtime, signals })
    }

    /// Waits for a signal, then for `drain`; a second signal ends the process.
    pub fn then(
        self,
        grace: Duration,
        drain: impl FnOnce() -> ExitCode + Send + 'static,
    ) -> ExitCode {
        let Self { runtime, mut signals } = self;
        runtime.block_on(async {
            signals.next().await;
            tracing::info!(grace_ms = grace.as_millis(), "draining; a second signal stops at once");
            let draining = tokio::task::spawn_blocking(drain);
            tokio::select! {
                drained = draining => drained.unwrap_or(ExitCode::FAILURE),
                () = second(&mut signals) => {
                    tracing::warn!("stopped at once by a second signal; work in progress is cut off");
                    // The draining thread would keep the process alive.
                    std::process::exit(1)
                }
            }
        })
    }
}

/// Waits for a second signal. A sender that signals the process and its group sends two at once.
async fn second(signals: &mut Signals) {
    let first = Instant::now();
    loop {
        signals.next().await;
        if first.elapsed() > SAME_SIGNAL {
            return;
        }
    }
}
