//! Load reports: where they come from, how long they count, and what happens without them.

mod expiry;
mod load_sources;
mod reported_elsewhere;
mod series;
mod vanishing;
