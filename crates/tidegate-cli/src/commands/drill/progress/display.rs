//! Display of a drill's progress. A separate thread draws the bar: a blocked terminal must not block the load.

use super::bar::Bar;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const REDRAW_EVERY: Duration = Duration::from_millis(100);

/// Thread that draws the bar until this is dropped.
pub struct ProgressDisplay {
    over: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Elapsed time and text that a load shares with the display.
#[derive(Clone, Debug, Default)]
pub struct ProgressState(Arc<Mutex<(Duration, String)>>);

// === impl ProgressDisplay ===

impl ProgressDisplay {
    /// Draws the state in this bar ten times a second.
    pub fn start(
        bar: Bar,
        state: impl Fn() -> (Duration, String) + Send + 'static,
    ) -> io::Result<Self> {
        let (over, ended) = mpsc::channel();
        let draw = move || {
            while ended.recv_timeout(REDRAW_EVERY) == Err(RecvTimeoutError::Timeout) {
                let (elapsed, text) = state();
                bar.show(elapsed, || text);
            }
            bar.finish();
        };
        let thread = thread::Builder::new().name("tidegate-bar".to_owned()).spawn(draw)?;
        Ok(Self { over: Some(over), thread: Some(thread) })
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

// === impl ProgressState ===

impl ProgressState {
    /// Replaces the state, unless it is being read at this moment.
    pub fn write(&self, elapsed: Duration, text: String) {
        if let Ok(mut seen) = self.0.try_lock() {
            *seen = (elapsed, text);
        }
    }

    /// Last written state.
    pub fn read(&self) -> (Duration, String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_state_is_drawn_and_a_writer_never_waits() {
        let state = ProgressState::default();
        state.write(Duration::from_secs(1), "first".to_owned());
        {
            let _held_by_a_reader = state.0.lock().unwrap();
            state.write(Duration::from_secs(2), "second".to_owned());
        }
        assert_eq!(state.read(), (Duration::from_secs(1), "first".to_owned()));
        state.write(Duration::from_secs(3), "third".to_owned());
        let (drawn, seen) = mpsc::channel();
        let display = ProgressDisplay::start(Bar::new(false, Duration::from_secs(9)), move || {
            let _ = drawn.send(state.read().1);
            state.read()
        });
        assert_eq!(seen.recv().unwrap(), "third");
        drop(display);
        assert!(seen.iter().all(|text| text == "third"), "it ends when it is dropped");
    }
}
