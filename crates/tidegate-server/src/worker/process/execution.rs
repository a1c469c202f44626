use super::config::Network;
use super::ending::{Cause, Facts, Tail};
use super::launch::{KILL, LINE_BYTES_MAX, Report, TERMINATE};
use crate::worker::{OutputSink, StopSignal};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::pin::Pin;
use std::process::Stdio;
use std::time::Duration;
use tidegate::task::OutputStream;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines, Take,
};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

/// What is read at one time.
const READ_BYTES: usize = 16 << 10;
/// How long a supervisor may take to kill a task, and after that to be killed itself.
const KILLED_WITHIN: Duration = Duration::from_secs(10);
/// How long output may take to arrive after the task has ended and nobody can hold its pipes any more.
const DRAINED_WITHIN: Duration = Duration::from_secs(2);

/// A supervisor that runs, and the ends of its pipes.
pub(super) struct Execution {
    child: Child,
    to: OwnedWriteHalf,
    reports: Lines<BufReader<Take<OwnedReadHalf>>>,
    stdout: Option<Source>,
    stderr: Option<Source>,
    step: Step,
    /// When the next step is due.
    due: Instant,
    facts: Facts,
}

/// How far the worker has gone to end it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Running,
    Asked,
    Killed,
    /// The supervisor itself was killed.
    GivenUp,
}

type Source = Pin<Box<dyn AsyncRead + Send>>;

impl Execution {
    /// Starts the supervisor, and tells it the plan.
    pub(super) async fn start(
        mut command: Command,
        plan: &[u8],
        network: Network,
        deadline: Instant,
    ) -> io::Result<Self> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let (from, mut to) = UnixStream::from_std(ours)?.into_split();
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).env_clear().kill_on_drop(true);
        let mut child = command.spawn()?;
        // With it goes this process's copy of the other end: only so is it seen when the supervisor closes its
        // own.
        drop(command);
        // One that does not listen is about to end, and its end says why. Not within the task's own time: a
        // supervisor without its plan would not hear that it has to end.
        let _ = timeout(KILLED_WITHIN, to.write_all(plan)).await;
        Ok(Self {
            to,
            reports: BufReader::new(from.take(LINE_BYTES_MAX)).lines(),
            stdout: child.stdout.take().map(|stdout| Box::pin(stdout) as Source),
            stderr: child.stderr.take().map(|stderr| Box::pin(stderr) as Source),
            child,
            step: Step::Running,
            due: deadline,
            facts: Facts {
                cause: None,
                started: false,
                failed: None,
                ended: None,
                tail: Tail::default(),
                network,
                strays: 0,
            },
        })
    }

    /// Passes its output on until it has ended, and ends it when it must.
    pub(super) async fn run(
        mut self,
        sink: &OutputSink,
        mut stop: StopSignal,
        grace: Duration,
    ) -> Facts {
        let (mut out, mut err) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
        loop {
            tokio::select! {
                line = self.reports.next_line() => match line {
                    Ok(Some(line)) => self.note(&line),
                    Ok(None) | Err(_) => break,
                },
                read = read(&mut self.stdout, &mut out) => {
                    self.take(OutputStream::Stdout, &out[..read], sink);
                }
                read = read(&mut self.stderr, &mut err) => {
                    self.take(OutputStream::Stderr, &err[..read], sink);
                }
                why = stop.stopped(), if self.step == Step::Running => {
                    self.ask(Cause::Stop(why), grace);
                }
                () = tokio::time::sleep_until(self.due) => match self.step {
                    Step::Running => self.ask(Cause::Timeout, grace),
                    Step::Asked => self.kill(),
                    Step::Killed => self.give_up(),
                    Step::GivenUp => break,
                },
            }
        }
        let drained = async {
            while self.stdout.is_some() || self.stderr.is_some() {
                tokio::select! {
                    read = read(&mut self.stdout, &mut out) => {
                        self.take(OutputStream::Stdout, &out[..read], sink);
                    }
                    read = read(&mut self.stderr, &mut err) => {
                        self.take(OutputStream::Stderr, &err[..read], sink);
                    }
                }
            }
        };
        let _ = timeout(DRAINED_WITHIN, drained).await;
        // It has closed its end, so it is about to leave; if not, it is killed when it is dropped.
        let _ = timeout(KILLED_WITHIN, self.child.wait()).await;
        self.facts
    }

    fn note(&mut self, line: &str) {
        match Report::parse(line) {
            Some(Report::Starting) => self.facts.started = true,
            Some(Report::Failed(why)) => self.facts.failed = Some(why),
            Some(Report::Ended(ended)) => self.facts.ended = Some(ended),
            None => {}
        }
    }

    /// Passes on what was read. Nothing read means that there is no more.
    fn take(&mut self, stream: OutputStream, bytes: &[u8], sink: &OutputSink) {
        let source = match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        if bytes.is_empty() {
            *source = None;
            return;
        }
        if stream == OutputStream::Stderr {
            self.facts.tail.push(bytes);
        }
        if !sink.write(stream, bytes) {
            self.facts.cause.get_or_insert(Cause::Output);
            (self.stdout, self.stderr) = (None, None);
            self.kill();
        }
    }

    fn ask(&mut self, cause: Cause, grace: Duration) {
        self.facts.cause.get_or_insert(cause);
        // One that does not listen any more has ended.
        let _ = self.to.try_write(&[TERMINATE]);
        (self.step, self.due) = (Step::Asked, Instant::now() + grace);
    }

    fn kill(&mut self) {
        let _ = self.to.try_write(&[KILL]);
        (self.step, self.due) = (Step::Killed, Instant::now() + KILLED_WITHIN);
    }

    fn give_up(&mut self) {
        let _ = self.child.start_kill();
        (self.step, self.due) = (Step::GivenUp, Instant::now() + KILLED_WITHIN);
    }
}

/// Reads some; nothing when there is no more. Never ends when there has been no more before.
async fn read(source: &mut Option<Source>, buffer: &mut [u8]) -> usize {
    match source {
        Some(source) => source.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}
