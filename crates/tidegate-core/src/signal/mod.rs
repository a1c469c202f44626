//! What a receiver tells a sender of how much it may send.
//!
//! ```
//! use tidegate_core::signal::BackpressureLevel;
//!
//! assert_eq!(BackpressureLevel::of_fill(0.5), BackpressureLevel::None);
//! assert_eq!(BackpressureLevel::of_fill(0.7), BackpressureLevel::Throttle);
//! assert!(BackpressureLevel::Batch < BackpressureLevel::Reject);
//! ```

mod backpressure;
mod level;

pub use backpressure::BackpressureSignal;
pub use level::{BATCH_FILL, BackpressureLevel, REJECT_FILL, THROTTLE_FILL};
