use super::signals::Signals;
use crate::failure::Failure;
use crate::service_manager::{ServiceManager, Watchdog};
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
        let listen = async { Signals::listen_through_hangup(log_hangup) };
        let signals = runtime.block_on(listen).map_err(Failure::runtime)?;
        Ok(Self { runtime, signals })
    }

    /// Tells the service manager that the process serves and feeds its watchdog, waits for a signal, then for
    /// `drain`; a second signal ends the process. `silence` is the time since the threads' last sign of life.
    pub fn then(
        self,
        grace: Duration,
        silence: impl Fn() -> Duration + Send + 'static,
        drain: impl FnOnce() -> ExitCode + Send + 'static,
    ) -> ExitCode {
        let Self { runtime, mut signals } = self;
        let manager = ServiceManager::from_env();
        let watchdog = Watchdog::from_env().map(|dog| dog.start(manager.clone(), silence));
        if let Some(Err(error)) = &watchdog {
            tracing::error!(%error, "the watchdog can't be fed: no thread");
        }
        manager.ready();
        runtime.block_on(async {
            signals.next().await;
            manager.stopping();
            if let Some(Ok(draining)) = &watchdog {
                draining.set();
            }
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

/// Says what became of a SIGHUP. Nothing is reloaded yet, and a closed terminal is no reason to end.
fn log_hangup() {
    tracing::info!(
        "SIGHUP: still serving; no setting was read again, a restart applies changes (SIGTERM drains and ends)"
    );
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
