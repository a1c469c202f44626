use super::Stage;
use super::kill::Brood;
use super::plan::{Breach, Ended, Exit, KILL, Plan, Report, TERMINATE};
use super::watch::Watch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{self as sys, DumpableBehavior, Pid, PidfdFlags, Signal, WaitStatus};
use std::io::{self, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at the task. Memory is filled at some gigabytes a second, so a task passes its limit by some
/// hundred megabytes at worst, and by none when the kernel's limit holds first.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Between two looks at whether processes have left that were about to.
const LEAVE_LOOK_EVERY: Duration = Duration::from_millis(5);

/// Starts the task that the worker describes, and says how it ended when nothing of it is left.
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
    // The task must not look into this process, nor stop it as a debugger would.
    sys::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Whoever loses its parent becomes this process's child: a second session or a double fork hides nobody.
    sys::set_child_subreaper(Some(sys::getpid()))?;
    if sys::getpid() == Pid::INIT {
        // Then the parent is bubblewrap, which has one thread. With a worker for a parent this would be wrong: the
        // signal comes when the thread that started this process ends, and a worker's threads come and go.
        sys::set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut from_worker = BufReader::new(control.try_clone()?);
    let plan = Plan::read(&mut from_worker)?;
    let early = from_worker.buffer().to_vec();
    let mut to_worker = control.try_clone()?;
    Report::Starting.write(&mut to_worker)?;
    // From here on nothing is a reason to leave early: what was started must be ended, whoever hears of it.
    match start(&plan) {
        Ok(first) => {
            let ended = Supervisor::new(plan, first, control).run(&early);
            Report::Ended(ended).write(&mut to_worker)
        }
        Err(error) => {
            Brood::new(None).kill();
            Report::Failed(error.to_string()).write(&mut to_worker)
        }
    }
}

/// Starts the stage that becomes the task, and returns when it has.
fn start(plan: &Plan) -> io::Result<Pid> {
    let (mut ours, theirs) = UnixStream::pair()?;
    // Not by a path: the user that the task runs as may not be able to go there.
    let mut command = Command::new("/proc/self/exe");
    command.args(["launch", Stage::Confine.name()]).env_clear();
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    if let Some(uid) = plan.uid {
        command.uid(uid).gid(uid);
    }
    let child = command.spawn()?;
    // It holds the other end open; this process must not, or it would wait for itself.
    drop(command);
    ours.write_all(&plan.line()?)?;
    let mut wrong = String::new();
    ours.read_to_string(&mut wrong)?;
    match (wrong.is_empty(), Pid::from_raw(child.id().cast_signed())) {
        (true, Some(pid)) => Ok(pid),
        (true, None) => Err(io::Error::other("the task has no number")),
        (false, _) => Err(io::Error::other(wrong)),
    }
}

/// The running task.
struct Supervisor {
    brood: Brood,
    watch: Option<Watch>,
    control: UnixStream,
    /// Becomes readable when the first process ends. Kernels before 5.3 have no such thing; then looking does.
    end: Option<OwnedFd>,
    told: bool,
    breach: Option<Breach>,
    leave_within: Duration,
}

impl Supervisor {
    fn new(plan: Plan, first: Pid, control: UnixStream) -> Self {
        let watch = plan.watcher.then(|| Watch::new(plan.limits, plan.writable, Instant::now()));
        Self {
            brood: Brood::new(Some(first)),
            watch,
            control,
            end: sys::pidfd_open(first, PidfdFlags::empty()).ok(),
            told: false,
            breach: None,
            leave_within: Duration::from_millis(plan.leave_ms),
        }
    }

    fn run(mut self, early: &[u8]) -> Ended {
        self.obey(early);
        let mut look_at = Instant::now();
        let status = loop {
            if let Some(status) = self.brood.reap() {
                break status;
            }
            let now = Instant::now();
            if now >= look_at {
                look_at = now + LOOK_EVERY;
                self.look(now);
            }
            self.wait(look_at.saturating_duration_since(Instant::now()));
        };
        Ended {
            exit: exit(status),
            leftovers: self.end_leftovers(),
            breach: self.breach,
            told: self.told,
        }
    }

    fn look(&mut self, now: Instant) {
        let Some(watch) = self.watch.as_mut().filter(|_| !self.told && self.breach.is_none())
        else {
            return;
        };
        self.breach = watch.look(&self.brood.alive(), now);
        if self.breach.is_some() {
            self.brood.kill();
        }
    }

    /// Waits for the first process to end or the worker to say something.
    fn wait(&mut self, at_most: Duration) {
        let timeout = Timespec::try_from(at_most).ok();
        let mut fds = vec![PollFd::new(&self.control, PollFlags::IN)];
        fds.extend(self.end.as_ref().map(|end| PollFd::new(end, PollFlags::IN)));
        if poll(&mut fds, timeout.as_ref()).is_err() {
            // A signal came; the caller looks again anyway.
            return;
        }
        if fds.first().is_some_and(|control| !control.revents().is_empty()) {
            let mut words = [0; 16];
            match (&self.control).read(&mut words) {
                Ok(0) | Err(_) => self.obey(&[KILL]),
                Ok(count) => self.obey(&words[..count]),
            }
        }
    }

    fn obey(&mut self, words: &[u8]) {
        for word in words {
            // What has ended by itself was not told to.
            self.told |= self.brood.reap().is_none();
            match *word {
                TERMINATE => self.brood.terminate(),
                _ => self.brood.kill(),
            }
        }
    }

    /// How many did not leave with the first.
    fn end_leftovers(&mut self) -> u32 {
        let until = Instant::now() + self.leave_within;
        let left = left_after(until, Instant::now, || {
            self.brood.reap();
            self.brood.alive().len()
        });
        match left {
            0 => drop(self.brood.reap()),
            _ => self.brood.kill(),
        }
        u32::try_from(left).unwrap_or(u32::MAX)
    }
}

/// How many have not left by then. The last look begins after that time: who is late to look does not take those
/// for left behind who went meanwhile.
fn left_after(until: Instant, now: impl Fn() -> Instant, mut look: impl FnMut() -> usize) -> usize {
    loop {
        let is_last = now() >= until;
        let left = look();
        if left == 0 || is_last {
            return left;
        }
        thread::sleep(LEAVE_LOOK_EVERY);
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
    fn who_leaves_while_the_supervisor_does_not_run_is_not_left_behind() {
        let start = Instant::now();
        let (now, looks) = (Cell::new(start), Cell::new(0));
        // The supervisor is held up for an hour right after its first look.
        let look = || {
            looks.set(looks.get() + 1);
            now.set(start + Duration::from_secs(3_600));
            usize::from(looks.get() == 1)
        };
        assert_eq!(left_after(start + Duration::from_millis(300), || now.get(), look), 0);
        assert_eq!(looks.get(), 2);
    }

    #[test]
    fn who_stays_is_left_behind_when_the_time_is_over_and_not_before() {
        let start = Instant::now();
        let now = Cell::new(start);
        let until = start + Duration::from_millis(300);
        let look = || {
            now.set(now.get() + Duration::from_millis(100));
            3
        };
        assert_eq!(left_after(until, || now.get(), look), 3);
        assert_eq!(now.get(), until + Duration::from_millis(100), "one look after it");
    }
}
