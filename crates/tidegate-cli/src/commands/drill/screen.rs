//! What is shown while a drill runs. The bar is drawn by a thread of its own: a terminal that is held must not
//! hold the load.

use super::bar::Bar;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const REDRAWN_EVERY: Duration = Duration::from_millis(100);

/// Draws until it is dropped.
pub struct Screen {
    over: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Where a load writes what is to be drawn: how far it is, and what stands beside the bar.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<(Duration, String)>>);

// === impl Screen ===

impl Screen {
    /// Draws in this bar what there is to be seen, ten times a second.
    pub fn start(
        bar: Bar,
        seen: impl Fn() -> (Duration, String) + Send + 'static,
    ) -> io::Result<Self> {
        let (over, ended) = mpsc::channel();
        let draw = move || {
            while ended.recv_timeout(REDRAWN_EVERY) == Err(RecvTimeoutError::Timeout) {
                let (elapsed, text) = seen();
                bar.show(elapsed, || text);
            }
            bar.finish();
        };
        let thread = thread::Builder::new().name("tidegate-bar".to_owned()).spawn(draw)?;
        Ok(Self { over: Some(over), thread: Some(thread) })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

// === impl Board ===

impl Board {
    /// Writes it, unless it is being read at this moment: then the next one will be seen.
    pub fn write(&self, elapsed: Duration, text: String) {
        if let Ok(mut seen) = self.0.try_lock() {
            *seen = (elapsed, text);
        }
    }

    /// What was written last.
    pub fn read(&self) -> (Duration, String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_last_is_drawn_and_who_writes_never_waits() {
        let board = Board::default();
        board.write(Duration::from_secs(1), "first".to_owned());
        {
            let _held_by_a_reader = board.0.lock().unwrap();
            board.write(Duration::from_secs(2), "second".to_owned());
        }
        assert_eq!(board.read(), (Duration::from_secs(1), "first".to_owned()));
        board.write(Duration::from_secs(3), "third".to_owned());
        let (drawn, seen) = mpsc::channel();
        let screen = Screen::start(Bar::new(false, Duration::from_secs(9)), move || {
            let _ = drawn.send(board.read().1);
            board.read()
        });
        assert_eq!(seen.recv().unwrap(), "third");
        drop(screen);
        assert!(seen.iter().all(|text| text == "third"), "and it ends when it is dropped");
    }
}
