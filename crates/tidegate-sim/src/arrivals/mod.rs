//! When which request comes, and what it asks. The same scenario and seed: the same arrivals, simulated or real.

mod arrival;
mod offers;
mod stream;
mod tasks;
mod tide;

pub use arrival::{Arrival, Arrivals};
pub use offers::{Offer, Offers};
pub use tasks::TaskArrivals;
use tide::Tide;
