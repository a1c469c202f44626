use super::format;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use tidegate::task::OutputStream;
use tidegate_server::tasks::manager::{ProgressView, TaskView};

/// Output of a task and, on a terminal, a spinner with its status.
pub struct Progress {
    bar: Option<ProgressBar>,
}

// === impl Progress ===

impl Progress {
    /// Without a spinner if quiet.
    pub fn new(quiet: bool) -> Self {
        Self { bar: (!quiet && io::stderr().is_terminal()).then(bar) }
    }

    /// Shows the status.
    pub fn show(&self, view: &TaskView) {
        if let Some(bar) = &self.bar {
            bar.set_message(format::status_line(view, format::now_ms()));
        }
    }

    /// Shows the task's own progress.
    pub fn show_progress(&self, view: &ProgressView) {
        if let Some(bar) = &self.bar {
            bar.set_message(format::progress_line(view));
        }
    }

    /// Writes output of the task.
    pub fn write(&self, stream: OutputStream, text: &str) {
        self.above_spinner(|| {
            // A closed pipe, such as that of `head`, does not end the task.
            let _ = match stream {
                OutputStream::Stdout => {
                    let mut out = io::stdout().lock();
                    out.write_all(text.as_bytes()).and_then(|()| out.flush())
                }
                OutputStream::Stderr => io::stderr().write_all(text.as_bytes()),
            };
        });
    }

    /// Prints a message above the spinner.
    pub fn say(&self, line: &str) {
        self.above_spinner(|| {
            let _ = writeln!(io::stderr(), "tidegate: {line}");
        });
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn above_spinner(&self, write: impl FnOnce()) {
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
