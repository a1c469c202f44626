use super::process::{self, Process};
use rustix::process::{self as sys, Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Rounds of looking for new processes. A tree that still grows after so many is killed as it is, then searched
/// again.
const FREEZE_ROUNDS_MAX: u32 = 20;
/// Longest time until killed processes are gone. A process that waits for a disk can't be hurried.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// Interval between two checks whether killed processes are gone.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// All descendants of this process, and the exit status of its first child.
pub(super) struct ProcessTree {
    this: i32,
    /// The task's first process; `None` when it did not start.
    first: Option<Pid>,
    first_status: Option<WaitStatus>,
}

impl ProcessTree {
    pub(super) fn new(first: Option<Pid>) -> Self {
        Self { this: sys::getpid().as_raw_nonzero().get(), first, first_status: None }
    }

    /// Reaps all ended children, and returns the exit status of the first, once it has ended.
    pub(super) fn reap(&mut self) -> Option<WaitStatus> {
        while let Ok(Some((pid, status))) = sys::wait(WaitOptions::NOHANG) {
            if Some(pid) == self.first {
                self.first_status = Some(status);
            }
        }
        self.first_status
    }

    /// Descendants that run.
    pub(super) fn alive(&self) -> Vec<Process> {
        let mut all = process::descendants(self.this);
        all.retain(|process| process.alive);
        all
    }

    /// Sends TERM to the first process and its group.
    pub(super) fn terminate(&self) {
        // Fails when the group is gone already.
        let _ = self.first.map(|first| sys::kill_process_group(first, Signal::TERM));
    }

    /// Kills all descendants, and waits until they are gone, at most `GONE_WITHIN`.
    pub(super) fn kill(&mut self) {
        let until = Instant::now() + GONE_WITHIN;
        loop {
            match self.is_init() {
                // Reaches every process but the caller: in its own namespace those are the task's alone, and none
                // can be forked in between.
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

    /// True for process 1 of a namespace: it adopts every orphan, and all end with it.
    fn is_init(&self) -> bool {
        self.this == 1
    }

    /// Stops all before it kills them: a stopped process can't fork, so a fork bomb can't outrun this. Where the
    /// kernel limits processes, the bomb runs out of children as well.
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

/// Signals this very process, and not a later one with the same number.
pub(in crate::tasks::sandbox) fn signal(process: &Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let Ok(pidfd) = sys::pidfd_open(pid, PidfdFlags::empty()) else {
        // The process is gone, or the kernel is older than 5.3. Then the number could be reused after the check.
        if is_same(process) {
            let _ = sys::kill_process(pid, signal);
        }
        return;
    };
    if is_same(process) {
        let _ = sys::pidfd_send_signal(&pidfd, signal);
    }
}

fn is_same(process: &Process) -> bool {
    Process::read(process.pid).is_some_and(|now| now.started == process.started)
}
