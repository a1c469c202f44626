use super::work::{OutputSink, StopSignal, Work};
use std::time::Duration;
use tidegate::task::{EndReason, Ending, Outcome, OutputStream};
use tokio::time::sleep;

/// The most bytes that one `fill` writes at once.
const FILL: [u8; 1 << 10] = [b'.'; 1 << 10];

/// Executes nothing, for drills, tests and benchmarks.
///
/// Code of which every line is one of these is done line by line; blank lines and those that begin with `#` don't
/// count. Any other code takes a set time, and succeeds.
///
/// | line | does |
/// |---|---|
/// | `sleep 20ms`, `sleep 2s` | waits |
/// | `print TEXT`, `warn TEXT` | writes a line to its standard output, or error |
/// | `fill 4096` | writes so many bytes |
/// | `fail 3` | ends with this status |
/// | `hang` | waits until it is stopped |
/// | `crash` | takes the runner down, as a bug would |
#[derive(Clone, Debug)]
pub struct MockRunner {
    takes: Duration,
    runtimes: Vec<String>,
}

/// One line of a mock's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step<'a> {
    Sleep(Duration),
    Write(OutputStream, &'a str),
    Fill(usize),
    Fail(i32),
    Hang,
    Crash,
}

// === impl MockRunner ===

impl MockRunner {
    /// One whose executions take that long, unless their code says something else. Without runtimes it takes any.
    #[must_use]
    pub fn new(takes: Duration, runtimes: Vec<String>) -> Self {
        Self { takes, runtimes }
    }

    pub(super) fn runtimes(&self) -> &[String] {
        &self.runtimes
    }

    pub(super) async fn run(&self, work: &Work, sink: &OutputSink, mut stop: StopSignal) -> Ending {
        let mut time_left = work.timeout;
        for step in steps(&work.code).unwrap_or_else(|| vec![Step::Sleep(self.takes)]) {
            let pause = match step {
                Step::Sleep(pause) => pause,
                Step::Hang => Duration::MAX,
                Step::Write(stream, text) => {
                    if sink.write(stream, text.as_bytes()) && sink.write(stream, b"\n") {
                        continue;
                    }
                    return too_much();
                }
                Step::Fill(bytes) => {
                    if fill(sink, bytes) {
                        continue;
                    }
                    return too_much();
                }
                Step::Fail(status) => return exit(status),
                // As a panic, and without a word about it: it was asked for.
                Step::Crash => std::panic::resume_unwind(Box::new("a crash that was asked for")),
            };
            // Work that takes no time takes none: a timer costs more than all the rest of it.
            if pause.is_zero() {
                continue;
            }
            tokio::select! {
                () = sleep(pause.min(time_left)) => {}
                why = stop.stopped() => return why.ending(),
            }
            if pause >= time_left {
                let timeout_ms = work.timeout.as_millis();
                let ending = Ending::new(Outcome::Failed, EndReason::Timeout);
                return ending.because(format!("it ran for longer than {timeout_ms} ms"));
            }
            time_left -= pause;
        }
        exit(0)
    }
}

fn exit(status: i32) -> Ending {
    let outcome = if status == 0 { Outcome::Succeeded } else { Outcome::Failed };
    Ending { exit_code: Some(status), ..Ending::new(outcome, EndReason::Exit) }
}

fn too_much() -> Ending {
    let ending = Ending::new(Outcome::Failed, EndReason::OutputLimit);
    ending.because("it wrote more than is kept")
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

/// The steps of code that is meant for a mock.
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
    fn code_that_is_not_meant_for_a_mock_is_left_alone() {
        let meant = "# a drill\n\nsleep 20ms\n print hello world \nfail 3";
        let expected = [
            Step::Sleep(Duration::from_millis(20)),
            Step::Write(OutputStream::Stdout, "hello world"),
            Step::Fail(3),
        ];
        assert_eq!(steps(meant).unwrap(), expected);
        for code in ["", "print('hello')", "sleep 1", "sleep 20ms\nimport os", "hang on", "fail"] {
            assert_eq!(steps(code), None, "{code}");
        }
    }
}
