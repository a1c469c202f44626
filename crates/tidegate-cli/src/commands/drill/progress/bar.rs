use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write as _};
use std::time::Duration;

/// Progress bar of a drill; hidden without a terminal.
#[derive(Debug)]
pub struct Bar {
    bar: Option<ProgressBar>,
    total: Duration,
}

// === impl Bar ===

impl Bar {
    /// Makes a bar for this duration, if it is wanted and there is a terminal.
    pub fn new(wanted: bool, total: Duration) -> Self {
        let bar = (wanted && io::stderr().is_terminal()).then(|| drawn(total));
        Self { bar, total }
    }

    /// Draws the bar and the text beside it; to be called ten times a second.
    pub fn show(&self, elapsed: Duration, text: impl FnOnce() -> String) {
        let Some(bar) = &self.bar else { return };
        let elapsed = elapsed.min(self.total);
        bar.set_position(elapsed.as_millis() as u64);
        let times = format!("{:.0}/{:.0} s", elapsed.as_secs_f64(), self.total.as_secs_f64());
        bar.set_message(format!("{times}  {}", text()));
        bar.tick();
    }

    /// Prints a line to standard error, above the bar.
    pub fn say(&self, line: &str) {
        let print = || {
            // A closed standard error is no reason to stop.
            let _ = writeln!(io::stderr(), "tidegate: {line}");
        };
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn drawn(total: Duration) -> ProgressBar {
    // Drawn on request, at most ten times a second.
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(Some(total.as_millis() as u64), target);
    match ProgressStyle::with_template("{bar:12} {wide_msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
