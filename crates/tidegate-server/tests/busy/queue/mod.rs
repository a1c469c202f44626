//! The queue of a model: its order, its bounds, its deadlines, its fairness, and what an operator sees of it.

mod bounds;
mod deadlines;
mod fairness;
mod leaving;
mod order;
mod series;
mod tenants;
mod upstreams;
