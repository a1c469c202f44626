use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A process, as `/proc` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tasks::sandbox) struct Process {
    pub(in crate::tasks::sandbox) pid: i32,
    pub(in crate::tasks::sandbox) parent: i32,
    /// Some thread may still run. A process whose first thread has exited looks dead while others go on.
    pub(in crate::tasks::sandbox) alive: bool,
    pub(in crate::tasks::sandbox) threads: u32,
    /// CPU time of the process and of the children that it has reaped.
    pub(in crate::tasks::sandbox) cpu_ticks: u64,
    pub(in crate::tasks::sandbox) resident_pages: u64,
    /// Start time; with the pid it identifies one process until the machine restarts.
    pub(in crate::tasks::sandbox) started: u64,
    /// CPU time of the children that it has reaped.
    pub(super) reaped_ticks: u64,
}

impl Process {
    /// Reads a process from `/proc`; `None` when it is gone.
    pub(in crate::tasks::sandbox) fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The calling process.
    pub(super) fn this() -> Option<Self> {
        Self::parse(0, &fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn parse(pid: i32, stat: &str) -> Option<Self> {
        // The second field is the name in brackets, which may contain brackets and spaces.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let threads = u32::try_from(number(17)?).ok()?;
        let reaped_ticks = number(13)? + number(14)?;
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            alive: !matches!(*fields.first()?, "Z" | "X") || threads > 1,
            threads,
            cpu_ticks: number(11)? + number(12)? + reaped_ticks,
            resident_pages: number(21)?,
            started: number(19)?,
            reaped_ticks,
        })
    }
}

/// Pid and user of every visible process.
pub(in crate::tasks::sandbox) fn all_processes() -> impl Iterator<Item = (i32, u32)> {
    let entries = fs::read_dir(Path::new("/proc")).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, entry.metadata().ok()?.uid()))
    })
}

/// Descendants of a process that are not reaped. That process must be a subreaper or process 1.
pub(super) fn descendants(of: i32) -> Vec<Process> {
    let mut others: Vec<Process> = pids().filter_map(Process::read).collect();
    let mut found = Vec::new();
    let mut next = vec![of];
    while let Some(parent) = next.pop() {
        let (children, rest) = others.into_iter().partition(|process| process.parent == parent);
        others = rest;
        let children: Vec<Process> = children;
        next.extend(children.iter().map(|process| process.pid));
        found.extend(children);
    }
    found
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(Path::new("/proc")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "42 (a) R 9 (x)) S 7 42 42 0 -1 4194304 100 0 0 0 5 6 7 8 20 0 3 0 999 1000 250 \
                    18446744073709551615 1";
        let process = Process::parse(42, stat).unwrap();
        assert_eq!((process.parent, process.threads, process.started), (7, 3, 999));
        assert_eq!((process.cpu_ticks, process.reaped_ticks), (26, 15));
        assert_eq!(process.resident_pages, 250);
        assert!(process.alive);
        assert!(
            !Process::parse(1, &stat.replace(") S", ") Z").replace(" 3 0", " 1 0")).unwrap().alive
        );
        assert!(Process::parse(1, &stat.replace(") S", ") Z")).unwrap().alive, "other threads run");
        for cut in ["", "1 (a", "1 (a) S 1 2"] {
            assert_eq!(Process::parse(1, cut), None);
        }
    }

    #[test]
    fn descendants_include_children_of_children() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & echo; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let below = descendants(child.id() as i32);
        assert_eq!(below.len(), 1, "{below:?}");
        let of_us = descendants(std::process::id() as i32);
        assert!(of_us.iter().any(|process| process.pid == child.id() as i32));
        assert!(of_us.iter().any(|process| process.pid == below[0].pid));
        let pid = rustix::process::Pid::from_raw(below[0].pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
    }
}
