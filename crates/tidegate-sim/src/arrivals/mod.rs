//! Arrival times and work of requests, records and tasks: the same for one scenario and seed, simulated or real.
//!
//! May use the scenario and seeded generators. Must not know what receives the load.

mod arrival;
mod load_shape;
mod offers;
mod stream;
mod tasks;

pub use arrival::{Arrival, Arrivals};
use load_shape::LoadShape;
pub use offers::{Offer, Offers};
pub use tasks::TaskArrivals;
