use crate::exit_code::INTERRUPTED;
use crate::shutdown::Signals;
use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

/// Signals within this time count as one.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// Request for an early end, set by SIGINT or SIGTERM.
#[derive(Clone, Debug, Default)]
pub struct StopRequest(Arc<AtomicBool>);

// === impl StopRequest ===

impl StopRequest {
    /// Listens for signals. The second one ends the process at once.
    pub fn listen() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut signals = runtime.block_on(async { Signals::listen() })?;
        let stop = Self::default();
        let on_signal = stop.clone();
        thread::Builder::new().name("tidegate-signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                signals.next().await;
                on_signal.request();
                let first = Instant::now();
                loop {
                    signals.next().await;
                    if first.elapsed() > SAME_SIGNAL {
                        process::exit(i32::from(INTERRUPTED));
                    }
                }
            });
        })?;
        Ok(stop)
    }

    pub fn request(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
