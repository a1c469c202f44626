//! A store in a folder of this machine.

mod block;
mod checkpoint;
mod engine;
mod folder;
mod key;
mod read;
mod retain;
mod store;
mod view;
mod writer;

pub use store::FjallStore;
