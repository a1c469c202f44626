use crate::tasks::execution::{OutputSink, ProgressSink, StopSignal, Work};
use std::time::Duration;
use tidegate::progress::{Progress, parse_line};
use tidegate::task::{EndReason, Ending, OutputStream, TaskOutcome};
use tokio::time::sleep;

/// Largest single write of `fill`.
const FILL: [u8; 1 << 10] = [b'.'; 1 << 10];

/// Runner that simulates work, for drills, tests and benchmarks.
///
/// Code that consists of these lines is interpreted; blank lines and lines that begin with `#` are skipped. Any
/// other code takes a fixed time and succeeds.
///
/// | line | does |
/// |---|---|
/// | `sleep 20ms`, `sleep 2s` | waits |
/// | `print TEXT`, `warn TEXT` | writes a line to its standard output, or error |
/// | `fill 4096` | writes that many bytes |
/// | `progress {"done": 3}` | reports progress |
/// | `fail 3` | exits with this status |
/// | `hang` | waits until it is stopped |
/// | `crash` | panics, as a bug in a runner would |
#[derive(Clone, Debug)]
pub struct MockRunner {
    work_time: Duration,
    runtimes: Vec<String>,
}

/// One line of a mock's code.
#[derive(Clone, Debug, PartialEq)]
enum Step<'a> {
    Sleep(Duration),
    Write(OutputStream, &'a str),
    Fill(usize),
    Progress(Progress),
    Fail(i32),
    Hang,
    Crash,
}

// === impl MockRunner ===

impl MockRunner {
    /// A runner whose executions take `work_time`, unless their code is interpreted. Without runtimes it accepts
    /// any.
    #[must_use]
    pub fn new(work_time: Duration, runtimes: Vec<String>) -> Self {
        Self { work_time, runtimes }
    }

    pub(super) fn runtimes(&self) -> &[String] {
        &self.runtimes
    }

    pub(super) async fn run(
        &self,
        work: &Work,
        sink: &OutputSink,
        progress: &ProgressSink,
        mut stop: StopSignal,
    ) -> Ending {
        let mut time_left = work.timeout;
        for step in steps(&work.code).unwrap_or_else(|| vec![Step::Sleep(self.work_time)]) {
            let pause = match step {
                Step::Sleep(pause) => pause,
                Step::Hang => Duration::MAX,
                Step::Write(stream, text) => {
                    if sink.write(stream, text.as_bytes()) && sink.write(stream, b"\n") {
                        continue;
                    }
                    return output_limit();
                }
                Step::Fill(bytes) => {
                    if fill(sink, bytes) {
                        continue;
                    }
                    return output_limit();
                }
                Step::Progress(report) => {
                    // Refused only after the end.
                    let _ = progress.merge(&report);
                    continue;
                }
                Step::Fail(status) => return exit(status),
                // Unwinds without a panic message: the crash is intended.
                Step::Crash => std::panic::resume_unwind(Box::new("intended crash")),
            };
            // A timer would cost more than the rest of the execution.
            if pause.is_zero() {
                continue;
            }
            tokio::select! {
                () = sleep(pause.min(time_left)) => {}
                reason = stop.stopped() => return reason.ending(),
            }
            if pause >= time_left {
                let timeout_ms = work.timeout.as_millis();
                let ending = Ending::new(TaskOutcome::Failed, EndReason::Timeout);
                return ending.because(format!("it ran for longer than {timeout_ms} ms"));
            }
            time_left -= pause;
        }
        exit(0)
    }
}

fn exit(status: i32) -> Ending {
    let outcome = if status == 0 { TaskOutcome::Succeeded } else { TaskOutcome::Failed };
    Ending { exit_code: Some(status), ..Ending::new(outcome, EndReason::Exit) }
}

fn output_limit() -> Ending {
    let ending = Ending::new(TaskOutcome::Failed, EndReason::OutputLimit);
    ending.because("it wrote more than the output limit")
}

fn fill(sink: &OutputSink, bytes: usize) -> bool {
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(FILL.len());
        if !sink.write(OutputStream::Stdout, &FILL[..piece]) {
            return false;
        }
        left -= piece;
    }
    true
}

/// Steps of code that a mock can interpret.
fn steps(code: &str) -> Option<Vec<Step<'_>>> {
    let lines = code.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let steps: Vec<_> = lines.map(Step::parse).collect::<Option<_>>()?;
    (!steps.is_empty()).then_some(steps)
}

// === impl Step ===

impl<'a> Step<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "sleep" => duration(rest).map(Self::Sleep),
            "print" => Some(Self::Write(OutputStream::Stdout, rest)),
            "warn" => Some(Self::Write(OutputStream::Stderr, rest)),
            "fill" => rest.parse().ok().map(Self::Fill),
            "progress" => parse_line(rest.as_bytes()).ok().map(Self::Progress),
            "fail" => rest.parse().ok().map(Self::Fail),
            "hang" if rest.is_empty() => Some(Self::Hang),
            "crash" if rest.is_empty() => Some(Self::Crash),
            _ => None,
        }
    }
}

fn duration(text: &str) -> Option<Duration> {
    match text.strip_suffix("ms") {
        Some(ms) => ms.trim().parse().ok().map(Duration::from_millis),
        None => text.strip_suffix('s')?.trim().parse().ok().map(Duration::from_secs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_known_lines_is_interpreted() {
        let script = "# a drill\n\nsleep 20ms\n print hello world \nfail 3";
        let expected = [
            Step::Sleep(Duration::from_millis(20)),
            Step::Write(OutputStream::Stdout, "hello world"),
            Step::Fail(3),
        ];
        assert_eq!(steps(script).unwrap(), expected);
        for code in ["", "print('hello')", "sleep 1", "sleep 20ms\nimport os", "hang on", "fail"] {
            assert_eq!(steps(code), None, "{code}");
        }
    }
}
