use crate::tasks::sandbox::config::Network;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Read as _, Write};
use std::path::PathBuf;

/// Longest line between a worker and its supervisor. A plan has up to 64 KiB of arguments and variables, each byte
/// at most six in JSON, and some paths.
pub(in crate::tasks::sandbox) const LINE_BYTES_MAX: u64 = 1 << 20;
/// Command of the worker after the plan: send TERM to the task.
pub(in crate::tasks::sandbox) const TERMINATE: u8 = b't';
/// Command of the worker: kill the task. The end of the stream means the same: the worker is gone.
pub(in crate::tasks::sandbox) const KILL: u8 = b'k';

/// Program to run and its restrictions. Paths are those that the task sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::tasks::sandbox) struct Plan {
    pub(in crate::tasks::sandbox) program: PathBuf,
    pub(in crate::tasks::sandbox) args: Vec<String>,
    pub(in crate::tasks::sandbox) env: BTreeMap<String, String>,
    /// Working directory.
    pub(in crate::tasks::sandbox) folder: PathBuf,
    /// Paths that it may write to.
    pub(in crate::tasks::sandbox) writable: Vec<PathBuf>,
    /// Paths that it may read and execute.
    pub(in crate::tasks::sandbox) readable: Vec<PathBuf>,
    /// Its file mode creation mask, if not that of the launcher.
    pub(in crate::tasks::sandbox) umask: Option<u32>,
    /// User that it runs as, if not the worker's.
    pub(in crate::tasks::sandbox) uid: Option<u32>,
    pub(in crate::tasks::sandbox) network: Network,
    /// TCP ports that it must not connect to.
    pub(in crate::tasks::sandbox) refused_ports: BTreeSet<u16>,
    pub(in crate::tasks::sandbox) limits: Limits,
    pub(in crate::tasks::sandbox) rlimits: bool,
    pub(in crate::tasks::sandbox) landlock: bool,
    pub(in crate::tasks::sandbox) seccomp: bool,
    pub(in crate::tasks::sandbox) watcher: bool,
    /// Milliseconds that its other processes may outlive the first.
    pub(in crate::tasks::sandbox) leave_ms: u64,
}

/// Limits of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tasks::sandbox) struct Limits {
    pub(in crate::tasks::sandbox) memory_bytes: u64,
    pub(in crate::tasks::sandbox) processes: u32,
    /// The kernel's limit on processes: it counts by user, and the user may have others.
    pub(in crate::tasks::sandbox) processes_of_user: u64,
    pub(in crate::tasks::sandbox) cpu_s: u64,
    pub(in crate::tasks::sandbox) file_bytes: u64,
    pub(in crate::tasks::sandbox) files: u32,
}

/// Report of a supervisor to its worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::tasks::sandbox) enum Report {
    /// The supervisor is about to start the task. Without a further report the task may have run.
    Starting,
    /// The task could not be started.
    Failed(String),
    /// The task has ended, and no process of it is left.
    Ended(Ended),
}

/// End of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tasks::sandbox) struct Ended {
    pub(in crate::tasks::sandbox) exit: Exit,
    /// Processes that outlived the first, and were killed.
    pub(in crate::tasks::sandbox) leftovers: u32,
    /// Limit for which the supervisor killed it.
    pub(in crate::tasks::sandbox) breach: Option<Breach>,
    /// The worker had asked for the end while it ran.
    pub(in crate::tasks::sandbox) stop_requested: bool,
}

/// Exit of a task's first process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::tasks::sandbox) enum Exit {
    Code(i32),
    Signal(i32),
}

/// Limit that a whole task exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::tasks::sandbox) enum Breach {
    Processes,
    Memory,
    Cpu,
    Files,
}

// === impl Plan ===

impl Plan {
    /// Reads a plan, and no byte after it.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let mut line = Vec::new();
        from.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        Ok(serde_json::from_slice(&line)?)
    }

    /// The plan as a line of JSON.
    pub(in crate::tasks::sandbox) fn line(&self) -> io::Result<Vec<u8>> {
        line(self)
    }
}

// === impl Report ===

impl Report {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&line(self)?)
    }

    /// The report in a line; `None` when the line is not a report.
    pub(in crate::tasks::sandbox) fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

fn line(of: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(of)?;
    line.push(b'\n');
    if line.len() as u64 > LINE_BYTES_MAX {
        let message = format!("{} bytes of {LINE_BYTES_MAX} in a line", line.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            program: "/bin/sh".into(),
            args: vec!["a\nb".to_owned()],
            env: BTreeMap::from([("K".to_owned(), "\u{1}é".to_owned())]),
            folder: "/task".into(),
            writable: vec!["/task".into()],
            readable: vec!["/usr".into()],
            umask: Some(0o22),
            uid: Some(7),
            refused_ports: BTreeSet::from([8001]),
            network: Network::Fail,
            limits: Limits {
                memory_bytes: 1,
                processes: 2,
                processes_of_user: 3,
                cpu_s: 4,
                file_bytes: 5,
                files: 6,
            },
            rlimits: true,
            landlock: false,
            seccomp: true,
            watcher: false,
            leave_ms: 7,
        }
    }

    #[test]
    fn a_plan_is_one_line_and_the_bytes_after_it_stay_unread() {
        let mut bytes = plan().line().unwrap();
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
        bytes.push(TERMINATE);
        let mut from = bytes.as_slice();
        assert_eq!(Plan::read(&mut from).unwrap(), plan());
        assert_eq!(from, [TERMINATE]);
    }

    #[test]
    fn a_truncated_or_endless_plan_is_an_error() {
        let bytes = plan().line().unwrap();
        assert!(Plan::read(&mut &bytes[..bytes.len() / 2]).is_err());
        assert!(Plan::read(&mut &[][..]).is_err(), "the worker was gone before it sent anything");
        assert!(Plan::read(&mut io::BufReader::new(io::repeat(b' '))).is_err());
        let long = Plan { args: vec!["x".repeat(2 << 20)], ..plan() };
        assert!(long.line().is_err());
    }

    #[test]
    fn reports_come_back_from_their_lines() {
        let ended = Ended {
            exit: Exit::Signal(9),
            leftovers: 3,
            breach: Some(Breach::Memory),
            stop_requested: false,
        };
        for report in [Report::Starting, Report::Failed("no\nway".into()), Report::Ended(ended)] {
            let mut bytes = Vec::new();
            report.write(&mut bytes).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            assert_eq!(Report::parse(text.trim_end()), Some(report));
        }
        for bad in ["", "{}", "starting", "{\"ended\":{}}", "\u{0}"] {
            assert_eq!(Report::parse(bad), None, "{bad:?}");
        }
    }
}
