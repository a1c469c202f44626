use hdrhistogram::Histogram;
use std::io;
use std::time::Duration;

/// An error above this is told as late: a client would notice it.
const LATE: Duration = Duration::from_millis(1);

/// The longest error that is told apart from longer ones: an hour, in microseconds.
const ERROR_US_MAX: u64 = 3_600_000_000;

/// How well a run kept to its schedule. The error of a request is `sent − due`; what was never sent has none
/// and is counted in `unsent` or `not_connected`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleStats {
    /// Requests that were due, retries included: `sent + unsent + not_connected`.
    pub due: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Requests of which nothing was sent because of the generator: all connections that it may have were taken,
    /// it had no socket left, or the request could not be made.
    pub unsent: u64,
    /// Requests of which nothing was sent because of the target: it refused the connection, cut it before it was
    /// used, or did not take it while the client waited.
    pub not_connected: u64,
    /// Requests that were sent more than 1 ms after they were due.
    pub late: u64,
    /// Requests that had to wait because all connections were taken when they were due, and no further one was
    /// allowed.
    pub no_connection: u64,
    /// Connections that this machine could not give: it had no descriptor or no port left.
    pub out_of_sockets: u64,
    /// The error's median in milliseconds.
    pub error_p50_ms: f64,
    /// Its 99th percentile.
    pub error_p99_ms: f64,
    /// Its maximum.
    pub error_max_ms: f64,
    /// The 99th percentile of the error without the time that requests waited for a connection: how late the
    /// generator itself was, in milliseconds.
    pub own_error_p99_ms: f64,
    /// The 99th percentile of the time that connections took to open, in milliseconds. A request that waits for
    /// a new one is late by that: then it is the server that made it late.
    pub connect_p99_ms: f64,
    /// Its maximum.
    pub connect_max_ms: f64,
    /// The most connections that were open at once.
    pub connections_max: usize,
}

/// Collects them.
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

    /// One was sent so late, of which it waited so long for a connection.
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
