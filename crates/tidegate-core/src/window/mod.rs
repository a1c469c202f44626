//! How much each stage of the ingestion pipeline may hold.

mod stage;

pub use stage::Stage;
