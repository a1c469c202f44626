//! An open-loop load generator over HTTP: a request is sent when it is due, whatever became of the earlier ones.
//!
//! A [`Driver`] says what is due when and is told what came of it; [`run`] does the rest on the thread that
//! calls it. The generator knows nothing of scenarios, and takes no latency itself: the driver has `due`,
//! `sent` and `at` of each request, and counts from `due`. Counted so, a server that stalls is seen by every
//! request that was due meanwhile, not only by those that happened to be under way (no coordinated omission).
//!
//! # Connections
//!
//! An idle connection is used again, the most recently used one first. Where none is idle one is opened, up to
//! [`connections_max`](GeneratorConfig::connections_max); beyond that a due request waits in line, is counted as
//! `no_connection`, and is sent when a connection comes free. A connection is not opened for one request: whoever
//! has waited longest takes the first that is free, and is the one that fails when opening one fails. At most 64
//! are being opened at once: what waits for that is late, and is shown as that.
//!
//! A request that meets a connection which the server closed while it was idle goes to another connection if
//! nothing of it was written. If something was, it is [`Broken`](Failure::Broken), although the server may not
//! have looked at it: to send it once more would be a second request that nobody counts. A driver that wants a
//! retry hands the request back.
//!
//! Only `http` is spoken, not `https`. A process that wants thousands of connections raises its own limit of open
//! files first; connections that this machine could not give are counted in [`ScheduleStats::out_of_sockets`].
//!
//! # What it says of itself
//!
//! [`ScheduleStats`] tells how far from `due` requests were sent. A generator that can't keep up, for want of
//! processor time or of connections, shows there, and then its load was not the one that was asked for. The
//! clock of the schedule is a kernel timer, because the runtime's own timers know whole milliseconds only. One
//! thread does everything: a driver that is slow makes the schedule late.
//!
//! # Bounds
//!
//! [`HELD_MAX`] requests may wait in line, and as many may be handed back for later; what is beyond is told to the
//! driver as [`Unsent`](Failure::Unsent). Of a body the first [`BODY_KEPT`] bytes are kept and the rest is read
//! away.
//!
//! # Example
//!
//! ```no_run
//! use std::time::Duration;
//! use tidegate_server::generator::{Answer, Driver, GeneratorConfig, Shot, Template, run};
//!
//! /// A thousand requests, one a millisecond.
//! struct Even {
//!     next: u64,
//!     slowest: Duration,
//! }
//!
//! impl Driver for Even {
//!     fn next(&mut self) -> Option<Shot> {
//!         self.next += 1;
//!         (self.next <= 1_000).then(|| Shot::new(Duration::from_millis(self.next), 0, self.next))
//!     }
//!
//!     fn ended(&mut self, shot: Shot, answer: &Answer<'_>) -> Option<Shot> {
//!         self.slowest = self.slowest.max(answer.at - shot.due);
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
mod connect;
mod driver;
mod engine;
mod event;
mod exchange;
mod flights;
mod http1;
mod http2;
mod line;
mod pool;
mod prepared;
mod run;
mod schedule;
mod stats;
mod timer;

pub use config::{GeneratorConfig, Protocol, Template};
pub use driver::{Answer, Driver, Failure, Head, Progress, Shot};
pub use exchange::BODY_KEPT;
pub use line::HELD_MAX;
pub use run::run;
pub use stats::ScheduleStats;
