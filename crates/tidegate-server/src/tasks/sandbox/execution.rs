use super::access_rules::AccessRules;
use super::ending::{Cause, Facts, Tail};
use super::launch::{KILL, LINE_BYTES_MAX, Report, TERMINATE, send_descriptor};
use super::progress_reader::ProgressReader;
use crate::tasks::execution::{OutputSink, ProgressSink, StopSignal};
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

/// Largest single read of a task's output.
const READ_BYTES: usize = 16 << 10;
/// Longest time for a supervisor to kill its task, and then for the worker to kill the supervisor.
const KILLED_WITHIN: Duration = Duration::from_secs(10);
/// Longest wait for output after the task has ended and no process holds its pipes.
const DRAINED_WITHIN: Duration = Duration::from_secs(2);

/// A running supervisor and the worker's ends of its pipes.
pub(super) struct Execution {
    child: Child,
    commands: OwnedWriteHalf,
    reports: Lines<BufReader<Take<OwnedReadHalf>>>,
    stdout: Option<Source>,
    stderr: Option<Source>,
    progress: ProgressReader,
    step: Step,
    /// Deadline of the current step.
    deadline: Instant,
    facts: Facts,
}

/// Progress of stopping a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Running,
    Terminating,
    Killing,
    /// The worker has killed the supervisor itself.
    KillingSupervisor,
}

type Source = Pin<Box<dyn AsyncRead + Send>>;

// === impl Execution ===

impl Execution {
    /// Starts the supervisor, and sends it the plan.
    pub(super) async fn start(
        mut command: Command,
        plan: &[u8],
        rules: AccessRules,
        deadline: Instant,
    ) -> io::Result<Self> {
        let (control, child_end) = StdStream::pair()?;
        let (progress, task_end) = ProgressReader::new()?;
        send_descriptor(&control, &task_end)?;
        drop(task_end);
        control.set_nonblocking(true)?;
        let (reports, mut commands) = UnixStream::from_std(control)?.into_split();
        command.stdin(Stdio::from(OwnedFd::from(child_end)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).env_clear().kill_on_drop(true);
        let mut child = command.spawn()?;
        // Closes this process's copy of the child's end: otherwise the worker would not see the supervisor close
        // it.
        drop(command);
        // A supervisor that reads nothing is about to end, and its end has the reason. Not bounded by the task's
        // deadline: a supervisor without its plan could not obey a stop.
        let _ = timeout(KILLED_WITHIN, commands.write_all(plan)).await;
        Ok(Self {
            commands,
            reports: BufReader::new(reports.take(LINE_BYTES_MAX)).lines(),
            stdout: child.stdout.take().map(|stdout| Box::pin(stdout) as Source),
            stderr: child.stderr.take().map(|stderr| Box::pin(stderr) as Source),
            progress,
            child,
            step: Step::Running,
            deadline,
            facts: Facts {
                cause: None,
                started: false,
                failed: None,
                ended: None,
                tail: Tail::default(),
                rules,
                orphans: 0,
            },
        })
    }

    /// Forwards the task's output and progress until it has ended, and ends it on a stop or at its deadline.
    pub(super) async fn run(
        mut self,
        sink: &OutputSink,
        progress: &ProgressSink,
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
                read = self.progress.read() => self.progress.take(read, progress, sink),
                reason = stop.stopped(), if self.step == Step::Running => {
                    self.terminate(Cause::Stop(reason), grace);
                }
                () = tokio::time::sleep_until(self.deadline) => match self.step {
                    Step::Running => self.terminate(Cause::Timeout, grace),
                    Step::Terminating => self.kill(),
                    Step::Killing => self.kill_supervisor(),
                    Step::KillingSupervisor => break,
                },
            }
        }
        let drained = async {
            while self.stdout.is_some() || self.stderr.is_some() || self.progress.is_open() {
                self.progress.hurry();
                tokio::select! {
                    read = self.progress.read() => self.progress.take(read, progress, sink),
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
        // The supervisor has closed its end, so it is about to exit; if not, the drop kills it.
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

    /// Forwards bytes of one stream. Empty means the end of the stream.
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
            self.progress.close();
            self.kill();
        }
    }

    fn terminate(&mut self, cause: Cause, grace: Duration) {
        self.facts.cause.get_or_insert(cause);
        // Fails when the supervisor has ended.
        let _ = self.commands.try_write(&[TERMINATE]);
        (self.step, self.deadline) = (Step::Terminating, Instant::now() + grace);
    }

    fn kill(&mut self) {
        let _ = self.commands.try_write(&[KILL]);
        (self.step, self.deadline) = (Step::Killing, Instant::now() + KILLED_WITHIN);
    }

    fn kill_supervisor(&mut self) {
        let _ = self.child.start_kill();
        (self.step, self.deadline) = (Step::KillingSupervisor, Instant::now() + KILLED_WITHIN);
    }
}

/// Reads into a buffer; 0 at the end of the stream. Pending forever after that.
async fn read(source: &mut Option<Source>, buffer: &mut [u8]) -> usize {
    match source {
        Some(source) => source.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}
