//! A store in a folder of this machine.

mod block;
mod checkpoint;
mod encoded;
mod engine;
mod key;
#[cfg(test)]
mod power_cut;
mod read;
mod recent;
mod retain;
mod series;
mod store;
mod totals;
mod writer;

pub use store::FjallStore;
