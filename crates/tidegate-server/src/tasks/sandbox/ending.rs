use super::access_rules::AccessRules;
use super::config::Network;
use super::launch::{Breach, Ended, Exit};
use crate::tasks::execution::StopReason;
use tidegate::task::{EndReason, Ending, TaskOutcome};

/// Bytes at the end of a task's standard error that are searched for the reason.
const TAIL_BYTES: usize = 4 << 10;
/// Characters of its last line in the message.
const LAST_LINE_CHARS: usize = 200;
/// A shell whose command a signal ended exits with this plus the signal's number.
const SHELL_SIGNAL: i32 = 128;

/// Texts that programs write when the sandbox denies them something. A kernel limit makes a call fail; most
/// programs print the error and exit. Only this text distinguishes such an end from any other failure.
const SYMPTOMS: &[(&str, EndReason)] = &[
    ("MemoryError", EndReason::MemoryLimit),
    ("Cannot allocate memory", EndReason::MemoryLimit),
    ("bad_alloc", EndReason::MemoryLimit),
    ("ut of memory", EndReason::MemoryLimit),
    ("OutOfMemory", EndReason::MemoryLimit),
    ("memory allocation of", EndReason::MemoryLimit),
    ("memory exhausted", EndReason::MemoryLimit),
    ("Resource temporarily unavailable", EndReason::ProcessLimit),
    ("annot fork", EndReason::ProcessLimit),
    ("can't start new thread", EndReason::ProcessLimit),
    ("File too large", EndReason::FileLimit),
    ("File size limit exceeded", EndReason::FileLimit),
    ("CPU time limit exceeded", EndReason::CpuLimit),
    ("Network is unreachable", EndReason::NetworkDenied),
    ("Bad system call", EndReason::NetworkDenied),
    ("Read-only file system", EndReason::WriteDenied),
    ("Permission denied", EndReason::WriteDenied),
    ("Operation not permitted", EndReason::CallDenied),
];

/// Reason why the worker stopped a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Timeout,
    Output,
    Stop(StopReason),
}

/// The last bytes of a task's standard error.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
}

/// Observations about the end of a task.
#[derive(Debug)]
pub(super) struct Facts {
    /// Reason of the worker's stop, if it stopped the task.
    pub(super) cause: Option<Cause>,
    /// The program may have been started.
    pub(super) started: bool,
    /// Error of the start.
    pub(super) failed: Option<String>,
    /// Final report of the supervisor. `None` when the supervisor was gone before.
    pub(super) ended: Option<Ended>,
    pub(super) tail: Tail,
    /// Access that the task had.
    pub(super) rules: AccessRules,
    /// Orphan processes that were killed after their supervisor was gone.
    pub(super) orphans: u32,
}

// === impl Tail ===

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
        let surplus = self.bytes.len().saturating_sub(TAIL_BYTES);
        self.bytes.drain(..surplus);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

// === impl Facts ===

impl Facts {
    /// The ending, without the run time.
    pub(super) fn ending(&self) -> Ending {
        let mut ending = match self.ended {
            Some(ended) => self.of_ended(ended),
            None => self.of_lost_supervisor(),
        };
        let leftovers = self.orphans + self.ended.map_or(0, |ended| ended.leftovers);
        if leftovers > 0 {
            ending.stopped.push("leftover_processes".to_owned());
        }
        ending.output_cut = self.cause == Some(Cause::Output);
        ending
    }

    fn of_ended(&self, ended: Ended) -> Ending {
        let code = match ended.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) => None,
        };
        let ending = match (ended.breach, self.cause) {
            (Some(breach), _) => of_breach(breach),
            (None, Some(cause)) if ended.stop_requested || cause == Cause::Output => {
                of_cause(cause)
            }
            // The task ended by itself before the stop reached it.
            (None, _) => return Ending { exit_code: code, ..self.of_exit(ended.exit) },
        };
        Ending { exit_code: code, ..ending }
    }

    fn of_exit(&self, exit: Exit) -> Ending {
        let failed = |reason| Ending::new(TaskOutcome::Failed, reason);
        match exit {
            Exit::Code(0) => Ending::new(TaskOutcome::Succeeded, EndReason::Exit),
            Exit::Signal(signal) => match self.signal_reason(signal) {
                Some(reason) => failed(reason).because(explain(reason)),
                None => failed(EndReason::Signal).because(format!("signal {signal} ended it")),
            },
            Exit::Code(code) => {
                let text = self.tail.text();
                let symptom = || self.last_symptom(&text);
                let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
                let last: String = last.unwrap_or_default().chars().take(LAST_LINE_CHARS).collect();
                match self.signal_reason(code - SHELL_SIGNAL).or_else(symptom) {
                    Some(reason) => failed(reason).because(format!("{}: {last}", explain(reason))),
                    None => failed(EndReason::Exit).because(last),
                }
            }
        }
    }

    /// The limit that a signal of the kernel stands for.
    fn signal_reason(&self, signal: i32) -> Option<EndReason> {
        match signal {
            libc::SIGXCPU => Some(EndReason::CpuLimit),
            libc::SIGXFSZ => Some(EndReason::FileLimit),
            // Only network sockets are filtered with a kill; other calls fail.
            libc::SIGSYS if self.rules.network == Network::Deny => Some(EndReason::NetworkDenied),
            libc::SIGSYS => Some(EndReason::CallDenied),
            _ => None,
        }
    }

    /// Reason that the last known symptom in a text stands for, if the sandbox can have caused it.
    fn last_symptom(&self, text: &str) -> Option<EndReason> {
        let found = SYMPTOMS.iter().filter_map(|(phrase, reason)| {
            let at = text.rfind(phrase)?;
            Some((at, *phrase, *reason))
        });
        let (at, phrase, reason) = found.max_by_key(|(at, ..)| *at)?;
        let possible = match reason {
            EndReason::NetworkDenied => self.rules.network != Network::Allow,
            EndReason::WriteDenied => self.rules.deny_path_at(text, at, phrase),
            _ => true,
        };
        possible.then_some(reason)
    }

    /// The ending when the supervisor ended without a final report.
    fn of_lost_supervisor(&self) -> Ending {
        if let Some(cause) = self.cause {
            return of_cause(cause);
        }
        if self.started && self.failed.is_none() {
            let message = "its supervisor was killed, and the task with it";
            return Ending::new(TaskOutcome::Failed, EndReason::Signal).because(message);
        }
        let text = self.tail.text();
        let why = self.failed.as_deref().unwrap_or(text.trim());
        Ending::new(TaskOutcome::Failed, EndReason::NotStarted).because(why)
    }
}

fn of_breach(breach: Breach) -> Ending {
    let reason = match breach {
        Breach::Processes => EndReason::ProcessLimit,
        Breach::Memory => EndReason::MemoryLimit,
        Breach::Cpu => EndReason::CpuLimit,
        Breach::Files => EndReason::FileLimit,
    };
    Ending::new(TaskOutcome::Failed, reason).because(explain(reason))
}

fn of_cause(cause: Cause) -> Ending {
    let (outcome, reason, message) = match cause {
        Cause::Timeout => (TaskOutcome::Failed, EndReason::Timeout, "it exceeded its timeout"),
        Cause::Output => {
            (TaskOutcome::Failed, EndReason::OutputLimit, "it wrote more than the output limit")
        }
        Cause::Stop(StopReason::Cancelled) => (TaskOutcome::Cancelled, EndReason::Cancelled, ""),
        Cause::Stop(StopReason::LeaseExpired) => (
            TaskOutcome::Cancelled,
            EndReason::LeaseExpired,
            "nobody asked for it within its lease",
        ),
        Cause::Stop(StopReason::Draining) => {
            (TaskOutcome::Cancelled, EndReason::Cancelled, "the executor shuts down")
        }
    };
    Ending::new(outcome, reason).because(message)
}

fn explain(reason: EndReason) -> &'static str {
    match reason {
        EndReason::CpuLimit => "it exceeded its CPU limit",
        EndReason::MemoryLimit => "it exceeded its memory limit",
        EndReason::ProcessLimit => "it exceeded its process limit",
        EndReason::FileLimit => "it exceeded its file limit",
        EndReason::NetworkDenied => "it opened a network socket, which it may not",
        EndReason::WriteDenied => "it was denied access to files outside of its work folder",
        EndReason::CallDenied => "it made a system call that no task may make",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(exit: Exit, stderr: &str) -> Facts {
        let mut tail = Tail::default();
        tail.push(stderr.as_bytes());
        let ended = Some(Ended { exit, leftovers: 0, breach: None, stop_requested: false });
        let writable = vec!["/task".into()];
        let rules = AccessRules { network: Network::Deny, writable, confined: true };
        let (cause, failed) = (None, None);
        Facts { cause, started: true, failed, ended, tail, rules, orphans: 0 }
    }

    #[test]
    fn kernel_signals_name_the_limit() {
        for (signal, reason) in [
            (libc::SIGXCPU, EndReason::CpuLimit),
            (libc::SIGXFSZ, EndReason::FileLimit),
            (libc::SIGSYS, EndReason::NetworkDenied),
            (libc::SIGSEGV, EndReason::Signal),
        ] {
            assert_eq!(facts(Exit::Signal(signal), "").ending().reason, reason);
        }
        let by_shell = facts(Exit::Code(128 + libc::SIGSYS), "Bad system call").ending();
        assert_eq!((by_shell.reason, by_shell.exit_code), (EndReason::NetworkDenied, Some(159)));
    }

    #[test]
    fn the_last_symptom_names_the_limit_of_a_failed_task() {
        let python = "Traceback …\nPermissionError: [Errno 13] Permission denied: '/x'\n\
                      During handling …\nMemoryError\n";
        assert_eq!(facts(Exit::Code(1), python).ending().reason, EndReason::MemoryLimit);
        for (stderr, reason) in [
            ("sh: 1: cannot create /etc/x: Read-only file system", EndReason::WriteDenied),
            ("sh: 1: Cannot fork", EndReason::ProcessLimit),
            (
                "BlockingIOError: [Errno 11] Resource temporarily unavailable",
                EndReason::ProcessLimit,
            ),
            ("OSError: [Errno 27] File too large", EndReason::FileLimit),
            ("terminate called after throwing 'std::bad_alloc'", EndReason::MemoryLimit),
            ("unshare: Operation not permitted", EndReason::CallDenied),
            ("OSError: [Errno 101] Network is unreachable", EndReason::NetworkDenied),
            ("cat: /srv/x: Permission denied", EndReason::WriteDenied),
            ("cat: /task/x: Permission denied", EndReason::Exit),
            ("git@example.org: Permission denied (publickey).", EndReason::Exit),
            ("ValueError: 7", EndReason::Exit),
        ] {
            let ending = facts(Exit::Code(2), stderr).ending();
            assert_eq!((ending.reason, ending.exit_code), (reason, Some(2)), "{stderr}");
            assert!(ending.message.ends_with(stderr));
            let fine = facts(Exit::Code(0), stderr).ending();
            assert_eq!(
                (fine.outcome, fine.reason),
                (TaskOutcome::Succeeded, EndReason::Exit),
                "{stderr}"
            );
        }
    }

    #[test]
    fn a_task_with_network_access_is_not_reported_as_denied() {
        let mut facts = facts(Exit::Code(1), "Network is unreachable");
        facts.rules.network = Network::Allow;
        assert_eq!(facts.ending().reason, EndReason::Exit);
    }

    #[test]
    fn a_task_that_ended_by_itself_was_not_stopped() {
        let mut facts = facts(Exit::Code(0), "");
        facts.cause = Some(Cause::Stop(StopReason::Cancelled));
        assert_eq!(facts.ending().outcome, TaskOutcome::Succeeded);
        facts.ended = facts.ended.map(|ended| Ended { stop_requested: true, ..ended });
        let ending = facts.ending();
        assert_eq!((ending.outcome, ending.reason), (TaskOutcome::Cancelled, EndReason::Cancelled));
        facts.cause = Some(Cause::Timeout);
        assert_eq!(facts.ending().reason, EndReason::Timeout);
    }

    #[test]
    fn cut_output_is_reported_even_when_the_task_had_succeeded() {
        let mut facts = facts(Exit::Code(0), "");
        facts.cause = Some(Cause::Output);
        let ending = facts.ending();
        assert_eq!((ending.reason, ending.output_cut), (EndReason::OutputLimit, true));
    }

    #[test]
    fn a_breach_and_leftovers_are_reported() {
        let mut facts = facts(Exit::Signal(libc::SIGKILL), "");
        facts.ended = facts.ended.map(|ended| Ended { breach: Some(Breach::Memory), ..ended });
        assert_eq!(facts.ending().reason, EndReason::MemoryLimit);
        let mut facts = self::facts(Exit::Code(0), "");
        facts.ended = facts.ended.map(|ended| Ended { leftovers: 2, ..ended });
        assert_eq!(facts.ending().stopped, ["leftover_processes"]);
        assert_eq!(facts.ending().outcome, TaskOutcome::Succeeded);
    }

    #[test]
    fn a_lost_supervisor_is_a_signal_or_a_failed_start() {
        let mut facts = facts(Exit::Code(0), "bwrap: no such thing\n");
        facts.ended = None;
        assert_eq!(facts.ending().reason, EndReason::Signal);
        facts.failed = Some("no such program".to_owned());
        let ending = facts.ending();
        assert_eq!((ending.reason, &*ending.message), (EndReason::NotStarted, "no such program"));
        (facts.started, facts.failed) = (false, None);
        let ending = facts.ending();
        assert_eq!(
            (ending.reason, &*ending.message),
            (EndReason::NotStarted, "bwrap: no such thing")
        );
        facts.cause = Some(Cause::Stop(StopReason::LeaseExpired));
        assert_eq!(facts.ending().reason, EndReason::LeaseExpired);
    }

    #[test]
    fn a_tail_stays_short() {
        let mut tail = Tail::default();
        for _ in 0..100 {
            tail.push(&[b'x'; 1000]);
        }
        tail.push(&[b'y'; 10_000]);
        tail.push(b"end");
        assert_eq!(tail.bytes.len(), TAIL_BYTES);
        assert!(tail.text().ends_with("yend"));
    }
}
