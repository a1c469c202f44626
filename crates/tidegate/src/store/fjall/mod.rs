//! A store in a folder of this machine.

mod block;
mod checkpoint;
mod engine;
mod key;
mod read;
mod retain;
mod store;
mod writer;

pub use store::FjallStore;
