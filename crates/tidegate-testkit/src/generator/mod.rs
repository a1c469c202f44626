//! Open-loop load generator over HTTP: requests are sent on schedule, independent of earlier responses.
//! May use: HTTP clients, tokio, a kernel timer.
//! Must not know: scenarios, the mock, the gateway.
//!
//! A [`Driver`] supplies requests with due times and receives their results; [`run`] does the rest on the calling
//! thread. The driver gets `due`, `sent` and `at` of each request and measures latency from `due`. A stalled
//! server is therefore visible in every request that was due meanwhile, not only in those in flight (no
//! coordinated omission).
//!
//! # Connections
//!
//! The generator reuses the most recently used idle connection. Without an idle one it opens a connection, up to
//! [`connections_max`](GeneratorConfig::connections_max); at that limit a due request waits in the queue, counts
//! as `no_connection`, and is sent when a connection is free. Connections are not opened for particular requests:
//! the oldest queued request gets the first free connection, and fails if a connection can't be opened. At most 64
//! connections are being opened at a time.
//!
//! A request on a connection that the server closed while it was idle moves to another connection if it was not
//! written. If it was, it is [`Broken`](Failure::Broken): sending it again would be a second request that is not
//! counted. A driver that wants a retry returns the request.
//!
//! Only `http` is supported, not `https`. A process that needs thousands of connections must raise its limit of
//! open files; connections that fail for lack of local resources count in [`ScheduleStats::out_of_sockets`].
//!
//! # Accuracy
//!
//! [`ScheduleStats`] shows the delay between `due` and sending. A generator without enough CPU time or connections
//! is visible there; its load was then not the requested one. A kernel timer drives the schedule, because the
//! runtime's timers have a resolution of 1 ms. One thread does everything: a slow driver delays the schedule.
//!
//! # Limits
//!
//! At most [`QUEUED_MAX`] requests wait in the queue, and as many retries are scheduled; further ones fail as
//! [`Unsent`](Failure::Unsent). The first [`BODY_BYTES_MAX`] bytes of a body are stored; the rest is discarded.
//!
//! # Example
//!
//! ```no_run
//! use std::time::Duration;
//! use tidegate_testkit::generator::{Answer, Driver, GeneratorConfig, ScheduledRequest, Template, run};
//!
//! /// A thousand requests, one per millisecond.
//! struct Even {
//!     next: u64,
//!     slowest: Duration,
//! }
//!
//! impl Driver for Even {
//!     fn next(&mut self) -> Option<ScheduledRequest> {
//!         self.next += 1;
//!         (self.next <= 1_000).then(|| ScheduledRequest::new(Duration::from_millis(self.next), 0, self.next))
//!     }
//!
//!     fn ended(&mut self, scheduled: ScheduledRequest, answer: &Answer<'_>) -> Option<ScheduledRequest> {
//!         self.slowest = self.slowest.max(answer.at - scheduled.due);
//!         None
//!     }
//! }
//!
//! # fn main() -> std::io::Result<()> {
//! let config = GeneratorConfig::new("http://127.0.0.1:8080".parse().expect("a URI"));
//! let driver = Even { next: 0, slowest: Duration::ZERO };
//! let (driver, schedule) = run(config, vec![Template::get("/")], driver)?;
//! println!("{:?}, p99 of the schedule's error {} ms", driver.slowest, schedule.error_p99_ms);
//! # Ok(())
//! # }
//! ```

mod clock;
mod config;
mod connection;
mod driver;
mod engine;
mod in_flight;
mod prepared;
mod queue;
mod run;
mod schedule;
mod stats;
mod timer;

pub use config::{GeneratorConfig, Protocol, Template};
pub use connection::BODY_BYTES_MAX;
pub use driver::{Answer, Driver, Failure, Progress, Reply, ScheduledRequest};
pub use queue::QUEUED_MAX;
pub use run::run;
pub use stats::ScheduleStats;
