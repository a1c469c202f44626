use super::command::LaunchCommand;
use super::descriptor;
use super::limit_watcher::LimitWatcher;
use super::plan::{Breach, Ended, Exit, KILL, Plan, Report, TERMINATE};
use super::process_tree::ProcessTree;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{self as sys, DumpableBehavior, Pid, PidfdFlags, Signal, WaitStatus};
use std::io::{self, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two checks of the limits. A task can fill some gigabytes a second, so it exceeds its memory
/// limit by a few hundred megabytes at worst, and by nothing where the kernel's limit holds first.
const CHECK_EVERY: Duration = Duration::from_millis(25);
/// Environment variable of a task with the number of the descriptor for its progress.
const PROGRESS: &str = "TIDEGATE_PROGRESS_FD";
/// Interval between two checks for processes that outlive the first.
const EXIT_CHECK_EVERY: Duration = Duration::from_millis(5);

/// Starts the task of the worker's plan, and reports its end when no process of it is left.
pub(super) fn run() -> ExitCode {
    match supervise() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tidegate launch: {error}");
            ExitCode::FAILURE
        }
    }
}

fn supervise() -> io::Result<()> {
    // The task must not read this process's memory or attach to it as a debugger.
    sys::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Orphans become children of this process: a new session or a double fork hides no process.
    sys::set_child_subreaper(Some(sys::getpid()))?;
    if sys::getpid() == Pid::INIT {
        // Then the parent is bubblewrap, which has one thread. With a worker as the parent this would be wrong:
        // the signal comes when the thread that forked this process ends, and a worker's threads come and go.
        sys::set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let progress = descriptor::receive(&control)?;
    let mut from_worker = BufReader::new(control.try_clone()?);
    let mut plan = Plan::read(&mut from_worker)?;
    plan.env.insert(PROGRESS.to_owned(), progress.as_raw_fd().to_string());
    let early = from_worker.buffer().to_vec();
    let mut to_worker = control.try_clone()?;
    Report::Starting.write(&mut to_worker)?;
    // From here on no error may return early: a started task must be ended, even when the worker is gone.
    match start(&plan, progress) {
        Ok(first) => {
            let ended = Supervisor::new(plan, first, control).run(&early);
            Report::Ended(ended).write(&mut to_worker)
        }
        Err(error) => {
            ProcessTree::new(None).kill();
            Report::Failed(error.to_string()).write(&mut to_worker)
        }
    }
}

/// Starts the `confine` command with the task's end of the progress pipe, and returns when it has become the task.
fn start(plan: &Plan, progress: OwnedFd) -> io::Result<Pid> {
    // This process starts no other that could inherit it.
    fcntl_setfd(&progress, FdFlags::empty())?;
    let (mut control, child_end) = UnixStream::pair()?;
    // Not by its path, which the task's user may not be able to reach.
    let mut command = Command::new("/proc/self/exe");
    command.args(["launch", LaunchCommand::Confine.name()]).env_clear();
    command.stdin(Stdio::from(OwnedFd::from(child_end)));
    if let Some(uid) = plan.uid {
        command.uid(uid).gid(uid);
    }
    let child = command.spawn()?;
    // Closes this process's copies of the child's ends, so that the read below ends, and the worker's reads end
    // with the task.
    drop((command, progress));
    control.write_all(&plan.line()?)?;
    let mut error = String::new();
    control.read_to_string(&mut error)?;
    match (error.is_empty(), Pid::from_raw(child.id().cast_signed())) {
        (true, Some(pid)) => Ok(pid),
        (true, None) => Err(io::Error::other("the task has no pid")),
        (false, _) => Err(io::Error::other(error)),
    }
}

/// Supervisor of a running task.
struct Supervisor {
    tree: ProcessTree,
    limits: Option<LimitWatcher>,
    control: UnixStream,
    /// Pidfd that becomes readable when the first process ends. Kernels before 5.3 have none; then polling must
    /// do.
    first_exit: Option<OwnedFd>,
    /// The worker asked for the end while the task ran.
    stop_requested: bool,
    breach: Option<Breach>,
    leave_within: Duration,
}

impl Supervisor {
    fn new(plan: Plan, first: Pid, control: UnixStream) -> Self {
        let limits =
            plan.watcher.then(|| LimitWatcher::new(plan.limits, plan.writable, Instant::now()));
        Self {
            tree: ProcessTree::new(Some(first)),
            limits,
            control,
            first_exit: sys::pidfd_open(first, PidfdFlags::empty()).ok(),
            stop_requested: false,
            breach: None,
            leave_within: Duration::from_millis(plan.leave_ms),
        }
    }

    fn run(mut self, early: &[u8]) -> Ended {
        self.obey(early);
        let mut check_at = Instant::now();
        let status = loop {
            if let Some(status) = self.tree.reap() {
                break status;
            }
            let now = Instant::now();
            if now >= check_at {
                check_at = now + CHECK_EVERY;
                self.check_limits(now);
            }
            self.wait(check_at.saturating_duration_since(Instant::now()));
        };
        Ended {
            exit: exit(status),
            leftovers: self.end_leftovers(),
            breach: self.breach,
            stop_requested: self.stop_requested,
        }
    }

    fn check_limits(&mut self, now: Instant) {
        if self.stop_requested || self.breach.is_some() {
            return;
        }
        let Some(limits) = self.limits.as_mut() else { return };
        self.breach = limits.check(&self.tree.alive(), now);
        if self.breach.is_some() {
            self.tree.kill();
        }
    }

    /// Waits for the end of the first process or a command of the worker.
    fn wait(&mut self, at_most: Duration) {
        let timeout = Timespec::try_from(at_most).ok();
        let mut fds = vec![PollFd::new(&self.control, PollFlags::IN)];
        fds.extend(self.first_exit.as_ref().map(|exit| PollFd::new(exit, PollFlags::IN)));
        if poll(&mut fds, timeout.as_ref()).is_err() {
            // Interrupted by a signal; the caller checks again anyway.
            return;
        }
        if fds.first().is_some_and(|control| !control.revents().is_empty()) {
            let mut commands = [0; 16];
            match (&self.control).read(&mut commands) {
                Ok(0) | Err(_) => self.obey(&[KILL]),
                Ok(count) => self.obey(&commands[..count]),
            }
        }
    }

    fn obey(&mut self, commands: &[u8]) {
        for command in commands {
            // A task that has ended by itself was not stopped.
            self.stop_requested |= self.tree.reap().is_none();
            match *command {
                TERMINATE => self.tree.terminate(),
                _ => self.tree.kill(),
            }
        }
    }

    /// Ends the processes that outlived the first, and counts them.
    fn end_leftovers(&mut self) -> u32 {
        let until = Instant::now() + self.leave_within;
        let left = left_after(until, Instant::now, || {
            self.tree.reap();
            self.tree.alive().len()
        });
        match left {
            0 => drop(self.tree.reap()),
            _ => self.tree.kill(),
        }
        u32::try_from(left).unwrap_or(u32::MAX)
    }
}

/// Processes left at a deadline. The last count begins after it: a supervisor that was delayed does not count
/// processes that have exited meanwhile.
fn left_after(
    until: Instant,
    now: impl Fn() -> Instant,
    mut count: impl FnMut() -> usize,
) -> usize {
    loop {
        let is_last = now() >= until;
        let left = count();
        if left == 0 || is_last {
            return left;
        }
        thread::sleep(EXIT_CHECK_EVERY);
    }
}

fn exit(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn processes_that_exit_while_the_supervisor_is_suspended_are_not_leftovers() {
        let start = Instant::now();
        let (now, counts) = (Cell::new(start), Cell::new(0));
        // The supervisor is suspended for an hour right after its first count.
        let count = || {
            counts.set(counts.get() + 1);
            now.set(start + Duration::from_secs(3_600));
            usize::from(counts.get() == 1)
        };
        assert_eq!(left_after(start + Duration::from_millis(300), || now.get(), count), 0);
        assert_eq!(counts.get(), 2);
    }

    #[test]
    fn processes_that_stay_are_leftovers_after_the_deadline_and_not_before() {
        let start = Instant::now();
        let now = Cell::new(start);
        let until = start + Duration::from_millis(300);
        let count = || {
            now.set(now.get() + Duration::from_millis(100));
            3
        };
        assert_eq!(left_after(until, || now.get(), count), 3);
        assert_eq!(now.get(), until + Duration::from_millis(100), "one count after it");
    }
}
