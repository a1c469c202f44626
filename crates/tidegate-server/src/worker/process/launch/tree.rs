use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A process, as `/proc` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker::process) struct Process {
    pub(in crate::worker::process) pid: i32,
    pub(in crate::worker::process) parent: i32,
    /// Whether it may still run something. A process whose first thread has left looks dead while others go on.
    pub(in crate::worker::process) alive: bool,
    pub(in crate::worker::process) threads: u32,
    /// What it used, and the children that it has waited for.
    pub(in crate::worker::process) cpu_ticks: u64,
    pub(in crate::worker::process) resident_pages: u64,
    /// With the number it names one process for as long as the machine is up.
    pub(in crate::worker::process) started: u64,
    /// Of its children that it has waited for, alone.
    pub(super) reaped_ticks: u64,
}

impl Process {
    /// That process, when it is there.
    pub(in crate::worker::process) fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// This process.
    pub(super) fn this() -> Option<Self> {
        Self::parse(0, &fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn parse(pid: i32, stat: &str) -> Option<Self> {
        // The name comes second, in brackets, and may hold anything, brackets and spaces too.
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

/// The numbers and users of all processes that can be seen.
pub(in crate::worker::process) fn everybody() -> impl Iterator<Item = (i32, u32)> {
    let entries = fs::read_dir(Path::new("/proc")).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, entry.metadata().ok()?.uid()))
    })
}

/// All that came from this process and have not been waited for. This process must be one that orphans go to.
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
        assert!(Process::parse(1, &stat.replace(") S", ") Z")).unwrap().alive, "others go on");
        for cut in ["", "1 (a", "1 (a) S 1 2"] {
            assert_eq!(Process::parse(1, cut), None);
        }
    }

    #[test]
    fn children_are_found_with_theirs() {
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
