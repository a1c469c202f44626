use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write as _};
use std::time::Duration;

/// Shows how far a drill is: a bar on a terminal, else nothing.
#[derive(Debug)]
pub struct Bar {
    bar: Option<ProgressBar>,
    total: Duration,
}

// === impl Bar ===

impl Bar {
    /// A bar for so long, if it is wanted and there is a terminal.
    pub fn new(wanted: bool, total: Duration) -> Self {
        let bar = (wanted && io::stderr().is_terminal()).then(|| drawn(total));
        Self { bar, total }
    }

    /// To be called ten times a second, with what is to stand beside the bar.
    pub fn show(&self, elapsed: Duration, text: impl FnOnce() -> String) {
        let Some(bar) = &self.bar else { return };
        let elapsed = elapsed.min(self.total);
        bar.set_position(elapsed.as_millis() as u64);
        let times = format!("{:.0}/{:.0} s", elapsed.as_secs_f64(), self.total.as_secs_f64());
        bar.set_message(format!("{times}  {}", text()));
        bar.tick();
    }

    /// Prints a line to standard error, beside the bar if there is one.
    pub fn say(&self, line: &str) {
        let print = || {
            // Whoever closed our output did not ask us to stop.
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
    // Drawn when it is told to, ten times a second: faster is of no use to anybody.
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(Some(total.as_millis() as u64), target);
    match ProgressStyle::with_template("{bar:12} {wide_msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
