use super::tree::{self, Process};
use rustix::process::{self as sys, Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// How often a tree is looked through for processes that were not there before. A tree that still grows after so
/// many rounds is killed as it is, and looked at again.
const FREEZE_ROUNDS_MAX: u32 = 20;
/// How long processes may take to be gone after they were killed. A process that waits for a disk can't be
/// hurried.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// Between two looks at whether they are gone.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Everything below this process, and how its first child left.
pub(super) struct Brood {
    this: i32,
    /// None when nothing became of it.
    first: Option<Pid>,
    left: Option<WaitStatus>,
}

impl Brood {
    pub(super) fn new(first: Option<Pid>) -> Self {
        Self { this: sys::getpid().as_raw_nonzero().get(), first, left: None }
    }

    /// Waits for all that have ended, which is what makes them go away, and says how the first left, once it has.
    pub(super) fn reap(&mut self) -> Option<WaitStatus> {
        while let Ok(Some((pid, status))) = sys::wait(WaitOptions::NOHANG) {
            if Some(pid) == self.first {
                self.left = Some(status);
            }
        }
        self.left
    }

    /// All that run.
    pub(super) fn alive(&self) -> Vec<Process> {
        let mut all = tree::descendants(self.this);
        all.retain(|process| process.alive);
        all
    }

    /// Asks the first and its group to end.
    pub(super) fn terminate(&self) {
        // It may be gone already, and then there is nobody to ask.
        let _ = self.first.map(|first| sys::kill_process_group(first, Signal::TERM));
    }

    /// Kills all, and waits until they are gone, though not forever.
    pub(super) fn kill(&mut self) {
        let until = Instant::now() + GONE_WITHIN;
        loop {
            match self.is_init() {
                // To everybody but the caller: in a namespace of its own that is the task and nothing else, and no
                // process can be born in between.
                true => drop(sys::kill_process_group(Pid::INIT, Signal::KILL)),
                false => self.freeze_and_kill(),
            }
            self.reap();
            if self.alive().is_empty() || Instant::now() >= until {
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Process 1 gets every orphan and outlives nobody. Only in a namespace of its own is this process that.
    fn is_init(&self) -> bool {
        self.this == 1
    }

    /// Stops them first: what is stopped has no more children, so a bomb can't outrun this. It can't in the end
    /// because the kernel's limit on processes, where it binds, makes it run out of children.
    fn freeze_and_kill(&self) {
        let mut frozen: Vec<Process> = Vec::new();
        for _ in 0..FREEZE_ROUNDS_MAX {
            let mut grown = false;
            for process in self.alive() {
                let known =
                    |other: &Process| (other.pid, other.started) == (process.pid, process.started);
                if !frozen.iter().any(known) {
                    signal(&process, Signal::STOP);
                    frozen.push(process);
                    grown = true;
                }
            }
            if !grown {
                break;
            }
        }
        for process in &frozen {
            signal(process, Signal::KILL);
        }
    }
}

/// Signals this very process, and not another that got its number since.
pub(in crate::worker::process) fn signal(process: &Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let Ok(held) = sys::pidfd_open(pid, PidfdFlags::empty()) else {
        // A kernel older than 5.3, or it is gone. What remains is a moment in which the number could change hands.
        if is_still(process) {
            let _ = sys::kill_process(pid, signal);
        }
        return;
    };
    if is_still(process) {
        let _ = sys::pidfd_send_signal(&held, signal);
    }
}

fn is_still(process: &Process) -> bool {
    Process::read(process.pid).is_some_and(|now| now.started == process.started)
}
