//! Windows of the ingestion pipeline's stages.
//!
//! [`step`] is the control law of one stage, a pure function of its state and a measurement. [`AdaptiveScheduler`]
//! runs it over the five stages, last one first, and keeps their sum within a budget.
//!
//! Uses nothing of this crate. Must not know channels, records or clocks.

mod budget;
mod config;
mod config_error;
mod cubic;
mod estimates;
mod grant;
mod latency;
mod law;
mod sample;
mod scheduler;
mod seed;
mod stage;
mod state;
mod step;

pub use config::WindowConfig;
pub use config_error::WindowConfigError;
pub use grant::{Cause, Grant};
pub use law::{Law, UnknownLaw};
pub use sample::{LATENCY_SAMPLES_MIN, Neighbours, StageSample};
pub use scheduler::AdaptiveScheduler;
pub use stage::Stage;
pub use state::{LawState, StageState};
pub use step::step;
