use super::disk_usage::{self, FileId};
use super::plan::{Breach, Limits};
use super::process::Process;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Shortest interval between two counts of the work folder.
const DISK_EVERY: Duration = Duration::from_millis(200);
/// Checks in a row that must exceed the memory limit. Shares are read one process after the other while processes
/// come and go, so one check alone can be wrong.
const MEMORY_STRIKES: u32 = 2;
/// Counting the work folder takes at most one part in so many of the time.
const DISK_SHARE: u32 = 10;

/// Checks a whole task against its limits. The kernel's own limits hold for one process each, and a task may have
/// many.
pub(super) struct LimitWatcher {
    limits: Limits,
    folders: Vec<PathBuf>,
    page_bytes: u64,
    ticks_per_s: u64,
    disk_next: Instant,
    /// Deleted files that the task inherited open: they are not its own.
    inherited: BTreeSet<FileId>,
    /// Checks in a row that exceeded the memory limit.
    memory_strikes: u32,
}

// === impl LimitWatcher ===

impl LimitWatcher {
    pub(super) fn new(limits: Limits, folders: Vec<PathBuf>, now: Instant) -> Self {
        Self {
            limits,
            folders,
            page_bytes: rustix::param::page_size() as u64,
            ticks_per_s: rustix::param::clock_ticks_per_second().max(1),
            disk_next: now,
            inherited: disk_usage::own_unlinked(),
            memory_strikes: 0,
        }
    }

    /// The first limit that these processes exceed.
    pub(super) fn check(&mut self, processes: &[Process], now: Instant) -> Option<Breach> {
        // This process has reaped the task's ended processes, so their CPU time is counted here.
        let reaped_ticks = Process::this().map_or(0, |this| this.reaped_ticks);
        self.of_processes(processes, reaped_ticks).or_else(|| self.of_files(processes, now))
    }

    fn of_processes(&mut self, processes: &[Process], reaped_ticks: u64) -> Option<Breach> {
        let threads: u32 = processes.iter().map(|process| process.threads).sum();
        if threads > self.limits.processes {
            return Some(Breach::Processes);
        }
        self.memory_strikes = match self.exceeds_memory(processes) {
            true => self.memory_strikes + 1,
            false => 0,
        };
        if self.memory_strikes >= MEMORY_STRIKES {
            return Some(Breach::Memory);
        }
        let ticks = reaped_ticks + processes.iter().map(|process| process.cpu_ticks).sum::<u64>();
        (ticks / self.ticks_per_s >= self.limits.cpu_s.max(1)).then_some(Breach::Cpu)
    }

    /// The quick count counts a shared page once for each process. Only when that exceeds the limit are the shares
    /// read, for which the kernel walks the page tables.
    fn exceeds_memory(&self, processes: &[Process]) -> bool {
        let quick = |process: &Process| process.resident_pages * self.page_bytes;
        // A process whose share can't be read is exiting, or hides it.
        let own = |process: &Process| {
            own_bytes(process.pid)
                .or_else(|| Process::read(process.pid).map(|now| quick(&now)))
                .unwrap_or(0)
        };
        let max = self.limits.memory_bytes;
        processes.iter().map(quick).sum::<u64>() > max
            && processes.iter().map(own).sum::<u64>() > max
    }

    fn of_files(&mut self, processes: &[Process], now: Instant) -> Option<Breach> {
        if now < self.disk_next {
            return None;
        }
        let used = disk_usage::used(&self.folders, self.limits.files);
        let pids = processes.iter().map(|process| process.pid);
        let open = disk_usage::unlinked(pids, &self.inherited, self.limits.files);
        self.disk_next = now + DISK_EVERY.max(now.elapsed() * DISK_SHARE);
        let too_much = used.bytes + open.bytes > self.limits.file_bytes
            || used.files + open.files > self.limits.files
            || used.too_deep;
        too_much.then_some(Breach::Files)
    }
}

/// A process's share of memory that no file backs.
fn own_bytes(pid: i32) -> Option<u64> {
    parse_own_bytes(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?)
}

fn parse_own_bytes(rollup: &str) -> Option<u64> {
    let kib = |name: &str| -> Option<u64> {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    // Kernels before 5.9 report only the whole share.
    let own = match (kib("Pss_Anon:"), kib("Pss_Shmem:")) {
        (Some(private), Some(shared)) => private + shared,
        _ => kib("Pss:")?,
    };
    Some((own + kib("SwapPss:").unwrap_or(0)) << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        memory_bytes: 1 << 30,
        processes: 4,
        processes_of_user: 8,
        cpu_s: 2,
        file_bytes: 1 << 20,
        files: 10,
    };

    fn process(threads: u32, cpu_ticks: u64) -> Process {
        // No process has this pid, so its share can't be read.
        Process {
            pid: -1,
            parent: 0,
            alive: true,
            threads,
            cpu_ticks,
            resident_pages: 1,
            started: 0,
            reaped_ticks: 0,
        }
    }

    fn watcher(limits: Limits) -> LimitWatcher {
        let watcher = LimitWatcher::new(limits, Vec::new(), Instant::now());
        LimitWatcher { ticks_per_s: 100, ..watcher }
    }

    #[test]
    fn limits_are_for_all_processes_together() {
        let mut watcher = watcher(LIMITS);
        assert_eq!(watcher.of_processes(&[process(2, 99), process(2, 99)], 0), None);
        let too_many = [process(2, 0), process(3, 0)];
        assert_eq!(watcher.of_processes(&too_many, 0), Some(Breach::Processes));
        assert_eq!(
            watcher.of_processes(&[process(1, 99), process(1, 99)], 2),
            Some(Breach::Cpu),
            "with the CPU time of ended processes"
        );
    }

    #[test]
    fn memory_must_exceed_twice_in_a_row_and_an_exited_process_has_none() {
        let this = Process::read(std::process::id().cast_signed()).unwrap();
        let this = Process { threads: 1, cpu_ticks: 0, ..this };
        let mut tight = watcher(Limits { memory_bytes: 1, ..LIMITS });
        assert_eq!(tight.of_processes(&[this], 0), None);
        assert_eq!(tight.of_processes(&[process(1, 0)], 0), None, "it has exited");
        assert_eq!(tight.of_processes(&[this], 0), None);
        assert_eq!(tight.of_processes(&[this], 0), Some(Breach::Memory));
        assert_eq!(watcher(LIMITS).of_processes(&[this], 0), None);
    }

    #[test]
    fn a_share_excludes_memory_that_a_file_backs() {
        let rollup = "55d0-7ffe ---p 0 00:00 0 [rollup]\nRss: 9000 kB\nPss: 5000 kB\n\
                      Pss_Anon: 3000 kB\nPss_File: 1900 kB\nPss_Shmem: 100 kB\nSwapPss: 24 kB\n";
        assert_eq!(parse_own_bytes(rollup), Some(3124 << 10));
        assert_eq!(parse_own_bytes("Pss: 10 kB\n"), Some(10 << 10));
        assert_eq!(parse_own_bytes(""), None);
    }
}
