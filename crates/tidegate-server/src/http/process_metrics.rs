use super::Exposition;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes the series about the process itself. Those that the kernel does not tell are left out.
pub(crate) fn write_process(out: &mut Exposition, started: SystemTime) {
    out.gauge("tidegate_build_info", "1, with the version and the commit as labels.")
        .with(&[("version", env!("CARGO_PKG_VERSION")), ("commit", env!("TIDEGATE_COMMIT"))], 1);
    let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    out.gauge("process_start_time_seconds", "Start time of the process, since 1970.")
        .value(started.as_secs_f64());
    if let Some(bytes) = resident_bytes() {
        out.gauge("process_resident_memory_bytes", "Resident memory of the process.").value(bytes);
    }
    if let Some(seconds) = cpu_seconds() {
        out.counter("process_cpu_seconds_total", "CPU time that the process has used.")
            .value(seconds);
    }
    if let Some(open) = open_descriptors() {
        out.gauge("process_open_fds", "Open file descriptors.").value(open);
    }
    if let Some(most) = descriptors_max() {
        out.gauge("process_max_fds", "The most file descriptors that may be open.").value(most);
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn cpu_seconds() -> Option<f64> {
    let usage = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(usage.tv_sec as f64 + usage.tv_nsec as f64 / 1e9)
}

fn open_descriptors() -> Option<usize> {
    // One of them is the folder that is read.
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1))
}

fn descriptors_max() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_of_processor_memory_and_descriptors() {
        let mut out = Exposition::default();
        write_process(&mut out, SystemTime::now());
        let text = out.finish();
        for series in [
            "process_cpu_seconds_total ",
            "process_open_fds ",
            "process_max_fds ",
            "process_resident_memory_bytes ",
            "tidegate_build_info{version=\"",
        ] {
            assert!(text.contains(&format!("\n{series}")), "{series}: {text}");
        }
        assert!(!text.contains("commit=\"\""), "{text}");
    }
}
