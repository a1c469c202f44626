//! Signs of life of the threads of a process, for whoever restarts a process that is stuck.
//! Uses the clock and the timer of a runtime.
//! Must not know which threads there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::time::interval;

/// Time between two beats: a fraction of every silence that means something.
const BEAT: Duration = Duration::from_millis(250);

/// Sign of life of one runtime: a beat four times a second, for as long as its thread runs what is due.
#[derive(Clone, Debug)]
pub struct Pulse {
    started: Instant,
    /// Milliseconds from the start to the last beat.
    last_ms: Arc<AtomicU64>,
}

// === impl Pulse ===

impl Pulse {
    /// A pulse that begins now.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a default would read the clock")]
    pub fn new() -> Self {
        Self { started: Instant::now(), last_ms: Arc::default() }
    }

    /// Beats on the current runtime until it ends.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub(crate) fn beat_here(&self) {
        let pulse = self.clone();
        tokio::spawn(async move {
            let mut ticks = interval(BEAT);
            loop {
                ticks.tick().await;
                pulse.last_ms.store(pulse.uptime_ms(), Ordering::Relaxed);
            }
        });
    }

    /// Time since the last beat.
    #[must_use]
    pub fn silence(&self) -> Duration {
        let last_ms = self.last_ms.load(Ordering::Relaxed);
        Duration::from_millis(self.uptime_ms().saturating_sub(last_ms))
    }

    fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;
    use tokio::runtime::Builder;

    /// Waits until the silence is as wanted; the time only ends a test that has failed.
    fn until(pulse: &Pulse, what: &str, wanted: impl Fn(Duration) -> bool) {
        let start = Instant::now();
        while !wanted(pulse.silence()) {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "never {what}: {:?}",
                pulse.silence()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_thread_that_is_held_up_falls_silent_and_beats_again() {
        let pulse = Pulse::new();
        let (hold, held) = mpsc::channel::<mpsc::Receiver<()>>();
        let beating = pulse.clone();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                beating.beat_here();
                loop {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    match held.try_recv() {
                        // Blocks the thread, as a defect would.
                        Ok(release) => drop(release.recv()),
                        Err(mpsc::TryRecvError::Empty) => {}
                        Err(mpsc::TryRecvError::Disconnected) => return,
                    }
                }
            });
        });
        let second = Duration::from_secs(1);
        until(&pulse, "beats", |silence| silence < second);
        let (release, released) = mpsc::channel();
        hold.send(released).unwrap();
        until(&pulse, "silent", |silence| silence > 2 * second);
        drop(release);
        until(&pulse, "beats again", |silence| silence < second);
    }
}
