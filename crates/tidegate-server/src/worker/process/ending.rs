use super::config::Network;
use super::launch::{Breach, Ended, Exit};
use crate::worker::StopWhy;
use tidegate::task::{EndReason, Ending, Outcome};

/// How much of what a task last wrote to its standard error is looked at.
const TAIL_BYTES: usize = 4 << 10;
/// How much of its last line is told.
const LAST_LINE_CHARS: usize = 200;
/// A shell that left because a signal ended what it ran says so by this and the signal's number.
const SHELL_SIGNAL: i32 = 128;

/// What programs write when they could not do what the sandbox does not let them. A limit of the kernel's makes a
/// call fail, and what the program makes of that is its own affair: most say it and leave with an error. Only that
/// tells such an end from any other.
const WORDS: &[(&str, EndReason)] = &[
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

/// Why the worker stopped a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Timeout,
    Output,
    Stop(StopWhy),
}

/// The end of what a task wrote to its standard error.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
}

/// All that is known of how a task ended.
#[derive(Debug)]
pub(super) struct Facts {
    /// Why the worker stopped it, when it did.
    pub(super) cause: Option<Cause>,
    /// Whether its program may have been started.
    pub(super) started: bool,
    /// Why it was not after all.
    pub(super) failed: Option<String>,
    /// What its supervisor said at the end. `None` when that was gone before.
    pub(super) ended: Option<Ended>,
    pub(super) tail: Tail,
    pub(super) network: Network,
    /// Processes that were killed although they had lost their supervisor.
    pub(super) strays: u32,
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
    /// The ending, without how long it took.
    pub(super) fn ending(&self) -> Ending {
        let mut ending = match self.ended {
            Some(ended) => self.of_ended(ended),
            None => self.of_silence(),
        };
        let leftovers = self.strays + self.ended.map_or(0, |ended| ended.leftovers);
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
            (None, Some(cause)) if ended.told || cause == Cause::Output => of_cause(cause),
            // It was over before it heard that it should be.
            (None, _) => return Ending { exit_code: code, ..self.of_exit(ended.exit) },
        };
        Ending { exit_code: code, ..ending }
    }

    fn of_exit(&self, exit: Exit) -> Ending {
        let failed = |reason| Ending::new(Outcome::Failed, reason);
        match exit {
            Exit::Code(0) => Ending::new(Outcome::Succeeded, EndReason::Exit),
            Exit::Signal(signal) => match self.signal_reason(signal) {
                Some(reason) => failed(reason).because(explain(reason)),
                None => failed(EndReason::Signal).because(format!("signal {signal} ended it")),
            },
            Exit::Code(code) => {
                let text = self.tail.text();
                let said = || last_words(&text).filter(|reason| self.could_be(*reason));
                let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
                let last: String = last.unwrap_or_default().chars().take(LAST_LINE_CHARS).collect();
                match self.signal_reason(code - SHELL_SIGNAL).or_else(said) {
                    Some(reason) => failed(reason).because(format!("{}: {last}", explain(reason))),
                    None => failed(EndReason::Exit).because(last),
                }
            }
        }
    }

    /// Signals by which the kernel says which limit it was.
    fn signal_reason(&self, signal: i32) -> Option<EndReason> {
        match signal {
            libc::SIGXCPU => Some(EndReason::CpuLimit),
            libc::SIGXFSZ => Some(EndReason::FileLimit),
            // Only reaching for the network is filtered so; other calls fail.
            libc::SIGSYS if self.network == Network::Deny => Some(EndReason::NetworkDenied),
            libc::SIGSYS => Some(EndReason::CallDenied),
            _ => None,
        }
    }

    fn could_be(&self, reason: EndReason) -> bool {
        reason != EndReason::NetworkDenied || self.network != Network::Allow
    }

    /// Its supervisor ended without a word.
    fn of_silence(&self) -> Ending {
        if let Some(cause) = self.cause {
            return of_cause(cause);
        }
        if self.started && self.failed.is_none() {
            let message = "what watched over it was killed, and it with that";
            return Ending::new(Outcome::Failed, EndReason::Signal).because(message);
        }
        let text = self.tail.text();
        let why = self.failed.as_deref().unwrap_or(text.trim());
        Ending::new(Outcome::Failed, EndReason::NotStarted).because(why)
    }
}

fn of_breach(breach: Breach) -> Ending {
    let reason = match breach {
        Breach::Processes => EndReason::ProcessLimit,
        Breach::Memory => EndReason::MemoryLimit,
        Breach::Cpu => EndReason::CpuLimit,
        Breach::Files => EndReason::FileLimit,
    };
    Ending::new(Outcome::Failed, reason).because(explain(reason))
}

fn of_cause(cause: Cause) -> Ending {
    let (outcome, reason, message) = match cause {
        Cause::Timeout => (Outcome::Failed, EndReason::Timeout, "it ran for longer than it may"),
        Cause::Output => (Outcome::Failed, EndReason::OutputLimit, "it wrote more than is kept"),
        Cause::Stop(StopWhy::Cancelled) => (Outcome::Cancelled, EndReason::Cancelled, ""),
        Cause::Stop(StopWhy::LeaseExpired) => {
            (Outcome::Cancelled, EndReason::LeaseExpired, "nobody asked for it any more")
        }
        Cause::Stop(StopWhy::Draining) => {
            (Outcome::Cancelled, EndReason::Cancelled, "the executor is going down")
        }
    };
    Ending::new(outcome, reason).because(message)
}

/// What the latest of the known words means.
fn last_words(text: &str) -> Option<EndReason> {
    let found = WORDS.iter().filter_map(|(words, reason)| Some((text.rfind(words)?, *reason)));
    found.max_by_key(|(at, _)| *at).map(|(_, reason)| reason)
}

fn explain(reason: EndReason) -> &'static str {
    match reason {
        EndReason::CpuLimit => "it used more CPU than it may",
        EndReason::MemoryLimit => "it used, or asked for, more memory than it may",
        EndReason::ProcessLimit => "it started more processes than it may",
        EndReason::FileLimit => "it wrote longer or more files than it may",
        EndReason::NetworkDenied => "it reached for the network, which it may not",
        EndReason::WriteDenied => "it was kept from files outside of its work folder",
        EndReason::CallDenied => "it made a call that no task may make",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(exit: Exit, stderr: &str) -> Facts {
        let mut tail = Tail::default();
        tail.push(stderr.as_bytes());
        let ended = Some(Ended { exit, leftovers: 0, breach: None, told: false });
        let (cause, failed, network) = (None, None, Network::Deny);
        Facts { cause, started: true, failed, ended, tail, network, strays: 0 }
    }

    #[test]
    fn signals_of_the_kernel_name_the_limit() {
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
    fn last_words_name_the_limit_when_it_failed() {
        let python = "Traceback …\nPermissionError: [Errno 13] Permission denied: '/x'\n\
                      During handling …\nMemoryError\n";
        assert_eq!(facts(Exit::Code(1), python).ending().reason, EndReason::MemoryLimit);
        for (said, reason) in [
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
            ("ValueError: 7", EndReason::Exit),
        ] {
            let ending = facts(Exit::Code(2), said).ending();
            assert_eq!((ending.reason, ending.exit_code), (reason, Some(2)), "{said}");
            assert!(ending.message.ends_with(said));
            let fine = facts(Exit::Code(0), said).ending();
            assert_eq!(
                (fine.outcome, fine.reason),
                (Outcome::Succeeded, EndReason::Exit),
                "{said}"
            );
        }
    }

    #[test]
    fn who_may_use_the_network_was_not_denied_it() {
        let mut facts = facts(Exit::Code(1), "Network is unreachable");
        facts.network = Network::Allow;
        assert_eq!(facts.ending().reason, EndReason::Exit);
    }

    #[test]
    fn what_ended_by_itself_was_not_stopped() {
        let mut facts = facts(Exit::Code(0), "");
        facts.cause = Some(Cause::Stop(StopWhy::Cancelled));
        assert_eq!(facts.ending().outcome, Outcome::Succeeded);
        facts.ended = facts.ended.map(|ended| Ended { told: true, ..ended });
        let ending = facts.ending();
        assert_eq!((ending.outcome, ending.reason), (Outcome::Cancelled, EndReason::Cancelled));
        facts.cause = Some(Cause::Timeout);
        assert_eq!(facts.ending().reason, EndReason::Timeout);
    }

    #[test]
    fn what_was_cut_is_told_even_when_the_task_was_done() {
        let mut facts = facts(Exit::Code(0), "");
        facts.cause = Some(Cause::Output);
        let ending = facts.ending();
        assert_eq!((ending.reason, ending.output_cut), (EndReason::OutputLimit, true));
    }

    #[test]
    fn a_breach_names_itself_and_leftovers_do() {
        let mut facts = facts(Exit::Signal(libc::SIGKILL), "");
        facts.ended = facts.ended.map(|ended| Ended { breach: Some(Breach::Memory), ..ended });
        assert_eq!(facts.ending().reason, EndReason::MemoryLimit);
        let mut facts = self::facts(Exit::Code(0), "");
        facts.ended = facts.ended.map(|ended| Ended { leftovers: 2, ..ended });
        assert_eq!(facts.ending().stopped, ["leftover_processes"]);
        assert_eq!(facts.ending().outcome, Outcome::Succeeded);
    }

    #[test]
    fn silence_is_told_apart() {
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
        facts.cause = Some(Cause::Stop(StopWhy::LeaseExpired));
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
