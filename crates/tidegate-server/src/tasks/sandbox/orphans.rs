use super::launch::{Process, all_processes, signal};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Environment variable of every task with its work folder; identifies a task whose supervisor is gone.
pub(super) const MARK: &str = "TIDEGATE_WORK";
/// Longest search for orphans.
const SEARCH_MAX: Duration = Duration::from_secs(3);
/// Interval between two searches.
const SEARCH_EVERY: Duration = Duration::from_millis(5);

/// Kills the orphan processes of a task whose supervisor was killed, and counts them.
///
/// A task with its own user is identified by that user, any other by its initial environment.
pub(super) fn kill(uid: Option<u32>, folder: &Path) -> u32 {
    let mark = format!("{MARK}={}", folder.display());
    let until = Instant::now() + SEARCH_MAX;
    let mut killed = 0;
    loop {
        let orphans: Vec<Process> = find(uid, &mark);
        for orphan in &orphans {
            signal(orphan, Signal::KILL);
            killed += 1;
        }
        if orphans.is_empty() || Instant::now() >= until {
            return killed;
        }
        thread::sleep(SEARCH_EVERY);
    }
}

fn find(uid: Option<u32>, mark: &str) -> Vec<Process> {
    let is_orphan = |&(pid, owner): &(i32, u32)| match uid {
        Some(uid) => uid == owner && uid != 0,
        None => has_mark(pid, mark),
    };
    let found = all_processes().filter(is_orphan).filter_map(|(pid, _)| Process::read(pid));
    found.filter(|process| process.alive).collect()
}

fn has_mark(pid: i32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_processes_with_the_mark_are_killed() {
        let folder = std::env::temp_dir().join(format!("tidegate-orphan-{}", std::process::id()));
        let sleep = || {
            let mut command = Command::new("sleep");
            command.arg("60");
            command
        };
        let mut orphan = sleep().env(MARK, &folder).spawn().unwrap();
        let mut other = sleep().env(MARK, folder.join("2")).spawn().unwrap();
        assert!(kill(None, &folder) >= 1);
        assert!(!orphan.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none(), "another task's process lives");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
