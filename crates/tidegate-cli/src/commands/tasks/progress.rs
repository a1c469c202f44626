use super::words;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use tidegate::task::OutputStream;
use tidegate_server::manager::TaskView;

/// Shows what a task writes and, on a terminal, what it is doing.
pub struct Progress {
    bar: Option<ProgressBar>,
}

// === impl Progress ===

impl Progress {
    /// Quiet, it shows nothing of what the task is doing.
    pub fn new(quiet: bool) -> Self {
        Self { bar: (!quiet && io::stderr().is_terminal()).then(bar) }
    }

    /// The task stands here.
    pub fn show(&self, view: &TaskView) {
        if let Some(bar) = &self.bar {
            bar.set_message(words::standing(view, words::now_ms()));
        }
    }

    /// The task wrote this.
    pub fn write(&self, stream: OutputStream, text: &str) {
        self.beside(|| {
            // Whoever has seen enough, such as `head`, does not end the task.
            let _ = match stream {
                OutputStream::Stdout => {
                    let mut out = io::stdout().lock();
                    out.write_all(text.as_bytes()).and_then(|()| out.flush())
                }
                OutputStream::Stderr => io::stderr().write_all(text.as_bytes()),
            };
        });
    }

    /// Says a line of our own, beside the spinner if there is one.
    pub fn say(&self, line: &str) {
        self.beside(|| {
            let _ = writeln!(io::stderr(), "tidegate: {line}");
        });
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn beside(&self, write: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    bar.enable_steady_tick(Duration::from_millis(100));
    match ProgressStyle::with_template("{spinner} {wide_msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
