use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_sim::report::ScheduleReport;

/// Delay after which a record counts as late.
const LATE: Duration = Duration::from_millis(1);
/// Resolution of delays …
const STEP: Duration = Duration::from_micros(100);
/// … and their maximum in steps, 10 s, which bounds the counts.
const STEPS_MAX: u128 = 100_000;

/// Delays between due time and sending of records.
#[derive(Debug, Default)]
pub struct Schedule {
    due: u64,
    unsent: u64,
    late: u64,
    max: Duration,
    /// Records by delay in steps.
    errors: BTreeMap<u128, u64>,
}

// === impl Schedule ===

impl Schedule {
    pub fn sent(&mut self, error: Duration, records: u64) {
        self.due += records;
        self.late += if error > LATE { records } else { 0 };
        self.max = self.max.max(error);
        let steps = error.as_nanos().div_ceil(STEP.as_nanos()).min(STEPS_MAX);
        *self.errors.entry(steps).or_default() += records;
    }

    pub fn unsent(&mut self, records: u64) {
        self.due += records;
        self.unsent += records;
    }

    pub fn report(&self, senders: u64) -> ScheduleReport {
        ScheduleReport {
            due: self.due,
            unsent: self.unsent,
            not_connected: 0,
            late: self.late,
            no_connection: 0,
            out_of_sockets: 0,
            error_p50_ms: self.quantile_ms(0.5),
            error_p99_ms: self.quantile_ms(0.99),
            error_max_ms: self.max.as_secs_f64() * 1e3,
            own_error_p99_ms: self.quantile_ms(0.99),
            connections_max: senders,
        }
    }

    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        let rank = (self.errors.values().sum::<u64>() as f64 * quantile) as u64;
        let mut seen = 0;
        let found = self.errors.iter().find(|(_, count)| {
            seen += **count;
            seen > rank
        });
        found.map_or(0.0, |(steps, _)| *steps as f64 * STEP.as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_those_of_records() {
        let mut schedule = Schedule::default();
        schedule.sent(Duration::from_micros(300), 980);
        schedule.sent(Duration::from_millis(7), 20);
        schedule.unsent(3);
        let report = schedule.report(4);
        assert_eq!((report.due, report.late, report.unsent), (1_003, 20, 3));
        assert!((report.error_p50_ms - 0.3).abs() < 1e-9, "{report:?}");
        assert!((report.error_p99_ms - 7.0).abs() < 1e-9, "{report:?}");
    }
}
