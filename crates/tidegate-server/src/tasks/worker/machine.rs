use std::fs;

/// Load of the machine, as Linux tells it. Elsewhere every value is unknown.
#[derive(Debug, Default)]
pub(super) struct Machine {
    /// Busy and total processor time at the last reading.
    last: Option<(u64, u64)>,
}

/// One reading. A missing value is unknown, not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Reading {
    /// Use of all cores since the last reading, 0 … 1.
    pub(super) cpu: Option<f64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) memory_bytes_max: Option<u64>,
    pub(super) load_1m: Option<f64>,
}

// === impl Machine ===

impl Machine {
    pub(super) fn read(&mut self) -> Reading {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let (stat, memory, load) =
            (text("/proc/stat"), text("/proc/meminfo"), text("/proc/loadavg"));
        let now = processor_times(&stat);
        let cpu = now.zip(self.last).and_then(|(now, last)| {
            let (busy, total) = (now.0.checked_sub(last.0)?, now.1.checked_sub(last.1)?);
            (total > 0).then(|| busy as f64 / total as f64)
        });
        self.last = now.or(self.last);
        let (total, available) = (field(&memory, "MemTotal:"), field(&memory, "MemAvailable:"));
        Reading {
            cpu,
            memory_bytes: total.zip(available).map(|(total, free)| total.saturating_sub(free)),
            memory_bytes_max: total,
            load_1m: load.split_whitespace().next().and_then(|load| load.parse().ok()),
        }
    }
}

/// Busy and total time of all processors, from the first line of `/proc/stat`.
fn processor_times(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let times: Vec<u64> = line.split_whitespace().filter_map(|time| time.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guest times are part of user's.
    let total: u64 = times.iter().take(8).sum();
    let idle = times.get(3)? + times.get(4)?;
    Some((total.checked_sub(idle)?, total))
}

/// A field of `/proc/meminfo`, in bytes.
fn field(memory: &str, name: &str) -> Option<u64> {
    let line = memory.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_linux_writes_them() {
        let stat = "cpu  100 0 50 800 40 0 10 0 7 0\ncpu0 1 2 3\n";
        assert_eq!(processor_times(stat), Some((160, 1_000)));
        assert_eq!(processor_times("intr 5"), None);
        let memory = "MemTotal:       16 kB\nMemFree: 1 kB\nMemAvailable:   4 kB\n";
        assert_eq!(
            (field(memory, "MemTotal:"), field(memory, "MemAvailable:")),
            (Some(16_384), Some(4_096))
        );
        assert_eq!(field(memory, "SwapTotal:"), None);
    }

    #[test]
    fn the_use_of_the_processors_needs_two_readings() {
        let mut machine = Machine::default();
        assert_eq!(machine.read().cpu, None);
        let load = machine.read().load_1m;
        assert!(load.is_some_and(|load| load >= 0.0), "{load:?}");
    }
}
