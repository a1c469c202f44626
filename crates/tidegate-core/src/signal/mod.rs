//! Explicit backpressure: the signal of a receiver, and the sender's reaction to it.
//!
//! The receiver keeps a [`LevelGauge`] on the buffer that it drains ([`StatsBuffer`] is one) and puts its
//! [`BackpressureSignal`] into every answer. The sender records it on a [`SignalBoard`], and its flush loop
//! follows a [`FlushPolicy`]. Nothing latches: a level falls as the buffer drains, level 0 clears at once, a
//! silent receiver's signal expires, and probes continue at the highest level.
//!
//! Uses the message classes of `admission`. Must not know connections, frames or buffers.
//!
//! ```
//! use tidegate_core::signal::BackpressureLevel;
//!
//! assert_eq!(BackpressureLevel::of_fill(0.5), BackpressureLevel::None);
//! assert_eq!(BackpressureLevel::of_fill(0.7), BackpressureLevel::Throttle);
//! assert!(BackpressureLevel::Batch < BackpressureLevel::Reject);
//! ```

mod backpressure;
mod board;
mod config;
mod flush;
mod gauge;
mod level;
mod stats_buffer;

pub use backpressure::{BackpressureSignal, Update};
pub use board::SignalBoard;
pub use config::{DELAY_MS_MAX, LevelConfig, LevelConfigError, LevelDelays, TTL_MS_MAX};
pub use flush::{Flush, FlushPolicy, Waiting};
pub use gauge::LevelGauge;
pub use level::{BATCH_FILL, BackpressureLevel, REJECT_FILL, THROTTLE_FILL};
pub use stats_buffer::{
    StatsBuffer, StatsBufferTotals, StatsOffer, StatsRefused, StatsRefusedReason,
};
