use crate::tasks::execution::{OutputSink, ProgressSink};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tidegate::progress::{ProgressError, ProgressLines, parse_line};
use tidegate::task::OutputStream;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until};

/// Largest single read: the capacity of a pipe.
const READ_BYTES: usize = 64 << 10;
/// Interval between two reads. A task that reports in a tight loop costs the worker at most 100 reads a second,
/// and waits at most this long for room in the pipe.
const READ_EVERY: Duration = Duration::from_millis(10);
/// Most notices about ignored reports in a task's output.
const NOTICES_MAX: u32 = 3;

/// The worker's end of the pipe to which a task writes its progress.
pub(super) struct ProgressReader {
    /// `None` after the end of the stream.
    pipe: Option<pipe::Receiver>,
    buffer: Vec<u8>,
    lines: ProgressLines,
    /// Time of the next read.
    next: Instant,
    notices: u32,
}

// === impl ProgressReader ===

impl ProgressReader {
    /// A pipe: the reader, and the task's end.
    pub(super) fn new() -> io::Result<(Self, OwnedFd)> {
        let (sender, receiver) = pipe::pipe()?;
        let reader = Self {
            pipe: Some(receiver),
            buffer: vec![0; READ_BYTES],
            lines: ProgressLines::default(),
            next: Instant::now(),
            notices: 0,
        };
        Ok((reader, sender.into_blocking_fd()?))
    }

    /// True until the end of the stream.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Stops reading.
    pub(super) fn close(&mut self) {
        self.pipe = None;
    }

    /// Reads the next bytes at once: what an ended task left in the pipe.
    pub(super) fn hurry(&mut self) {
        self.next = Instant::now();
    }

    /// Waits for the next bytes, and returns their count: 0 at the end of the stream. Pending forever after that.
    /// Cancel safe.
    pub(super) async fn read(&mut self) -> usize {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        sleep_until(self.next).await;
        pipe.read(&mut self.buffer).await.unwrap_or(0)
    }

    /// Merges the reports in the bytes that were read. Says in the task's standard error what it ignores, a few
    /// times.
    pub(super) fn take(&mut self, read: usize, progress: &ProgressSink, output: &OutputSink) {
        self.next = Instant::now() + READ_EVERY;
        // From what is known already: a known name has its place, however many new ones come before it.
        let (mut merged, mut refused, mut invalid) = (progress.snapshot().progress, 0, Vec::new());
        let mut ignored = 0;
        let line = |line: Result<&[u8], ProgressError>| match line.and_then(parse_line) {
            Ok(report) => refused += merged.merge(&report),
            Err(error) => {
                ignored += 1;
                if invalid.len() < NOTICES_MAX as usize {
                    invalid.push(error);
                }
            }
        };
        match read {
            0 => {
                self.lines.finish(line);
                self.pipe = None;
            }
            _ => self.lines.push(&self.buffer[..read], line),
        }
        progress.ignore(ignored + refused as u64);
        refused += progress.merge(&merged).unwrap_or(0);
        for error in invalid {
            self.notice(&format!("progress line ignored: {error}"), output);
        }
        if refused > 0 {
            self.notice("progress line ignored: too many names; the first are kept", output);
        }
    }

    fn notice(&mut self, what: &str, output: &OutputSink) {
        if self.notices < NOTICES_MAX {
            self.notices += 1;
            output.note(OutputStream::Stderr, &format!("tidegate: {what}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(reader: &mut ProgressReader, sink: &ProgressSink, text: &str) {
        reader.buffer[..text.len()].copy_from_slice(text.as_bytes());
        reader.take(text.len(), sink, &OutputSink::new(1_000));
    }

    /// As many names as there may be come between two reports of one that is known.
    #[tokio::test]
    async fn a_known_name_goes_on_however_the_reads_are_split() {
        let name = |n: u32| format!("{{\"counters\": {{\"c{n}\": 1}}}}\n");
        let again = "{\"counters\": {\"c1\": 2}}\n";
        for first in [1, 5, 32, 100] {
            let (mut reader, _task) = ProgressReader::new().unwrap();
            let sink = ProgressSink::new();
            report(&mut reader, &sink, &(1..=first).map(name).collect::<String>());
            let rest: String = (first + 1..=100).map(name).collect();
            report(&mut reader, &sink, &(rest + again));
            let snapshot = sink.snapshot();
            assert_eq!(snapshot.progress.counters.get("c1"), Some(&2), "{first}");
            assert_eq!((snapshot.progress.counters.len(), snapshot.ignored), (32, 68), "{first}");
        }
    }
}
