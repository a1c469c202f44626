//! How a generator kept to its schedule, and whether it may open as many files as it needs for that.

use tidegate_server::generator::ScheduleStats;
use tidegate_sim::report::ScheduleReport;

/// As it is reported.
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

/// Asks for so many open files; what is to be said when there are fewer.
pub fn open_files(needed: u64) -> Option<String> {
    let soft = || rlimit::getrlimit(rlimit::Resource::NOFILE).map(|(soft, _)| soft);
    let allowed = rlimit::increase_nofile_limit(needed).or_else(|_| soft()).ok()?;
    told(allowed, needed)
}

fn told(allowed: u64, needed: u64) -> Option<String> {
    (allowed < needed).then(|| {
        format!(
            "This process may open {allowed} files, and all connections in use would need {needed}: raise the \
             limit (ulimit -n) or lower --connections."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_open_files_are_told() {
        assert_eq!(told(4_096, 4_096), None);
        let text = told(1_024, 17_408).unwrap();
        assert!(
            text.contains("1024") && text.contains("17408") && text.contains("ulimit -n"),
            "{text}"
        );
    }
}
