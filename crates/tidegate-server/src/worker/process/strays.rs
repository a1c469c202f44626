use super::launch::{Process, everybody, signal};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// In the environment of every task, with its work folder: by it a task is known whose supervisor is gone.
pub(super) const MARK: &str = "TIDEGATE_WORK";
/// For how long they are hunted.
const HUNT: Duration = Duration::from_secs(3);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Kills what is left of a task that has lost its supervisor, which was killed by the task or by somebody who
/// should not. Says how many there were.
///
/// They are known by their user when they have one of their own, otherwise by what was in their environment when
/// they started.
pub(super) fn kill(uid: Option<u32>, folder: &Path) -> u32 {
    let mark = format!("{MARK}={}", folder.display());
    let until = Instant::now() + HUNT;
    let mut killed = 0;
    loop {
        let strays: Vec<Process> = find(uid, &mark);
        for stray in &strays {
            signal(stray, Signal::KILL);
            killed += 1;
        }
        if strays.is_empty() || Instant::now() >= until {
            return killed;
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn find(uid: Option<u32>, mark: &str) -> Vec<Process> {
    let is_stray = |&(pid, owner): &(i32, u32)| match uid {
        Some(uid) => uid == owner && uid != 0,
        None => has_mark(pid, mark),
    };
    let found = everybody().filter(is_stray).filter_map(|(pid, _)| Process::read(pid));
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
    fn only_what_bears_the_mark_is_killed() {
        let folder = std::env::temp_dir().join(format!("tidegate-stray-{}", std::process::id()));
        let sleep = || {
            let mut command = Command::new("sleep");
            command.arg("60");
            command
        };
        let mut ours = sleep().env(MARK, &folder).spawn().unwrap();
        let mut other = sleep().env(MARK, folder.join("2")).spawn().unwrap();
        assert!(kill(None, &folder) >= 1);
        assert!(!ours.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none(), "it is another's");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
