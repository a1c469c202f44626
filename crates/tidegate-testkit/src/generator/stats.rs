use hdrhistogram::Histogram;
use std::io;
use std::time::Duration;

/// Schedule error above which a request counts as late.
const LATE: Duration = Duration::from_millis(1);

/// Longest recorded error: 1 h.
const ERROR_US_MAX: u64 = 3_600_000_000;

/// Schedule figures of a run. The schedule error of a request is `sent − due`; a request that was never sent
/// counts in `unsent` or `not_connected`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleStats {
    /// Due requests, including retries: `sent + unsent + not_connected`.
    pub due: u64,
    /// Sent requests.
    pub sent: u64,
    /// Requests that the generator did not send: all its connections were in use, it had no socket left, or the
    /// request was invalid.
    pub unsent: u64,
    /// Requests that were not sent because of the target: it refused the connection, closed it before use, or did
    /// not accept it in time.
    pub not_connected: u64,
    /// Requests that were sent more than 1 ms late.
    pub late: u64,
    /// Requests that waited because all allowed connections were in use.
    pub no_connection: u64,
    /// Connections that failed because this machine had no descriptor or port left.
    pub out_of_sockets: u64,
    /// Median of the schedule error, in milliseconds.
    pub error_p50_ms: f64,
    /// 99th percentile of the schedule error, in milliseconds.
    pub error_p99_ms: f64,
    /// Maximum of the schedule error, in milliseconds.
    pub error_max_ms: f64,
    /// 99th percentile of the schedule error without waits for connections, in milliseconds: the generator's own
    /// delay.
    pub own_error_p99_ms: f64,
    /// 99th percentile of connection times, in milliseconds. They delay requests that wait for a new connection.
    pub connect_p99_ms: f64,
    /// Maximum of connection times, in milliseconds.
    pub connect_max_ms: f64,
    /// Peak of open connections.
    pub connections_max: usize,
}

/// Collector of schedule figures.
pub(super) struct Meter {
    errors: Histogram<u64>,
    own_errors: Histogram<u64>,
    connects: Histogram<u64>,
    counts: ScheduleStats,
}

// === impl Meter ===

impl Meter {
    pub fn new() -> io::Result<Self> {
        let errors = Histogram::new_with_bounds(1, ERROR_US_MAX, 3).map_err(io::Error::other)?;
        let (own_errors, connects) = (errors.clone(), errors.clone());
        Ok(Self { errors, own_errors, connects, counts: ScheduleStats::default() })
    }

    pub fn due(&mut self) {
        self.counts.due += 1;
    }

    pub fn connected(&mut self, took: Duration) {
        self.connects.saturating_record(micros(took));
    }

    pub fn no_connection(&mut self) {
        self.counts.no_connection += 1;
    }

    pub fn out_of_sockets(&mut self) {
        self.counts.out_of_sockets += 1;
    }

    pub fn unsent(&mut self) {
        self.counts.unsent += 1;
    }

    pub fn not_connected(&mut self) {
        self.counts.not_connected += 1;
    }

    /// Counts a sent request with its error, of which `waited` was for a connection.
    pub fn sent(&mut self, error: Duration, waited: Duration) {
        self.counts.sent += 1;
        self.counts.late += u64::from(error > LATE);
        self.errors.saturating_record(micros(error));
        self.own_errors.saturating_record(micros(error.saturating_sub(waited)));
    }

    pub fn finish(self, connections_max: usize) -> ScheduleStats {
        let ms = |us: u64| us as f64 / 1e3;
        ScheduleStats {
            error_p50_ms: ms(self.errors.value_at_quantile(0.5)),
            error_p99_ms: ms(self.errors.value_at_quantile(0.99)),
            error_max_ms: ms(self.errors.max()),
            own_error_p99_ms: ms(self.own_errors.value_at_quantile(0.99)),
            connect_p99_ms: ms(self.connects.value_at_quantile(0.99)),
            connect_max_ms: ms(self.connects.max()),
            connections_max,
            ..self.counts
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(ERROR_US_MAX)
}
