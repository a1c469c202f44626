//! Schedule figures of the load generator, and its limit of open files.

use tidegate_sim::report::ScheduleReport;
use tidegate_testkit::generator::ScheduleStats;

/// Converts the generator's figures for the report.
pub fn report(stats: &ScheduleStats) -> ScheduleReport {
    ScheduleReport {
        due: stats.due,
        unsent: stats.unsent,
        not_connected: stats.not_connected,
        late: stats.late,
        no_connection: stats.no_connection,
        out_of_sockets: stats.out_of_sockets,
        error_p50_ms: stats.error_p50_ms,
        error_p99_ms: stats.error_p99_ms,
        error_max_ms: stats.error_max_ms,
        own_error_p99_ms: stats.own_error_p99_ms,
        connections_max: stats.connections_max as u64,
    }
}

/// Raises the limit of open files; returns a warning if it stays below `needed`.
pub fn open_files(needed: u64) -> Option<String> {
    let soft = || rlimit::getrlimit(rlimit::Resource::NOFILE).map(|(soft, _)| soft);
    let allowed = rlimit::increase_nofile_limit(needed).or_else(|_| soft()).ok()?;
    warning(allowed, needed)
}

fn warning(allowed: u64, needed: u64) -> Option<String> {
    (allowed < needed).then(|| {
        format!(
            "This process may open {allowed} files and needs up to {needed} for all connections: raise the \
             limit (ulimit -n) or lower --connections."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_open_files_are_a_warning() {
        assert_eq!(warning(4_096, 4_096), None);
        let text = warning(1_024, 17_408).unwrap();
        assert!(
            text.contains("1024") && text.contains("17408") && text.contains("ulimit -n"),
            "{text}"
        );
    }
}
