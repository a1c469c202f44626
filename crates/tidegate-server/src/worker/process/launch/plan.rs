use crate::worker::process::Network;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _, Write};
use std::path::PathBuf;

/// The longest line between a worker and its supervisor. A plan holds the task's arguments and variables, of which
/// there may be 64 KiB, each byte six in JSON at worst, and some paths.
pub(in crate::worker::process) const LINE_BYTES_MAX: u64 = 1 << 20;
/// From the worker, after the plan: the task is asked to end.
pub(in crate::worker::process) const TERMINATE: u8 = b't';
/// From the worker: the task is ended. The end of the stream means the same: the worker is gone.
pub(in crate::worker::process) const KILL: u8 = b'k';

/// What is to be run, and what it may do. Paths are those that the task sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::worker::process) struct Plan {
    pub(in crate::worker::process) program: PathBuf,
    pub(in crate::worker::process) args: Vec<String>,
    pub(in crate::worker::process) env: BTreeMap<String, String>,
    /// Where it starts.
    pub(in crate::worker::process) folder: PathBuf,
    /// Where it may write.
    pub(in crate::worker::process) writable: Vec<PathBuf>,
    /// What it may read and execute.
    pub(in crate::worker::process) readable: Vec<PathBuf>,
    /// The user that it runs as, when that is another.
    pub(in crate::worker::process) uid: Option<u32>,
    pub(in crate::worker::process) network: Network,
    pub(in crate::worker::process) limits: Limits,
    pub(in crate::worker::process) rlimits: bool,
    pub(in crate::worker::process) landlock: bool,
    pub(in crate::worker::process) seccomp: bool,
    pub(in crate::worker::process) watcher: bool,
    /// How long its other processes may take to leave after its first.
    pub(in crate::worker::process) leave_ms: u64,
}

/// How much a task may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::worker::process) struct Limits {
    pub(in crate::worker::process) memory_bytes: u64,
    pub(in crate::worker::process) processes: u32,
    /// What the kernel is told of the processes: it counts by user, and the user may have others.
    pub(in crate::worker::process) processes_of_user: u64,
    pub(in crate::worker::process) cpu_s: u64,
    pub(in crate::worker::process) file_bytes: u64,
    pub(in crate::worker::process) files: u32,
}

/// What a supervisor says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::worker::process) enum Report {
    /// The task is about to be started. Whoever hears nothing else must take it that it was.
    Starting,
    /// It could not be started.
    Failed(String),
    /// It is over, and nothing of it is left.
    Ended(Ended),
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::worker::process) struct Ended {
    pub(in crate::worker::process) exit: Exit,
    /// Processes that outlived the first, and were killed.
    pub(in crate::worker::process) leftovers: u32,
    /// The limit for which the supervisor ended it.
    pub(in crate::worker::process) breach: Option<Breach>,
    /// Whether the worker had said so before it ended.
    pub(in crate::worker::process) told: bool,
}

/// How its first process left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::worker::process) enum Exit {
    Code(i32),
    Signal(i32),
}

/// A limit on the whole task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::worker::process) enum Breach {
    Processes,
    Memory,
    Cpu,
    Files,
}

// === impl Plan ===

impl Plan {
    /// Reads a plan, and not a byte after it.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let mut line = Vec::new();
        from.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        Ok(serde_json::from_slice(&line)?)
    }

    /// The plan as a line.
    pub(in crate::worker::process) fn line(&self) -> io::Result<Vec<u8>> {
        line(self)
    }
}

// === impl Report ===

impl Report {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&line(self)?)
    }

    /// The report in a line. Of a line that is none, nothing is known.
    pub(in crate::worker::process) fn parse(line: &str) -> Option<Self> {
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
            uid: Some(7),
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
    fn a_plan_is_one_line_and_what_follows_is_left_alone() {
        let mut bytes = plan().line().unwrap();
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
        bytes.push(TERMINATE);
        let mut from = bytes.as_slice();
        assert_eq!(Plan::read(&mut from).unwrap(), plan());
        assert_eq!(from, [TERMINATE]);
    }

    #[test]
    fn a_plan_that_is_cut_or_endless_is_none() {
        let bytes = plan().line().unwrap();
        assert!(Plan::read(&mut &bytes[..bytes.len() / 2]).is_err());
        assert!(Plan::read(&mut &[][..]).is_err(), "the worker was gone before it said anything");
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
            told: false,
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
