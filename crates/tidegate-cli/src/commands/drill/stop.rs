use crate::commands::signals::Signals;
use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

/// What a shell says of a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// Signals so close to each other are one.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Whether somebody asked for an end: Ctrl-C, or a signal to terminate.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

// === impl Stop ===

impl Stop {
    /// Listens for signals from now on. The second one ends the process at once.
    pub fn listen() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut signals = runtime.block_on(async { Signals::listen() })?;
        let stop = Self::default();
        let asked = stop.clone();
        thread::Builder::new().name("tidegate-signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                signals.next().await;
                asked.ask();
                let first = Instant::now();
                loop {
                    signals.next().await;
                    if first.elapsed() > AT_ONCE {
                        process::exit(i32::from(INTERRUPTED));
                    }
                }
            });
        })?;
        Ok(stop)
    }

    pub fn ask(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
