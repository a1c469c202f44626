use std::future::pending;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM, which end a command. SIGHUP ends a command that somebody waits for, and none that serves.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Hangup>,
}

/// SIGHUP of a command that serves.
struct Hangup {
    signal: Signal,
    report: fn(),
}

// === impl Signals ===

impl Signals {
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
        })
    }

    /// The same for a command that serves: a SIGHUP is reported, and ends nothing.
    pub fn listen_through_hangup(report: fn()) -> io::Result<Self> {
        let hangup = Some(Hangup { signal: signal(SignalKind::hangup())?, report });
        Ok(Self { hangup, ..Self::listen()? })
    }

    /// Waits for a signal that ends the command.
    pub async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                () = Hangup::next(self.hangup.as_mut()) => {}
            }
        }
    }
}

// === impl Hangup ===

impl Hangup {
    /// Reports the next one.
    async fn next(this: Option<&mut Self>) {
        let Some(Self { signal, report }) = this else { return pending().await };
        match signal.recv().await {
            Some(()) => report(),
            None => pending().await,
        }
    }
}
